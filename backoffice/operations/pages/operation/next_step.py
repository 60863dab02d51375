"""Why an operation was not sent, or what became of an attempt, and what happens or has to be done next."""

from collections.abc import Sequence

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.web.formatting import in_words, local_time
from backoffice.operations.delivery.balance_queue import QueuePosition
from backoffice.operations.lifecycle.pause import cached_pause
from backoffice.operations.lifecycle.transitions import OperationAction
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import ResponseCode
from backoffice.operations.pages.operation.status import (
    asks_for_otp,
    has_approval_lost_validity,
    is_released,
    last_attempt,
    may_be_paid_already,
    may_have_been_sent,
    paused_batch,
)
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.refusals.sentences import sentence
from backoffice.operations.states import PROVEN_NOT_EXECUTED, Outcome, Status

# A release that is the last in the log and has no row any more expired, even if that is not recorded yet.
_RELEASE_EXPIRED = {Action.OPERATION_RELEASED, Action.OPERATION_RELEASE_EXPIRED}
PAID_ALREADY = _("According to the provider, this operation may already be paid. Compare the records first.")
_PREPARE_AGAIN = _("The preparer must cancel it and prepare it again.")


def reason_not_sent(operation: Operation, timeline: Sequence[Entry], turn: QueuePosition | None) -> str:
    """Why an approved operation was released but not sent, and what to do; empty if it was never released.

    The newest entry with a reason decides, since there may have been several releases. If an approval is no
    longer valid, or it may have been sent before a restore, the panel itself explains it.
    """
    if operation.status != Status.APPROVED or is_released(operation):
        return ""
    if may_have_been_sent(operation) or has_approval_lost_validity(operation):
        return ""
    last = next((entry for entry in reversed(timeline) if _ends_a_release(entry)), None)
    if last is not None and last.action in _RELEASE_EXPIRED:
        return _expired_release_text(operation, turn)
    if last is not None and last.action == Action.OPERATION_ACTION_REFUSED:
        return _refused_at_claim(operation, last)
    return _failed_attempt_text(operation, turn)


def _expired_release_text(operation: Operation, turn: QueuePosition | None) -> str:
    text = gettext(
        "Not sent before the release expired: other operations were ahead, the provider's data could not be read, "
        "or no sending process was available."
    )
    if not asks_for_otp(operation):
        return f"{text}{_advice_if_sendable(operation, turn, gettext('Choose “Send” again.'))}"
    advice = _advice_if_sendable(
        operation, turn, gettext("Choose “Send” again and enter a new one-time code.")
    )
    return f"{text} {gettext('The one-time code was deleted.')}{advice}"


def _ends_a_release(entry: Entry) -> bool:
    is_refused_send = entry.detail_of("attempted") == OperationAction.SEND
    return entry.action in {*_RELEASE_EXPIRED, Action.OPERATION_RETURNED} or (
        entry.action == Action.OPERATION_ACTION_REFUSED and is_refused_send
    )


_REFUSED_AT_CLAIM: dict[str, Promise] = {
    Refusal.PERMISSION_MISSING: _(
        "Not sent: the person who released it no longer has permission to send. Another person must send it."
    ),
    Refusal.ACCOUNT_RESTRICTED: _(
        "Not sent: the account of the person who released it was changed by break-glass access. Another person "
        "must send it."
    ),
    Refusal.NEW_RIGHTS_WAIT: _(
        "Not sent: the person who released it got new rights or a new second factor meanwhile. Another person must "
        "send it."
    ),
    Refusal.BATCH_PAUSED: _("Not sent: the batch was paused. Once it is resumed, choose “Send” again."),
    Refusal.DATABASE_RESTORED: _(
        "Not sent: the database was restored to an earlier point in time, or a standby server took over, and "
        "payments were paused."
    ),
}
"""Where the sentence of the refusal says less than what the reader has to know."""

_ADVICE_AFTER_REFUSAL: dict[str, Promise | str] = {
    Refusal.LOOK_ALIKE: _(
        "If it is this payment, choose “This transaction is this payment…”. If it is a different one, enter the "
        "reason, then choose “Send”."
    ),
    **dict.fromkeys(
        (Refusal.HOLDER_CHANGED, Refusal.HOLDER_NOT_FOUND),
        _(
            "If the account is right, enter how you know it, then choose “Send”. Otherwise cancel the operation."
        ),
    ),
    Refusal.OTP_OF_OTHER_CONTENT: _("Choose “Send” again and enter a new one-time code."),
    **dict.fromkeys(
        (Refusal.APPROVER_RESTRICTED, Refusal.APPROVER_RIGHTS_NEW, Refusal.LIST_TOO_LONG), ""
    ),  # it can still be sent
    **dict.fromkeys((Refusal.APPROVALS_MISSING, Refusal.POLICY_REFUSED, Refusal.POLICY_ALTERED), ""),
    # it may be paid already
    **dict.fromkeys((Refusal.POSSIBLY_EXECUTED, Refusal.SENT_BEFORE_RESTORE), ""),
    **dict.fromkeys((Refusal.OPEN_INCIDENT, Refusal.OPEN_INCIDENT_OF_REPEATED), ""),
}
"""What to do after these refusals. After any other that `_REFUSED_AT_CLAIM` lacks too, it must be prepared again."""


def _refused_at_claim(operation: Operation, entry: Entry) -> str:
    code, refusal = entry.code_of("refusal"), in_words(sentence, entry.detail_of("refusal"))
    if code in _REFUSED_AT_CLAIM:
        return str(_REFUSED_AT_CLAIM[code])
    if code in _ADVICE_AFTER_REFUSAL:
        return f"{refusal} {_ADVICE_AFTER_REFUSAL[code]}".rstrip()
    if may_be_paid_already(operation):
        return f"{gettext('Not sent.')} {PAID_ALREADY}"
    return f"{gettext('Not sent.')} {refusal} {_PREPARE_AGAIN}"


def _advice_if_sendable(operation: Operation, turn: QueuePosition | None, advice: str) -> str:
    """The advice, unless the panel says that it cannot be sent now or may be paid already."""
    is_wrong = (
        cached_pause()
        or paused_batch(operation)
        or (turn and turn.blocked_by)
        or may_be_paid_already(operation)
    )
    return "" if is_wrong else f" {advice}"


def _failed_attempt_text(operation: Operation, turn: QueuePosition | None) -> str:
    attempt = last_attempt(operation)
    if attempt is None:
        return ""
    if attempt.outcome == Outcome.OTP_REJECTED:
        text = gettext("Not executed: the provider refused the one-time code ({response}).")
    else:
        text = gettext("Not executed. {response}")
    text = text.format(response=attempt.response).rstrip()
    if _is_outdated(attempt):
        return text
    again = gettext("It can be sent again.")
    if asks_for_otp(operation):
        again = gettext("It can be sent again with a new one-time code.")
    return f"{text}{_advice_if_sendable(operation, turn, again)}"


def _is_outdated(attempt: Attempt) -> bool:
    """Whether its response says that the operation must be prepared again."""
    return any(response["code"] == ResponseCode.OUTDATED for response in attempt.responses)


def nothing_sent_text(operation: Operation) -> str:
    """Why there is no attempt yet, and what has to happen before the first."""
    if may_have_been_sent(operation):
        return gettext(
            "The database contains no attempt, but according to the journal of sent requests the operation may "
            "have been sent."
        )
    if operation.status == Status.PENDING:
        return gettext("Nothing was sent. It can be sent after it is approved.")
    if operation.status != Status.APPROVED:
        return gettext("Nothing was sent.")
    if not is_released(operation):
        return gettext("Nothing has been sent yet. It is sent only when someone chooses “Send”.")
    text = gettext("Nothing has been sent yet. {blocker} Countersign keeps trying until {time}.")
    until = local_time(operation.release.expires_at)
    return " ".join(text.format(blocker=operation.release.blocker_sentence, time=until).split())


def next_step(operation: Operation, attempt: Attempt) -> str:
    """What happens after this attempt, or what a person has to do; empty once it has succeeded."""
    if attempt.outcome == Outcome.OPEN:
        return _next_check_text(attempt)
    if attempt.outcome in PROVEN_NOT_EXECUTED:
        return _send_again_text(operation, attempt)
    if attempt.outcome in {Outcome.REJECTED, Outcome.FAILED} and may_be_paid_already(operation):
        return str(PAID_ALREADY)
    advice: dict[str, str] = {
        Outcome.REJECTED: gettext("Nothing was executed. Correct the cause, then prepare it again."),
        Outcome.FAILED: gettext("Prepare it again if it must still be done."),
    }
    return advice.get(attempt.outcome, "")


def _send_again_text(operation: Operation, attempt: Attempt) -> str:
    is_last = attempt == last_attempt(operation)
    is_sendable = operation.status == Status.APPROVED and not may_have_been_sent(operation)
    if not is_sendable or is_released(operation) or not is_last:
        return gettext("Nothing was executed.")
    if may_be_paid_already(operation):
        return str(PAID_ALREADY)
    if _is_outdated(attempt):
        return gettext("Nothing was executed. Cancel this operation and prepare it again.")
    if cached_pause() or paused_batch(operation) or has_approval_lost_validity(operation):
        return gettext("Nothing was executed.")
    if asks_for_otp(operation):
        return gettext("Nothing was executed. Choose “Send” again and enter a new one-time code.")
    return gettext("Nothing was executed. Choose “Send” again.")


def _next_check_text(attempt: Attempt) -> str:
    if attempt.next_check_at is not None:
        text = gettext(
            "Countersign checks the provider's records again: {time}."
            " Do not repeat the operation until its outcome is known."
        )
        return text.format(time=local_time(attempt.next_check_at))
    if attempt.checks:
        return gettext("Automatic checks have stopped. View the evidence, then resolve the outcome.")
    return gettext("Wait for the response. Do not repeat the operation.")
