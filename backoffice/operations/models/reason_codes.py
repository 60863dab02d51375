"""Codes of differences, incidents, blockers, check results, responses and closing reasons, with their sentences."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeAlias

from django.db import models
from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from backoffice.core.fields import SUM_CONTEXT, normalized_text
from backoffice.core.web.formatting import code_sentence, format_amount
from backoffice.operations import errors
from backoffice.operations.states import Outcome


class IncidentKind(models.TextChoices):
    NOW_FAILED = "now_failed", "The service reports as failed what is closed as succeeded"
    NOT_LISTED = "not_listed", "The service's list does not show its transaction"
    NOW_EXECUTED = "now_executed", "The service reports as executed what is closed as failed"
    EXECUTED_AFTER_ALL = (
        "executed_after_all",
        "The service shows a debit that looks like this one, which is on record as not executed",
    )
    SECOND_DEBIT = "second_debit", "The service shows a second debit that looks like this one"
    UNRECOGNISED = "unrecognised", "The service shows a movement that nobody prepared here"
    RECORD_MISMATCH = "record_mismatch", "The service's record is not what was countersigned"
    FEE_MISMATCH = "fee_mismatch", "The service's record tells another fee than is on record"
    OUTCOME_MISMATCH = "outcome_mismatch", "The service's record does not show the end that is on record"
    ID_RECEIVED_FOR_ANOTHER = (
        "id_received_for_another",
        "The service gave the transaction that closed this one as the answer to another",
    )
    LATE_RESPONSE = "late_response", "A late answer of the service contradicts what is on record"
    EXECUTED_DESPITE_PROOF = (
        "executed_despite_proof",
        "Proven not to be executed, and yet the service shows what looks like it",
    )


class ApprovalRule(TextChoices):
    """Which rule says how many people must approve an operation."""

    ONE_APPROVER = "one_approver", _("Requires one approver who is not the preparer.")
    TWO_ABOVE_LIMIT = (
        "two_above_limit",
        _("Amounts above {limit} require two approvers who are not the preparer."),
    )  # limit


def rule_sentence(rule: dict[str, str]) -> str:
    """The stored rule of an operation in words."""
    return code_sentence(ApprovalRule, rule)


Difference: TypeAlias = "dict[str, Any]"
"""A `DifferenceCode` under `code`, and its parameters beside it, as stored in JSON."""


class MatchField(TextChoices):
    """A field in which a transaction of the provider's list is compared with what we sent."""

    TYPE = "type", "Type"
    CURRENCY = "currency", "Currency"
    AMOUNT = "amount", "Amount"
    FROM_CURRENCY = "from_currency", "Given in"
    RECEIVER = "receiver", "Receiver"
    ADDRESS = "address", "Address"
    RECIPIENT = "recipient", "Beneficiary"
    PREVIOUS_BALANCE = "previous_balance", "Balance before it"
    TIME = "time", "Time"


class DifferenceCode(TextChoices):
    """What differs, or why the result is still open. The comment after each lists its parameters."""

    CURRENCY = "currency"  # local, provider
    AMOUNT = "amount"  # local, provider, currency
    FEE = "fee"  # local, provider, currency
    FIELD = "field"  # field (a MatchField), local, provider
    OUTCOME = "outcome"  # local (fulfilled or failed), provider (the provider's status)
    NO_LONGER_LISTED = "no_longer_listed"  # since
    NOT_READ_FAR_ENOUGH = "not_read_far_enough"
    MAY_BE_UNKNOWN_OPERATION = "may_be_unknown_operation"  # operations
    DIRECTION_NOT_PROVIDED = "direction_not_provided"
    STATUS = "status"  # provider
    NOT_COMPARABLE = "not_comparable"


def difference(code: DifferenceCode, **parameters: str | list[str]) -> Difference:
    """A difference in the form in which it is stored."""
    return {"code": code.value, **parameters}


def difference_sentence(found: Difference) -> str:
    """The difference in words; the bare code if this release does not know it."""
    phrase = _DIFFERENCE_WORDS.get(found["code"])
    return phrase(found) if phrase else str(found["code"])


def sentences(found: list[Difference]) -> str:
    return "; ".join(map(difference_sentence, found))


def _in_field(found: Difference) -> str:
    name = str(MatchField(found["field"]).label).lower()
    return f"{name} {found['local']} here, {found['provider']} there"


def _no_longer_listed(found: Difference) -> str:
    since = datetime.fromisoformat(found["since"])
    return f"the service listed it, and lists it no more since {since:%Y-%m-%d %H:%M} UTC"


def _more_or_less(found: Difference) -> str:
    more = SUM_CONTEXT.subtract(Decimal(found["provider"]), Decimal(found["local"]))
    return f"{format_amount(abs(more), found['currency'])} {'more' if more > 0 else 'less'}"


_DIFFERENCE_WORDS: dict[str, Callable[[Difference], str]] = {
    DifferenceCode.CURRENCY: lambda it: f"currency {it['local']} here, {it['provider'] or 'none'} there",
    DifferenceCode.AMOUNT: lambda it: f"amount {_more_or_less(it)} there",
    DifferenceCode.FEE: lambda it: f"fee {_more_or_less(it)} there",
    DifferenceCode.FIELD: _in_field,
    DifferenceCode.OUTCOME: lambda it: f"{it['local']} here, {it['provider'] or 'nothing'} there",
    DifferenceCode.NO_LONGER_LISTED: _no_longer_listed,
    DifferenceCode.NOT_READ_FAR_ENOUGH: lambda _: "the service's list has not been read far enough since",
    DifferenceCode.MAY_BE_UNKNOWN_OPERATION: lambda it: (
        f"it may be {', '.join(it['operations'])}, which is not known yet"
    ),
    DifferenceCode.DIRECTION_NOT_PROVIDED: lambda _: "the service does not tell which way it went",
    DifferenceCode.STATUS: lambda it: f"{it['provider'] or 'no status'} there",
    DifferenceCode.NOT_COMPARABLE: lambda _: "it could not be compared; the log says why",
}


class ResponseCode(TextChoices):
    """What came of a request. The label is the sentence, with its parameters in braces."""

    ACCEPTED = "accepted", "Accepted by the service"
    ACCEPTED_AS = "accepted_as", "Accepted by the service, as {status}"
    ERROR = "error", "{error}"  # of the client, with the provider's own words
    UNREADABLE = "unreadable", "{error} It said: {excerpt}"
    NOTHING_RECORDED = "nothing_recorded", "No answer was recorded before the deadline"
    ID_OF_ANOTHER = (
        "id_of_another",
        "The service names transaction {transaction}, by which {operation} was closed. "
        "People must look at both.",
    )


Response: TypeAlias = "dict[str, str]"
"""A `ResponseCode` under `code`, and its parameters beside it, as stored in JSON."""


def coded(code: TextChoices, **parameters: str) -> dict[str, str]:
    """A code and its parameters in the form in which they are stored."""
    return {"code": code.value, **parameters}


def responses_sentence(responses: Sequence[Response]) -> str:
    """The responses to one request in words, the late ones after the first."""
    return " Later: ".join(code_sentence(ResponseCode, one)[:500] for one in responses)


class ClosingReason(TextChoices):
    """Why an operation was rejected or failed. The label is the sentence, with its parameters in braces."""

    STATED = "stated", "{text}"  # by the person who rejected it
    REPORTED_FAILED = "reported_failed", "The service reports this transaction as failed."
    RESOLVED = "resolved", "Settled by {resolution}, which two people signed."


def closing_sentence(reason: dict[str, str]) -> str:
    """A `ClosingReason` or `Response` with its parameters in words; empty if there is none."""
    if not reason:
        return ""
    if reason["code"] in ResponseCode.values:
        return responses_sentence([reason])
    return code_sentence(ClosingReason, reason)


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
    "responses": "answer",
    "received_id": "named",
    "on_record": "on record",
    "in_list": "in the list",
    "differences": "in the mirror",
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


def shown(evidence: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and text of all stored evidence, in reading order."""
    texts = [(name, _text(key, evidence)) for key, name in _NAMES.items() if key in evidence]
    return [(name, text) for name, text in texts if text]


def _text(key: str, evidence: dict[str, Any]) -> str:
    value = evidence[key]
    if key == "amount":
        return _amount(evidence)
    if key in _EVIDENCE_WORDS:
        return _EVIDENCE_WORDS[key](value)
    return "" if value is None else str(value)


def _recorded_outcome(recorded: dict[str, Any]) -> str:
    text = f"{Outcome(recorded['outcome']).label}, attempt {recorded['attempt']}"
    return f"{text}, transaction {recorded['transaction']}" if recorded["transaction"] else text


def _listed(listed: dict[str, Any] | None) -> str:
    if listed is None:
        return "nothing, although it reaches that far"
    at = f" of {_moment(listed['created_at'])}" if listed["created_at"] else ""
    return f"{listed['transaction']}{at}: {_amount(listed)}, {listed['status']}"


def _moment(text: str) -> str:
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M:%S} UTC"


def _amount(evidence: dict[str, Any]) -> str:
    return f"{evidence['currency']} {format_amount(Decimal(evidence['amount']), evidence['currency'])}"


_EVIDENCE_WORDS: dict[str, Callable[[Any], str]] = {
    "on_record": _recorded_outcome,
    "in_list": _listed,
    "differences": sentences,
    "responses": responses_sentence,
    "transactions": ", ".join,
    "occurred_at": _moment,
}


class Blocker(TextChoices):
    """What blocks a release. The label is the sentence, with its parameters in braces."""

    PROVIDER_UNREADABLE = "provider_unreadable", "The service cannot be read. {error}"
    LIST_CHANGING = (
        "list_changing",
        "The service cannot be read. The service's list changed each time it was read",
    )
    DATABASE_SLOW = (
        "database_slow",
        "The database answered too slowly, so what had been looked at was too old to act on.",
    )
    INTERNAL_ERROR = (
        "internal_error",
        "An error in Countersign itself stands in the way ({error}); the log tells it.",
    )


def blocker_sentence(blocker: str, parameters: Mapping[str, object]) -> str:
    """The blocker in words."""
    return str(Blocker(blocker).label).format(**parameters)


class MismatchReason(TextChoices):
    """Why the only candidate is rejected."""

    NO_TIME = "no_time", "it tells no time"
    ID_TOO_LONG = "id_too_long", "its id is too long to be kept"
    BALANCE_AS_BEFORE = (
        "balance_as_before",
        "the balance after it is the one we saw, so it was before ours",
    )
    OLDER_AND_NOT_ACCEPTED = (
        "older_and_not_accepted",
        "by its time it was before ours, and nothing says that ours was accepted",
    )
    OLDER_AND_OTHER_BALANCE = (
        "older_and_other_balance",
        "by its time it was before ours, and the balance before it is not the one we saw",
    )


class CheckResult(TextChoices):
    """The result of a status check. The label is the sentence, with its parameters in braces."""

    NOT_OBSERVABLE = (
        "not_observable",
        "No read of the service shows what became of it: people have to ask the service",
    )
    PROVIDER_UNREADABLE = "provider_unreadable", "The service could not be read: {error}"
    LIST_CHANGING = "list_changing", "The service's list changed each time it was read"
    CONTENT_UNREADABLE = (
        "content_unreadable",
        "The content cannot be read by this version of the program, so nothing can be done with it.",
    )
    DONE = "done", "The service shows that it is done"
    NOT_DONE = "not_done", "The service does not show it yet"
    NOT_LISTED = "not_listed", "Not in the service's list yet"
    SEVERAL_CANDIDATES = "several_candidates", "{count} transactions in the list could be this one"
    CANDIDATE_REJECTED = "candidate_rejected", "{transaction} could be this one, but {reason}"
    FOUND = "found", "Found as {transaction}: {status}"
    FOUND_TOO_EARLY = (
        "found_too_early",
        "Found as {transaction}: {status}; not taken before {not_before} UTC, since ours may come yet",
    )
    INTERNAL_ERROR = (
        "internal_error",
        "An error in Countersign itself stands in the way ({error}); the log tells it.",
    )


def check_sentence(result: str, parameters: Mapping[str, Any]) -> str:
    """The result in words."""
    texts = {name: _CHECK_WORDS.get(name, str)(value) for name, value in parameters.items()}
    return str(CheckResult(result).label).format(**texts)


_CHECK_WORDS: dict[str, Callable[[str], str]] = {
    "transaction": lambda id_: id_[:100],
    "reason": lambda reason: str(MismatchReason(reason).label),
    "not_before": lambda at: f"{datetime.fromisoformat(at).astimezone(UTC):%H:%M}",
}


def _stored_check(check: dict[str, Any]) -> str:
    return check_sentence(check["code"], {name: check[name] for name in check if name != "code"})


def _stored_evidence(evidence: dict[str, Any]) -> str:
    return ", ".join(f"{name}: {text}" for name, text in shown(evidence)) or "none"


def _stored_response(response: Any) -> str:
    """The response to an operation's request; entries about API keys hold the text itself."""
    return responses_sentence([response]) if isinstance(response, dict) else str(response)


AUDIT_SENTENCES: dict[str, Callable[[Any], str]] = {
    "refusal": errors.sentence,
    "check": _stored_check,
    "response": _stored_response,
    "incident": lambda kind: str(IncidentKind(kind).label),
    "evidence": _stored_evidence,
}
"""The sentence of each code that operations write into the audit log, by its name in the entry."""
