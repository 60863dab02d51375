"""The evidence of an incident: what is stored of it, and its names and values in words.

Also the sentence of each code that operations write into the audit log.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from backoffice.audit.destinations import problem_sentence
from backoffice.core.fields import normalized_text
from backoffice.core.web.formatting import (
    UNREADABLE_ERRORS,
    exact_zoned_time,
    format_amount,
    in_words,
    labelled,
    unreadable_text,
)
from backoffice.ledger.models import STATUS_LABELS, TYPE_LABELS
from backoffice.operations.models.reason_codes import (
    IncidentKind,
    check_sentence,
    differences_sentence,
    faults_sentence,
    responses_sentence,
    with_providers_word,
)
from backoffice.operations.refusals.sentences import sentence
from backoffice.operations.states import Outcome

_EVIDENCE_NAMES = {
    "transaction": _("transaction"),
    "transactions": _("transactions"),
    "occurred_at": _("time"),
    "type": _("type"),
    "amount": _("amount"),
    "status": _("status"),
    "counterparty": _("counterparty"),
    "other": _("other operation"),
    "attempt": _("attempt"),
    "responses": _("response"),
    "received_id": _("transaction in the response"),
    "on_record": _("recorded outcome"),
    "in_list": _("provider's list"),
    "differences": _("differences"),
    "faults": _("contradiction"),
    "machine": _("journal of machine"),
    "lost": _("sent, but missing from the database"),
    "lost_count": _("total of missing attempts"),
    "log_position": _("missing audit log entry"),
    "destinations": _("checkpoints that contradict the audit log"),
    "database": _("database"),
    "pause": _("pause"),
    "resumption": _("resumption in the database"),
    "problem": _("problem"),
}  # in reading order; the currency follows the amount


def recorded_outcome(number: int, outcome: str, transaction_id: str | None) -> dict[str, object]:
    """The recorded outcome of an attempt, as evidence."""
    return {"attempt": number, "outcome": outcome, "transaction": transaction_id}


def listed_transaction(
    transaction_id: str, created_at: datetime | None, currency: str, amount: Decimal, status: str
) -> dict[str, object]:
    """A transaction of the provider's list as evidence: equal values for the same one, whoever read it."""
    return {
        "transaction": transaction_id,
        "created_at": created_at and created_at.astimezone(UTC).isoformat(timespec="seconds"),
        "currency": currency,
        "amount": normalized_text(abs(amount)),
        "status": status,
    }


def evidence_in_words(evidence: Any) -> list[tuple[str, str]]:
    """Name and text of all stored evidence, in reading order; as it is stored, if it cannot be read."""
    if not isinstance(evidence, dict):
        return [(gettext("evidence"), unreadable_text(evidence))]
    texts = [(str(name), _text(key, evidence)) for key, name in _EVIDENCE_NAMES.items() if key in evidence]
    return [(name, text) for name, text in texts if text]


def _text(key: str, evidence: dict[str, Any]) -> str:
    value = evidence[key]
    if key == "amount":
        return in_words(_amount, evidence)
    if key in _EVIDENCE_WORDS:
        return in_words(_EVIDENCE_WORDS[key], value)
    return "" if value is None else str(value)


def lost_times(evidence: Any) -> list[datetime]:
    """When the attempts that the evidence names as lost were started, as far as that can be read."""
    named = evidence.get("lost") if isinstance(evidence, dict) else None
    times = []
    for one in named if isinstance(named, list) else []:
        with suppress(*UNREADABLE_ERRORS):
            times.append(datetime.fromisoformat(one["started_at"]))
    return times


def _recorded_outcome(recorded: dict[str, Any]) -> str:
    values = {**recorded, "outcome": str(Outcome(recorded["outcome"]).label)}
    if recorded["transaction"]:
        return gettext("{outcome}, attempt {attempt}, transaction {transaction}").format(**values)
    return gettext("{outcome}, attempt {attempt}").format(**values)


def _listed(listed: dict[str, Any] | None) -> str:
    if listed is None:
        return gettext("not listed, although the list was read far enough back")
    status = with_providers_word(STATUS_LABELS, listed["status"], in_sentence=True)
    values = {"transaction": listed["transaction"], "amount": _amount(listed), "status": status}
    if listed["created_at"]:
        time = exact_zoned_time(datetime.fromisoformat(listed["created_at"]))
        return gettext("{transaction} of {time}: {amount}, {status}").format(**values, time=time)
    return gettext("{transaction}: {amount}, {status}").format(**values)


def _lost_attempt(lost: dict[str, Any]) -> str:
    values = {**lost, "time": exact_zoned_time(datetime.fromisoformat(lost["started_at"]))}
    if lost["amount"] is None:
        return gettext("{reference}, attempt {attempt}, {time}").format(**values)
    return gettext("{reference}, attempt {attempt}, {time}, {sum}").format(**values, sum=_amount(lost))


def _amount(evidence: dict[str, Any]) -> str:
    return f"{evidence['currency']} {format_amount(Decimal(evidence['amount']), evidence['currency'])}"


_EVIDENCE_WORDS: dict[str, Callable[[Any], str]] = {
    "on_record": _recorded_outcome,
    "in_list": _listed,
    "differences": differences_sentence,
    "faults": faults_sentence,
    "responses": responses_sentence,
    "transactions": ", ".join,
    "destinations": ", ".join,
    "occurred_at": lambda at: exact_zoned_time(datetime.fromisoformat(at)),
    "type": lambda word: with_providers_word(TYPE_LABELS, word) if word else "",
    "status": lambda word: with_providers_word(STATUS_LABELS, word) if word else "",
    "problem": problem_sentence,
    "lost": lambda lost: "; ".join(map(_lost_attempt, lost)),
}


def _stored_check(check: dict[str, Any]) -> str:
    return check_sentence(check["code"], {name: check[name] for name in check if name != "code"})


def _stored_evidence(evidence: dict[str, Any]) -> str:
    return ", ".join(labelled(name, text) for name, text in evidence_in_words(evidence)) or gettext("none")


def _stored_response(response: Any) -> str:
    """The response to an operation's request; entries about API keys hold the text itself."""
    return responses_sentence([response]) if isinstance(response, dict) else str(response)


AUDIT_SENTENCES: dict[str, Callable[[Any], str]] = {
    "refusal": sentence,
    "check": _stored_check,
    "response": _stored_response,
    "incident": lambda kind: str(IncidentKind(kind).label),
    "evidence": _stored_evidence,
}
"""The sentence of each code that operations write into the audit log, by its name in the entry."""
