"""The kinds of operation. Adding one is adding a file beside this one and a line here."""

from typing import Any

from pydantic import ValidationError

from backoffice.operations.errors import UnreadableContentError
from backoffice.operations.kinds.base import Counterparty, Debit, Kind, KindForm, Payload, Receipt
from backoffice.operations.kinds.withdrawal import WithdrawalKind
from backoffice.operations.models import Operation

KINDS: dict[str, Kind[Any]] = {kind.name: kind for kind in (WithdrawalKind(),)}


def content_of(operation: Operation) -> tuple[Kind[Any], Any]:
    """The kind and the payload of a stored operation. Raises UnreadableContentError if this release knows neither."""
    kind = KINDS.get(operation.kind)
    try:
        if kind is not None:
            return kind, kind.read(operation.payload)
    except ValidationError as exc:
        raise UnreadableContentError from exc
    raise UnreadableContentError


__all__ = ["KINDS", "Counterparty", "Debit", "Kind", "KindForm", "Payload", "Receipt", "content_of"]
