"""The kinds of operation. Adding one is adding a file beside this one and a line here."""

from typing import Any

from pydantic import ValidationError

from backoffice.operations.errors import UnreadableContentError
from backoffice.operations.kinds.api_key_create import ApiKeyCreateKind
from backoffice.operations.kinds.api_key_delete import ApiKeyDeleteKind
from backoffice.operations.kinds.api_key_invalidate import ApiKeyInvalidateKind
from backoffice.operations.kinds.api_key_switch import ApiKeySwitchKind
from backoffice.operations.kinds.bank_account import BankAccountKind
from backoffice.operations.kinds.base import (
    ChangeKind,
    Confirmation,
    Counterparty,
    Debit,
    Facts,
    Kind,
    KindForm,
    LocalKind,
    MoneyKind,
    Payload,
    Receipt,
    Section,
    Trait,
)
from backoffice.operations.kinds.callback_url import CallbackUrlKind
from backoffice.operations.kinds.conversion import ConversionKind
from backoffice.operations.kinds.payment import PaymentKind
from backoffice.operations.kinds.resolution import ResolutionKind
from backoffice.operations.kinds.resume import ResumeKind
from backoffice.operations.kinds.transfer import TransferKind
from backoffice.operations.kinds.wallet_transfer import WalletTransferKind
from backoffice.operations.kinds.withdrawal import WithdrawalKind
from backoffice.operations.models import Operation
from backoffice.operations.permissions import PREPARE

AnyKind = MoneyKind[Any] | ChangeKind[Any] | LocalKind[Any]

_ALL: tuple[AnyKind, ...] = (
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
KINDS: dict[str, AnyKind] = {kind.name: kind for kind in _ALL}


def content_of(operation: Operation) -> tuple[AnyKind, Any]:
    """The kind and the payload of a stored operation. Raises UnreadableContentError if this release knows neither."""
    kind = KINDS.get(operation.kind)
    try:
        if kind is not None:
            return kind, kind.read(operation.payload)
    except ValidationError as exc:
        raise UnreadableContentError from exc
    raise UnreadableContentError


def facts_of(kind: Kind[Any], payload: Payload) -> Facts:
    """Label and value of all that is signed: what the kind tells, and why the same is paid again."""
    repeated = [("Paid again", payload.repeat_reason)] if payload.repeat_reason else []
    return [*kind.facts(payload), *repeated]


def debits_a_balance(kind_name: str) -> bool:
    """Whether the amount of operations of this kind leaves a balance of ours; False for a kind that nobody knows."""
    return isinstance(KINDS.get(kind_name), MoneyKind)


def permission_for(kind_name: str) -> str:
    """Who may prepare and take back operations of this kind, also of one that this release no longer knows."""
    return KINDS[kind_name].permission if kind_name in KINDS else PREPARE


__all__ = [
    "KINDS",
    "AnyKind",
    "ChangeKind",
    "Confirmation",
    "Counterparty",
    "Debit",
    "Facts",
    "Kind",
    "KindForm",
    "LocalKind",
    "MoneyKind",
    "Payload",
    "Receipt",
    "Section",
    "Trait",
    "content_of",
    "debits_a_balance",
    "facts_of",
    "permission_for",
]
