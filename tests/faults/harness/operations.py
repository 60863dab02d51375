"""Operations of every kind that moves money, released and ready to be sent, each with an amount of its own."""

import itertools
import uuid
from decimal import Decimal

from django.utils import timezone
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.ledger.accounts import resolve_account_holder
from backoffice.operations.delivery.release import release_operation
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Operation
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.sandbox_process import SandboxProcess

MONEY = ("withdrawal", "transfer", "wallet_transfer", "payment", "conversion")
ONE_PER_BALANCE = (
    "withdrawal",
    "transfer",
    "wallet_transfer",
    "payment",
)  # on the USD, NGN and USDT balance and on none: no two wait for each other
PATHS = {
    "conversion": b"POST /v2/balance/convert",
    "withdrawal": b"POST /v2/balance/withdraw",
    "transfer": b"POST /v2/balance/transfer",
    "wallet_transfer": b"POST /v2/wallet/transfer",
    "payment": b"POST /v2/payment",
}
_NUMBERS = itertools.count(1)


def payload(kind: str) -> Payload:
    """A payload different from all earlier ones."""
    cents = Decimal(next(_NUMBERS)) / 100
    if kind == "payment":
        return SAMPLES[kind].model_copy(
            update={"incoming_amount": 20 + cents, "reference": f"CS-{uuid.uuid4().hex[:20].upper()}"}
        )
    if kind == "withdrawal":
        holder = resolve_account_holder("0123456789", "044").account_name
        return factories.payload(amount=1000 + cents, account_name=holder, typed_name=holder)
    base = {"transfer": 10, "wallet_transfer": 10, "conversion": 100_000}[kind]
    changes: dict[str, object] = {"amount": base + cents}
    if kind == "transfer":
        changes["currency"] = "USD"
    return SAMPLES[kind].model_copy(update=changes)


def approved(kind: str, preparer: User, approver: User, **changes: object) -> Operation:
    """An approved operation."""
    content = payload(kind).model_copy(update=changes)
    return factories.approve(factories.prepared_of_kind(kind, content, preparer), approver)


def released(
    kind: str, preparer: User, approver: User, sandbox: SandboxProcess, **changes: object
) -> Operation:
    """An approved and released operation."""
    return release(approved(kind, preparer, approver, **changes), approver, sandbox)


def release(operation: Operation, actor: User, sandbox: SandboxProcess) -> Operation:
    """Release it, with a one-time code where the kind needs one."""
    return release_operation(
        operation.pk,
        actor=actor,
        digest=operation.digest,
        second_factor_at=timezone.now(),
        otp=otp_for(operation, sandbox),
    )


def otp_for(operation: Operation, sandbox: SandboxProcess) -> SecretStr | None:
    """The provider's one-time code if this kind needs one."""
    return SecretStr(sandbox.issued_otp()) if KINDS[operation.kind].asks_for_otp else None
