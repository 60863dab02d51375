"""What the console shows: everything that a person wants to see of the simulation at one moment."""

from datetime import UTC, datetime, timedelta

from django.db.models import QuerySet

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.books.settlement import order_of
from payments_gateway.sandbox.control.present import balances, missing_of, present_codes, present_options
from payments_gateway.sandbox.faults.plan import PLAN, Fault
from payments_gateway.sandbox.merchant import keys, profile
from payments_gateway.sandbox.merchant.models import ApiKey
from payments_gateway.sandbox.merchant.scopes import NAMES
from payments_gateway.sandbox.models import Payment, Transaction, WalletTransfer, Withdrawal
from payments_gateway.sandbox.webhooks import faults as webhook_faults
from payments_gateway.sandbox.webhooks import history
from payments_gateway.sandbox.wire import credentials
from payments_gateway.sandbox.wire.amounts import amount_text

_LATEST = 10
_LATEST_DELIVERIES = 5
_OPEN = (Payment.State.PENDING, Payment.State.UNCONFIRMED, Payment.State.PROCESSING)
_COUNTERS = ("id", "kind", "operation", "times", "skip", "containing")


def readings() -> dict[str, object]:
    """The context of the page; to be read inside one transaction."""
    return {
        "codes": present_codes(),
        "balances": balances().items(),
        "movements": [_movement(record) for record in _latest()],
        "payments": [_payment(payment) for payment in open_payments()],
        "keys": [_key(key) for key in keys.all_keys()],
        "kyc": profile.kyc(),
        "callback_url": profile.callback_url(),
        "deliveries": [_delivery(row) for row in history.deliveries(_LATEST_DELIVERIES)],
        "webhook_faults": [(kind, row) for kind, row in webhook_faults.in_force().items() if row["left"]],
        "faults": [_fault(fault) for fault in PLAN.listed()],
        "clock": {"now": _shown(clock.now()), "wall": _shown(clock.wall()), "ahead": _ahead(clock.ahead())},
        "options": present_options().items(),
        "credentials": credentials,
    }


def open_payments() -> list[Payment]:
    """Payments that have not ended, newest first."""
    return list(Payment.objects.filter(state__in=_OPEN).order_by("-id")[:_LATEST])


def _latest() -> QuerySet[Transaction]:
    orders = Transaction.objects.select_related("withdrawal", "transfer", "wallet_transfer")
    return orders.order_by("-id")[:_LATEST]


def _movement(record: Transaction) -> dict[str, object]:
    return {
        "at": _shown(record.created_at),
        "type": record.type,
        "party": _party(record),
        "sign": "+" if record.incoming else "-",
        "amount": f"{record.currency} {amount_text(record.amount, record.currency)}",
        "fee": amount_text(record.fee, record.currency) if record.fee else "",
        "status": record.status,
    }


def _party(record: Transaction) -> str:
    match order_of(record):
        case Withdrawal() as to:
            return f"{to.account_name}, {to.bank} {to.account_number}"
        case WalletTransfer() as to:
            return f"{to.network} {to.address}"
        case _:
            return record.sender if record.incoming else record.username


def _payment(payment: Payment) -> dict[str, object]:
    incoming, outgoing = payment.incoming_currency, payment.outgoing_currency
    return {
        "reference": payment.reference,
        "incoming": f"{incoming} {amount_text(payment.incoming_amount, incoming)}",
        "missing": missing_of(payment),
        "outgoing": f"{outgoing} {amount_text(payment.outgoing_amount, outgoing)}",
        "address": payment.address,
        "expires": _shown(payment.expires_at),
        "state": payment.state,
    }


def _key(key: ApiKey) -> dict[str, object]:
    names = {scope.value: name for name, scope in NAMES.items()}
    expires = None if key.expires_at is None else datetime.fromtimestamp(key.expires_at, UTC)
    return {
        "short_hash": key.short_hash,
        "name": key.name,
        "scope": names[key.scope],
        "expires": _shown(expires) if expires else "never",
        "state": _key_state(key, expires),
    }


def _key_state(key: ApiKey, expires: datetime | None) -> str:
    if key.invalidated_at is not None:
        return "invalidated"
    return "expired" if expires and expires <= clock.now() else "works"


def _delivery(row: dict[str, object]) -> dict[str, object]:
    attempts = row["attempts"]
    tries = attempts if isinstance(attempts, list) else []
    announced = _shown(datetime.fromisoformat(str(row["announcedAt"])))
    return {**row, "announced": announced, "tries": len(tries), "last": tries[-1] if tries else None}


def _fault(fault: Fault) -> dict[str, object]:
    order = fault.order.model_dump(exclude_none=True)
    particulars = {name: value for name, value in order.items() if name not in _COUNTERS}
    return {
        "id": fault.id,
        "operation": fault.order.operation,
        "kind": fault.order.kind,
        "containing": fault.order.containing,
        "particulars": ", ".join(f"{name} {value}" for name, value in particulars.items()),
        "hits": fault.hits,
        "left": "until taken away" if fault.left is None else fault.left,
        "waiting": fault.order.skip - fault.passed,
    }


def _shown(moment: datetime) -> str:
    return f"{moment.astimezone(clock.LAGOS):%Y-%m-%d %H:%M:%S}"


def _ahead(offset: timedelta) -> str:
    days, seconds = offset.days, offset.seconds
    if not offset:
        return ""
    return f"{days} d {seconds // 3600} h {seconds // 60 % 60} min {seconds % 60} s"
