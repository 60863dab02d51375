"""Closes `processing` and `unknown` operations by what the service's own transaction list shows. Never sends.

Two kinds of proof. The service named its transaction when it answered: then that transaction decides. It named none:
then a transaction may be taken for ours by type, currency and amount only if nothing else can be meant, which is to say
one candidate in the time after our watermark, and no other operation that it could belong to as well.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core.gateway import gateway
from backoffice.ledger import selectors as ledger
from backoffice.operations.errors import UnreadableContentError
from backoffice.operations.kinds import MoneyKind, content_of
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.services.moves import move
from backoffice.operations.services.recording import bind_transaction
from backoffice.operations.states import AWAITING_THE_SERVICE, Outcome, Status
from payments_gateway import GatewayError, TransactionRecord

LOOK_AFTER = tuple(
    timedelta(seconds=seconds) for seconds in (2, 5, 10, 15, 30, 60, 300, 900, 3600, 6 * 3600, 24 * 3600)
)
HORIZON = timedelta(hours=24)  # so long the list is asked; then people have to
WINDOW = timedelta(hours=1)  # so long after our request the service may still execute it
SKEW = timedelta(seconds=5)  # between two clocks of the service
NAMED_REACHES_BACK = timedelta(
    days=1
)  # how much older than our watermark a transaction that was named may claim to be
LOOK_AGAIN_AFTER = timedelta(minutes=15)

_ENDS = {
    "fulfilled": (Status.SUCCEEDED, Outcome.SUCCEEDED, Action.OPERATION_SUCCEEDED),
    "failed": (Status.FAILED, Outcome.FAILED, Action.OPERATION_FAILED),
}


@dataclass(frozen=True)
class Look:
    """What one reading of the list showed: the transactions that can be ours, or why it could not be read."""

    at: datetime
    found: list[TransactionRecord] = field(default_factory=list)
    problem: str = ""
    is_done: bool | None = (
        None  # of a kind that the list does not show: whether another read shows that it is done
    )

    def __str__(self) -> str:
        if self.problem:
            return self.problem
        if self.is_done is not None:
            return "The service shows that it is done" if self.is_done else "The service does not show it yet"
        if len(self.found) == 1:
            return f"Found as {self.found[0].transaction_id}: {self.found[0].status}"
        if self.found:
            return f"{len(self.found)} transactions in the list could be this one"
        return "Not in the service's list yet"


def confirm_operation(operation_id: UUID, *, actor: User | None = None) -> Operation:
    """Read the service's list and close the operation if the list proves its end.

    Called by a timer, or by a person (`actor`). Nothing is ever sent. Absence proves nothing: what cannot be told for a
    day goes to `review`.
    """
    operation = Operation.objects.get(pk=operation_id)
    attempt = operation.attempts.filter(closed_at__isnull=True).first()
    if attempt is None or operation.status not in AWAITING_THE_SERVICE:
        return operation
    return _note(operation_id, attempt.pk, _look(operation, attempt), actor)


def _look(operation: Operation, attempt: Attempt) -> Look:
    now = timezone.now()
    try:
        if attempt.service_transaction_id:
            return Look(now, _named(operation, attempt))
        kind, payload = content_of(operation)
        if isinstance(kind, MoneyKind):
            return Look(now, _candidates(operation, attempt, partial(kind.recognises, payload)))
        return Look(now, is_done=kind.is_done(gateway(), payload))
    except GatewayError as exc:
        return Look(now, problem=f"The service could not be read: {exc}")
    except UnreadableContentError as exc:
        return Look(now, problem=str(exc))


def _named(operation: Operation, attempt: Attempt) -> list[TransactionRecord]:
    """The transaction that the service named in its answer."""
    back_to = (attempt.watermark_service_time or attempt.started_at) - NAMED_REACHES_BACK
    records = ledger.recent_transactions(operation.currency, back_to=back_to)
    return [record for record in records if record.transaction_id == attempt.service_transaction_id]


def _candidates(
    operation: Operation, attempt: Attempt, recognises: Callable[[TransactionRecord], bool]
) -> list[TransactionRecord]:
    """Transactions that can be this attempt by content and by the service's own clock, and that nobody has claimed."""
    mark = attempt.watermark_service_time
    if mark is None:
        return []  # without the service's time nothing tells new from old
    found = [
        record
        for record in ledger.recent_transactions(operation.currency, back_to=mark - SKEW)
        if recognises(record)
        and record.created_at is not None
        and mark - SKEW <= record.created_at <= mark + WINDOW
        and record.transaction_id != attempt.watermark_transaction_id
    ]
    ids = [record.transaction_id for record in found]
    claimed = set(
        Attempt.objects.filter(service_transaction_id__in=ids).values_list(
            "service_transaction_id", flat=True
        )
    )
    return [record for record in found if record.transaction_id not in claimed]


@transaction.atomic
def _note(operation_id: UUID, attempt_id: int, look: Look, actor: User | None) -> Operation:
    """Write down one look at the list, and move the operation where the look proves something."""
    operation = Operation.objects.get_locked(operation_id)
    rivals = _open_attempts_alike(operation)
    attempt = next((one for one in rivals if one.pk == attempt_id), None)
    if attempt is None or operation.status not in AWAITING_THE_SERVICE:
        return operation
    attempt.checks += 1
    attempt.last_check = str(look)[:300]
    attempt.next_check_at = _next_look(attempt, look)
    proof = _proof(attempt, look, alone=_is_alone(attempt, rivals))
    if proof is not None and bind_transaction(attempt, proof.transaction_id):
        attempt.fee = proof.fee
        _close(operation, attempt, proof.status, actor)
    elif look.is_done:
        _close(operation, attempt, "fulfilled", actor)
    elif attempt.next_check_at is None:
        _move(operation, attempt, Status.REVIEW, Action.OPERATION_ESCALATED, actor)
    attempt.save()
    return operation


def _open_attempts_alike(operation: Operation) -> list[Attempt]:
    """Every open attempt of this kind, currency and amount, locked in one order, so that lookers never deadlock."""
    alike = Attempt.objects.filter(
        closed_at__isnull=True,
        operation__kind=operation.kind,
        operation__currency=operation.currency,
        operation__amount=operation.amount,
    )
    return list(alike.select_for_update(of=("self",)).order_by("pk"))


def _is_alone(attempt: Attempt, alike: list[Attempt]) -> bool:
    """Whether no other open attempt without a transaction could be meant by the same one."""
    return all(other.pk == attempt.pk or other.service_transaction_id for other in alike)


def _proof(attempt: Attempt, look: Look, *, alone: bool) -> TransactionRecord | None:
    """The transaction that proves the end, if one does.

    One that was not named proves success when it is the only one possible; it proves failure only once our own could
    not come any more, so that `failed` never hides a debit.
    """
    if len(look.found) != 1 or look.found[0].status not in _ENDS:
        return None
    record = look.found[0]
    if attempt.service_transaction_id:
        return record
    is_final = record.status == "fulfilled" or look.at >= attempt.started_at + WINDOW
    return record if alone and is_final else None


def _next_look(attempt: Attempt, look: Look) -> datetime | None:
    """When to look again; None once the horizon is reached and there is nothing definite to wait for."""
    for pause in LOOK_AFTER:
        if attempt.started_at + pause > look.at:
            return attempt.started_at + pause
    is_under_way = bool(attempt.service_transaction_id and look.found)
    return look.at + LOOK_AGAIN_AFTER if look.problem or is_under_way else None


def _close(operation: Operation, attempt: Attempt, ended: str, actor: User | None) -> None:
    status, attempt.outcome, action = _ENDS[ended]
    attempt.closed_at, attempt.next_check_at = timezone.now(), None
    attempt.save()
    _move(operation, attempt, status, action, actor)


def _move(operation: Operation, attempt: Attempt, status: Status, action: Action, actor: User | None) -> None:
    failed = {"reason": "The service reports this transaction as failed."} if status == Status.FAILED else {}
    move(operation, status, **failed)
    audit.record(
        action,
        actor=actor,
        target=operation,
        attempt=attempt.number,
        outcome=attempt.outcome,
        service_transaction_id=attempt.service_transaction_id,
        fee=attempt.fee,
        seen=attempt.last_check,
        status=status,
    )
