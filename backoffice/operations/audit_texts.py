"""The sentence of each code that operations write into the audit log, for its pages and exports."""

from collections.abc import Callable
from typing import Any

from backoffice.operations import errors
from backoffice.operations.models import reason_codes
from backoffice.operations.models.reason_codes import IncidentKind


def _check(check: dict[str, Any]) -> str:
    return reason_codes.check_sentence(check["code"], {name: check[name] for name in check if name != "code"})


def _evidence(kept: dict[str, Any]) -> str:
    return ", ".join(f"{name}: {text}" for name, text in reason_codes.shown(kept)) or "none"


def _answer(kept: Any) -> str:
    """An answer to an operation's request; entries about API keys hold the text itself."""
    return reason_codes.answers_sentence([kept]) if isinstance(kept, dict) else str(kept)


SENTENCES: dict[str, Callable[[Any], str]] = {
    "refusal": errors.sentence,
    "check": _check,
    "answer": _answer,
    "incident": lambda kind: str(IncidentKind(kind).label),
    "evidence": _evidence,
}
