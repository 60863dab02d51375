"""Exchange rates: the last known rate of a conversion, and rates with a key that a payment can refer to."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.utils import timezone
from pydantic import TypeAdapter

from backoffice.core.cached_reads import CachedRead
from backoffice.core.gateway import FORM_HINT_TIMEOUT, PAGE_OPENING_TIMEOUT, gateway
from payments_gateway import CURRENCIES

_RATE_KEPT_FOR = timedelta(minutes=5)


@dataclass(frozen=True)
class ConversionRate:
    """Units of one currency for one unit of another, and the source of the rate.

    `from_conversion` is the direction of the conversion it was derived from, which may be the opposite one with
    another margin; None if the provider reported the rate itself. `known_at` is its time, if known.
    """

    rate: Decimal
    from_conversion: tuple[str, str] | None = None
    known_at: datetime | None = None


def last_rate(from_currency: str, to_currency: str) -> ConversionRate | None:
    """The last known rate from one currency into the other; None if it is unknown, or for any other text than the
    code of a currency. Never fails.

    The provider's own rate, if the deployment declares that it has rates, otherwise that of the newest
    conversion. Cached for some minutes, so that the rate reviewed is the rate prepared.
    """
    pair = (from_currency, to_currency)
    if not CURRENCIES.keys() >= set(pair):
        return None
    rate = CachedRead(
        f"rate:{from_currency}:{to_currency}",
        TypeAdapter(ConversionRate),
        keep_for=_RATE_KEPT_FOR,
        fresh_for=_RATE_KEPT_FOR,
    )
    return rate.get(lambda: _provider_rate(*pair) or _rate_of_newest_conversion(*pair)).value


def _provider_rate(from_currency: str, to_currency: str) -> ConversionRate | None:
    extras = gateway(deadline=FORM_HINT_TIMEOUT).extras
    if not extras.is_on("rates"):
        return None
    rate = extras.rates().get(f"{from_currency}{to_currency}")
    return ConversionRate(_rounded_rate(rate.rate), None, timezone.now()) if rate and rate.rate else None


def _rate_of_newest_conversion(from_currency: str, to_currency: str) -> ConversionRate | None:
    """The rate of the newest conversion in this direction, or else of the newest in the opposite direction.

    The record of the currency received contains both amounts.
    """
    records = gateway(deadline=FORM_HINT_TIMEOUT).transactions.page(type="conversion", per_page=20).records
    direct, inverse = (from_currency, to_currency), (to_currency, from_currency)
    for pair in (direct, inverse):
        for record in records:
            if record.from_amount and record.amount and (record.from_currency, record.currency) == pair:
                rate_of_pair = record.amount / record.from_amount
                return ConversionRate(
                    _rounded_rate(rate_of_pair if pair == direct else 1 / rate_of_pair),
                    pair,
                    record.created_at,
                )
    return None


def _rounded_rate(number: Decimal) -> Decimal:
    return number.quantize(Decimal("1e-10"))


_KEYED_RATE_KEPT_FOR = timedelta(days=1)
_KEYED_RATE_FRESH_FOR = timedelta(seconds=30)
_KEYED_RATE_RETRY_AFTER = timedelta(minutes=1)
_KEY_OFFERED_FOR = timedelta(minutes=1)  # how long the provider honours a key is not documented


@dataclass(frozen=True)
class KeyedRate:
    """The value of one unit of the first currency in the second, and the key of exactly this rate, or empty.

    `known_at` is when the provider reported it.
    """

    from_currency: str
    to_currency: str
    rate: Decimal
    key: str
    known_at: datetime

    @property
    def fresh_key(self) -> str:
        """The key while it is new; afterwards empty, because the provider may no longer honour it."""
        return self.key if self.known_at > timezone.now() - _KEY_OFFERED_FOR else ""


def keyed_rate(from_currency: str, to_currency: str) -> KeyedRate | None:
    """The present rate with its key; None if the deployment declares no rates, the provider reports none, or a text
    is not the code of a currency.

    While the provider cannot be read, the last rate of the day. After a failure the next request is made a minute
    later, so that not every page is delayed.
    """
    # Checked first: the texts may come from a form that is not valid, and become part of the key of the cache.
    if not CURRENCIES.keys() >= {from_currency, to_currency}:
        return None
    if not gateway(deadline=PAGE_OPENING_TIMEOUT).extras.is_on("rates"):
        return None
    rate = CachedRead(
        f"keyed-rate:{from_currency}:{to_currency}",
        TypeAdapter(KeyedRate),
        keep_for=_KEYED_RATE_KEPT_FOR,
        fresh_for=_KEYED_RATE_FRESH_FOR,
        retry_after=_KEYED_RATE_RETRY_AFTER,
    )
    return rate.get(lambda: _fetch_keyed_rate(from_currency, to_currency)).value


def _fetch_keyed_rate(from_currency: str, to_currency: str) -> KeyedRate | None:
    rate = gateway(deadline=PAGE_OPENING_TIMEOUT).extras.rates().get(f"{from_currency}{to_currency}")
    return KeyedRate(from_currency, to_currency, rate.rate, rate.key, timezone.now()) if rate else None
