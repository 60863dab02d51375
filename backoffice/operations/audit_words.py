"""The sentences for the codes that this application keeps in the audit log."""

from collections.abc import Callable
from typing import Any

from backoffice.operations import check_results, errors, evidence
from backoffice.operations.oversight import IncidentKind


def _check(check: dict[str, Any]) -> str:
    return check_results.sentence(check["code"], {name: check[name] for name in check if name != "code"})


def _evidence(kept: dict[str, Any]) -> str:
    return ", ".join(f"{name}: {text}" for name, text in evidence.shown(kept)) or "none"


SENTENCES: dict[str, Callable[[Any], str]] = {
    "refusal": errors.sentence,
    "check": _check,
    "incident": lambda kind: str(IncidentKind(kind).label),
    "evidence": _evidence,
}
