"""The status of an operation on its page: its steps, what is true of it, and the fingerprint that shows a change."""

from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256

from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from backoffice.core.fields import EXACT
from backoffice.core.web.formatting import local_time
from backoffice.operations.delivery.balance_queue import QueuePosition
from backoffice.operations.kinds.base import LocalEffect, LocalKind
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.lifecycle.pause import cached_pause
from backoffice.operations.models.batches import Batch
from backoffice.operations.models.monitoring import POSSIBLY_PAID
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import LostAttemptState
from backoffice.operations.policy import has_preparer_lost_permission
from backoffice.operations.states import Status

POLL_SECONDS_MACHINE = 2  # between polls while a worker or the provider has to act
POLL_SECONDS_PEOPLE = 5


@dataclass(frozen=True)
class OperationStep:
    """One of the steps; `state` is done, now, todo, stopped or ended."""

    label: str
    state: str
    note: str


_ENDED_UNSENT = {Status.REJECTED: "stopped", Status.EXPIRED: "ended", Status.CANCELLED: "ended"}
_LABELS = (_("Prepared"), _("Approved"), _("Sent"), _("Confirmed"))
_NOT_CONFIRMED = (Status.UNKNOWN, Status.REVIEW, Status.FAILED)
STOPPED = {*_ENDED_UNSENT, *_NOT_CONFIRMED}
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


def steps(operation: Operation, turn: QueuePosition | None) -> list[OperationStep]:
    """The steps with a short note each: four, or three for kinds that are never sent."""
    status = Status(operation.status)
    reached = _REACHED.get(status, 2 if operation.decided_at else 1)
    at_reached = _ENDED_UNSENT.get(status) or ("stopped" if status in _NOT_CONFIRMED else "now")
    return [
        OperationStep(
            str(label), "done" if place < reached else at_reached if place == reached else "todo", note
        )
        for place, (label, note) in enumerate(
            _ended_notes(operation, reached) if status in _ENDED_UNSENT else _labelled_notes(operation, turn)
        )
    ]


def last_attempt(operation: Operation) -> Attempt | None:
    """The newest attempt, from the prefetched ones."""
    attempts = list(operation.attempts.all())
    return attempts[-1] if attempts else None


def approvals_missing(operation: Operation) -> int:
    """How many more approvals are needed."""
    return max(operation.approvals_needed - len(operation.approvals.all()), 0)


def still_needed_text(operation: Operation) -> str:
    """How many more approvals are needed, as a sentence for somebody who has approved it."""
    missing = approvals_missing(operation)
    return ngettext(
        "{n} more approval by another person is needed.",
        "{n} more approvals by other people are needed.",
        missing,
    ).format(n=missing)


def is_released(operation: Operation) -> bool:
    """Whether there is a release that is neither claimed nor expired."""
    return hasattr(operation, "release") and operation.release.expires_at > timezone.now()


def has_approval_lost_validity(operation: Operation) -> bool:
    """Whether the preparer or an approver has lost the permission, so that it is not sent."""
    return has_preparer_lost_permission(operation) or not all(
        getattr(approval, "still_entitled", True) for approval in operation.approvals.all()
    )


def may_have_been_sent(operation: Operation) -> bool:
    """Whether a journal has an attempt that the restored database lacks, and nothing proves what came of it. Then it
    is not sent again. Needs `selectors.operation_page`.
    """
    unresolved = {LostAttemptState.NOT_COMPARED, LostAttemptState.RECREATED}
    return any(lost.state in unresolved for lost in operation.lost_attempts.all())


def paused_batch(operation: Operation) -> Batch | None:
    """The batch whose row this is, while it is paused: the row is not sent then. Needs `selectors.operation_page`."""
    batch: Batch | None = getattr(operation.prepared_from, "batch", None)
    return batch if batch is not None and batch.paused_at else None


def asks_for_otp(operation: Operation) -> bool:
    """Whether the person who sends it enters a one-time code; False for a kind that this version does not define."""
    return operation.kind in KINDS and KINDS[operation.kind].asks_for_otp


def is_applied_locally(operation: Operation) -> bool:
    """Whether it is never sent: the last approval applies it."""
    return isinstance(KINDS.get(operation.kind), LocalKind)


def creates_operations(operation: Operation) -> bool:
    """Whether the last approval makes operations of its rows, which are sent later."""
    kind = KINDS.get(operation.kind)
    return isinstance(kind, LocalKind) and kind.effect == LocalEffect.CREATES_OPERATIONS


def page_state(operation: Operation) -> str:
    """The status, and whether it is released: what a message about the last action must agree with."""
    return f"{operation.status} {'released' if is_released(operation) else ''}".strip()


def fingerprint(operation: Operation, turn: QueuePosition | None) -> str:
    """Changes whenever the page of the operation would; an open page compares it.

    Not with the last reported balance, whose age the page shows.
    """
    attempts = list(operation.attempts.all())
    checks = sum(attempt.checks for attempt in attempts)
    parts = (
        operation.status,
        len(operation.approvals.all()),
        int(is_released(operation)),
        int(cached_pause() is not None),
        int(paused_batch(operation) is not None),
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
    waits_for_people &= not (operation.status == Status.APPROVED and is_applied_locally(operation))
    return POLL_SECONDS_PEOPLE if waits_for_people and not is_released(operation) else POLL_SECONDS_MACHINE


def _labelled_notes(operation: Operation, turn: QueuePosition | None) -> list[tuple[object, str]]:
    decided = (_prepared_note(operation), _approved_note(operation))
    kind = KINDS.get(operation.kind)
    if isinstance(kind, LocalKind):
        labels = (*_LABELS[:2], kind.applied_label)
        return list(zip(labels, (*decided, _applied_note(operation)), strict=True))
    named = (*_LABELS[:3], _("Outcome")) if operation.status in _NOT_CONFIRMED else _LABELS
    return list(zip(named, (*decided, _sent_note(operation, turn), _confirmed_note(operation)), strict=True))


def _ended_notes(operation: Operation, reached: int) -> list[tuple[object, str]]:
    """Of an operation that is never sent: the step at which it ended has the name of its status."""
    kind = KINDS.get(operation.kind)
    ended = (Status(operation.status).label, local_time(operation.closed_at) if operation.closed_at else "")
    if isinstance(kind, LocalKind):
        rest: list[tuple[object, str]] = [(kind.applied_label, gettext("not applied"))]
    else:
        rest = [(_("Not sent"), ""), (_LABELS[3], "")]
    completed = [(_LABELS[0], _prepared_note(operation)), (_LABELS[1], _approved_note(operation))][:reached]
    return [*completed, ended, *rest[: len(rest) + 1 - reached]]


def _prepared_note(operation: Operation) -> str:
    return f"{operation.preparer}, {local_time(operation.prepared_at)}"


def _approved_note(operation: Operation) -> str:
    names = ", ".join(approval.approved_by for approval in operation.approvals.all())
    missing = approvals_missing(operation)
    if operation.status == Status.PENDING:
        still = ngettext("{n} more approval needed", "{n} more approvals needed", missing).format(n=missing)
        return f"{names}; {still}" if names else still
    return names


def _sent_note(operation: Operation, turn: QueuePosition | None) -> str:
    attempt = last_attempt(operation)
    if operation.status == Status.APPROVED:
        if may_have_been_sent(operation):
            return gettext("possibly sent")
        if is_released(operation):
            is_next = turn is None or turn.is_next
            return gettext("released for sending") if is_next else gettext("waiting in the queue")
        return gettext("needs the one-time code") if asks_for_otp(operation) else gettext("not released yet")
    if operation.status == Status.SENDING:
        return gettext("sending now")
    return _begun_note(attempt) if attempt else gettext("not yet")


def _begun_note(attempt: Attempt) -> str:
    return local_time(attempt.started_at) if attempt.released_by_id else gettext("not by Countersign")


def _applied_note(operation: Operation) -> str:
    if operation.status == Status.SUCCEEDED and operation.closed_at:
        return local_time(operation.closed_at)
    return gettext("not yet")


def _confirmed_note(operation: Operation) -> str:
    closed = local_time(operation.closed_at) if operation.closed_at else ""
    return {
        Status.PROCESSING: gettext("processing at the provider"),
        Status.UNKNOWN: gettext("outcome unknown, checking"),
        Status.REVIEW: gettext("must be resolved"),
        Status.FAILED: gettext("failed, {time}").format(time=closed),
        Status.SUCCEEDED: closed,
    }.get(Status(operation.status), gettext("by the provider"))


def total_debit(operation: Operation) -> Decimal | None:
    """What was debited: the amount and the fee; None if no balance is debited or the fee is not known."""
    attempt = last_attempt(operation)
    if operation.amount is None or attempt is None or attempt.balance is None or attempt.fee is None:
        return None
    return EXACT.add(operation.amount, attempt.fee)


def may_be_paid_already(operation: Operation) -> bool:
    """Whether the provider shows a similar transaction that is not declared another payment, or an incident says that
    the operation was executed although it is recorded as not executed.
    """
    return any(one.declared_at is None for one in operation.look_alikes.all()) or any(
        one.kind in POSSIBLY_PAID for one in operation.incidents.all()
    )


def has_open_incident(operation: Operation) -> bool:
    """Whether an incident about an executed operation is to be acknowledged before it can be sent."""
    found = operation.incidents.all()
    return any(one.kind in POSSIBLY_PAID and one.acknowledged_at is None for one in found)
