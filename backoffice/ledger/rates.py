"""Exchange rates: the last known rate of a conversion, and rates with a key that a payment can refer to."""

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
    """Units of one currency for one unit of another, and the source of the rate.

    `reached` is the direction of the conversion it was derived from, which may be the opposite one with
    another margin; None if the provider reported the rate itself. `at` is its time, if known.
    """

    number: Decimal
    reached: tuple[str, str] | None
    at: datetime | None


def last_rate(from_currency: str, to_currency: str) -> ConversionRate | None:
    """The last known rate from one currency into the other; None if it is unknown. Never fails.

    The provider's own rate, if the deployment declares that it has rates, otherwise that of the newest
    conversion. Cached for some minutes, so that the rate reviewed is the rate prepared.
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
    """The rate of the newest conversion in this direction, or else of the newest in the opposite direction.

    The record of the currency received contains both amounts.
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
    """The value of one unit of the first currency in the second, and the key of exactly this rate."""

    from_currency: str
    to_currency: str
    rate: Decimal
    key: str


def keyed_rate(from_currency: str, to_currency: str) -> KeyedRate | None:
    """The present rate with its key; None if the deployment declares no rates, or the provider reports none.

    After a failure the next request is made a minute later, so that not every page is delayed.
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
