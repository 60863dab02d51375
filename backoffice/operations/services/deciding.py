"""Prepare, approve, reject, cancel, expire: everything before the word to send."""

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.operations import policy
from backoffice.operations.content import new_reference
from backoffice.operations.errors import (
    OperationError,
    ReasonMissingError,
    SubmissionReusedError,
    WrongStatusError,
)
from backoffice.operations.kinds import KINDS, Payload
from backoffice.operations.models import Approval, Operation, Release, content_digest
from backoffice.operations.services.moves import move, refusals_are_audited
from backoffice.operations.states import Status


@refusals_are_audited
@transaction.atomic
def prepare_operation(
    operation_id: UUID, *, actor: User, kind: str, payload: Payload, prepared_from: UUID | None = None
) -> Operation:
    """Store a pending operation for others to countersign. Nothing is sent.

    The id comes with the form, so the same form sent twice finds the same operation. Raises NotAllowedError, and
    SubmissionReusedError if the id stands for other content.
    """
    policy.check_may_prepare(actor)
    stored = payload.stored()
    digest = content_digest(operation_id, kind, stored)
    operation = _create(operation_id, actor, kind, payload, prepared_from)
    if operation is None:
        return _submitted_before(operation_id, actor, digest)
    audit.record(
        Action.OPERATION_PREPARED,
        actor=actor,
        target=operation,
        digest=digest,
        kind=kind,
        rule=operation.rule,
    )
    return operation


@refusals_are_audited
@transaction.atomic
def approve_operation(
    operation_id: UUID, *, actor: User, digest: str, second_factor_at: datetime | None, comment: str = ""
) -> Operation:
    """Add one countersignature; the last one needed makes the operation ready to be sent. Nothing is sent here.

    Raises NotAllowedError, SelfApprovalError, AlreadyApprovedError, WrongStatusError, ExpiredError,
    ContentChangedError, SecondFactorStaleError.
    """
    return add_approval(operation_id, actor, digest, second_factor_at, comment)


def add_approval(
    operation_id: UUID, actor: User, digest: str, second_factor_at: datetime | None, comment: str
) -> Operation:
    """Countersign inside the caller's transaction."""
    operation = Operation.objects.get_locked(operation_id)
    policy.check_may_approve(actor, operation, digest=digest, second_factor_at=second_factor_at)
    now = timezone.now()
    Approval.objects.create(
        operation=operation, approver=actor, maker=operation.maker, digest=digest, comment=comment, at=now
    )
    given = operation.approvals.count()
    if given >= operation.approvals_needed:
        move(operation, Status.APPROVED, decided_at=now)
    audit.record(
        Action.OPERATION_COUNTERSIGNED,
        actor=actor,
        target=operation,
        digest=digest,
        comment=comment,
        given=given,
        needed=operation.approvals_needed,
        status=operation.status,
    )
    return operation


@refusals_are_audited
@transaction.atomic
def reject_operation(
    operation_id: UUID, *, actor: User, digest: str, second_factor_at: datetime | None, reason: str
) -> Operation:
    """Close a pending operation with a reason that its maker will read.

    Raises as `approve_operation`, and ReasonMissingError.
    """
    if not reason.strip():
        raise ReasonMissingError
    operation = Operation.objects.get_locked(operation_id)
    policy.check_may_decide(actor, operation, digest=digest, second_factor_at=second_factor_at)
    move(operation, Status.REJECTED, reason=reason, decided_at=timezone.now())
    audit.record(Action.OPERATION_REJECTED, actor=actor, target=operation, digest=digest, reason=reason)
    return operation


@refusals_are_audited
@transaction.atomic
def cancel_operation(operation_id: UUID, *, actor: User) -> Operation:
    """Take back what one prepared, as long as nothing was sent; a waiting token is destroyed.

    Raises NotAllowedError, WrongStatusError.
    """
    operation = Operation.objects.get_locked(operation_id)
    policy.check_may_cancel(actor, operation)
    Release.objects.filter(operation=operation).delete()
    move(operation, Status.CANCELLED)
    audit.record(Action.OPERATION_CANCELLED, actor=actor, target=operation)
    return operation


@transaction.atomic
def expire_operation(operation_id: UUID) -> Operation | None:
    """Close an operation whose time to be decided and sent has run out; None if it is not so, or no longer."""
    operation = Operation.objects.get_locked(operation_id)
    if not operation.is_past(timezone.now()):
        return None
    try:
        move(operation, Status.EXPIRED)
    except WrongStatusError:
        return None
    Release.objects.filter(operation=operation).delete()
    audit.record(Action.OPERATION_EXPIRED, actor=None, target=operation)
    return operation


def _submitted_before(operation_id: UUID, actor: User, digest: str) -> Operation:
    existing = Operation.objects.get(pk=operation_id)
    if (existing.maker_id, existing.digest) != (actor.pk, digest):
        raise SubmissionReusedError
    return existing


def _create(
    operation_id: UUID, actor: User, kind_name: str, payload: Payload, prepared_from: UUID | None
) -> Operation | None:
    """Insert the operation; None if the id is there already, be it by a request that runs at the same moment."""
    kind = KINDS[kind_name]
    debit, counterparty = kind.debit(payload), kind.counterparty(payload)
    requirement = policy.requirement(kind.label, debit)
    stored, now = payload.stored(), timezone.now()
    operation = Operation(
        id=operation_id,
        reference=_unused_reference(kind.letter),
        kind=kind_name,
        payload=stored,
        digest=content_digest(operation_id, kind_name, stored),
        sentence=kind.sentence(payload),
        currency=debit.currency if debit else "",
        amount=debit.amount if debit else None,
        counterparty=counterparty.name,
        counterparty_detail=counterparty.detail,
        approvals_needed=requirement.approvals,
        rule=requirement.sentence,
        maker=actor,
        prepared_from_id=prepared_from,
        prepared_at=now,
        expires_at=now + timedelta(hours=settings.PENDING_LIFETIME_HOURS),
    )
    try:
        with transaction.atomic():
            operation.save(force_insert=True)
    except IntegrityError:
        if not Operation.objects.filter(pk=operation_id).exists():
            raise
        return None
    return operation


def _unused_reference(letter: str) -> str:
    """A reference nobody has; the unique constraint has the last word."""
    for _ in range(20):
        reference = new_reference(letter)
        if not Operation.objects.filter(reference=reference).exists():
            return reference
    raise OperationError("No free reference was found. Nothing was prepared; try again.")
