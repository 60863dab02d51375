"""Provider reads for off-ramp payments: the state of a payment, and the merchant's business id."""

from datetime import timedelta

from django.conf import settings
from pydantic import TypeAdapter

from backoffice.core.cached_reads import CachedRead
from backoffice.core.gateway import FORM_HINT_TIMEOUT, PAGE_PART_TIMEOUT, gateway, provider_profile
from payments_gateway import Payment

_RECORDS_READ = 20
_BUSINESS_ID: CachedRead[str | None] = CachedRead(
    "business-id", TypeAdapter(str | None), keep_for=timedelta(hours=1), fresh_for=timedelta(hours=1)
)


def can_read_payments() -> bool:
    """Whether the provider profile has the capability `payment` (GET /payment/{paymentId}).

    It is not in the specification.
    """
    return "payment" in provider_profile().capabilities


def fetch_payment(payment_id: str) -> Payment:
    """The payment as the provider reports it now. Call only if `can_read_payments()`. Raises GatewayError."""
    return gateway(deadline=PAGE_PART_TIMEOUT).extras.payment(payment_id)


def business_id() -> str:
    """The configured business id, otherwise the one in the newest transactions, cached for an hour.

    Every transaction record contains it, and nothing else in the specification does before the first payment.
    Empty if they contain none, or several: then it must be entered. Raises GatewayError.
    """
    return settings.GATEWAY_BUSINESS_ID or _BUSINESS_ID.fetch(_listed_business_id) or ""


def _listed_business_id() -> str | None:
    records = gateway(deadline=FORM_HINT_TIMEOUT).transactions.page(per_page=_RECORDS_READ).records
    ids = {record.business_id for record in records if record.business_id}
    return ids.pop() if len(ids) == 1 else None
