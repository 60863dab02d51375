"""The optional reads of open-points.md, "Extra reads that may exist": banks, rates, currencies, one record.

GET /payment/resolve, by which the real service is said to move money, does not exist here: it is an unknown payment.
"""

from decimal import Decimal
from itertools import permutations
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from django.urls import path
from pydantic import Field

from payments_gateway.money import CURRENCIES
from payments_gateway.reference import BANKS
from payments_gateway.sandbox import clock
from payments_gateway.sandbox.books import rates
from payments_gateway.sandbox.books.networks import CRYPTO, NETWORKS
from payments_gateway.sandbox.books.records import transaction_record
from payments_gateway.sandbox.faults.lists import visible
from payments_gateway.sandbox.merchant.entrance import operation
from payments_gateway.sandbox.models import Payment, Transaction
from payments_gateway.sandbox.service.payments import payment_wire
from payments_gateway.sandbox.wire.amounts import amount_number
from payments_gateway.sandbox.wire.answers import answer, envelope
from payments_gateway.sandbox.wire.bodies import Body, read_query
from payments_gateway.sandbox.wire.errors import RefusedError

_NIGERIA = frozenset({"ng", "nga", "nigeria"})


class BankQuery(Body):
    """Query of GET /bank/supported."""

    country: Annotated[str, Field(max_length=60)] = "NG"


class NoQuery(Body):
    """The other reads take no query."""


@operation("GET")
def banks(request: HttpRequest) -> HttpResponse:
    """The banks of a country, sorted by name; all of them are in Nigeria, by its name or its code."""
    query = read_query(request, BankQuery)
    here = BANKS if query.country.lower() in _NIGERIA else {}
    by_name = sorted(here.items(), key=lambda bank: bank[1])
    return envelope("Banks retrieved", [{"Code": code, "Name": name} for code, name in by_name])


@operation("GET")
def exchange_rates(request: HttpRequest) -> HttpResponse:
    """The rate of this minute for every pair, with the key by which a payment may ask for it."""
    read_query(request, NoQuery)
    now = clock.now()
    pairs = permutations(CURRENCIES, 2)
    return envelope(
        "Rates retrieved",
        {f"{a}{b}": {"rate": rates.quote(a, b, now), "key": rates.key_of(a, b, now)} for a, b in pairs},
    )


@operation("GET")
def currencies(request: HttpRequest) -> HttpResponse:
    """The currencies that balances are kept in."""
    read_query(request, NoQuery)
    found = [
        {"code": each.code, "name": each.name, "decimals": each.decimals} for each in CURRENCIES.values()
    ]
    return envelope("Currencies retrieved", found)


@operation("GET")
def minimums(request: HttpRequest) -> HttpResponse:
    """The least amount of each currency: its smallest unit, since the simulation moves that, too."""
    read_query(request, NoQuery)
    return envelope("Minimums retrieved", {code: _smallest(code) for code in CURRENCIES})


@operation("GET")
def wallet_config(request: HttpRequest) -> HttpResponse:
    """The networks on which crypto can be sent, and what each asks for it."""
    read_query(request, NoQuery)
    networks = [{"network": each.name, "fee": amount_number(each.fee, CRYPTO)} for each in NETWORKS.values()]
    return envelope("Wallet configuration retrieved", [{"currency": CRYPTO, "networks": networks}])


@operation("GET")
def transaction(request: HttpRequest, transaction_id: str) -> HttpResponse:
    """One transaction record, without an envelope; 404 for one that the list does not show either."""
    read_query(request, NoQuery)
    record = visible(Transaction.objects.filter(transaction_id=transaction_id)).first()
    if record is None:
        raise RefusedError(404, "there is no such transaction")
    return answer(transaction_record(record))


@operation("GET")
def payment(request: HttpRequest, payment_id: str) -> HttpResponse:
    """One payment; 404 for one that is not known."""
    read_query(request, NoQuery)
    found = Payment.objects.filter(payment_id=payment_id).first()
    if found is None:
        raise RefusedError(404, "there is no such payment")
    return envelope("Payment retrieved", payment_wire(found))


def _smallest(code: str) -> Decimal:
    return Decimal(1).scaleb(-CURRENCIES[code].decimals)


paths = [
    path("bank/supported", banks),
    path("currency/rate", exchange_rates),
    path("currency/supported", currencies),
    path("currency/minimum-allowed", minimums),
    path("wallet/supported/config", wallet_config),
    path("transaction/<str:transaction_id>", transaction),
    path("payment/<str:payment_id>", payment),
]
"""They come after all others: `transaction/summary` is no id."""
