"""What the status of an operation means to a user: its steps, the offered actions, and why it was not sent.

Also the fingerprint by which an open page detects a change.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from django.conf import settings
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.web.formatting import local_time
from backoffice.operations import permissions, policy
from backoffice.operations.delivery.balance_queue import QueuePosition
from backoffice.operations.errors import OperationAction, Refusal, sentence
from backoffice.operations.kinds.base import LocalKind
from backoffice.operations.kinds.registry import KINDS, permission_for
from backoffice.operations.kinds.resolution.case import may_be_resolved
from backoffice.operations.lifecycle.pause import cached_pause
from backoffice.operations.models.monitoring import Pause
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.policy import has_approved, has_preparer_lost_permission, may_check_status
from backoffice.operations.states import AWAITING_PROVIDER, Outcome, Status

POLL_SECONDS_MACHINE = 2  # between polls while a worker or the provider has to act
POLL_SECONDS_PEOPLE = 5


@dataclass(frozen=True)
class OperationStep:
    """One of the steps; `state` is done, now, todo or stopped."""

    label: str
    state: str
    note: str


_LABELS = ("Prepared", "Countersigned", "Sent", "Confirmed")
_LOCAL_LABELS = ("Prepared", "Countersigned", "Applied")
_REACHED = {
    Status.PENDING: 1,
    Status.REJECTED: 1,
    Status.APPROVED: 2,
    Status.SENDING: 2,
    Status.PROCESSING: 3,
    Status.UNKNOWN: 3,
    Status.REVIEW: 3,
    Status.FAILED: 3,
    Status.SUCCEEDED: 4,
}
_STOPPED = {Status.REJECTED, Status.EXPIRED, Status.CANCELLED, Status.UNKNOWN, Status.REVIEW, Status.FAILED}


def steps(operation: Operation, turn: QueuePosition | None) -> list[OperationStep]:
    """The steps with a short note each: four, or three for kinds that are never sent."""
    status = Status(operation.status)
    reached = _REACHED.get(status, 2 if operation.decided_at else 1)
    at_reached = "stopped" if status in _STOPPED else "now"
    return [
        OperationStep(label, "done" if place < reached else at_reached if place == reached else "todo", note)
        for place, (label, note) in enumerate(_labelled_notes(operation, turn))
    ]


def last_attempt(operation: Operation) -> Attempt | None:
    """The newest attempt, from the prefetched ones."""
    attempts = list(operation.attempts.all())
    return attempts[-1] if attempts else None


def approvals_missing(operation: Operation) -> int:
    """How many more approvals are needed."""
    return max(operation.approvals_needed - len(operation.approvals.all()), 0)


def is_released(operation: Operation) -> bool:
    """Whether there is a release that is neither claimed nor expired."""
    return hasattr(operation, "release") and operation.release.expires_at > timezone.now()


def has_approval_lost_validity(operation: Operation) -> bool:
    """Whether the preparer or an approver has lost the permission, so that it is not sent."""
    return has_preparer_lost_permission(operation) or not all(
        getattr(approval, "still_entitled", True) for approval in operation.approvals.all()
    )


def needs_otp(operation: Operation) -> bool:
    """Whether the provider requires its one-time code; False for a kind that this release does not know."""
    return operation.kind in KINDS and KINDS[operation.kind].needs_otp


def is_applied_locally(operation: Operation) -> bool:
    """Whether it is never sent: the last approval applies it."""
    return isinstance(KINDS.get(operation.kind), LocalKind)


def fingerprint(operation: Operation, turn: QueuePosition | None) -> str:
    """Changes whenever the page of the operation would; an open page compares it."""
    attempts = list(operation.attempts.all())
    checks = sum(attempt.checks for attempt in attempts)
    parts = (
        operation.status,
        len(operation.approvals.all()),
        int(is_released(operation)),
        int(cached_pause() is not None),
        int(has_approval_lost_validity(operation)),
        len(attempts),
        checks,
        turn.ahead if turn else 0,
        turn.blocked_by.reference if turn and turn.blocked_by else "",
        _text_hash(operation),
    )
    return "-".join(map(str, parts))


def _text_hash(operation: Operation) -> str:
    """A short hash of the sentences shown: the blocker, and the result of the last check."""
    release, attempt = getattr(operation, "release", None), last_attempt(operation)
    texts = (release.blocker_sentence if release else None, attempt.last_check if attempt else None)
    return sha256(repr(texts).encode()).hexdigest()[:12]


def poll_seconds(operation: Operation) -> int:
    """Seconds between polls of an open page: fewer while a worker or the provider has to act."""
    waits_for_people = operation.status in {Status.PENDING, Status.APPROVED, Status.REVIEW}
    return POLL_SECONDS_PEOPLE if waits_for_people and not is_released(operation) else POLL_SECONDS_MACHINE


def _labelled_notes(operation: Operation, turn: QueuePosition | None) -> list[tuple[str, str]]:
    signed = (_prepared_note(operation), _approved_note(operation))
    if is_applied_locally(operation):
        return list(zip(_LOCAL_LABELS, (*signed, _applied_note(operation)), strict=True))
    return list(zip(_LABELS, (*signed, _sent_note(operation, turn), _confirmed_note(operation)), strict=True))


def _prepared_note(operation: Operation) -> str:
    return f"{operation.preparer}, {local_time(operation.prepared_at)}"


def _approved_note(operation: Operation) -> str:
    if operation.status == Status.REJECTED:
        return "rejected"
    names = ", ".join(str(approval.approver) for approval in operation.approvals.all())
    missing = approvals_missing(operation)
    if operation.status == Status.PENDING:
        still = f"{missing} of {operation.approvals_needed} still needed"
        return f"{names}; {still}" if names else still
    return names or Status(operation.status).label.lower()


def _sent_note(operation: Operation, turn: QueuePosition | None) -> str:
    attempt = last_attempt(operation)
    if operation.status == Status.APPROVED:
        if is_released(operation):
            return "handed to the worker" if turn is None or turn.is_next else "waits for its turn"
        return "needs the service's token" if needs_otp(operation) else "waits for the word to send"
    if operation.status == Status.SENDING:
        return "being sent now"
    if operation.status in {Status.EXPIRED, Status.CANCELLED} and operation.decided_at:
        return Status(operation.status).label.lower()
    return local_time(attempt.started_at) if attempt else "not yet"


def _applied_note(operation: Operation) -> str:
    if operation.status == Status.SUCCEEDED and operation.closed_at:
        return local_time(operation.closed_at)
    return "not applied" if operation.is_closed else "with the last countersignature"


def _confirmed_note(operation: Operation) -> str:
    closed = local_time(operation.closed_at) if operation.closed_at else ""
    return {
        Status.PROCESSING: "the service is working on it",
        Status.UNKNOWN: "outcome unknown, being looked up",
        Status.REVIEW: "people must look at it",
        Status.FAILED: f"failed, {closed}",
        Status.SUCCEEDED: closed,
    }.get(Status(operation.status), "by the service itself")


@dataclass(frozen=True)
class DecisionPanel:
    """A title, a sentence, and the controls to show. The services check every permission again."""

    title: str
    text: str
    may_decide: bool = False
    may_approve_and_send: bool = False
    may_release: bool = False
    may_cancel: bool = False
    may_check: bool = False
    may_copy: bool = False
    may_resolve: bool = False
    is_applied_locally: bool = False


_APPLIED = ("Applied", "It was applied here with the last countersignature. Nothing was sent.")
_TEXTS: dict[Status, tuple[str, str]] = {
    Status.SENDING: ("Being sent", "The one request is on its way. This page shows the answer by itself."),
    Status.PROCESSING: (
        "The service works on it",
        "The service accepted it. What it shows itself will say how it ended; this page shows it by itself.",
    ),
    Status.UNKNOWN: (
        "The outcome is not known",
        "No readable answer came back, so it may have been executed or not. Countersign never sends it again by "
        "itself; it keeps reading what the service shows until the outcome is clear.",
    ),
    Status.REVIEW: (
        "People must look at it",
        "The service's list did not settle what became of it. The same is not paid again before two people have said "
        "what became of this one: ask the service, and compare its statement with the evidence.",
    ),
    Status.SUCCEEDED: ("Succeeded", "The service itself confirms it."),
    Status.FAILED: (
        "Failed",
        "It was not executed, or the service took it back. Nothing will be sent again by itself.",
    ),
    Status.REJECTED: ("Rejected", "It was not countersigned. Nothing was sent."),
    Status.EXPIRED: ("Expired", "Its time ran out before it was sent. Nothing was sent."),
    Status.CANCELLED: ("Cancelled", "It was taken back by the person who prepared it. Nothing was sent."),
}


# A release that is the last in the log and has no row any more expired, even if that is not recorded yet.
_RELEASE_EXPIRED = {Action.OPERATION_RELEASED, Action.OPERATION_RELEASE_EXPIRED}
_OTHER_PERSON_SENDS = "Somebody who may send, and who did not prepare it, has to give the word."
_PREPARE_AGAIN = "Whoever prepared it has to cancel it and prepare it again."


def panel_for(person: User, operation: Operation, turn: QueuePosition | None) -> DecisionPanel:
    """What this user sees beside the facts. Uses only what `selectors.operation_page` has fetched."""
    title, text = _title_and_text(person, operation, turn)
    decides = policy.may_decide(person, operation) and not has_approved(person, operation)
    return DecisionPanel(
        title,
        text,
        may_decide=decides,
        may_approve_and_send=decides
        and _is_last_approval(operation)
        and person.has_perm(permissions.RELEASE)
        and not is_applied_locally(operation)
        and not _cannot_be_sent_now(operation, turn),
        may_release=_may_release(person, operation, turn),
        may_cancel=policy.may_cancel(person, operation),
        may_check=may_check_status(person) and operation.status in AWAITING_PROVIDER,
        may_copy=_may_copy(person, operation),
        may_resolve=_may_be_resolved(operation) and person.has_perm(permissions.RESOLVE),
        is_applied_locally=is_applied_locally(operation),
    )


def _may_be_resolved(operation: Operation) -> bool:
    attempts = [attempt for attempt in operation.attempts.all() if attempt.closed_at is None]
    return any(may_be_resolved(operation, attempt) for attempt in attempts)


def without_decisions(panel: DecisionPanel) -> DecisionPanel:
    """The same for unreadable content: no decision, no sending, no copy."""
    if panel.may_decide or panel.may_release:
        title, text = "Nothing can be decided", "Nobody can see what would be signed or sent."
        panel = replace(panel, title=title, text=text, may_decide=False, may_release=False)
    return replace(panel, may_approve_and_send=False, may_copy=False)


def reason_not_sent(operation: Operation, timeline: Sequence[Entry], turn: QueuePosition | None) -> str:
    """Why an approved operation was released but not sent, and what to do; empty if it was never released.

    The newest entry with a reason decides, since there may have been several releases. If an approval is no
    longer valid, the panel itself explains it.
    """
    if operation.status != Status.APPROVED or is_released(operation) or has_approval_lost_validity(operation):
        return ""
    last = next((entry for entry in reversed(timeline) if _ends_a_release(entry)), None)
    if last is not None and last.action in _RELEASE_EXPIRED:
        return (
            "It was not sent in time: its turn did not come, the service could not be read, or no worker was free. "
            "Nothing was sent, and the token is destroyed."
            f"{_advice_if_sendable(turn, 'Give the word again, with a new token.')}"
        )
    if last is not None and last.action == Action.OPERATION_ACTION_REFUSED:
        return _refused_at_claim(last.detail["refusal"])
    return _failed_attempt_text(operation, turn)


def _ends_a_release(entry: Entry) -> bool:
    is_refused_send = entry.detail.get("attempted") == OperationAction.SEND
    return entry.action in {*_RELEASE_EXPIRED, Action.OPERATION_RETURNED} or (
        entry.action == Action.OPERATION_ACTION_REFUSED and is_refused_send
    )


def _refused_at_claim(refusal: dict[str, str]) -> str:
    if refusal["code"] == Refusal.PERMISSION_MISSING:
        return "Held back before it was sent: whoever gave the word may no longer send. Somebody else has to give it."
    return f"Held back before it was sent. {sentence(refusal)} {_PREPARE_AGAIN}"


def _advice_if_sendable(turn: QueuePosition | None, advice: str) -> str:
    """The advice, unless the panel says that it cannot be sent now."""
    return "" if cached_pause() or _blocking_operation(turn) else f" {advice}"


def _failed_attempt_text(operation: Operation, turn: QueuePosition | None) -> str:
    attempt = last_attempt(operation)
    if attempt is None:
        return ""
    reason = "the service refused the token" if attempt.outcome == Outcome.OTP_REJECTED else "nothing left us"
    again = _advice_if_sendable(turn, "It can be sent again.")
    return f"It was tried and not executed: {reason} ({attempt.response}).{again}"


def _is_last_approval(operation: Operation) -> bool:
    return approvals_missing(operation) == 1


def _may_copy(person: User, operation: Operation) -> bool:
    """Whether a copy makes sense: not of a local kind that was applied."""
    is_done_for_good = operation.status == Status.SUCCEEDED and is_applied_locally(operation)
    return operation.is_closed and not is_done_for_good and person.has_perm(permission_for(operation.kind))


def _may_release(person: User, operation: Operation, turn: QueuePosition | None) -> bool:
    stands_still = not is_released(operation) and not has_approval_lost_validity(operation)
    return stands_still and policy.may_release(person, operation) and not _cannot_be_sent_now(operation, turn)


def _cannot_be_sent_now(operation: Operation, turn: QueuePosition | None) -> bool:
    """Whether no release is offered: payments are paused, or its code would expire before its turn."""
    return cached_pause() is not None or (_blocking_operation(turn) is not None and needs_otp(operation))


def _blocking_operation(turn: QueuePosition | None) -> Operation | None:
    """The operation whose open outcome blocks the balance."""
    return turn.blocked_by if turn else None


def _title_and_text(person: User, operation: Operation, turn: QueuePosition | None) -> tuple[str, str]:
    status = Status(operation.status)
    if status == Status.PENDING:
        return _pending_text(person, operation)
    if status == Status.APPROVED:
        return _approved_text(person, operation, turn)
    if status == Status.SUCCEEDED and is_applied_locally(operation):
        return _APPLIED
    if status == Status.SUCCEEDED and operation.kind in KINDS:
        title, text = KINDS[operation.kind].success_texts or _TEXTS[status]
        return str(title), str(text)
    return _TEXTS[status]


def _pending_text(person: User, operation: Operation) -> tuple[str, str]:
    if person.pk == operation.preparer_id:
        return (
            "Waiting for another person",
            f"You prepared this, so somebody else has to sign. {operation.rule_sentence}",
        )
    if has_approved(person, operation):
        return "You have countersigned", f"Another person is still needed. {operation.rule_sentence}"
    if has_preparer_lost_permission(operation):
        return "Not to be countersigned any more", str(Refusal.PREPARER_NOT_ENTITLED.label)
    if policy.may_decide(person, operation):
        return "Your decision", operation.rule_sentence
    return "Waiting for a second person", operation.rule_sentence


def _approved_text(person: User, operation: Operation, turn: QueuePosition | None) -> tuple[str, str]:
    if not is_released(operation) and has_approval_lost_validity(operation):
        return "Countersigned, but not validly any more", _invalid_text(operation)
    pause = cached_pause()
    if pause is not None:
        return "Cannot leave now: sending is paused", _paused_text(operation, pause, turn)
    if is_released(operation):
        return _released_text(operation, turn)
    holder = _blocking_operation(turn)
    if turn is not None and holder is not None:
        title = f"Cannot leave now: {holder.reference} holds the {turn.balance} balance"
        return title, _blocked_text(person, operation, turn, holder)
    if policy.may_release(person, operation):
        return "Ready to be sent", "Everybody needed has countersigned. It leaves when you give the word."
    return "Countersigned, not sent", _OTHER_PERSON_SENDS


def _invalid_text(operation: Operation) -> str:
    if has_preparer_lost_permission(operation):
        return str(Refusal.PREPARER_NOT_ENTITLED.label)
    return f"Somebody who countersigned is no longer entitled to, so this will not be sent. {_PREPARE_AGAIN}"


def _released_text(operation: Operation, turn: QueuePosition | None) -> tuple[str, str]:
    until, since = local_time(operation.release.expires_at), operation.release.blocked_since
    if turn is not None and not turn.is_next:
        return "Waits for its turn", f"{turn} The word to send is given, and stands until {until}."
    if since is not None:
        why = f"{operation.release.blocker_sentence} It has been so since {local_time(since)}, and nothing has left."
        return "Not sent yet", f"{why} It is tried again until the word to send runs out at {until}."
    return "About to be sent", "The word to send is given; a worker takes it up within seconds."


def _paused_text(operation: Operation, pause: Pause, turn: QueuePosition | None) -> str:
    why = f"{pause.paused_by} paused it: {pause.reason.rstrip('.')}. Nothing leaves before two people let it go on."
    if is_released(operation):
        until = local_time(operation.release.expires_at)
        return (
            f"{why} The word to send is given, and stands until {until}; after that it has to be given again."
        )
    held = f" Besides: {turn}" if turn is not None and _blocking_operation(turn) else ""
    return f"{why} The word to send can be given then.{held}"


def _blocked_text(person: User, operation: Operation, turn: QueuePosition, holder: Operation) -> str:
    if needs_otp(operation):
        return f"{turn} The word to send can be given after that: a token given now would run out."
    if policy.may_release(person, operation):
        return (
            f"{turn} You may give the word now. It stands for {settings.RELEASE_LIFETIME_MINUTES} minutes, and counts "
            f"if {holder.reference} is settled by then."
        )
    return f"{turn} {_OTHER_PERSON_SENDS}"
