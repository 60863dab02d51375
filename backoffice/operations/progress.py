"""Where an operation stands, as its page shows it: its steps, and a mark that changes with what is shown."""

from dataclasses import dataclass
from hashlib import sha256

from django.utils import timezone

from backoffice.core.display import local_time
from backoffice.operations.kinds import KINDS, LocalKind
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.pause import pause_on_pages
from backoffice.operations.states import Status
from backoffice.operations.turns import Turn

PACE_OF_MACHINES = 2  # seconds between looks while a machine has to act
PACE_OF_PEOPLE = 5


@dataclass(frozen=True)
class Step:
    """One of the steps; `state` is done, now, todo or stopped."""

    label: str
    state: str
    note: str


_LABELS = ("Prepared", "Countersigned", "Sent", "Confirmed")
_LABELS_HERE = ("Prepared", "Countersigned", "Applied")
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


def steps(operation: Operation, turn: Turn | None) -> list[Step]:
    """The steps with a short note each, for the stepper: four, and three where nothing is sent."""
    status = Status(operation.status)
    reached = _REACHED.get(status, 2 if operation.decided_at else 1)
    at_reached = "stopped" if status in _STOPPED else "now"
    return [
        Step(label, "done" if place < reached else at_reached if place == reached else "todo", note)
        for place, (label, note) in enumerate(_labelled_notes(operation, turn))
    ]


def last_attempt(operation: Operation) -> Attempt | None:
    """The newest try to send, out of what is prefetched."""
    attempts = list(operation.attempts.all())
    return attempts[-1] if attempts else None


def approvals_missing(operation: Operation) -> int:
    """How many more people must countersign."""
    return max(operation.approvals_needed - len(operation.approvals.all()), 0)


def is_released(operation: Operation) -> bool:
    """Whether the word to send is given and still stands: no worker has taken it up, and its time has not run out."""
    return hasattr(operation, "release") and operation.release.expires_at > timezone.now()


def has_lost_its_maker(operation: Operation) -> bool:
    """Whether whoever prepared it may no longer do so, so that it is not sent. Told by `operation_page`."""
    return not getattr(operation, "maker_still_entitled", True)


def has_lost_a_signature(operation: Operation) -> bool:
    """Whether the maker or somebody who countersigned may no longer sign, so that it is not sent."""
    return has_lost_its_maker(operation) or not all(
        getattr(approval, "still_entitled", True) for approval in operation.approvals.all()
    )


def needs_token(operation: Operation) -> bool:
    """Whether the service asks for its one-time token; False for a kind that this release does not know."""
    return operation.kind in KINDS and KINDS[operation.kind].needs_token


def is_applied_here(operation: Operation) -> bool:
    """Whether it is never sent: the last countersignature applies it."""
    return isinstance(KINDS.get(operation.kind), LocalKind)


def fingerprint(operation: Operation, turn: Turn | None) -> str:
    """Changes whenever the page of the operation would look different; an open page compares it."""
    attempts = list(operation.attempts.all())
    checks = sum(attempt.checks for attempt in attempts)
    parts = (
        operation.status,
        len(operation.approvals.all()),
        int(is_released(operation)),
        int(pause_on_pages() is not None),
        int(has_lost_a_signature(operation)),
        len(attempts),
        checks,
        turn.before if turn else 0,
        turn.held_by.reference if turn and turn.held_by else "",
        _words_mark(operation),
    )
    return "-".join(map(str, parts))


def _words_mark(operation: Operation) -> str:
    """A short mark of what is told in words: why it has not left, and what the last look found."""
    release, attempt = getattr(operation, "release", None), last_attempt(operation)
    words = (release.blocker_sentence if release else None, attempt.last_check if attempt else None)
    return sha256(repr(words).encode()).hexdigest()[:12]


def pace(operation: Operation) -> int:
    """Seconds between two looks of an open page: often while machines work, seldom while people think."""
    waits_for_people = operation.status in {Status.PENDING, Status.APPROVED, Status.REVIEW}
    return PACE_OF_PEOPLE if waits_for_people and not is_released(operation) else PACE_OF_MACHINES


def _labelled_notes(operation: Operation, turn: Turn | None) -> list[tuple[str, str]]:
    signed = (_prepared(operation), _countersigned(operation))
    if is_applied_here(operation):
        return list(zip(_LABELS_HERE, (*signed, _applied(operation)), strict=True))
    return list(zip(_LABELS, (*signed, _sent(operation, turn), _confirmed(operation)), strict=True))


def _prepared(operation: Operation) -> str:
    return f"{operation.maker}, {local_time(operation.prepared_at)}"


def _countersigned(operation: Operation) -> str:
    if operation.status == Status.REJECTED:
        return "rejected"
    names = ", ".join(str(approval.approver) for approval in operation.approvals.all())
    missing = approvals_missing(operation)
    if operation.status == Status.PENDING:
        still = f"{missing} of {operation.approvals_needed} still needed"
        return f"{names}; {still}" if names else still
    return names or Status(operation.status).label.lower()


def _sent(operation: Operation, turn: Turn | None) -> str:
    attempt = last_attempt(operation)
    if operation.status == Status.APPROVED:
        if is_released(operation):
            return "handed to the worker" if turn is None or turn.is_now else "waits for its turn"
        return "needs the service's token" if needs_token(operation) else "waits for the word to send"
    if operation.status == Status.SENDING:
        return "being sent now"
    if operation.status in {Status.EXPIRED, Status.CANCELLED} and operation.decided_at:
        return Status(operation.status).label.lower()
    return local_time(attempt.started_at) if attempt else "not yet"


def _applied(operation: Operation) -> str:
    if operation.status == Status.SUCCEEDED and operation.closed_at:
        return local_time(operation.closed_at)
    return "not applied" if operation.is_closed else "with the last countersignature"


def _confirmed(operation: Operation) -> str:
    closed = local_time(operation.closed_at) if operation.closed_at else ""
    return {
        Status.PROCESSING: "the service is working on it",
        Status.UNKNOWN: "outcome unknown, being looked up",
        Status.REVIEW: "people must look at it",
        Status.FAILED: f"failed, {closed}",
        Status.SUCCEEDED: closed,
    }.get(Status(operation.status), "by the service itself")
