"""What the service told of one transaction: in words, and member by member for whoever asks the service about it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from backoffice.core.display import exact_time, format_amount
from backoffice.core.fields import normal_text
from backoffice.ledger.mirror.rows import DECIMALS, MOMENTS
from backoffice.ledger.mirrored import Transaction, TransactionChange
from payments_gateway import TransactionRecord

_NAMES = {
    "transaction_id": "Transaction",
    "type": "Type",
    "status": "Status",
    "direction": "Direction",
    "counterparty": "With",
    "currency": "Currency",
    "amount": "Amount",
    "fee": "Fee",
    "previous_balance": "Balance before",
    "sender_previous_balance": "Sender's balance before",
    "from_currency": "From currency",
    "from_amount": "From amount",
    "sender": "Sender",
    "username": "Username",
    "is_from_registered_user": "From a registered user",
    "business_id": "Business",
    "version": "Version",
    "date": "Date",
    "created_at": "Created",
    "updated_at": "Updated",
    "missing_since": "No longer listed since",
}
_TIMES = {*MOMENTS, "missing_since"}


@dataclass(frozen=True)
class Changed:
    """One change: name, text before and text since of each member in words, and all of it as it is kept."""

    seen_at: datetime
    members: list[tuple[str, str, str]]
    kept: str


def facts(one: Transaction) -> list[tuple[str, str]]:
    """What it is about, under names for people."""
    is_converted = one.from_currency not in ("", one.currency)
    told = {
        "Type": one.type,
        "With": one.counterparty,
        "Fee": _words(one, "fee", one.fee),
        "Balance before": _words(one, "previous_balance", one.previous_balance),
        "Converted from": _words(one, "from_amount", one.from_amount) if is_converted else "",
        "Created": _words(one, "created_at", one.created_at) or "not told",
        "Updated": _words(one, "updated_at", one.updated_at),
    }
    return [(name, text) for name, text in told.items() if text]


def as_told(one: Transaction) -> list[tuple[str, str, str]]:
    """Every member that the service told: its name in words, the service's own name, and the value that is kept."""
    values = ((name, field.alias or name) for name, field in TransactionRecord.model_fields.items())
    told = [(_NAMES[name], member, _exactly(getattr(one, name))) for name, member in values]
    return [(name, member, text) for name, member, text in told if text]


def changes(one: Transaction) -> list[Changed]:
    """What it said before, the newest change first."""
    return [_changed(one, change) for change in one.changes.all()]


def _changed(one: Transaction, change: TransactionChange) -> Changed:
    def words(name: str, told: Mapping[str, object]) -> str:
        return _words(one, name, told.get(name)) or "nothing"

    members = [
        (_NAMES.get(name, name), words(name, change.before), words(name, change.after))
        for name in change.after
    ]
    kept = json.dumps({"before": change.before, "after": change.after}, ensure_ascii=False, indent=2)
    return Changed(change.seen_at, members, kept)


def _words(one: Transaction, name: str, value: object) -> str:
    """The value for people, whether it comes from the row or from the text of a change; empty for none."""
    if value is None or value == "":
        return ""
    if name in _TIMES:
        return exact_time(value if isinstance(value, datetime) else datetime.fromisoformat(str(value)))
    if name in DECIMALS:
        currency = one.from_currency if name == "from_amount" else one.currency
        return f"{currency} {format_amount(Decimal(str(value)), currency)}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _exactly(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case Decimal():
            return normal_text(value)
        case datetime():
            return value.isoformat()
    return str(value)
