"""Off-ramp payments as the service tells them now, where the deployment says that it can be asked."""

from backoffice.core.gateway import dialect, gateway
from backoffice.ledger.told import Told, last_told, told_now
from payments_gateway import Payment

_PATIENCE_SECONDS = 2.0  # several are asked for on one page


def can_be_asked() -> bool:
    """Whether the dialect's capabilities name `payment` (GET /payment/{paymentId}, beyond the specification)."""
    return "payment" in dialect().capabilities


def payment_now(payment_id: str) -> Told[Payment]:
    """The payment, now or as last told. Ask only if it can be asked for."""
    extras = gateway(deadline=_PATIENCE_SECONDS).extras
    return told_now(_key(payment_id), lambda: extras.payment(payment_id))


def known_payment(payment_id: str) -> Told[Payment]:
    """The same as last told, without asking."""
    return last_told(_key(payment_id))


def _key(payment_id: str) -> str:
    return f"payment:{payment_id}"
