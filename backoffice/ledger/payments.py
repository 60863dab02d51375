"""Provider reads for off-ramp payments: the state of a payment, and the merchant's business id."""

from django.conf import settings
from django.core.cache import cache
from django.utils import timezone

from backoffice.core.cached_reads import CachedValue
from backoffice.core.gateway import FORM_HINT_TIMEOUT, PAGE_PART_TIMEOUT, gateway, provider_profile
from payments_gateway import GatewayError, Payment

_PAYMENT_KEPT_SECONDS = 24 * 60 * 60


def can_read_payments() -> bool:
    """Whether the provider profile has the capability `payment` (GET /payment/{paymentId}).

    It is not in the specification.
    """
    return "payment" in provider_profile().capabilities


def refresh_payment(payment_id: str) -> CachedValue[Payment]:
    """The payment, read now, or as last reported if that fails. Call only if `can_read_payments()`."""
    try:
        told = CachedValue(gateway(deadline=PAGE_PART_TIMEOUT).extras.payment(payment_id), timezone.now())
    except GatewayError as exc:
        known = cached_payment(payment_id)
        return CachedValue(known.value, known.at, problem=exc.message)
    cache.set(_payment_cache_key(payment_id), told, _PAYMENT_KEPT_SECONDS)
    return told


def cached_payment(payment_id: str) -> CachedValue[Payment]:
    """The payment as last cached, without a request. The state at its creation is in the database."""
    known: CachedValue[Payment] | None = cache.get(_payment_cache_key(payment_id))
    return known or CachedValue()


def _payment_cache_key(payment_id: str) -> str:
    return f"payment:{payment_id}"


_RECORDS_READ = 20
_BUSINESS_ID_KEPT_SECONDS = 60 * 60


def business_id() -> str:
    """The configured business id, otherwise the one in the newest transactions, cached for an hour.

    Every transaction record contains it, and nothing else in the specification does before the first payment.
    Empty if they contain none, or several: then it must be entered. Raises GatewayError.
    """
    if settings.GATEWAY_BUSINESS_ID:
        return settings.GATEWAY_BUSINESS_ID
    known: str = cache.get("business", "")
    if not known:
        records = gateway(deadline=FORM_HINT_TIMEOUT).transactions.page(per_page=_RECORDS_READ).records
        named = {record.business_id for record in records if record.business_id}
        known = named.pop() if len(named) == 1 else ""
        cache.set("business", known, _BUSINESS_ID_KEPT_SECONDS if known else 0)
    return known
