"""Off-ramp payments as the service tells them now, where the deployment says that it can be asked."""

from django.core.cache import cache
from django.utils import timezone

from backoffice.core.gateway import PATIENCE_OF_A_PART, dialect, gateway
from backoffice.ledger.told import Told
from payments_gateway import GatewayError, Payment

_KEPT_SECONDS = 24 * 60 * 60


def can_be_asked() -> bool:
    """Whether the dialect's capabilities name `payment` (GET /payment/{paymentId}, beyond the specification)."""
    return "payment" in dialect().capabilities


def payment_now(payment_id: str) -> Told[Payment]:
    """The payment, now or as last told. Ask only if it can be asked for. Never raises GatewayError."""
    try:
        told = Told(gateway(deadline=PATIENCE_OF_A_PART).extras.payment(payment_id), timezone.now())
    except GatewayError as exc:
        known = known_payment(payment_id)
        return Told(known.value, known.at, problem=exc.message)
    cache.set(_key(payment_id), told, _KEPT_SECONDS)
    return told


def known_payment(payment_id: str) -> Told[Payment]:
    """The same as last told to this process, without asking. What was told when it was created is in the database."""
    known: Told[Payment] | None = cache.get(_key(payment_id))
    return known or Told()


def _key(payment_id: str) -> str:
    return f"payment:{payment_id}"
