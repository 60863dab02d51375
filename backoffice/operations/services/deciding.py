"""Prepare, countersign, reject, cancel, expire: everything before the word to send."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.core.locks import hold
from backoffice.operations import policy
from backoffice.operations.content import new_reference
from backoffice.operations.errors import (
    OperationAction,
    OperationError,
    PaidBeforeError,
    ReasonMissingError,
    Refusal,
    SameContentWaitsError,
    SameInDoubtError,
    SubmissionReusedError,
    WrongStatusError,
)
from backoffice.operations.kinds import KINDS, Kind, Payload
from backoffice.operations.models import Approval, Operation, Release, content_digest, content_key
from backoffice.operations.selectors import in_doubt_alike, paid_before, settled_alike
from backoffice.operations.services.moves import move, refusals_are_audited
from backoffice.operations.states import UNDECIDED, Status


@refusals_are_audited(OperationAction.PREPARE)
@transaction.atomic
def prepare_operation(
    operation_id: UUID, *, actor: User, kind: str, payload: Payload, prepared_from: UUID | None = None
) -> Operation:
    """Store a pending operation for others to countersign. Nothing is sent.

    The id comes with the form, so the same form sent twice finds the same operation. Raises NotAllowedError,
    SubmissionReusedError if the id stands for other content, SameContentWaitsError if another operation with the same
    content is not decided or sent yet, SameInDoubtError if the outcome of the same is not known, PaidBeforeError if the
    same was paid within a day and no reason is given. Where people settled that the same did not happen, it is named.
    """
    policy.check_may_prepare(actor, kind)
    digest = content_digest(operation_id, kind, payload.stored())
    before = _settled_before(KINDS[kind], payload, but=operation_id)
    _check_repeat(operation_id, KINDS[kind], payload)
    named = prepared_from or (before.pk if before else None)
    operation = _draft(operation_id, actor, kind, payload, named)
    if not _is_new(operation):
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


def add_approval(
    operation_id: UUID,
    actor: User,
    digest: str,
    second_factor_at: datetime | None,
    comment: str,
    confirmation: str,
) -> Operation:
    """Countersign inside the caller's transaction; the last one needed makes it approved. Nothing is sent here."""
    operation = Operation.objects.get_locked(operation_id)
    policy.check_may_approve(actor, operation, digest=digest, second_factor_at=second_factor_at)
    policy.check_confirmation(operation, confirmation)
    now = clock.now()
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


@refusals_are_audited(OperationAction.REJECT)
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
    move(operation, Status.REJECTED, reason=reason, decided_at=clock.now())
    audit.record(Action.OPERATION_REJECTED, actor=actor, target=operation, digest=digest, reason=reason)
    return operation


@refusals_are_audited(OperationAction.CANCEL)
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
    if not operation.is_past(clock.now()):
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


def _settled_before(kind: Kind[Any], payload: Payload, *, but: UUID) -> Operation | None:
    """The same before this one, if people settled that it did not happen. Raises SameInDoubtError."""
    in_doubt = in_doubt_alike(kind, payload).exclude(pk=but).first()
    if in_doubt is not None:
        raise SameInDoubtError(in_doubt.reference, in_doubt.pk)
    return settled_alike(kind, payload)


def _check_repeat(operation_id: UUID, kind: Kind[Any], payload: Payload) -> None:
    """Raises PaidBeforeError if the same waits or was paid within a day and nobody says why it is paid again."""
    beneficiary = kind.counterparty(payload).key
    hold(f"beneficiary:{beneficiary}")  # two at once, of which neither sees the other, would both be stored
    repeats = paid_before(beneficiary, kind.at_stake(payload))
    if not payload.repeat_reason and repeats.exclude(pk=operation_id).exists():
        raise PaidBeforeError


def _draft(
    operation_id: UUID, actor: User, kind_name: str, payload: Payload, prepared_from: UUID | None
) -> Operation:
    """The pending operation, not stored yet."""
    kind = KINDS[kind_name]
    stake, counterparty = kind.at_stake(payload), kind.counterparty(payload)
    requirement = policy.requirement(kind.plural, *kind.limited(payload))
    stored, now = payload.stored(), clock.now()
    return Operation(
        id=operation_id,
        reference=_unused_reference(kind.letter),
        kind=kind_name,
        payload=stored,
        digest=content_digest(operation_id, kind_name, stored),
        content_key=content_key(kind_name, payload.compared()),
        sentence=kind.sentence(payload),
        currency=stake.currency if stake else "",
        amount=stake.amount if stake else None,
        counterparty=counterparty.name,
        counterparty_detail=counterparty.detail,
        beneficiary_key=counterparty.key or None,
        beneficiary_account=counterparty.account or None,
        approvals_needed=requirement.approvals,
        rule=requirement.sentence,
        maker=actor,
        prepared_from_id=prepared_from,
        prepared_at=now,
        expires_at=now + kind.lifetime,
    )


def _is_new(operation: Operation) -> bool:
    """Insert the operation; False if its id is there already, be it by a request that runs at the same moment."""
    try:
        with transaction.atomic():
            operation.save(force_insert=True)
    except IntegrityError:
        if Operation.objects.filter(pk=operation.pk).exists():
            return False
        alike = Operation.objects.filter(content_key=operation.content_key, status__in=UNDECIDED).first()
        if alike is None:
            raise
        raise SameContentWaitsError(alike.reference, alike.pk) from None
    return True


def _unused_reference(letter: str) -> str:
    """A reference nobody has; the unique constraint has the last word."""
    for _ in range(20):
        reference = new_reference(letter)
        if not Operation.objects.filter(reference=reference).exists():
            return reference
    raise OperationError(Refusal.NO_FREE_REFERENCE)
