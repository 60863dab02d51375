"""What currencies are worth: a market that moves every minute, the same for everybody who asks about that minute.

Pure. Values drift by the day, the hour and the minute around a middle; whoever converts gets a little less than the
middle, so nobody gains by converting to and fro.
"""

import hashlib
from datetime import UTC, datetime, timedelta
from decimal import ROUND_DOWN, Decimal

from payments_gateway.sandbox.wire.amounts import DECIMALS

SPREAD = Decimal("0.006")
"""The part that the service keeps of everything converted."""

KEY_LASTS = timedelta(minutes=10)
"""How long a rate can be asked for by its key."""

_SEED = "countersign market"
_DOLLAR_IN_KOBO = 154_500
_DRIFTS_OF_DOLLAR = ((86_400, 4_200), (3_600, 500), (60, 40))
_TETHER_IN_MILLIONTHS = 999_200
_DRIFTS_OF_TETHER = ((86_400, 500), (3_600, 150))
_KEY_LENGTH = 12


def quote(from_currency: str, to_currency: str, at: datetime) -> Decimal:
    """How much of one currency the service gives for 1 of the other in this minute, spread taken off."""
    minute = int(at.timestamp()) // 60 * 60
    rate = _value(from_currency, minute) / _value(to_currency, minute) * (1 - SPREAD)
    return rate.quantize(Decimal("0.0001") if rate >= 1 else Decimal("1e-10"), rounding=ROUND_DOWN)


def received(units: int, from_currency: str, to_currency: str, rate: Decimal) -> int:
    """What so many minor units become at this rate, rounded down to minor units of the other currency."""
    numerator, denominator = rate.as_integer_ratio()
    return units * numerator * _minor(to_currency) // (denominator * _minor(from_currency))


def needed(units: int, from_currency: str, to_currency: str, rate: Decimal) -> int:
    """The least to give, in minor units, so that at least so many minor units of the other currency come out."""
    numerator, denominator = rate.as_integer_ratio()
    return -(-units * denominator * _minor(from_currency) // (numerator * _minor(to_currency)))


def key_of(from_currency: str, to_currency: str, at: datetime) -> str:
    """The key by which a payment asks for the rate of this minute (`rateKey`)."""
    minute = int(at.timestamp()) // 60
    return f"{minute:x}-{_digest(f'{from_currency}{to_currency} {minute}')[:_KEY_LENGTH]}"


def moment_of(key: str, from_currency: str, to_currency: str) -> datetime | None:
    """The minute whose key this is; None when it is no key of this pair."""
    try:
        moment = datetime.fromtimestamp(int(key.partition("-")[0], 16) * 60, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return moment if key == key_of(from_currency, to_currency, moment) else None


def _minor(currency: str) -> int:
    return int(10 ** DECIMALS[currency])


def _value(currency: str, second: int) -> Decimal:
    """The middle value of 1 in kobo."""
    if currency == "NGN":
        return Decimal(100)
    dollar = Decimal(_DOLLAR_IN_KOBO + _drift("USD", _DRIFTS_OF_DOLLAR, second))
    if currency == "USD":
        return dollar
    tether = _TETHER_IN_MILLIONTHS + _drift("USDT", _DRIFTS_OF_TETHER, second)
    return dollar * Decimal(tether).scaleb(-6)


def _drift(name: str, drifts: tuple[tuple[int, int], ...], second: int) -> int:
    return sum(_wave(f"{name} {period}", period, width, second) for period, width in drifts)


def _wave(name: str, period: int, width: int, second: int) -> int:
    """A straight line from the height of this period to that of the next; heights lie within ±width."""
    number, into = divmod(second, period)
    here, there = _height(name, number, width), _height(name, number + 1, width)
    return here + (there - here) * into // period


def _height(name: str, number: int, width: int) -> int:
    return int(_digest(f"{name} {number}")[:8], 16) % (2 * width + 1) - width


def _digest(text: str) -> str:
    return hashlib.sha256(f"{_SEED} {text}".encode()).hexdigest()
