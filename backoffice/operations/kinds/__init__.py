"""The registry of kinds. Adding a kind is adding a file beside this one and a line here."""

from typing import Any

from pydantic import ValidationError

from backoffice.operations.errors import UnreadableContentError
from backoffice.operations.kinds.api_keys.create import ApiKeyCreateKind
from backoffice.operations.kinds.api_keys.delete import ApiKeyDeleteKind
from backoffice.operations.kinds.api_keys.invalidate import ApiKeyInvalidateKind
from backoffice.operations.kinds.api_keys.switch import ApiKeySwitchKind
from backoffice.operations.kinds.bank_account import BankAccountKind
from backoffice.operations.kinds.base import (
    ChangeKind,
    Facts,
    LocalKind,
    MoneyKind,
    OperationKind,
    Payload,
)
from backoffice.operations.kinds.callback_url import CallbackUrlKind
from backoffice.operations.kinds.conversion import ConversionKind
from backoffice.operations.kinds.payment import PaymentKind
from backoffice.operations.kinds.resolution.kind import ResolutionKind
from backoffice.operations.kinds.resume import ResumeKind
from backoffice.operations.kinds.transfer import TransferKind
from backoffice.operations.kinds.wallet_transfer import WalletTransferKind
from backoffice.operations.kinds.withdrawal import WithdrawalKind
from backoffice.operations.models.operations import Operation
from backoffice.operations.permissions import PREPARE

AnyKind = MoneyKind[Any] | ChangeKind[Any] | LocalKind[Any]

_KINDS: tuple[AnyKind, ...] = (
    ConversionKind(),
    WithdrawalKind(),
    TransferKind(),
    WalletTransferKind(),
    PaymentKind(),
    ApiKeyCreateKind(),
    ApiKeySwitchKind(),
    ApiKeyInvalidateKind(),
    ApiKeyDeleteKind(),
    BankAccountKind(),
    CallbackUrlKind(),
    ResolutionKind(),
    ResumeKind(),
)
KINDS: dict[str, AnyKind] = {kind.name: kind for kind in _KINDS}


def read_content(operation: Operation) -> tuple[AnyKind, Any]:
    """The kind and payload of an operation. Raises UnreadableContentError if they cannot be read."""
    kind = KINDS.get(operation.kind)
    try:
        if kind is not None:
            return kind, kind.read(operation.payload)
    except ValidationError as exc:
        raise UnreadableContentError from exc
    raise UnreadableContentError


def facts_of(kind: OperationKind[Any], payload: Payload) -> Facts:
    """Label and value of everything that is approved: the kind's facts, and the reason for paying again."""
    repeated = [("Paid again", payload.repeat_reason)] if payload.repeat_reason else []
    return [*kind.facts(payload), *repeated]


def debits_a_balance(kind_name: str) -> bool:
    """Whether operations of this kind debit a balance of ours; False for an unknown kind."""
    return isinstance(KINDS.get(kind_name), MoneyKind)


def permission_for(kind_name: str) -> str:
    """The permission to prepare and cancel operations of this kind, also of a kind since removed."""
    return KINDS[kind_name].permission if kind_name in KINDS else PREPARE
