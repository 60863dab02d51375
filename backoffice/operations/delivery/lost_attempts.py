"""Attempts that a journal proves and a restored database does not have: stored as evidence, and recreated where the
operation still exists, so that it is closed by matching.
"""

from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db import transaction

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.operations.delivery.journal import Line
from backoffice.operations.delivery.record import record_from_journal
from backoffice.operations.lifecycle.transitions import transition
from backoffice.operations.models.monitoring import Incident, LostAttempt
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.states import Outcome, Status


def lost_attempt(incident: Incident, line: Line, machine: str) -> LostAttempt:
    answer = line.get("answer") or {}
    return LostAttempt(
        incident=incident,
        operation_id=UUID(line["operation"]),
        number=line["number"],
        started_at=datetime.fromisoformat(line["started_at"]),
        machine=machine,
        line={name: value for name, value in line.items() if name != "answer"},
        outcome=answer.get("outcome", Outcome.OPEN),
        transaction_id=answer.get("transaction") or "",
    )


@transaction.atomic
def recreate_attempt(lost_id: int) -> bool:
    """Recreate the attempt from the journal and set the operation to `unknown`; False if it was not. Sends nothing.

    An attempt that still exists and seems not to have begun is marked as begun. Nothing is recreated while other
    attempts hold its balance or amount (`Attempt.objects.holding`).
    """
    found = LostAttempt.objects.maybe_executed().filter(pk=lost_id, attempt=None).first()
    operation = None
    if found:
        with suppress(Operation.DoesNotExist):
            operation = Operation.objects.get_locked(found.operation_id)
    if found is None or operation is None:
        return False
    if operation.status == Status.SENDING:
        return _mark_begun(operation, found)
    if not _can_be_recreated(operation, found):
        return False
    Release.objects.filter(operation=operation).delete()
    attempt = _attempt_of(operation, found)
    LostAttempt.objects.filter(pk=found.pk).update(attempt=attempt)
    transition(operation, Status.SENDING)
    audit.record(
        Action.OPERATION_CLAIMED,
        actor=None,
        target=operation,
        digest=operation.digest,
        attempt=attempt.number,
        journal=found.machine,
    )
    record_from_journal(
        operation, attempt, machine=found.machine, transaction_id=found.transaction_id or None
    )
    return True


def _mark_begun(operation: Operation, found: LostAttempt) -> bool:
    """Mark the attempt as begun: the database has its claim but lost the commit that its request began.

    Otherwise it would be closed as not sent.
    """
    attempt = operation.attempts.filter(closed_at=None, begun_at=None, started_at=found.started_at).first()
    if attempt is None:
        return False
    Attempt.objects.filter(pk=attempt.pk).update(begun_at=datetime.fromisoformat(found.line["begun_at"]))
    LostAttempt.objects.filter(pk=found.pk).update(attempt=attempt)
    return True


def _can_be_recreated(operation: Operation, found: LostAttempt) -> bool:
    balance = found.line["balance"]
    return (
        operation.status == Status.APPROVED
        and operation.reference == found.line["reference"]  # not prepared anew under the same id
        and not operation.attempts.filter(closed_at=None).exists()
        and (balance is None or not Attempt.objects.holding(balance, operation.amount).exists())
    )


def _attempt_of(operation: Operation, found: LostAttempt) -> Attempt:
    line = found.line
    releaser = User.objects.filter(pk=line["released_by"]).first()
    time = line["watermark_provider_time"]
    is_taken = operation.attempts.filter(number=found.number).exists()
    return Attempt.objects.create(
        operation=operation,
        number=operation.attempts.count() + 1 if is_taken else found.number,
        released_by=releaser or operation.approvals.earliest("approved_at").approver,
        digest=operation.digest,
        balance=line["balance"],
        amount=operation.amount if line["balance"] else None,
        started_at=found.started_at,
        begin_by=found.started_at,
        begun_at=datetime.fromisoformat(line["begun_at"]),
        deadline_at=datetime.fromisoformat(line["deadline_at"]),
        watermark_transaction_id=line["watermark_transaction_id"],
        watermark_balance=None if line["watermark_balance"] is None else Decimal(line["watermark_balance"]),
        watermark_provider_time=time and datetime.fromisoformat(time),
        watermark_seen_ids=line["watermark_seen_ids"],
    )
