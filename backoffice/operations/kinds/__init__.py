"""The kinds of operation. Adding one is adding a file beside this one and a line here."""

from typing import Any

from backoffice.operations.kinds.base import Counterparty, Debit, Kind, KindForm, Payload, Receipt
from backoffice.operations.kinds.withdrawal import WithdrawalKind

KINDS: dict[str, Kind[Any]] = {kind.name: kind for kind in (WithdrawalKind(),)}

__all__ = ["KINDS", "Counterparty", "Debit", "Kind", "KindForm", "Payload", "Receipt"]
