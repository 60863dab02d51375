"""The decision panel of an operation: what its status means, what this user may do now, and why it was not sent."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.web.formatting import format_amount, local_time
from backoffice.operations import permissions, policy
from backoffice.operations.delivery.balance_queue import QueuePosition
from backoffice.operations.kinds.registry import KINDS, approval_permission_for, permission_for
from backoffice.operations.kinds.resolution.case import may_be_resolved
from backoffice.operations.lifecycle.pause import cached_pause
from backoffice.operations.lifecycle.transitions import OperationAction
from backoffice.operations.models.monitoring import Pause
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import ResponseCode
from backoffice.operations.pages.operation.status import (
    asks_for_otp,
    creates_operations,
    has_approval_lost_validity,
    has_open_incident,
    is_applied_locally,
    is_released,
    last_attempt,
    may_be_paid_already,
    may_have_been_sent,
    still_needed_text,
)
from backoffice.operations.pages.operation.waiting import Waiting, holder_text, waiting_text, waiting_title
from backoffice.operations.policy import has_approved, has_preparer_lost_permission, may_check_status
from backoffice.operations.refusals import Refusal, sentence
from backoffice.operations.states import (
    AWAITING_PROVIDER,
    NOT_EXECUTED,
    PROVEN_NOT_EXECUTED,
    Outcome,
    Status,
)


@dataclass(frozen=True)
class DecisionPanel:
    """A title, a sentence, and the controls to show. The services check every permission again."""

    title: str
    text: str
    may_decide: bool = False  # reject, and approve if `may_approve`
    may_approve: bool = False
    may_approve_and_send: bool = False
    may_release: bool = False
    may_cancel: bool = False
    may_check: bool = False
    may_copy: bool = False
    may_resolve: bool = False
    is_applied_locally: bool = False


_APPLIED = (_("Applied"), _("Applied by the last approval. No payment was sent."))
_CREATING = (
    _("Operations being created"),
    _("Fully approved. Each row becomes an operation. Nothing is sent yet. This page updates automatically."),
)
_RESOLVED = (_("Succeeded"), _("Two people resolved the outcome as executed."))
_PAID_ELSEWHERE = (
    _("Succeeded"),
    _("Not sent by Countersign: two people resolved it as already paid."),
)
_TEXTS: dict[Status, tuple[Promise, Promise]] = {
    # of what is applied here; what is sent has other texts
    Status.APPROVED: (
        _("Being applied"),
        _("Fully approved and being applied. This page updates automatically."),
    ),
    Status.SENDING: (_("Sending"), _("The request is in progress. This page updates automatically.")),
    Status.PROCESSING: (
        _("Processing at the provider"),
        _("The provider accepted it and has not reported the outcome yet. This page updates automatically."),
    ),
    Status.UNKNOWN: (
        _("Outcome unknown"),
        _(
            "The operation may or may not have been executed. Countersign never sends it again automatically, and "
            "keeps checking the provider's records."
        ),
    ),
    Status.REVIEW: (
        _("Outcome must be resolved"),
        _(
            "The checks did not find the outcome. Do not pay again. Ask the provider, compare its statement with "
            "the evidence, then resolve the outcome. A second person must approve the resolution."
        ),
    ),
    Status.SUCCEEDED: (_("Succeeded"), _("Confirmed by the provider.")),
    Status.FAILED: (
        _("Failed"),
        _("Not executed, or reversed by the provider. Countersign does not send it again automatically."),
    ),
    Status.REJECTED: (_("Rejected"), _("Not approved. Nothing was sent.")),
    Status.EXPIRED: (_("Expired"), _("It will not be sent.")),
    Status.CANCELLED: (_("Cancelled"), _("It will not be sent.")),
}


# A release that is the last in the log and has no row any more expired, even if that is not recorded yet.
_RELEASE_EXPIRED = {Action.OPERATION_RELEASED, Action.OPERATION_RELEASE_EXPIRED}
_PAID_ALREADY = _("According to the provider, this operation may already be paid. Compare the records first.")
_OTHER_PERSON_SENDS = _("It must be sent by someone with permission to send, other than the preparer.")
_PREPARE_AGAIN = _("The preparer must cancel it and prepare it again.")
_LOST = (
    _("Possibly sent before the database was restored"),
    _(
        "Do not pay again. Countersign checks the provider's records for the transaction of this operation. The "
        "operation is not sent again."
    ),
)
"""Of an approved operation with a lost attempt."""
_LOST_UNAPPROVED = _(
    "This operation may have been sent before the database was restored. Do not pay again: search the provider's "
    "records for its transaction."
)
"""Of one that cannot be approved or is closed."""


def panel_for(
    person: User, operation: Operation, turn: QueuePosition | None, waiting: Waiting | None
) -> DecisionPanel:
    """What this user sees beside the facts. Uses only what `selectors.operation_page` has fetched."""
    title, text = _title_and_text(person, operation, turn, waiting)
    if waiting and operation.status == Status.APPROVED and not may_be_paid_already(operation):
        is_lost = has_approval_lost_validity(operation)
        title = gettext("Approval no longer valid") if is_lost else waiting_title(waiting)
        text = f"{_invalid_text(operation)} {waiting_text(waiting)}" if is_lost else waiting_text(waiting)
    decides = policy.may_decide(person, operation) and not has_approved(person, operation)
    approves = waiting is not None and waiting.may_approve(person)
    return DecisionPanel(
        title,
        text,
        may_decide=decides,
        may_approve=approves,
        may_approve_and_send=approves
        and waiting is not None
        and waiting.missing == 1
        and not waiting.is_held
        and policy.may_now(person, permissions.RELEASE)
        and not is_applied_locally(operation)
        and not _cannot_be_sent_now(operation, turn),
        may_release=waiting is None and _may_release(person, operation, turn),
        may_cancel=policy.may_cancel(person, operation),
        may_check=may_check_status(person) and operation.status in AWAITING_PROVIDER,
        may_copy=_may_copy(person, operation),
        may_resolve=_may_be_resolved(operation) and policy.may_now(person, permissions.RESOLVE),
        is_applied_locally=is_applied_locally(operation),
    )


def _may_be_resolved(operation: Operation) -> bool:
    attempts = [attempt for attempt in operation.attempts.all() if attempt.closed_at is None]
    return any(may_be_resolved(operation, attempt) for attempt in attempts)


def without_decisions(panel: DecisionPanel) -> DecisionPanel:
    """The same for unreadable content: no decision, no sending, no copy."""
    if panel.may_decide or panel.may_approve or panel.may_release:
        title = gettext("Cannot be approved or sent")
        text = gettext("This version of Countersign cannot read the content.")
        panel = replace(panel, title=title, text=text, may_decide=False, may_release=False)
        panel = replace(panel, may_approve=False)
    return replace(panel, may_approve_and_send=False, may_copy=False)


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
        return _refused_at_claim(operation, last.detail["refusal"])
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
    is_refused_send = entry.detail.get("attempted") == OperationAction.SEND
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
    **dict.fromkeys((Refusal.POSSIBLY_EXECUTED, Refusal.SENT_BEFORE_RESTORE, Refusal.OPEN_INCIDENT), ""),
}
"""What to do after these refusals. After any other that `_REFUSED_AT_CLAIM` lacks too, it must be prepared again."""


def _refused_at_claim(operation: Operation, refusal: dict[str, str]) -> str:
    code = refusal["code"]
    if code in _REFUSED_AT_CLAIM:
        return str(_REFUSED_AT_CLAIM[code])
    if code in _ADVICE_AFTER_REFUSAL:
        return f"{sentence(refusal)} {_ADVICE_AFTER_REFUSAL[code]}".rstrip()
    if may_be_paid_already(operation):
        return f"{gettext('Not sent.')} {_PAID_ALREADY}"
    return f"{gettext('Not sent.')} {sentence(refusal)} {_PREPARE_AGAIN}"


def _advice_if_sendable(operation: Operation, turn: QueuePosition | None, advice: str) -> str:
    """The advice, unless the panel says that it cannot be sent now or may be paid already."""
    is_wrong = cached_pause() or (turn and turn.blocked_by) or may_be_paid_already(operation)
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
        return str(_PAID_ALREADY)
    return {
        Outcome.REJECTED: gettext("Nothing was executed. Correct the cause, then prepare it again."),
        Outcome.FAILED: gettext("Prepare it again if it must still be done."),
    }.get(Outcome(attempt.outcome), "")


def _send_again_text(operation: Operation, attempt: Attempt) -> str:
    is_last = attempt == last_attempt(operation)
    is_sendable = operation.status == Status.APPROVED and not may_have_been_sent(operation)
    if not is_sendable or is_released(operation) or not is_last:
        return gettext("Nothing was executed.")
    if may_be_paid_already(operation):
        return str(_PAID_ALREADY)
    if _is_outdated(attempt):
        return gettext("Nothing was executed. Cancel this operation and prepare it again.")
    if cached_pause() or has_approval_lost_validity(operation):
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


def _may_copy(person: User, operation: Operation) -> bool:
    """Whether a copy makes sense: not of a local kind that was applied."""
    is_done_for_good = operation.status == Status.SUCCEEDED and is_applied_locally(operation)
    return operation.is_closed and not is_done_for_good and person.has_perm(permission_for(operation.kind))


def _may_release(person: User, operation: Operation, turn: QueuePosition | None) -> bool:
    if is_applied_locally(operation):
        return False
    stands_still = not is_released(operation) and not has_approval_lost_validity(operation)
    return stands_still and policy.may_release(person, operation) and not _cannot_be_sent_now(operation, turn)


def _cannot_be_sent_now(operation: Operation, turn: QueuePosition | None) -> bool:
    """Whether no release is offered: payments are paused, it may have been sent before a restore, an open incident says
    that it was executed, or its code would expire before its turn.
    """
    if cached_pause() is not None or may_have_been_sent(operation) or has_open_incident(operation):
        return True
    return turn is not None and turn.blocked_by is not None and asks_for_otp(operation)


def _title_and_text(
    person: User, operation: Operation, turn: QueuePosition | None, waiting: Waiting | None
) -> tuple[str, str]:
    status = Status(operation.status)
    if status == Status.PENDING:
        return _pending_text(person, operation, waiting)
    if status == Status.APPROVED and not is_applied_locally(operation):
        return _approved_text(person, operation, turn)
    is_creating = status == Status.APPROVED and creates_operations(operation)
    title, text = _CREATING if is_creating else _closed_or_sent_texts(operation)
    return str(title), str(text)


def _closed_or_sent_texts(operation: Operation) -> tuple[object, object]:
    """The title and sentence of an operation that was sent or is closed."""
    status, attempt = Status(operation.status), last_attempt(operation)
    if status in NOT_EXECUTED and may_have_been_sent(operation):
        return _TEXTS[status][0], f"{_TEXTS[status][1]} {_LOST_UNAPPROVED}"
    if status in NOT_EXECUTED and may_be_paid_already(operation):
        return _TEXTS[status][0], f"{_TEXTS[status][1]} {_PAID_ALREADY}"
    if status != Status.SUCCEEDED:
        return _TEXTS[status]
    if is_applied_locally(operation):
        return KINDS[operation.kind].success_texts or _APPLIED
    if attempt is not None and attempt.resolution_id:
        return _RESOLVED if attempt.released_by_id else _PAID_ELSEWHERE
    return (KINDS[operation.kind].success_texts if operation.kind in KINDS else None) or _TEXTS[status]


def _pending_text(person: User, operation: Operation, waiting: Waiting | None) -> tuple[str, str]:
    if person.pk == operation.preparer_id:
        text = gettext("You prepared this operation, so another person must approve it.")
        return gettext("Waiting for another person"), text
    if has_approved(person, operation):
        return gettext("Approved by you"), still_needed_text(operation)
    if has_preparer_lost_permission(operation):
        is_lost = may_have_been_sent(operation)
        return gettext("Cannot be approved"), str(
            _LOST_UNAPPROVED if is_lost else Refusal.PREPARER_NOT_ENTITLED.label
        )
    if restricted := policy.restriction(person, approval_permission_for(operation.kind)):
        return gettext("You cannot approve yet"), str(restricted)
    decides = policy.may_decide(person, operation)
    if decides and waiting is not None and waiting.may_approve(person):
        return gettext("Approve or reject"), ""
    text = gettext("You can reject it, but not approve it.") if decides else ""
    return gettext("Waiting for approval"), text


def _approved_text(person: User, operation: Operation, turn: QueuePosition | None) -> tuple[str, str]:
    if may_have_been_sent(operation):
        return str(_LOST[0]), str(_LOST[1])
    if not is_released(operation) and has_approval_lost_validity(operation):
        return gettext("Approval no longer valid"), _invalid_text(operation)
    pause = cached_pause()
    if pause is not None:
        return gettext("Not sent: payments are paused"), _paused_text(operation, pause, turn)
    if is_released(operation):
        return _released_text(operation, turn)
    if turn is not None and (holder := turn.blocked_by):
        return _blocked_title(operation, turn, holder), _blocked_text(person, operation, turn, holder)
    return _sendable_text(person, operation)


def _sendable_text(person: User, operation: Operation) -> tuple[str, str]:
    if may_be_paid_already(operation):
        reason = Refusal.OPEN_INCIDENT.label if has_open_incident(operation) else ""
        return gettext("Not sent: possibly paid already"), str(reason)
    if held := holder_text(operation):
        return gettext("Not sent: account not confirmed"), held
    if policy.may_release(person, operation):
        return gettext("Ready to send"), gettext(
            "Fully approved. It is sent only when someone chooses “Send”."
        )
    restricted = policy.restriction(person, permissions.RELEASE)
    if restricted and person.pk != operation.preparer_id:
        return gettext("You cannot send yet"), str(restricted)
    return gettext("Approved, not sent"), str(_OTHER_PERSON_SENDS)


def _invalid_text(operation: Operation) -> str:
    if may_be_paid_already(operation):
        return str(_PAID_ALREADY)
    if has_preparer_lost_permission(operation):
        return str(Refusal.PREPARER_NOT_ENTITLED.label)
    approvers = [approval.approver for approval in operation.approvals.all()]
    lost = policy.reason_approval_lost(operation.kind, approvers)
    if lost is not Refusal.APPROVER_NOT_ENTITLED:
        return str(lost.label)
    return gettext("An approver no longer has permission to approve, so this operation is not sent.")


def _released_text(operation: Operation, turn: QueuePosition | None) -> tuple[str, str]:
    until, since = local_time(operation.release.expires_at), operation.release.blocked_since
    if turn is not None and not turn.is_next:
        text = gettext("The release is valid until {time}.").format(time=until)
        return gettext("Waiting in the queue"), f"{turn} {text}"
    if since is not None:
        text = gettext(
            "Blocked since {since}; nothing was sent. Countersign tries again until the release expires: {until}."
        ).format(since=local_time(since), until=until)
        return gettext("Not sent yet"), f"{operation.release.blocker_sentence} {text}"
    return (
        gettext("Released for sending"),
        gettext("Not sent yet; sending starts within seconds. This page updates automatically."),
    )


def _paused_text(operation: Operation, pause: Pause, turn: QueuePosition | None) -> str:
    why = gettext("{person} paused payments: {reason}. Nothing is sent until payments are resumed.").format(
        person=pause.by, reason=pause.why.rstrip(".")
    )
    if may_be_paid_already(operation):
        return f"{why} {_PAID_ALREADY}"
    if is_released(operation):
        released = gettext("The release is valid until {time}; after that, choose “Send” again.")
        return f"{why} {released.format(time=local_time(operation.release.expires_at))}"
    blocked = f" {turn}" if turn and turn.blocked_by else ""
    return f"{why} {gettext('This operation can be sent after that.')}{blocked}"


def _blocked_title(operation: Operation, turn: QueuePosition, holder: Operation) -> str:
    if settings.STRICT_BALANCE_ORDER or operation.amount is None:
        title = gettext("{reference} blocks the {balance} balance")
        return title.format(reference=holder.reference, balance=turn.balance)
    amount = f"{turn.balance} {format_amount(operation.amount, turn.balance)}"
    return gettext("{reference} blocks payments of {amount}").format(
        reference=holder.reference, amount=amount
    )


def _blocked_text(person: User, operation: Operation, turn: QueuePosition, holder: Operation) -> str:
    if asks_for_otp(operation):
        text = gettext(
            "Send this operation only after that transaction is known: a one-time code entered now would "
            "expire."
        )
    elif policy.may_release(person, operation):
        text = gettext(
            "If you choose “Send” now, this operation is sent if {reference} stops blocking it within {minutes} "
            "minutes."
        ).format(reference=holder.reference, minutes=settings.RELEASE_LIFETIME_MINUTES)
    else:
        text = str(_OTHER_PERSON_SENDS)
    return f"{turn} {text}"
