"""By which id the service knows the merchant's business (`businessId` of POST /payment)."""

from django.conf import settings
from django.core.cache import cache

from backoffice.core.gateway import PATIENCE_OF_A_HINT, gateway

_LOOKED_AT = 20
_KEPT_SECONDS = 60 * 60


def business_id() -> str:
    """The id as configured; otherwise the one that the newest transactions name, remembered for an hour.

    Every transaction record carries it, and nothing else in the specification does before the first payment. Empty
    if they name none, or not all the same: then people must say which. Raises GatewayError.
    """
    if settings.GATEWAY_BUSINESS_ID:
        return settings.GATEWAY_BUSINESS_ID
    known: str = cache.get("business", "")
    if not known:
        records = gateway(deadline=PATIENCE_OF_A_HINT).transactions.page(per_page=_LOOKED_AT).records
        named = {record.business_id for record in records if record.business_id}
        known = named.pop() if len(named) == 1 else ""
        cache.set("business", known, _KEPT_SECONDS if known else 0)
    return known
