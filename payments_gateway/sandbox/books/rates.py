"""Exchange rates of a simulated market, and the quote of a payment.

Pure. Rates drift around a mean by the day, the hour and the minute, and are the same for everyone within a
minute; conversions lose a small spread, so converting back and forth never gains.
"""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_DOWN, Decimal

from payments_gateway.sandbox.amounts import DECIMALS
from payments_gateway.sandbox.errors import refused_member

SPREAD = Decimal("0.006")
"""The share of each conversion that the provider keeps."""

RATE_KEY_LIFETIME = timedelta(minutes=10)
"""How long a rate key is valid."""

_SEED = "countersign market"
_DOLLAR_IN_KOBO = 154_500
_DRIFTS_OF_DOLLAR = ((86_400, 4_200), (3_600, 500), (60, 40))
_TETHER_IN_MILLIONTHS = 999_200
_DRIFTS_OF_TETHER = ((86_400, 500), (3_600, 150))
_KEY_LENGTH = 12


def quote(from_currency: str, to_currency: str, at: datetime) -> Decimal:
    """How much of one currency the provider pays for 1 of the other in this minute, after the spread."""
    minute = int(at.timestamp()) // 60 * 60
    rate = _value(from_currency, minute) / _value(to_currency, minute) * (1 - SPREAD)
    return rate.quantize(Decimal("0.0001") if rate >= 1 else Decimal("1e-10"), rounding=ROUND_DOWN)


def amount_received(units: int, from_currency: str, to_currency: str, rate: Decimal) -> int:
    """Convert minor units at this rate, rounded down to minor units of the other currency."""
    numerator, denominator = rate.as_integer_ratio()
    return units * numerator * _minor(to_currency) // (denominator * _minor(from_currency))


def amount_needed(units: int, from_currency: str, to_currency: str, rate: Decimal) -> int:
    """The least amount to sell, in minor units, to receive at least this many minor units."""
    numerator, denominator = rate.as_integer_ratio()
    return -(-units * denominator * _minor(from_currency) // (numerator * _minor(to_currency)))


def rate_key(from_currency: str, to_currency: str, at: datetime) -> str:
    """The key with which a payment can use the rate of this minute (`rateKey`)."""
    minute = int(at.timestamp()) // 60
    return f"{minute:x}-{_digest(f'{from_currency}{to_currency} {minute}')[:_KEY_LENGTH]}"


def rate_key_time(key: str, from_currency: str, to_currency: str) -> datetime | None:
    """The minute of this key; None if it is not a key of this pair."""
    try:
        moment = datetime.fromtimestamp(int(key.partition("-")[0], 16) * 60, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return moment if key == rate_key(from_currency, to_currency, moment) else None


def _minor(currency: str) -> int:
    return int(10 ** DECIMALS[currency])


def _value(currency: str, second: int) -> Decimal:
    """The mean value of 1 in kobo. Raises ValueError for a currency without a rate."""
    if currency == "NGN":
        return Decimal(100)
    dollar = Decimal(_DOLLAR_IN_KOBO + _drift("USD", _DRIFTS_OF_DOLLAR, second))
    if currency == "USD":
        return dollar
    if currency != "USDT":
        raise ValueError(f"There is no rate of {currency}")
    tether = _TETHER_IN_MILLIONTHS + _drift("USDT", _DRIFTS_OF_TETHER, second)
    return dollar * Decimal(tether).scaleb(-6)


def _drift(name: str, drifts: tuple[tuple[int, int], ...], second: int) -> int:
    return sum(_wave(f"{name} {period}", period, width, second) for period, width in drifts)


def _wave(name: str, period: int, width: int, second: int) -> int:
    """A value within ±width, interpolated linearly between the values of this period and the next."""
    number, into = divmod(second, period)
    here, there = _height(name, number, width), _height(name, number + 1, width)
    return here + (there - here) * into // period


def _height(name: str, number: int, width: int) -> int:
    return int(_digest(f"{name} {number}")[:8], 16) % (2 * width + 1) - width


def _digest(text: str) -> str:
    return hashlib.sha256(f"{_SEED} {text}".encode()).hexdigest()


_LARGEST = 10**15  # minor units
_TOLERANCE = 100  # two given amounts may differ by 1/100


@dataclass(frozen=True, slots=True)
class PaymentTerms:
    """The requested terms; amounts in minor units, at least one of them. `rate_key` may fix the rate."""

    incoming_currency: str
    outgoing_currency: str
    incoming_amount: int | None = None
    outgoing_amount: int | None = None
    rate_key: str = ""


@dataclass(frozen=True, slots=True)
class PaymentQuote:
    """The amount the customer sends, the payout, and the rate between them."""

    incoming: int
    outgoing: int
    rate: Decimal


def quote_payment(terms: PaymentTerms, at: datetime) -> PaymentQuote:
    """Quote a payment created at this time.

    One amount determines the other. With both, the incoming one decides, and the outgoing one must lie within
    one percent of its value. Raises RefusedError 400.
    """
    rate = quote(terms.incoming_currency, terms.outgoing_currency, _rate_time(terms, at))
    pair = terms.incoming_currency, terms.outgoing_currency
    if terms.incoming_amount is not None:
        incoming, outgoing = terms.incoming_amount, amount_received(terms.incoming_amount, *pair, rate)
    elif terms.outgoing_amount is not None:
        incoming, outgoing = amount_needed(terms.outgoing_amount, *pair, rate), terms.outgoing_amount
    else:
        raise refused_member("incomingAmount", "or outgoingAmount is required")
    _check_quote(terms, incoming, outgoing)
    return PaymentQuote(incoming, outgoing, rate)


def _rate_time(terms: PaymentTerms, at: datetime) -> datetime:
    if not terms.rate_key:
        return at
    moment = rate_key_time(terms.rate_key, terms.incoming_currency, terms.outgoing_currency)
    if moment is None:
        raise refused_member("rateKey", "is not a key of a rate of these currencies")
    if not moment <= at < moment + RATE_KEY_LIFETIME:
        raise refused_member("rateKey", "has expired; read the rate again")
    return moment


def _check_quote(terms: PaymentTerms, incoming: int, outgoing: int) -> None:
    if outgoing == 0:
        raise refused_member("incomingAmount", f"is too little: nothing in {terms.outgoing_currency}")
    if max(incoming, outgoing) > _LARGEST:
        raise refused_member("incomingAmount", "or what becomes of it is more than a payment may be")
    quoted = terms.outgoing_amount or outgoing
    if abs(quoted - outgoing) * _TOLERANCE > outgoing:
        raise refused_member("outgoingAmount", "is not what incomingAmount becomes at the present rate")
