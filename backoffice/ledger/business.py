"""By which id the service knows the merchant's business (`businessId` of POST /payment)."""

from django.conf import settings
from django.core.cache import cache

from backoffice.core.gateway import PATIENCE_OF_A_PAGE, gateway

_LOOKED_AT = 20
_KEPT_SECONDS = 60 * 60


def business_id() -> str:
    """The id as configured; otherwise that of the newest transaction that names one, remembered for an hour.

    Every transaction record carries it, and nothing else in the specification does before the first payment. Empty
    if no transaction names one. Raises GatewayError.
    """
    if settings.GATEWAY_BUSINESS_ID:
        return settings.GATEWAY_BUSINESS_ID
    known: str = cache.get("business", "")
    if not known:
        records = gateway(deadline=PATIENCE_OF_A_PAGE).transactions.page(per_page=_LOOKED_AT).records
        known = next((record.business_id for record in records if record.business_id), "")
        cache.set("business", known, _KEPT_SECONDS if known else 0)
    return known
