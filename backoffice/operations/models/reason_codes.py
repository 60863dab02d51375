"""The codes that operations store, with their sentences: of incidents, altered records, rules, differences, responses,
blockers, check results and closing reasons.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeAlias

from django.db import models
from django.db.models import TextChoices
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from backoffice.core.fields import EXACT
from backoffice.core.web.formatting import (
    UNREADABLE_ERRORS,
    code_sentence,
    format_amount,
    quoted,
    with_error_sentence,
    zoned_time,
)
from backoffice.ledger.models import STATUS_LABELS
from backoffice.operations.states import Status
from backoffice.policies.document import People, Rule
from backoffice.policies.people import CurrentNames, people_of
from backoffice.policies.sentences import last_rule_sentence
from backoffice.policies.sentences import rule_sentence as policy_sentence


class IncidentKind(models.TextChoices):
    NOW_FAILED = "now_failed", _("Closed as succeeded, but the provider reports it as failed")
    NOT_LISTED = "not_listed", _("The provider's list does not show the transaction of this operation")
    NOW_EXECUTED = "now_executed", _("Closed as failed, but the provider reports it as executed")
    EXECUTED_AFTER_ALL = (
        "executed_after_all",
        _("The provider shows a debit similar to this operation, which is recorded as not executed"),
    )
    SECOND_DEBIT = "second_debit", _("The provider shows a second debit similar to this operation")
    UNRECOGNISED = "unrecognised", _("The provider shows a transaction that no operation explains")
    RECORD_MISMATCH = "record_mismatch", _("The provider's record differs from what was approved")
    FEE_MISMATCH = "fee_mismatch", _("The provider's record shows a different fee")
    OUTCOME_MISMATCH = "outcome_mismatch", _("The provider's record does not show the recorded outcome")
    ID_RECEIVED_FOR_ANOTHER = (
        "id_received_for_another",
        _("The provider returned this operation's transaction in its response to another operation"),
    )
    LATE_RESPONSE = "late_response", _("A late response from the provider contradicts the record")
    EXECUTED_DESPITE_PROOF = (
        "executed_despite_proof",
        _("Proven not executed, but the provider shows a similar transaction"),
    )
    ALTERED_RECORD = (
        "altered_record",
        _("The operation, an approval or the release was altered or inserted outside Countersign"),
    )
    DATABASE_RESTORED = (
        "database_restored",
        _("The database was restored to an earlier point in time, or a standby server took over"),
    )
    JOURNAL_LOST = "journal_lost", _("A machine has no journal of sent requests, although requests were sent")
    ALTERED_PAUSE = "altered_pause", _("A pause of payments was ended or deleted outside Countersign")
    MANAGED_CODES_REFUSED = (
        "managed_codes_refused",
        _("The provider refused several one-time codes generated from the stored authenticator secret"),
    )
    CHECKPOINT_OVERDUE = "checkpoint_overdue", _("A destination got no audit log checkpoint for an hour")


class RecordFault(TextChoices):
    """What shows that the rows of an operation are not those that people made with Countersign."""

    OPERATION_SEAL = "operation_seal", _("the operation has no valid seal")
    APPROVAL_SEAL = "approval_seal", _("an approval has no valid seal")
    RELEASE_SEAL = "release_seal", _("the release has no valid seal")
    HOLD_SEAL = (
        "hold_seal",
        _("the statement about a similar transaction or another account holder has no valid seal"),
    )
    SEAL_KEY_UNKNOWN = "seal_key_unknown", _("the encryption key of a seal is not configured")
    LOGGED_PREPARATION = (
        "logged_preparation",
        _("the audit log does not show that this content was prepared by this person"),
    )
    LOGGED_APPROVALS = (
        "logged_approvals",
        _("the audit log does not show exactly these approvals of this content"),
    )
    LOGGED_RELEASE = "logged_release", _("the audit log does not show that this person released this content")
    BULK_RELEASE = "bulk_release", _("a bulk send has no valid seal, or the audit log does not show it")
    LOGGED_CLOSING = "logged_closing", _("the audit log shows that the operation was already closed")
    BATCH_ROWS = "batch_rows", _("the rows of the batch are not those that were prepared and approved")
    BATCH_LINK = "batch_link", _("the operation does not match a row of the batch as prepared and approved")
    UNREADABLE = "unreadable", _("a stored value cannot be read")


def faults_sentence(codes: Sequence[str]) -> str:
    return "; ".join(str(RecordFault(code).label) for code in codes)


class PauseCause(TextChoices):
    """Why Countersign paused payments by itself."""

    DATABASE_RESTORED = (
        "database_restored",
        _(
            "The database was restored to an earlier point in time, or a standby server took over. Payments that "
            "were sent may be missing."
        ),
    )
    JOURNAL_LOST = (
        "journal_lost",
        _("A machine has no journal of sent requests. Payments that were sent may be missing."),
    )
    ALTERED_PAUSE = "altered_pause", _("The last pause was ended or deleted outside Countersign.")


class LostAttemptState(TextChoices):
    """What became, in this database, of an attempt that was lost with its last commits."""

    OPERATION_MISSING = "operation_missing", _("Operation missing")
    NOT_COMPARED = "not_compared", _("Not compared yet")
    RECREATED = "recreated", _("Recreated")
    MATCHED = "matched", _("Closed by matching")
    RESOLVED = "resolved", _("Resolved by two people")
    NOT_EXECUTED = "not_executed", _("Not executed")


class ApprovalRule(TextChoices):
    """Which rule says how many people must approve an operation."""

    ONE_APPROVER = "one_approver", _("Requires one approver who is not the preparer.")
    TWO_ABOVE_LIMIT = (
        "two_above_limit",
        _("Amounts above {limit} require two approvers who are not the preparer."),
    )  # limit
    TWO_WITHOUT_LIMIT = (
        "two_without_limit",
        _("Payments in {currency} require two approvers who are not the preparer."),
    )  # currency
    POLICY = "policy", _("Policy {version}, rule {number}: {sentence}.")  # version, number, policy_rule
    LAST_OF_POLICY = "last_of_policy", _("Policy {version}, last rule: {sentence}.")  # the same


def people_of_rule(rule: Mapping[str, Any]) -> list[People]:
    """The people named in the stored rule of an operation; an empty list if the rule cannot be read."""
    try:
        return people_of([Rule.model_validate(rule["policy_rule"])]) if "policy_rule" in rule else []
    except UNREADABLE_ERRORS:
        return []


def rule_sentence(rule: Mapping[str, Any], names: CurrentNames | None = None) -> str:
    """The stored rule of an operation in words, with these names of people and groups, or else the stored ones."""
    if "policy_rule" not in rule:
        return code_sentence(ApprovalRule, rule)
    stored = Rule.model_validate(rule["policy_rule"])
    decided = names.in_rule(stored) if names else stored
    is_last = rule["code"] == ApprovalRule.LAST_OF_POLICY
    sentence = (
        last_rule_sentence(decided.levels) if is_last else policy_sentence(decided, rule.get("time_zone", ""))
    )
    return code_sentence(ApprovalRule, {**rule, "sentence": sentence})


Difference: TypeAlias = "dict[str, Any]"
"""A `DifferenceCode` under `code`, and its parameters beside it, as stored in JSON."""


class MatchField(TextChoices):
    """A field in which what the provider reports, such as a transaction, is compared with what we sent."""

    TYPE = "type", _("Type")
    CURRENCY = "currency", _("Currency")
    AMOUNT = "amount", _("Amount")
    FROM_CURRENCY = "from_currency", _("Currency sold")
    RECEIVER = "receiver", _("Recipient's username")
    ADDRESS = "address", _("Address")
    RECIPIENT = "recipient", _("Recipient")
    PAY_IN = "pay_in", _("Pay-in")
    PAYOUT = "payout", _("Payout")
    PREVIOUS_BALANCE = "previous_balance", _("Balance before")
    TIME = "time", _("Time")


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
    CONTENT_UNREADABLE = "content_unreadable"
    NOT_COMPARABLE = "not_comparable"


def difference(code: DifferenceCode, **parameters: str | list[str]) -> Difference:
    """A difference in the form in which it is stored."""
    return {"code": code.value, **parameters}


def difference_sentence(found: Difference) -> str:
    """The difference in words; the bare code if this version does not define it."""
    phrase = _DIFFERENCE_WORDS.get(found["code"])
    return phrase(found) if phrase else str(found["code"])


def differences_sentence(found: list[Difference]) -> str:
    return "; ".join(map(difference_sentence, found))


def _in_field(found: Difference) -> str:
    return gettext("{field}: {provider} at the provider, {local} expected").format(
        field=str(MatchField(found["field"]).label), provider=found["provider"], local=found["local"]
    )


def _no_longer_listed(found: Difference) -> str:
    since = zoned_time(datetime.fromisoformat(found["since"]))
    return gettext("no longer in the provider's list since {time}").format(time=since)


def with_providers_word(labels: Mapping[str, Any], word: str, *, in_sentence: bool = False) -> str:
    """A type or status as the screens call it, with the provider's own word in quotation marks beside it.

    The word alone, in quotation marks, if the screens have none for it.
    """
    found = str(labels.get(word, ""))
    label = found.lower() if in_sentence else found
    if label.lower() == word.lower():
        return label
    return f"{label} ({quoted(word)})" if label else quoted(word)


def _more_or_less(found: Difference, more: str, less: str) -> str:
    by = EXACT.subtract(Decimal(found["provider"]), Decimal(found["local"]))
    return (more if by > 0 else less).format(amount=format_amount(abs(by), found["currency"]))


def _currency(found: Difference) -> str:
    if not found["provider"]:
        return gettext("no currency at the provider, {local} expected").format(local=found["local"])
    return gettext("currency {provider} at the provider, {local} expected").format(**found)


def _amount_difference(found: Difference) -> str:
    more = gettext("amount {amount} higher at the provider")
    less = gettext("amount {amount} lower at the provider")
    return _more_or_less(found, more, less)


def _fee_difference(found: Difference) -> str:
    more, less = gettext("fee {amount} higher at the provider"), gettext("fee {amount} lower at the provider")
    return _more_or_less(found, more, less)


def _outcome(found: Difference) -> str:
    recorded = Status.SUCCEEDED if found["local"] == "fulfilled" else Status.FAILED  # in the provider's word
    local = str(recorded.label).lower()
    if not found["provider"]:
        return gettext("no status at the provider, recorded as {local}").format(local=local)
    return gettext("{provider} at the provider, recorded as {local}").format(
        provider=with_providers_word(STATUS_LABELS, found["provider"], in_sentence=True), local=local
    )


def _may_be_unknown_operation(found: Difference) -> str:
    operations = ", ".join(found["operations"])
    return gettext("may belong to {operations}, whose outcome is unknown").format(operations=operations)


def _status(found: Difference) -> str:
    if not found["provider"]:
        return gettext("no status at the provider")
    status = with_providers_word(STATUS_LABELS, found["provider"], in_sentence=True)
    return gettext("status at the provider: {status}").format(status=status)


_DIFFERENCE_WORDS: dict[str, Callable[[Difference], str]] = {
    DifferenceCode.CURRENCY: _currency,
    DifferenceCode.AMOUNT: _amount_difference,
    DifferenceCode.FEE: _fee_difference,
    DifferenceCode.FIELD: _in_field,
    DifferenceCode.OUTCOME: _outcome,
    DifferenceCode.NO_LONGER_LISTED: _no_longer_listed,
    DifferenceCode.NOT_READ_FAR_ENOUGH: lambda _found: gettext(
        "the provider's list has not been read far enough yet"
    ),
    DifferenceCode.MAY_BE_UNKNOWN_OPERATION: _may_be_unknown_operation,
    DifferenceCode.DIRECTION_NOT_PROVIDED: lambda _found: gettext("direction not provided"),
    DifferenceCode.STATUS: _status,
    DifferenceCode.CONTENT_UNREADABLE: lambda _found: gettext(
        "this version of Countersign cannot read the operation's content"
    ),
    DifferenceCode.NOT_COMPARABLE: lambda _found: gettext(
        "could not be compared; the server log has the details"
    ),
}


class ResponseCode(TextChoices):
    """What came of a request. The label is the sentence, with its parameters in braces."""

    ACCEPTED = "accepted", _("Accepted by the provider")
    ACCEPTED_AS = "accepted_as", _("Accepted by the provider as {status}")
    ACCEPTED_WITH_MESSAGE = "accepted_with_message", _("Accepted by the provider: “{message}”")
    ACCEPTED_AS_WITH_MESSAGE = (
        "accepted_as_with_message",
        _("Accepted by the provider as {status}: “{message}”"),
    )
    ERROR = "error", "{error}"  # of the client, with the provider's own words
    # Nothing was sent, and what was approved no longer fits what exists now.
    OUTDATED = "outdated", _("{error} If the operation must still be done, cancel it and prepare it again.")
    UNREADABLE = "unreadable", _("{error} Response: {excerpt}")
    NOTHING_RECORDED = "nothing_recorded", _("No response was recorded before the deadline")
    NOT_BEGUN = "not_begun", _("The sending process stopped before the request began. Nothing was sent.")
    ID_OF_ANOTHER = (
        "id_of_another",
        _(
            "The provider returned transaction {transaction}, which already closed {operation}. "
            "Investigate both operations."
        ),
    )
    ID_LISTED_BEFORE = (
        "id_listed_before",
        _(
            "The provider returned transaction {transaction}, which it had listed before this operation was sent, so "
            "the response proves nothing"
        ),
    )
    IN_JOURNAL = (
        "in_journal",
        _("Sent before the database was restored, according to the journal of {machine}"),
    )
    PAID_OUTSIDE = "paid_outside", _("Not sent by Countersign. Resolved by {people} ({resolution}): {reason}")


Response: TypeAlias = "dict[str, str]"
"""A `ResponseCode` under `code`, and its parameters beside it, as stored in JSON."""


def coded(code: TextChoices, **parameters: str) -> dict[str, str]:
    """A code and its parameters in the form in which they are stored."""
    return {"code": code.value, **parameters}


def responses_sentence(responses: Sequence[Response]) -> str:
    """The responses to one request in words, the late ones after the first."""
    texts = [code_sentence(ResponseCode, one)[:500] for one in responses]
    return " · ".join(texts[:1] + [gettext("Later: {response}").format(response=text) for text in texts[1:]])


class ClosingReason(TextChoices):
    """Why an operation was rejected or failed. The label is the sentence, with its parameters in braces."""

    STATED = "stated", "{text}"  # by the person who rejected it
    REPORTED_FAILED = "reported_failed", _("The provider reports this transaction as failed.")
    RESOLVED = "resolved", _("Resolved by {resolution}.")


def closing_sentence(reason: dict[str, str]) -> str:
    """A `ClosingReason` or `Response` with its parameters in words; empty if there is none."""
    if not reason:
        return ""
    if reason["code"] in ResponseCode.values:
        return responses_sentence([reason])
    return code_sentence(ClosingReason, reason)


class Blocker(TextChoices):
    """What blocks a release. The label is the sentence, with its parameters in braces."""

    PROVIDER_UNREADABLE = "provider_unreadable", _("The provider's data could not be read. {error}")
    LIST_CHANGING = "list_changing", _("The provider's list changed during every read.")
    DATABASE_SLOW = (
        "database_slow",
        _("The database responded too slowly, so the values checked before sending were out of date."),
    )
    JOURNAL_UNWRITABLE = "journal_unwritable", _("The journal of sent requests cannot be written: {error}.")
    JOURNAL_UNREADABLE = (
        "journal_unreadable",
        _("The journal of sent requests {file} cannot be read: {error}."),
    )
    JOURNAL_GONE = (
        "journal_gone",
        _(
            "The journal of sent requests {file} was deleted or replaced while Countersign was running. "
            "Ask the operator to bring it back. If it is lost, restart all processes: payments are then paused "
            "until two people resume."
        ),
    )
    OTP_SECRET_MISSING = (
        "otp_secret_missing",
        _(
            "No authenticator secret is stored, so no one-time code can be generated. An administrator must store one."
        ),
    )
    OTP_SECRET_UNREADABLE = (
        "otp_secret_unreadable",
        _(
            "The authenticator secret cannot be decrypted: its encryption key is not configured. Contact the operator."
        ),
    )
    OTP_NEXT_STEP = (
        "otp_next_step",
        _("It waits for the next one-time code, because the provider accepts each code only once."),
    )
    INTERNAL_ERROR = (
        "internal_error",
        _("Internal error in Countersign. Contact the operator: the server log has the details."),
    )


def blocker_sentence(blocker: str, parameters: Mapping[str, object]) -> str:
    """The blocker in words."""
    return str(Blocker(blocker).label).format(**with_error_sentence(parameters))


class MismatchReason(TextChoices):
    """Why the only candidate is rejected."""

    NO_TIME = "no_time", _("it has no time")
    ID_TOO_LONG = "id_too_long", _("its ID is too long to store")
    BALANCE_AS_BEFORE = (
        "balance_as_before",
        _("the balance after it equals the balance before sending, so it is earlier"),
    )
    OLDER_AND_NOT_ACCEPTED = (
        "older_and_not_accepted",
        _("it is older than this attempt, and no response shows that the provider accepted it"),
    )
    OLDER_AND_OTHER_BALANCE = (
        "older_and_other_balance",
        _("it is older than this attempt, and the balance before it differs"),
    )
    RECEIVER_IN_OTHER_CASE = (
        "receiver_in_other_case",
        _("its recipient's username differs in upper and lower case, so it may be another user"),
    )


class CheckResult(TextChoices):
    """The result of a status check. The label is the sentence, with its parameters in braces."""

    NOT_OBSERVABLE = "not_observable", _("The provider's API does not show this outcome. Ask the provider.")
    PROVIDER_UNREADABLE = "provider_unreadable", _("The provider's data could not be read: {error}")
    LIST_CHANGING = "list_changing", _("The provider's list changed during every read")
    CONTENT_UNREADABLE = (
        "content_unreadable",
        _("This version of Countersign cannot read the content, so the outcome was not checked."),
    )
    DONE = "done", _("The provider shows this change as done")
    NOT_DONE = "not_done", _("The provider does not show this change as done yet")
    NOT_LISTED = "not_listed", _("Not in the provider's list yet")
    SEVERAL_CANDIDATES = "several_candidates", _("{count} transactions in the list could match")
    CANDIDATE_REJECTED = "candidate_rejected", _("{transaction} could match, but {reason}")
    FOUND = "found", _("Matched to {transaction}: {status}")
    FOUND_TOO_EARLY = (
        "found_too_early",
        _(
            "Possible match {transaction}: {status}; not matched before {not_before}, because "
            "another transaction may still appear"
        ),
    )
    INTERNAL_ERROR = (
        "internal_error",
        _("Internal error in Countersign. Contact the operator: the server log has the details."),
    )


def check_sentence(result: str, parameters: Mapping[str, Any]) -> str:
    """The result in words."""
    texts = {
        name: _CHECK_WORDS.get(name, str)(value) for name, value in with_error_sentence(parameters).items()
    }
    return str(CheckResult(result).label).format(**texts)


_CHECK_WORDS: dict[str, Callable[[str], str]] = {
    "transaction": lambda id_: id_[:100],
    "status": lambda status: str(STATUS_LABELS.get(status, status)),
    "reason": lambda reason: str(MismatchReason(reason).label),
    "not_before": lambda at: zoned_time(datetime.fromisoformat(at)),
}
