"""PUT and GET /v4/account."""

from decimal import Decimal
from typing import Annotated, Literal

from django.http import HttpRequest, HttpResponse
from pydantic import Field

from payments_gateway.reference import BANKS
from payments_gateway.sandbox.merchant import accounts
from payments_gateway.sandbox.merchant.entrance import operation
from payments_gateway.sandbox.merchant.models import BankAccount
from payments_gateway.sandbox.wire.answers import answer
from payments_gateway.sandbox.wire.bodies import Body, read_body, read_query
from payments_gateway.sandbox.wire.fields import Name, Whole


class AccountBody(Body):
    """Body of PUT /v4/account."""

    account_name: Name
    currency: Literal["NGN", "USD"]
    preferred_account_name: Name | None = None


class AccountQuery(Body):
    """Query of GET /v4/account."""

    account_name: Name | None = None
    page: Annotated[Whole, Field(ge=1)] = 1
    per_page: Annotated[Whole, Field(ge=1, le=100)] = 20


@operation("PUT", "GET")
def account(request: HttpRequest) -> HttpResponse:
    """The merchant's bank accounts: one more, or those there are."""
    return _create(request) if request.method == "PUT" else _list(request)


def _create(request: HttpRequest) -> HttpResponse:
    body = read_body(request, AccountBody)
    opened = accounts.open_account(
        body.account_name,
        printed_name=body.preferred_account_name or body.account_name,
        currency=body.currency,
    )
    return answer({"data": [created_account(opened)], "message": "Account created"})


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
    """Accounts of one name are one account with an asset for each; a page beyond the last is empty."""
    query = read_query(request, AccountQuery)
    page = accounts.accounts_by_name(query.account_name, page=query.page, per_page=query.per_page)
    listed = [
        {"accountName": name, "assets": [_asset(account) for account in opened]}
        for name, opened in page.items()
    ]
    return answer({"data": {"accounts": listed}, "message": "Accounts retrieved"})


def _asset(account: BankAccount) -> dict[str, object]:
    # Whatever is paid in goes to the merchant's balance of that currency, so the account itself holds nothing.
    return {
        "currency": account.currency,
        "id": account.account_number,
        "type": "bank_account",
        "balance": Decimal(0),
    }
