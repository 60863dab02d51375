"""Who may do what to which operation. Functions named "check" raise the reason; those named "may" return a bool."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import CharField, Q, Value

from backoffice.accounts.models import User
from backoffice.accounts.restrictions import RestrictionCause, restriction_times
from backoffice.accounts.roles import (
    enrolled_administrators,
    may_now,
    restriction_on,
    roles_with,
    users_with_permission,
    without_reactivated_outside,
)
from backoffice.accounts.second_factor import is_second_factor_fresh
from backoffice.core import clock
from backoffice.core.database.queries import Argument, CompiledQuery, composed_once
from backoffice.operations import allow_list, errors, permissions, seals
from backoffice.operations.approval.progress import (
    affected_people,
    approval_progress,
    approvals_of,
    counting,
    decided_progress,
    delegation_to_approve,
    lacks_approvals,
    people_of,
)
from backoffice.operations.approval.requirements import required_levels
from backoffice.operations.kinds.base import LocalKind, Payload
from backoffice.operations.kinds.batch import BatchKind
from backoffice.operations.kinds.registry import KINDS, approval_permission_for, permission_for, read_content
from backoffice.operations.kinds.resolution.case import pending_resolution
from backoffice.operations.models.batches import Batch, BatchRow
from backoffice.operations.models.monitoring import POSSIBLY_PAID, Incident, LostAttempt
from backoffice.operations.models.operations import Approval, Operation, Release
from backoffice.operations.permissions import APPROVE, APPROVE_GOVERNANCE, RELEASE
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import BEFORE_SENDING, EDGES, NOT_EXECUTED, Status
from backoffice.policies.delegations import Delegation
from backoffice.policies.document import Levels, approvals_in


def check_may_prepare(person: User, kind: str) -> None:
    """Raises PermissionMissingError or AccountRestrictedError unless the user may prepare operations of this kind."""
    check_permission(person, permission_for(kind))


def check_proposal(person: User, operation_id: UUID, kind: str, payload: Payload) -> None:
    """Raises OperationError for a change of one's own rights, what the kind would refuse to apply, and a recipient that
    must not be paid (`allow_list.check_recipients`).
    """
    if person.pk in KINDS[kind].affected_people(payload):
        raise errors.OperationError(Refusal.OWN_RIGHTS)
    KINDS[kind].check_proposal(payload, person)
    allow_list.check_recipients(operation_id, KINDS[kind], payload)


def check_may_approve(
    person: User, operation: Operation, *, digest: str, second_factor_at: datetime | None
) -> Delegation | None:
    """The delegation by which this user approves this content; None in the own right.

    Raises the reason why the user may not approve it now: AlteredRecordError before any reason in the content.
    """
    check_permission(person, approval_permission_for(operation.kind))
    seals.check_record(operation, list(operation.approvals.all()), None)
    _check_awaits_approval(operation)
    _check_not_affected(person, operation)
    check_is_decidable(person, operation, digest=digest)
    check_second_factor(second_factor_at)
    if person.pk in people_of(operation.approvals.all()):
        raise errors.AlreadyApprovedError
    _check_preparer(operation)
    allow_list.check_recipients_of(operation)
    return delegation_to_approve(person, operation)


def check_confirmation(operation: Operation, typed: str) -> None:
    """Raises ConfirmationWrongError unless the value that the kind requires was typed."""
    kind, payload = read_content(operation)
    confirmation = kind.confirmation(payload)
    if confirmation is not None and not confirmation.is_typed_as(typed):
        raise errors.ConfirmationWrongError


def check_acknowledged(operation: Operation, *, acknowledged: bool) -> None:
    """Raises AcknowledgementMissingError unless the approver confirmed what the kind requires, if it does."""
    kind, payload = read_content(operation)
    if kind.acknowledgement(payload) and not acknowledged:
        raise errors.AcknowledgementMissingError


def check_may_decide(
    person: User, operation: Operation, *, digest: str, second_factor_at: datetime | None
) -> None:
    """Raises the reason why this user may not approve or reject this content now."""
    check_permission(person, approval_permission_for(operation.kind))
    _check_not_affected(person, operation)
    check_is_decidable(person, operation, digest=digest)
    check_second_factor(second_factor_at)


def check_is_decidable(
    person: User, operation: Operation, *, digest: str, now: datetime | None = None
) -> None:
    """Raises the reason in the operation itself why this user may not approve or reject it now.

    A page with many operations passes `now`, since reading the database's clock is a query each time.
    """
    _check_other_person(person, operation)
    _check_awaits_approval(operation)
    try:
        _check_in_time(operation, now)
    except errors.ExpiredError:
        # One that may have been executed before a restore is not sent after its approval, only matched. So it can
        # still be approved, on its own page.
        if now or not LostAttempt.objects.keeps_open(operation):
            raise
    check_content(operation, digest)


def check_may_approve_in_bulk(
    operation: Operation, levels: Levels | None = None, *, alike: Container[str | None]
) -> None:
    """Raises NotInBulkError for an operation that must be approved on its own page.

    Rejecting is always possible in bulk. By the stricter of the version it was prepared under and the one in effect.
    `levels` are those of a page with many (`requirements.levels_of_many`). `alike` are the keys of payees that can be
    mistaken for a recipient of the register (`look_alikes_of_payees`). Also raises as `required_levels`.
    """
    kind, payload = read_content(operation)
    if kind.must_be_approved_alone(payload):
        raise errors.NotInBulkError(Refusal.KIND_NOT_IN_BULK)
    if payload.duplicate_reason:
        raise errors.NotInBulkError(Refusal.DUPLICATE_NOT_IN_BULK)
    if approvals_in(required_levels(operation) if levels is None else levels) > 1:
        raise errors.NotInBulkError(Refusal.TWO_APPROVALS_NOT_IN_BULK)
    if kind.confirmation(payload) is not None:
        raise errors.NotInBulkError(Refusal.CONFIRMATION_NOT_IN_BULK)
    if kind.acknowledgement(payload):
        raise errors.NotInBulkError(Refusal.ACKNOWLEDGEMENT_NOT_IN_BULK)
    if kind.cautions(payload) or operation.recipient_key in alike:
        raise errors.NotInBulkError(Refusal.CAUTION_NOT_IN_BULK)


def check_may_cancel(person: User, operation: Operation) -> None:
    """Raises the reason why this user may not cancel the operation.

    The preparer may; anyone with the same permission may once the preparer has lost it.
    """
    if person != operation.preparer and _may_still_prepare(operation):
        raise errors.PermissionMissingError(Refusal.NOT_THE_PREPARER)
    check_permission(person, permission_for(operation.kind))
    check_transition(operation, Status.CANCELLED)


def check_may_release(
    person: User,
    operation: Operation,
    *,
    digest: str,
    second_factor_at: datetime | None,
    within: timedelta | None = None,
) -> None:
    """Raises the reason why this user may not release this content now: AlteredRecordError before any reason in it.

    `within` is how long the second factor counts if it was confirmed for a sealed order of several releases.
    """
    check_permission(person, RELEASE)
    check_administrators()
    _check_other_person(person, operation)
    check_transition(operation, Status.SENDING)
    seals.check_record(operation, list(operation.approvals.all()), None, trusts_digests=True)
    check_is_sendable(operation)
    _check_batch(operation)
    _check_not_paid(operation)
    allow_list.check_payable(operation)
    if lacks_approvals(operation):
        raise errors.ApprovalsMissingError
    _check_in_time(operation)
    check_content(operation, digest)
    check_second_factor(second_factor_at, within=within)


def _check_not_paid(operation: Operation) -> None:
    """Raises OperationError while an open incident, or a pending resolution, says that it was executed although it is
    recorded as not executed, or that what it repeats was. The person who acknowledges or rejects it has compared the
    records.
    """
    says_so = Incident.objects.filter(
        Q(operation=operation) | _is_repeated_by(operation) & ~Q(operation__status=Status.SUCCEEDED),
        kind__in=POSSIBLY_PAID,
        acknowledged_at__isnull=True,
    )
    about = dict(says_so.values_list("operation", "operation__reference"))
    if operation.pk in about:
        raise errors.OperationError(Refusal.OPEN_INCIDENT)
    if about:
        raise errors.OperationError(Refusal.OPEN_INCIDENT_OF_REPEATED, reference=min(about.values()))
    if pending := pending_resolution(operation):
        raise errors.OperationError(Refusal.RESOLUTION_PENDING, resolution=pending.reference)


def _is_repeated_by(operation: Operation) -> Q:
    """The incidents about what it may pay a second time: what it is a copy or a retry of, and the same payments."""
    repeated = Q(pk__in=[])
    if operation.recipient_key and operation.amount is not None:
        same = {name: getattr(operation, name) for name in ("recipient_key", "currency", "amount")}
        repeated |= Q(**{f"operation__{name}": value for name, value in same.items()})
    if operation.prepared_from_id is not None:  # as every row has its batch there
        repeated |= Q(operation=operation.prepared_from_id)
        row = BatchRow.objects.filter(operation=operation, retried_number__isnull=False)
        for batch, number in row.values_list("batch__batch__retry_of", "retried_number"):
            repeated |= Q(operation__batch_row__batch=batch, operation__batch_row__number=number)
    return repeated


def check_administrators() -> None:
    """Raises AdministratorsMissingError while fewer are active than two people who check each other."""
    required = settings.ADMINISTRATORS_TO_SEND
    if required and enrolled_administrators().count() < required:
        raise errors.AdministratorsMissingError


def check_may_send(operation: Operation, release: Release, now: datetime) -> None:
    """The last check before sending: content, approvals, permissions, seals and the audit log, as they are at
    this moment.

    Raises ContentChangedError, ContentUnreadableError, ExpiredError, BatchPausedError, BatchCancelledError,
    PermissionMissingError, AccountRestrictedError, PreparerNotEntitledError, AlteredRecordError, OperationError for
    what may be paid already, as `allow_list.check_payable`, and as `required_levels`: ApprovalsMissingError too if a
    policy was tightened since.
    """
    approvals = approvals_of(operation)
    check_content(operation, operation.digest)
    read_content(operation)
    _check_in_time(operation, now)
    _check_batch(operation)
    _check_not_paid(operation)
    counted = _check_people(operation, release, approvals)
    seals.check_record(operation, approvals, release, trusts_digests=True)
    allow_list.lock_ceiling(operation)
    allow_list.check_payable(operation)
    _check_complete(operation, counted)


def check_may_still_send(operation: Operation, release: Release) -> None:
    """Again what others may have changed since `check_may_send`: rights, groups, policies, recipients, the batch, and
    whether it may be paid already.

    Call it once the entry of the claim is recorded, which no change of theirs can precede any more. Raises as it does.
    """
    _check_batch(operation)
    _check_not_paid(operation)
    counted = _check_people(operation, release, approvals_of(operation))
    allow_list.check_payable(operation)
    _check_complete(operation, counted)


def _check_people(operation: Operation, release: Release, approvals: Sequence[Approval]) -> list[Approval]:
    """The approvals of this content that count. Raises unless there are enough, and its people may do what they did."""
    releaser = release.released_by
    of_this_content = [one for one in approvals if one.digest == operation.digest]
    approvers = people_of(of_this_content)
    approve, prepare = approval_permission_for(operation.kind), permission_for(operation.kind)
    entitled = _entitled({RELEASE: {releaser.pk}, approve: approvers, prepare: {operation.preparer_id}})
    if releaser.pk not in entitled[RELEASE]:
        raise _reason_not_entitled(releaser, RELEASE)
    _check_other_person(releaser, operation)
    counted = counting(of_this_content, entitled[approve] - {operation.preparer_id})
    if len(counted) < operation.approvals_needed:
        raise errors.PermissionMissingError(_reason_approval_lost(operation))
    if operation.preparer_id not in entitled[prepare]:
        raise errors.PreparerNotEntitledError
    return counted


def _check_complete(operation: Operation, counted: Sequence[Approval]) -> None:
    if not approval_progress(operation, counted).is_complete:
        raise errors.ApprovalsMissingError


def check_approved(operation: Operation) -> None:
    """Raises PermissionMissingError unless the approvals that count now complete what its rules require."""
    if not decided_progress(operation).is_complete:
        raise errors.PermissionMissingError(_reason_approval_lost(operation))


def check_is_sendable(operation: Operation) -> None:
    """Raises WrongStatusError for local kinds, which are never sent. Also raises ContentUnreadableError."""
    kind, _ = read_content(operation)
    if isinstance(kind, LocalKind):
        raise errors.WrongStatusError(Refusal.APPLIED_LOCALLY)


def check_transition(operation: Operation, status: Status) -> None:
    """Raises WrongStatusError unless `states.EDGES` has this edge."""
    if status not in EDGES[Status(operation.status)]:
        raise _wrong_status(operation)


def check_content(operation: Operation, digest: str) -> None:
    """Raises ContentChangedError unless the stored content is what was approved and what was shown."""
    if not digest == operation.digest == operation.current_digest():
        raise errors.ContentChangedError


def may_decide(person: User, operation: Operation) -> bool:
    """Whether to offer the decision panel to this user. The services check again, and more."""
    return (
        operation.status == Status.PENDING
        and may_now(person, approval_permission_for(operation.kind))
        and person.pk != operation.preparer_id
        and person.pk not in affected_people(operation)
    )


def may_release(person: User, operation: Operation) -> bool:
    """Whether this user may release the approved operation."""
    return (
        operation.status == Status.APPROVED
        and may_now(person, RELEASE)
        and person.pk != operation.preparer_id
    )


def restriction(person: User, permission: str) -> errors.AccountRestrictedError | None:
    """The error if a change of the account withholds this permission of the user's roles; None if none does."""
    found = restriction_on(person, permission)
    return errors.AccountRestrictedError(found) if found and person.has_perm(permission) else None


def may_cancel(person: User, operation: Operation) -> bool:
    """Whether this user may cancel the operation."""
    return (
        Status(operation.status) in BEFORE_SENDING
        and (person.pk == operation.preparer_id or has_preparer_lost_permission(operation))
        and person.has_perm(permission_for(operation.kind))
    )


def check_permission(person: User, permission: str) -> None:
    """Raises PermissionMissingError unless the user has the permission in the database now, and
    AccountRestrictedError if only a change of the account withholds it.
    """
    if not _is_entitled(person, permission):
        raise _reason_not_entitled(person, permission)


def _reason_not_entitled(person: User, permission: str) -> errors.OperationError:
    return restriction(User.objects.get(pk=person.pk), permission) or errors.PermissionMissingError()


def _is_entitled(person: User, permission: str) -> bool:
    """Reads the database, ignoring permissions cached for the request."""
    found = _entitled_person(permission, roles_with(permission), restriction_times())
    return found.first(person=person.pk) is not None


@composed_once
def _entitled_person(
    permission: str, _roles: tuple[str, ...], _times: tuple[timedelta, ...]
) -> CompiledQuery[Any]:
    entitled = without_reactivated_outside(users_with_permission(permission)).order_by()
    return CompiledQuery(entitled.filter(pk=Argument("person", User._meta.pk)).values("pk"))


def _entitled(people: Mapping[str, Collection[int]]) -> dict[str, set[int]]:
    """Those of these people, by permission, who have it in the database now. One query."""
    queries = [
        without_reactivated_outside(users_with_permission(permission).filter(pk__in=wanted))
        .order_by()
        .annotate(permission=Value(permission, output_field=CharField()))
        .values_list("permission", "pk")
        for permission, wanted in people.items()
    ]
    found: dict[str, set[int]] = {permission: set() for permission in people}
    for permission, pk in queries[0].union(*queries[1:]):
        found[permission].add(pk)
    return found


def _reason_approval_lost(operation: Operation) -> Refusal:
    approvals = operation.approvals.select_related("approver")
    return reason_approval_lost(operation.kind, [approval.approver for approval in approvals])


def reason_approval_lost(kind: str, approvers: Iterable[User]) -> Refusal:
    """Why an approval of one of these people does not count: for now, or because the permission is gone."""
    found = [restriction_on(person, approval_permission_for(kind)) for person in approvers]
    causes = {one.cause for one in found if one}
    if RestrictionCause.BREAK_GLASS in causes:
        return Refusal.APPROVER_RESTRICTED
    return Refusal.APPROVER_RIGHTS_NEW if causes else Refusal.APPROVER_NOT_ENTITLED


def _check_not_affected(person: User, operation: Operation) -> None:
    if person.pk in affected_people(operation):
        raise errors.OperationError(Refusal.OWN_RIGHTS)


def _check_preparer(operation: Operation) -> None:
    if not _may_still_prepare(operation):
        raise errors.PreparerNotEntitledError


def _may_still_prepare(operation: Operation) -> bool:
    return _is_entitled(operation.preparer, permission_for(operation.kind))


def _check_batch(operation: Operation) -> None:
    """Raises BatchPausedError or BatchCancelledError for the row of a batch that people stopped."""
    if operation.prepared_from_id is None:  # as every row has its batch there, which a trigger keeps
        return
    batch = Batch.objects.filter(operation__rows__operation=operation).select_related("operation").first()
    if batch is not None:
        check_batch_continues(batch)


def check_batch_continues(batch: Batch) -> None:
    """Raises BatchPausedError or BatchCancelledError if people stopped this batch."""
    if batch.cancelled_at or batch.operation.status in NOT_EXECUTED:
        raise errors.BatchCancelledError
    if batch.paused_at:
        raise errors.BatchPausedError


def check_may_pause_batch(person: User) -> None:
    """Raises PermissionMissingError unless this user works on operations: who prepares, approves or sends them."""
    if not may_check_status(person):
        raise errors.PermissionMissingError


def check_may_resume_batch(person: User, batch: Batch) -> None:
    """Raises the reason why this user may not let a paused batch be sent again: only who may send it."""
    check_permission(person, RELEASE)
    _check_other_person(person, batch.operation)


def check_may_cancel_batch(person: User, batch: Batch) -> None:
    """Raises the reason why this user may not cancel what is not sent of a batch: its preparer and approvers may, and
    anyone with the preparer's permission once the preparer has lost it.
    """
    operation = batch.operation
    if operation.approvals.filter(approver=person).exists():
        check_permission(person, APPROVE)
        return
    if person != operation.preparer and _may_still_prepare(operation):
        raise errors.PermissionMissingError(Refusal.NOT_THE_PREPARER)
    check_permission(person, permission_for(operation.kind))


def _check_awaits_approval(operation: Operation) -> None:
    """Raises WrongStatusError unless it is pending, or approved and a policy was tightened since.

    The table of states is not enough here: `sending` may return to `approved` when nothing was sent.
    """
    if operation.status != Status.PENDING and not lacks_approvals(operation):
        raise _wrong_status(operation)


def _wrong_status(operation: Operation) -> errors.WrongStatusError:
    if operation.kind == BatchKind.name and operation.status == Status.SUCCEEDED:
        # Its rows have statuses of their own, and may not be sent.
        return errors.WrongStatusError(Refusal.BATCH_APPROVED)
    return errors.WrongStatusError(Refusal.STATUS_CHANGED, status=operation.status)


def _check_other_person(person: User, operation: Operation) -> None:
    if person.pk == operation.preparer_id:
        raise errors.SelfApprovalError


def _check_in_time(operation: Operation, now: datetime | None = None) -> None:
    if operation.has_expired(now or clock.now()):
        raise errors.ExpiredError


def check_second_factor(second_factor_at: datetime | None, *, within: timedelta | None = None) -> None:
    """Raises SecondFactorStaleError unless it was confirmed within the last minutes, or within this time.

    A time in the future counts in neither case (`is_second_factor_fresh`).
    """
    is_within = (
        within is not None
        and second_factor_at is not None
        and timedelta() <= clock.now() - second_factor_at <= within
    )
    if not is_within and not is_second_factor_fresh(second_factor_at):
        raise errors.SecondFactorStaleError


def has_preparer_lost_permission(operation: Operation) -> bool:
    """Whether the preparer may no longer prepare it, so that it is not sent. Needs `selectors.operation_page`."""
    return not getattr(operation, "preparer_still_entitled", True)


def may_approve_any(person: User) -> bool:
    """Whether this user's roles approve operations of some kind."""
    return any(person.has_perm(name) for name in (APPROVE, APPROVE_GOVERNANCE))


def may_decide_any(person: User) -> bool:
    """Whether operations can wait for this user at all."""
    return any(person.has_perm(name) for name in (APPROVE, APPROVE_GOVERNANCE, RELEASE))


def may_check_status(person: User) -> bool:
    """Whether this user may start a status check, which reads the provider: people who work on operations, not those
    who only view them.
    """
    return any(
        person.has_perm(name)
        for name in (permissions.PREPARE, permissions.PROPOSE, permissions.APPROVE, permissions.RELEASE)
    )


def has_approved(person: User, operation: Operation) -> bool:
    """Whether this user has approved the operation already, or a stand-in for this user."""
    return person.pk in people_of(operation.approvals.all())
