"""Steps of a wallet transfer: prepared, approved and sent."""

from typing import Any

from django.test import Client
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.kinds.wallet_transfer import WalletTransferPayload
from backoffice.operations.models.operations import Operation
from backoffice.operations.workflow import approvals
from tests import factories
from tests.operations.kinds.samples import SAMPLES

ADDRESS = "/operations/prepare/wallet_transfer/"
TRON = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
EVM = "0xdAC17F958D2ee523a2206206994597C13D831ec7"

FILLED_IN = {
    "network": "TRC20",
    "currency": "USDT",
    "amount": "150.250000",
    "address": TRON,
    "wallet_type": "",
    "memo": "invoice 88",
}
KIND = KINDS["wallet_transfer"]


def of(**changes: Any) -> WalletTransferPayload:
    return SAMPLES["wallet_transfer"].model_copy(update=changes)  # type: ignore[return-value]


def prepared(preparer: User, **changes: Any) -> Operation:
    return factories.prepared_of_kind("wallet_transfer", of(**changes), preparer)


def released(preparer: User, approver: User, **changes: Any) -> Operation:
    return factories.release(factories.approve(prepared(preparer, **changes), approver), approver)


def review(client: Client, **changes: str) -> Any:
    return client.post(ADDRESS, {**FILLED_IN, **changes, "step": "review"})


def sign(operation: Operation, approver: User, typed: str) -> Operation:
    return approvals.approve_operation(
        operation.pk,
        actor=approver,
        digest=operation.digest,
        second_factor_at=timezone.now(),
        confirmation=approvals.ApproverConfirmation(typed),
    )
