"""The decision panel of an operation: what its status means, and what this user may do now."""

from dataclasses import dataclass, replace

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from backoffice.accounts.models import User
from backoffice.accounts.roles import may_now
from backoffice.core.web.formatting import format_amount, local_time
from backoffice.operations import permissions, policy
from backoffice.operations.delivery.balance_queue import QueuePosition
from backoffice.operations.kinds.registry import KINDS, approval_permission_for, permission_for
from backoffice.operations.kinds.resolution.case import may_be_resolved
from backoffice.operations.lifecycle.pause import cached_pause
from backoffice.operations.models.batches import Batch
from backoffice.operations.models.monitoring import Pause
from backoffice.operations.models.operations import Operation
from backoffice.operations.pages.operation.next_step import PAID_ALREADY
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
    paused_batch,
    still_needed_text,
)
from backoffice.operations.pages.operation.waiting import Waiting, holder_text, waiting_text, waiting_title
from backoffice.operations.policy import has_approved, has_preparer_lost_permission, may_check_status
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import AWAITING_PROVIDER, NOT_EXECUTED, Status


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


_OTHER_PERSON_SENDS = _("It must be sent by someone with permission to send, other than the preparer.")
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
        and may_now(person, permissions.RELEASE)
        and not is_applied_locally(operation)
        and not _cannot_be_sent_now(operation, turn),
        may_release=waiting is None and _may_release(person, operation, turn),
        may_cancel=policy.may_cancel(person, operation),
        may_check=may_check_status(person) and operation.status in AWAITING_PROVIDER,
        may_copy=_may_copy(person, operation),
        may_resolve=_may_be_resolved(operation) and may_now(person, permissions.RESOLVE),
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
    """Whether no release is offered: payments or its batch are paused, it may have been sent before a restore, an open
    incident says that it was executed, or its code would expire before its turn.
    """
    if cached_pause() is not None or paused_batch(operation) is not None:
        return True
    if may_have_been_sent(operation) or has_open_incident(operation):
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
        return _TEXTS[status][0], f"{_TEXTS[status][1]} {PAID_ALREADY}"
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
        return gettext("Approved by you"), f"{still_needed_text(operation)} {_way_to_stop(operation)}"
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
    if paused := _pause_title_and_text(operation, turn):
        return paused
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
    way_to_stop = f" {_way_to_stop(operation)}" if has_approved(person, operation) else ""
    if policy.may_release(person, operation):
        text = gettext("Fully approved. It is sent only when someone chooses “Send”.")
        return gettext("Ready to send"), f"{text}{way_to_stop}"
    restricted = policy.restriction(person, permissions.RELEASE)
    if restricted and person.pk != operation.preparer_id:
        return gettext("You cannot send yet"), f"{restricted}{way_to_stop}"
    return gettext("Approved, not sent"), f"{_OTHER_PERSON_SENDS}{way_to_stop}"


def _way_to_stop(operation: Operation) -> str:
    """For an approver with second thoughts, who cannot take the approval back."""
    return gettext("If it must not go ahead, {preparer} can cancel it.").format(preparer=operation.preparer)


def _invalid_text(operation: Operation) -> str:
    if may_be_paid_already(operation):
        return str(PAID_ALREADY)
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


def _pause_title_and_text(operation: Operation, turn: QueuePosition | None) -> tuple[str, str] | None:
    """Of a pause of all payments, or of the batch whose row this is; None if neither keeps it from being sent."""
    if pause := cached_pause():
        return gettext("Not sent: payments are paused"), _paused_text(operation, pause, turn)
    if not is_released(operation) and (batch := paused_batch(operation)):
        return gettext("Not sent: the batch is paused"), _paused_batch_text(operation, batch)
    return None


def _paused_text(operation: Operation, pause: Pause, turn: QueuePosition | None) -> str:
    why = gettext("{person} paused payments: {reason}. Nothing is sent until payments are resumed.").format(
        person=pause.by, reason=pause.why.rstrip(".")
    )
    if may_be_paid_already(operation):
        return f"{why} {PAID_ALREADY}"
    if is_released(operation):
        released = gettext("The release is valid until {time}; after that, choose “Send” again.")
        return f"{why} {released.format(time=local_time(operation.release.expires_at))}"
    blocked = f" {turn}" if turn and turn.blocked_by else ""
    return f"{why} {gettext('This operation can be sent after that.')}{blocked}"


def _paused_batch_text(operation: Operation, batch: Batch) -> str:
    why = gettext(
        "{person} paused batch {reference}. None of its operations is sent until it is resumed."
    ).format(person=batch.paused_by, reference=batch.operation.reference)
    return f"{why} {PAID_ALREADY}" if may_be_paid_already(operation) else why


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
