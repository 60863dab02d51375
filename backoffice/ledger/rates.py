"""Exchange rates: the last known rate of a conversion, and rates with a key that a payment can ask for."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.core.cache import cache
from django.utils import timezone

from backoffice.core.gateway import FORM_HINT_TIMEOUT, PAGE_OPENING_TIMEOUT, gateway
from payments_gateway import GatewayError

_RATE_KEPT_SECONDS = 300


@dataclass(frozen=True)
class ConversionRate:
    """Units of one currency for one of another, and where it comes from.

    `reached` is the direction of the conversion that brought it, which may be the opposite one with another margin;
    None where the service told the rate itself. `at` is when, where that is known.
    """

    number: Decimal
    reached: tuple[str, str] | None
    at: datetime | None


def last_rate(from_currency: str, to_currency: str) -> ConversionRate | None:
    """The rate from the one currency into the other, as last known; None if it is not known now. Never fails.

    The service's own rates where the deployment says that it tells them, otherwise what the newest conversion brought.
    Remembered for some minutes, so that what was reviewed is what is prepared.
    """
    key = f"known-rate:{from_currency}:{to_currency}"
    known: ConversionRate | None = cache.get(key)
    if known is None:
        try:
            known = _provider_rate(from_currency, to_currency) or _rate_of_newest_conversion(
                from_currency, to_currency
            )
        except GatewayError:
            return None  # the gateway has logged it
        if known is not None:
            cache.set(key, known, _RATE_KEPT_SECONDS)
    return known


def _provider_rate(from_currency: str, to_currency: str) -> ConversionRate | None:
    extras = gateway(deadline=FORM_HINT_TIMEOUT).extras
    if not extras.is_on("rates"):
        return None
    told = extras.rates().get(f"{from_currency}{to_currency}")
    return ConversionRate(_rounded_rate(told.rate), None, timezone.now()) if told and told.rate else None


def _rate_of_newest_conversion(from_currency: str, to_currency: str) -> ConversionRate | None:
    """What the newest conversion in this direction brought; where there is none, the newest in the opposite one.

    The record of what was received tells both amounts.
    """
    records = gateway(deadline=FORM_HINT_TIMEOUT).transactions.page(type="conversion", per_page=20).records
    there, back = (from_currency, to_currency), (to_currency, from_currency)
    for pair in (there, back):
        for record in records:
            if record.from_amount and record.amount and (record.from_currency, record.currency) == pair:
                brought = record.amount / record.from_amount
                return ConversionRate(
                    _rounded_rate(brought if pair == there else 1 / brought), pair, record.created_at
                )
    return None


def _rounded_rate(number: Decimal) -> Decimal:
    return number.quantize(Decimal("1e-10"))


_KEYED_RATE_KEPT_SECONDS = 30
_KEYED_RATE_RETRY_SECONDS = 60


@dataclass(frozen=True)
class KeyedRate:
    """What one unit of the first currency is worth in the second, and the key of exactly this rate."""

    from_currency: str
    to_currency: str
    rate: Decimal
    key: str


def keyed_rate(from_currency: str, to_currency: str) -> KeyedRate | None:
    """The rate of now with its key; None where the deployment says that the service tells none, or it does not now.

    A service that does not tell it is asked again after a minute, so that it does not hold up every page.
    """
    name = f"keyed:{from_currency}:{to_currency}"
    known: KeyedRate | None = cache.get(name)
    if known is None and cache.add(f"{name}:tried", True, _KEYED_RATE_RETRY_SECONDS):
        known = _fetch_keyed_rate(from_currency, to_currency)
        if known is not None:
            cache.set(name, known, _KEYED_RATE_KEPT_SECONDS)
            cache.delete(f"{name}:tried")
    return known


def _fetch_keyed_rate(from_currency: str, to_currency: str) -> KeyedRate | None:
    extras = gateway(deadline=PAGE_OPENING_TIMEOUT).extras
    if not extras.is_on("rates"):
        return None
    try:
        told = extras.rates().get(f"{from_currency}{to_currency}")
    except GatewayError:
        return None  # the gateway has logged it
    return KeyedRate(from_currency, to_currency, told.rate, told.key) if told and told.key else None
