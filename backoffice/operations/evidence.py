"""What an incident shows: kept as values, so that it can be compared, and made into words when it is shown."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from backoffice.core.display import format_amount
from backoffice.core.fields import normal_text
from backoffice.operations.differences import sentences
from backoffice.operations.states import Outcome

_NAMES = {
    "transaction": "transaction",
    "transactions": "transactions",
    "occurred_at": "time",
    "type": "type",
    "amount": "amount",
    "status": "status",
    "counterparty": "with",
    "other": "other",
    "attempt": "attempt",
    "answer": "answer",
    "named": "named",
    "on_record": "on record",
    "in_list": "in the list",
    "differences": "in the mirror",
}  # in the order in which they are read; the currency stands beside the amount


def recorded_end(number: int, outcome: str, transaction_id: str | None) -> dict[str, object]:
    """The end of an attempt as it is on record."""
    return {"attempt": number, "outcome": outcome, "transaction": transaction_id}


def listed_transaction(
    transaction_id: str, created_at: datetime | None, currency: str, amount: Decimal, status: str
) -> dict[str, object]:
    """What the provider's list shows of a transaction: the same values for the same one, whoever read it."""
    return {
        "transaction": transaction_id,
        "created_at": created_at and created_at.astimezone(UTC).isoformat(timespec="seconds"),
        "currency": currency,
        "amount": normal_text(abs(amount)),
        "status": status,
    }


def shown(evidence: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and text of all that is kept, in the order in which it is read."""
    texts = [(name, _text(key, evidence)) for key, name in _NAMES.items() if key in evidence]
    return [(name, text) for name, text in texts if text]


def _text(key: str, evidence: dict[str, Any]) -> str:
    value = evidence[key]
    if key == "amount":
        return _amount(evidence)
    if key in _WORDS:
        return _WORDS[key](value)
    return "" if value is None else str(value)


def _recorded_end(kept: dict[str, Any]) -> str:
    text = f"{Outcome(kept['outcome']).label}, attempt {kept['attempt']}"
    return f"{text}, transaction {kept['transaction']}" if kept["transaction"] else text


def _listed(kept: dict[str, Any] | None) -> str:
    if kept is None:
        return "nothing, although it reaches that far"
    at = f" of {_moment(kept['created_at'])}" if kept["created_at"] else ""
    return f"{kept['transaction']}{at}: {_amount(kept)}, {kept['status']}"


def _moment(text: str) -> str:
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M:%S} UTC"


def _amount(kept: dict[str, Any]) -> str:
    return f"{kept['currency']} {format_amount(Decimal(kept['amount']), kept['currency'])}"


_WORDS: dict[str, Callable[[Any], str]] = {
    "on_record": _recorded_end,
    "in_list": _listed,
    "differences": sentences,
    "transactions": ", ".join,
    "occurred_at": _moment,
}
