"""The merchant's bank accounts and callback URL (/v4/account, /callbackurl), and POST /bank/resolve."""

import hashlib
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import chain
from typing import Annotated
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from pydantic import AfterValidator, AnyHttpUrl, Field, ValidationError

from payments_gateway import BANKS
from payments_gateway.profile.model import ProfileName
from payments_gateway.sandbox.api.authentication import api_view
from payments_gateway.sandbox.api.http import (
    AccountNumber,
    ApiRequest,
    BankCode,
    EmptyQuery,
    PrintableText,
    WholeNumber,
    envelope,
    json_response,
    read_body,
    read_query,
)
from payments_gateway.sandbox.books.counterparties import account_holder
from payments_gateway.sandbox.errors import RefusedError
from payments_gateway.sandbox.merchant import details as merchant_details
from payments_gateway.sandbox.merchant.details import own_account_holder
from payments_gateway.sandbox.models import BankAccount
from payments_gateway.sandbox.settings import PROFILE, PROFILE_NAME


def _account_currency(code: str) -> str:
    if code not in PROFILE.account_currencies:
        raise ValueError(f"must be {' or '.join(map(repr, PROFILE.account_currencies))}")
    return code


class OpenAccountRequest(ApiRequest):
    """Body of PUT /v4/account."""

    account_name: PrintableText
    currency: Annotated[str, AfterValidator(_account_currency)]
    preferred_account_name: PrintableText | None = None


class AccountQuery(ApiRequest):
    """Query of GET /v4/account."""

    account_name: PrintableText | None = None
    page: Annotated[WholeNumber, Field(ge=1)] = 1
    per_page: Annotated[WholeNumber, Field(ge=1, le=100)] = 20


@api_view("PUT", "GET")
def bank_accounts(request: HttpRequest) -> HttpResponse:
    """PUT /v4/account opens a bank account; GET lists them."""
    return _create(request) if request.method == "PUT" else _list(request)


def _create(request: HttpRequest) -> HttpResponse:
    body = read_body(request, OpenAccountRequest)
    opened = merchant_details.open_account(
        body.account_name,
        printed_name=body.preferred_account_name or body.account_name,
        currency=body.currency,
    )
    return json_response({"data": [created_account(opened)], "message": "Account created"})


def created_account(account: BankAccount) -> dict[str, str]:
    """A created bank account of the specification."""
    return {
        "account_name": account.printed_name,
        "account_number": account.account_number,
        "bank_code": account.bank_code,
        "bank_name": BANKS[account.bank_code],
        "currency": account.currency,
        "status": account.status,
    }


def _list(request: HttpRequest) -> HttpResponse:
    """The accounts of one page of names; a page beyond the last is empty."""
    query = read_query(request, AccountQuery)
    page = merchant_details.accounts_by_name(query.account_name, page=query.page, per_page=query.per_page)
    return json_response({"data": _LISTED[PROFILE_NAME](page), "message": "Accounts retrieved"})


def _by_name(page: dict[str, list[BankAccount]]) -> dict[str, object]:
    """Accounts of one name are one account with an asset for each."""
    return {
        "accounts": [
            {"accountName": name, "assets": [_asset(account) for account in opened]}
            for name, opened in page.items()
        ]
    }


def _by_currency(page: dict[str, list[BankAccount]]) -> dict[str, object]:
    """Accounts of one currency are its assets, without their names."""
    found: dict[str, list[dict[str, object]]] = {}
    for account in chain.from_iterable(page.values()):
        asset = {"balance": Decimal(0), "pendingDebit": Decimal(0), "accountNumber": account.account_number}
        found.setdefault(account.currency, []).append(asset)
    return {currency: {"asset": assets} for currency, assets in found.items()}


_LISTED: Mapping[ProfileName, Callable[[dict[str, list[BankAccount]]], dict[str, object]]] = {
    "specification": _by_name,
    "published": _by_currency,
}


def _asset(account: BankAccount) -> dict[str, object]:
    # Money paid in is credited to the merchant's balance of that currency, so the account's own balance is zero.
    return {
        "currency": account.currency,
        "id": account.account_number,
        "type": "bank_account",
        "balance": Decimal(0),
    }


_LISTED_SINCE = "2021-03-01T09:00:00.000Z"


class ResolveRequest(ApiRequest):
    """Body of POST /bank/resolve."""

    account_number: AccountNumber
    bank_code: BankCode


@api_view("POST", credentials=False)
def resolve_holder(request: HttpRequest) -> HttpResponse:
    """POST /bank/resolve: the holder of a bank account; 404 if it does not exist."""
    body = read_body(request, ResolveRequest)
    number, bank_code = body.account_number, body.bank_code
    name = own_account_holder(number, bank_code) or account_holder(number, bank_code)
    if name is None:
        raise RefusedError(404, f"there is no account {number} at {BANKS[bank_code]}")
    return json_response({"data": _RESOLVED[PROFILE_NAME](number, bank_code, name)})


def _resolution(account_number: str, bank_code: str, name: str) -> dict[str, object]:
    digest = hashlib.sha256(f"resolution {bank_code}/{account_number}".encode()).hexdigest()
    return {
        "responsemessage": "SUCCESS",
        "responsecode": "00",
        "uniquereference": digest[:24],
        "internalreference": digest[24:48],
        "accountname": name,
        "accountnumber": account_number,
        "phonenumber": "",
        "currency": "NGN",
        "country": "NG",
        "code": bank_code,
        "name": BANKS[bank_code],
        "is_visible": "1",
        "is_trashed": "0",
        "deleted_at": "",
        "created_at": _LISTED_SINCE,
        "updated_at": _LISTED_SINCE,
    }


def _nested_resolution(account_number: str, bank_code: str, name: str) -> dict[str, object]:
    return {"accountName": name, "data": {"name": BANKS[bank_code], "code": bank_code}}


_RESOLVED: Mapping[ProfileName, Callable[[str, str, str], dict[str, object]]] = {
    "specification": _resolution,
    "published": _nested_resolution,
}


_PLAIN = re.compile(r"https?://[!-\[\]-~]+", re.IGNORECASE)


def _check_web_address(text: str) -> str:
    # AnyHttpUrl alone repairs what browsers repair, such as spaces and backslashes; reject those instead.
    if not _PLAIN.fullmatch(text) or not _is_url(text):
        raise ValueError("must be an http or https URL")
    if "@" in urlsplit(text).netloc:
        raise ValueError("must not contain a user name or password")
    return text


def _is_url(text: str) -> bool:
    try:
        AnyHttpUrl(text)
        return bool(urlsplit(text).hostname)
    except (ValidationError, ValueError):
        return False


class CallbackUrlRequest(ApiRequest):
    """Body of PUT /callbackurl."""

    callback_url: Annotated[str, Field(max_length=2048), AfterValidator(_check_web_address)]


@api_view("PUT", "GET")
def callback_url(request: HttpRequest) -> HttpResponse:
    """PUT /callbackurl sets the URL for webhooks; GET returns it."""
    if request.method == "PUT":
        return _set(request)
    read_query(request, EmptyQuery)
    return envelope("Callback URL retrieved", {"callbackUrl": merchant_details.callback_url()})


def _set(request: HttpRequest) -> HttpResponse:
    merchant_details.set_callback_url(read_body(request, CallbackUrlRequest).callback_url)
    return json_response({"success": True, "message": "Callback URL updated"})
