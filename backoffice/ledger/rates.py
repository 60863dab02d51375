"""Rates that the service tells with a key, by which a payment can ask for them."""

from dataclasses import dataclass
from decimal import Decimal

from django.core.cache import cache

from backoffice.core.gateway import PATIENCE_OF_AN_OPENING, gateway
from payments_gateway import GatewayError

_KEPT_SECONDS = 30
_TRIED_SECONDS = 60


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
    if known is None and cache.add(f"{name}:tried", True, _TRIED_SECONDS):
        known = _told(from_currency, to_currency)
        if known is not None:
            cache.set(name, known, _KEPT_SECONDS)
            cache.delete(f"{name}:tried")
    return known


def _told(from_currency: str, to_currency: str) -> KeyedRate | None:
    extras = gateway(deadline=PATIENCE_OF_AN_OPENING).extras
    if not extras.is_on("rates"):
        return None
    try:
        told = extras.rates().get(f"{from_currency}{to_currency}")
    except GatewayError:
        return None  # the gateway has logged it
    return KeyedRate(from_currency, to_currency, told.rate, told.key) if told and told.key else None
