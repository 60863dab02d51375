"""What a payment is about: amounts, rate and reference as the merchant asks for them, and as they are agreed on."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from payments_gateway.sandbox.books import rates
from payments_gateway.sandbox.wire.refusals import refused_member

_LARGEST = 10**15  # minor units
_TOLERANCE = 100  # two given amounts may differ by one part in so many


@dataclass(frozen=True, slots=True)
class Terms:
    """What the merchant asks for; amounts in minor units, one of them is enough. `rate_key` may fix the rate."""

    incoming_currency: str
    outgoing_currency: str
    incoming_amount: int | None = None
    outgoing_amount: int | None = None
    rate_key: str = ""


@dataclass(frozen=True, slots=True)
class Agreement:
    """What the customer sends, what is paid out for it, and the rate between the two."""

    incoming: int
    outgoing: int
    rate: Decimal


def agree(terms: Terms, at: datetime) -> Agreement:
    """The agreement of a payment created at this moment.

    One amount determines the other. Of two, the incoming one counts, and the outgoing one must lie within one percent
    of what it becomes. Raises RefusedError 400.
    """
    rate = rates.quote(terms.incoming_currency, terms.outgoing_currency, _moment(terms, at))
    pair = terms.incoming_currency, terms.outgoing_currency
    if terms.incoming_amount is not None:
        incoming, outgoing = terms.incoming_amount, rates.received(terms.incoming_amount, *pair, rate)
    elif terms.outgoing_amount is not None:
        incoming, outgoing = rates.needed(terms.outgoing_amount, *pair, rate), terms.outgoing_amount
    else:
        raise refused_member("incomingAmount", "or outgoingAmount is required")
    _check(terms, incoming, outgoing)
    return Agreement(incoming, outgoing, rate)


def _moment(terms: Terms, at: datetime) -> datetime:
    if not terms.rate_key:
        return at
    moment = rates.moment_of(terms.rate_key, terms.incoming_currency, terms.outgoing_currency)
    if moment is None:
        raise refused_member("rateKey", "is not a key of a rate of these currencies")
    if not moment <= at < moment + rates.KEY_LASTS:
        raise refused_member("rateKey", "has expired; read the rate again")
    return moment


def _check(terms: Terms, incoming: int, outgoing: int) -> None:
    if outgoing == 0:
        raise refused_member("incomingAmount", f"is too little: nothing in {terms.outgoing_currency}")
    if max(incoming, outgoing) > _LARGEST:
        raise refused_member("incomingAmount", "or what becomes of it is more than a payment may be")
    asked = terms.outgoing_amount or outgoing
    if abs(asked - outgoing) * _TOLERANCE > outgoing:
        raise refused_member("outgoingAmount", "is not what incomingAmount becomes at the present rate")
