"""Beyond the specification: the optional reads (the profile's `capabilities`) and GET /openapi.json.

GET /payment/resolve, which is said to move money at the real provider, does not exist here.
"""

import json
from decimal import Decimal
from functools import cache
from itertools import permutations
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from django.urls import path
from pydantic import Field

from payments_gateway import BANKS
from payments_gateway.money import CURRENCIES
from payments_gateway.operations import api_description
from payments_gateway.sandbox import clock
from payments_gateway.sandbox.amounts import DECIMALS, amount_number
from payments_gateway.sandbox.api.authentication import api_view
from payments_gateway.sandbox.api.http import ApiRequest, EmptyQuery, envelope, json_response, read_query
from payments_gateway.sandbox.api.payments import payment_with_id
from payments_gateway.sandbox.books import rates
from payments_gateway.sandbox.books.counterparties import CRYPTO, NETWORKS, WALLETS
from payments_gateway.sandbox.books.records import transaction_record, visible
from payments_gateway.sandbox.errors import RefusedError
from payments_gateway.sandbox.models import Payment, Transaction
from payments_gateway.sandbox.settings import PROFILE, PROFILE_NAME

_IS_PUBLISHED = PROFILE_NAME == "published"
_NIGERIA = frozenset({"ng", "nga", "nigeria"})


class BankQuery(ApiRequest):
    """Query of GET /bank/supported."""

    country: Annotated[str, Field(max_length=60)] = "NG"


@api_view("GET", credentials=PROFILE.extra_credentials)
def banks(request: HttpRequest) -> HttpResponse:
    """The banks of a country, sorted by name. All are in Nigeria, which may be given by name or code."""
    query = read_query(request, BankQuery)
    here = BANKS if query.country.lower() in _NIGERIA else {}
    by_name = sorted(here.items(), key=lambda bank: bank[1])
    return envelope("Banks retrieved", [{"Code": code, "Name": name} for code, name in by_name])


@api_view("GET", credentials=PROFILE.extra_credentials)
def exchange_rates(request: HttpRequest) -> HttpResponse:
    """The rate of this minute for every pair, with the key for using it in a payment."""
    read_query(request, EmptyQuery)
    now = clock.now()
    pairs = permutations(CURRENCIES, 2)
    return envelope(
        "Rates retrieved",
        {f"{a}{b}": {"rate": rates.quote(a, b, now), "key": rates.rate_key(a, b, now)} for a, b in pairs},
    )


@api_view("GET", credentials=PROFILE.extra_credentials)
def currencies(request: HttpRequest) -> HttpResponse:
    """The currencies of the balances; in the published profile, those taken in and those paid out."""
    read_query(request, EmptyQuery)
    found = [
        {"code": each.code, "name": each.name, "decimals": each.decimals} for each in CURRENCIES.values()
    ]
    by_direction = {"incomingCurrencies": [CRYPTO], "outgoingCurrencies": ["NGN", "USD"]}
    return envelope("Currencies retrieved", by_direction if _IS_PUBLISHED else found)


@api_view("GET", credentials=PROFILE.extra_credentials)
def minimums(request: HttpRequest) -> HttpResponse:
    """The minimum amount of each currency: its smallest unit, which the sandbox accepts."""
    read_query(request, EmptyQuery)
    found = {code: _smallest_unit(code) for code in DECIMALS}
    listed = [{"currency": code, "amount": amount} for code, amount in found.items()]
    return envelope("Minimums retrieved", listed if _IS_PUBLISHED else found)


@api_view("GET", credentials=PROFILE.extra_credentials)
def wallet_config(request: HttpRequest) -> HttpResponse:
    """The networks on which crypto can be sent, with their fees in the profile of the specification."""
    read_query(request, EmptyQuery)
    if _IS_PUBLISHED:
        by_network = {name: [code for code in WALLETS if name in WALLETS[code]] for name in NETWORKS}
        both = {"byNetwork": by_network, "byCurrency": WALLETS}
        return json_response({"state": True, "message": "Wallet configuration retrieved", "data": both})
    wallets = [
        {
            "currency": code,
            "networks": [{"network": name, "fee": amount_number(NETWORKS[name].fee, code)} for name in names],
        }
        for code, names in WALLETS.items()
    ]
    return envelope("Wallet configuration retrieved", wallets)


@api_view("GET")
def transaction(request: HttpRequest, transaction_id: str) -> HttpResponse:
    """One transaction record, without an envelope; 404 for one that the list does not show either."""
    read_query(request, EmptyQuery)
    record = visible(Transaction.objects.filter(transaction_id=transaction_id)).first()
    if record is None:
        raise RefusedError(404, "there is no such transaction")
    return json_response(transaction_record(record))


@api_view("GET")
def payment(request: HttpRequest, payment_id: str) -> HttpResponse:
    """One payment; 404 for an unknown one."""
    read_query(request, EmptyQuery)
    found = Payment.objects.filter(payment_id=payment_id).first()
    if found is None:
        raise RefusedError(404, "there is no such payment")
    return envelope("Payment retrieved", payment_with_id(found))


def _smallest_unit(code: str) -> Decimal:
    return Decimal(1).scaleb(-DECIMALS[code])


url_patterns = [
    path("bank/supported", banks),
    path("currency/rate", exchange_rates),
    path("currency/supported", currencies),
    path("currency/minimum-allowed", minimums),
    path("wallet/supported/config", wallet_config),
    path("transaction/<str:transaction_id>", transaction),
    path("payment/<str:payment_id>", payment),
]
"""Append them to the other URLs: `transaction/summary` must not be matched as an id."""


@api_view("GET", credentials=False)
def openapi(request: HttpRequest) -> HttpResponse:
    """`payments_gateway/openapi.yaml`, as JSON, as the sandbox's profile has it."""
    return HttpResponse(_openapi_json(), content_type="application/json")


@cache
def _openapi_json() -> str:
    return json.dumps(api_description(PROFILE_NAME), ensure_ascii=False)
