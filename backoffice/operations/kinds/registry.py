"""The registered kinds by name, and how a stored operation is read with its kind. `kinds/__init__.py` lists them."""

from typing import Any

from django.conf import settings
from django.utils.translation import get_language, gettext
from pydantic import ValidationError

from backoffice.operations.errors import ContentUnreadableError
from backoffice.operations.kinds.base import (
    ChangeKind,
    Facts,
    LocalKind,
    MoneyKind,
    OperationKind,
    Payload,
)
from backoffice.operations.models.batches import BatchRow
from backoffice.operations.models.operations import Operation
from backoffice.operations.permissions import APPROVE, PREPARE
from backoffice.policies.sentences import name_kinds

AnyKind = MoneyKind[Any] | ChangeKind[Any] | LocalKind[Any]

KINDS: dict[str, AnyKind] = {}


def register(*kinds: AnyKind) -> None:
    """Make these kinds known by their names, in this order."""
    KINDS.update((kind.name, kind) for kind in kinds)
    name_kinds({kind.name: kind.plural for kind in kinds})


def read_content(operation: Operation | BatchRow) -> tuple[AnyKind, Any]:
    """The kind and payload of an operation or of the row of a batch. Raises ContentUnreadableError."""
    kind = KINDS.get(operation.kind)
    try:
        if kind is not None:
            return kind, kind.read(operation.payload)
    except ValidationError as exc:
        raise ContentUnreadableError from exc
    raise ContentUnreadableError


def sentence_of(operation: Operation) -> str:
    """What the operation does, in the active language. The stored sentence is in the language of the record."""
    if get_language() == settings.LANGUAGE_CODE:
        return operation.sentence
    try:
        kind, payload = read_content(operation)
    except ContentUnreadableError:
        return operation.sentence
    return kind.sentence(payload)


def facts_of(kind: OperationKind[Any], payload: Payload) -> Facts:
    """Label and value of everything that is approved: the kind's facts, and the reason for paying again."""
    duplicate = (
        [(gettext("Reason for the additional payment"), payload.duplicate_reason)]
        if payload.duplicate_reason
        else []
    )
    return [*kind.facts(payload), *duplicate]


def debits_a_balance(kind_name: str) -> bool:
    """Whether operations of this kind debit a balance of ours; False for an unknown kind."""
    return isinstance(KINDS.get(kind_name), MoneyKind)


def money_kinds() -> list[str]:
    """The names of the kinds that debit a balance."""
    return [name for name, kind in KINDS.items() if isinstance(kind, MoneyKind)]


def local_kinds() -> list[str]:
    """The names of the kinds that change Countersign only: nothing of them is sent to the provider."""
    return [name for name, kind in KINDS.items() if isinstance(kind, LocalKind)]


def permission_for(kind_name: str) -> str:
    """The permission to prepare and cancel operations of this kind, also of a kind since removed."""
    return KINDS[kind_name].permission if kind_name in KINDS else PREPARE


def approval_permission_for(kind_name: str) -> str:
    """The permission to approve or reject operations of this kind, also of a kind since removed."""
    return KINDS[kind_name].approval_permission if kind_name in KINDS else APPROVE


def kinds_approved_with(permission: str) -> list[str]:
    """The names of the kinds that this permission approves."""
    return [name for name, kind in KINDS.items() if kind.approval_permission == permission]
