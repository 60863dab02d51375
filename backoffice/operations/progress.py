"""Where an operation stands, as its page shows it: four steps, and a mark that changes with what is shown."""

from dataclasses import dataclass

from django.utils import timezone

from backoffice.core.display import local_time
from backoffice.operations.kinds import KINDS
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.states import Status

PACE_OF_MACHINES = 2  # seconds between looks while a machine has to act
PACE_OF_PEOPLE = 5


@dataclass(frozen=True)
class Step:
    """One of the four steps; `state` is done, now, todo or stopped."""

    label: str
    state: str
    note: str


_LABELS = ("Prepared", "Countersigned", "Sent", "Confirmed")
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


def steps(operation: Operation) -> list[Step]:
    """The four steps with a short note each, for the stepper."""
    status = Status(operation.status)
    reached = _REACHED.get(status, 2 if operation.decided_at else 1)
    at_reached = "stopped" if status in _STOPPED else "now"
    notes = (_prepared(operation), _countersigned(operation), _sent(operation), _confirmed(operation))
    return [
        Step(label, "done" if place < reached else at_reached if place == reached else "todo", note)
        for place, (label, note) in enumerate(zip(_LABELS, notes, strict=True))
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


def has_lost_a_signature(operation: Operation) -> bool:
    """Whether somebody who countersigned may no longer do so, so that it is not sent. Told by `operation_page`."""
    return not all(getattr(approval, "still_entitled", True) for approval in operation.approvals.all())


def needs_token(operation: Operation) -> bool:
    """Whether the service asks for its one-time token; False for a kind that this release does not know."""
    return operation.kind in KINDS and KINDS[operation.kind].needs_token


def fingerprint(operation: Operation) -> str:
    """Changes whenever the page of the operation would look different; an open page compares it."""
    attempts = list(operation.attempts.all())
    checks = sum(attempt.checks for attempt in attempts)
    parts = (
        operation.status,
        len(operation.approvals.all()),
        int(is_released(operation)),
        int(has_lost_a_signature(operation)),
        len(attempts),
        checks,
    )
    return "-".join(map(str, parts))


def pace(operation: Operation) -> int:
    """Seconds between two looks of an open page: often while machines work, seldom while people think."""
    waits_for_people = operation.status in {Status.PENDING, Status.APPROVED, Status.REVIEW}
    return PACE_OF_PEOPLE if waits_for_people and not is_released(operation) else PACE_OF_MACHINES


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


def _sent(operation: Operation) -> str:
    attempt = last_attempt(operation)
    if operation.status == Status.APPROVED:
        if is_released(operation):
            return "handed to the worker"
        return "needs the service's token" if needs_token(operation) else "waits for the word to send"
    if operation.status == Status.SENDING:
        return "being sent now"
    if operation.status in {Status.EXPIRED, Status.CANCELLED} and operation.decided_at:
        return Status(operation.status).label.lower()
    return local_time(attempt.started_at) if attempt else "not yet"


def _confirmed(operation: Operation) -> str:
    closed = local_time(operation.closed_at) if operation.closed_at else ""
    return {
        Status.PROCESSING: "the service is working on it",
        Status.UNKNOWN: "outcome unknown, being looked up",
        Status.REVIEW: "people must look at it",
        Status.FAILED: f"failed, {closed}",
        Status.SUCCEEDED: closed,
    }.get(Status(operation.status), "by the service itself")
