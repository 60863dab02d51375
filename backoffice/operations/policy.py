"""Who may do what to which operation. Each `check_` raises the reason; each `may_` answers for the screens."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from backoffice.accounts.models import User
from backoffice.accounts.second_factor import is_second_factor_fresh
from backoffice.accounts.staff import users_with_permission
from backoffice.core import clock
from backoffice.core.web.formatting import format_amount
from backoffice.operations import errors, permissions
from backoffice.operations.kinds.base import Debit, LocalKind
from backoffice.operations.kinds.registry import permission_for, read_content
from backoffice.operations.models.operations import Operation
from backoffice.operations.permissions import APPROVE, RELEASE
from backoffice.operations.states import BEFORE_SENDING, EDGES, Status


@dataclass(frozen=True)
class ApprovalRequirement:
    """How many people must countersign, and the rule that says so."""

    approvals: int
    sentence: str


def approval_requirement(plural: str, *amounts: Debit | None) -> ApprovalRequirement:
    """The rule for an operation: one other person, two above the deployment's limit for an amount."""
    for debit in filter(None, amounts):
        if debit.amount > (limit := settings.SECOND_APPROVAL_ABOVE[debit.currency]):
            above = f"{debit.currency} {format_amount(limit, debit.currency)}"
            return ApprovalRequirement(
                2, f"{plural} above {above} need two approvers who did not prepare them."
            )
    return ApprovalRequirement(1, f"{plural} need one approver who did not prepare them.")


def check_may_prepare(person: User, kind: str) -> None:
    """Raises NotAllowedError."""
    check_permission(person, permission_for(kind))


def check_may_approve(
    person: User, operation: Operation, *, digest: str, second_factor_at: datetime | None
) -> None:
    """Raises the reason why this person may not countersign this content now."""
    check_may_decide(person, operation, digest=digest, second_factor_at=second_factor_at)
    if operation.approvals.filter(approver=person).exists():
        raise errors.AlreadyApprovedError
    _check_preparer(operation)


def check_confirmation(operation: Operation, typed: str) -> None:
    """Raises ConfirmationWrongError unless what the kind wants typed from the content was typed."""
    kind, payload = read_content(operation)
    confirmation = kind.confirmation(payload)
    if confirmation is not None and typed.strip() != confirmation.expected:
        raise errors.ConfirmationWrongError


def check_may_decide(
    person: User, operation: Operation, *, digest: str, second_factor_at: datetime | None
) -> None:
    """Raises the reason why this person may not approve or reject this content now."""
    check_permission(person, APPROVE)
    check_is_decidable(person, operation, digest=digest)
    _check_second_factor(second_factor_at)


def check_is_decidable(
    person: User, operation: Operation, *, digest: str, now: datetime | None = None
) -> None:
    """Raises the reason that lies in the operation itself why this person may not approve or reject it now.

    A page that looks at many gives the time, since the database's clock is a query each time.
    """
    _check_other_person(person, operation)
    _check_pending(operation)
    _check_in_time(operation, now)
    check_content(operation, digest)


def check_may_approve_in_bulk(operation: Operation) -> None:
    """Raises OneByOneError where countersigning takes more than a look at one line among many.

    Rejecting takes no more than a reason. Raises UnreadableContentError, too.
    """
    kind, payload = read_content(operation)
    if kind.is_decided_alone:
        raise errors.NotInBulkError(errors.Refusal.KIND_ONE_BY_ONE, kinds=kind.plural)
    if payload.repeat_reason:
        raise errors.NotInBulkError(errors.Refusal.PAID_AGAIN_ONE_BY_ONE)
    if operation.approvals_needed > 1:
        raise errors.NotInBulkError(errors.Refusal.TWO_APPROVALS_ONE_BY_ONE)
    if kind.confirmation(payload) is not None:
        raise errors.NotInBulkError(errors.Refusal.CONFIRMATION_ONE_BY_ONE)
    if kind.cautions(payload):
        raise errors.NotInBulkError(errors.Refusal.CAUTION_ONE_BY_ONE)


def check_may_cancel(person: User, operation: Operation) -> None:
    """Raises the reason why this person may not take the operation back.

    That is its maker's to do, and anybody's who may prepare the like once its maker may not any more.
    """
    if person != operation.maker and _may_still_prepare(operation):
        raise errors.PermissionMissingError(errors.Refusal.NOT_THE_PREPARER)
    check_permission(person, permission_for(operation.kind))
    check_transition(operation, Status.CANCELLED)


def check_may_release(
    person: User, operation: Operation, *, digest: str, second_factor_at: datetime | None
) -> None:
    """Raises the reason why this person may not have this content sent now."""
    check_permission(person, RELEASE)
    _check_other_person(person, operation)
    check_is_sendable(operation)
    check_transition(operation, Status.SENDING)
    _check_in_time(operation)
    check_content(operation, digest)
    _check_second_factor(second_factor_at)


def check_may_send(operation: Operation, releaser: User) -> None:
    """The last look before money leaves: content, countersignatures and people, as they are at this moment.

    Raises ContentChangedError, UnreadableContentError, ExpiredError or NotAllowedError (architecture.md, "What must
    always hold", 2 and 3).
    """
    check_content(operation, operation.digest)
    read_content(operation)
    _check_in_time(operation)
    check_permission(releaser, RELEASE)
    _check_other_person(releaser, operation)
    signed = {
        approval.approver_id
        for approval in operation.approvals.select_related("approver")
        if approval.digest == operation.digest
        and approval.approver_id != operation.maker_id
        and _is_entitled(approval.approver, APPROVE)
    }
    if len(signed) < operation.approvals_needed:
        raise errors.PermissionMissingError(errors.Refusal.APPROVER_NOT_ENTITLED)
    _check_preparer(operation)


def check_is_sendable(operation: Operation) -> None:
    """Raises WrongStatusError for what is applied here and has nothing to send. Raises UnreadableContentError, too."""
    kind, _ = read_content(operation)
    if isinstance(kind, LocalKind):
        raise errors.WrongStatusError(errors.Refusal.APPLIED_HERE)


def check_transition(operation: Operation, status: Status) -> None:
    """Raises WrongStatusError unless the table of states has this edge."""
    if status not in EDGES[Status(operation.status)]:
        raise _wrong_status(operation)


def check_content(operation: Operation, digest: str) -> None:
    """Raises ContentChangedError unless what is stored is what was signed and what was shown."""
    if not digest == operation.digest == operation.current_digest():
        raise errors.ContentChangedError


def may_decide(person: User, operation: Operation) -> bool:
    """Whether the decision panel is this person's to use. The services check again, and more."""
    return operation.status == Status.PENDING and person.has_perm(APPROVE) and person.pk != operation.maker_id


def may_release(person: User, operation: Operation) -> bool:
    """Whether this person may have the approved operation sent."""
    return (
        operation.status == Status.APPROVED and person.has_perm(RELEASE) and person.pk != operation.maker_id
    )


def may_cancel(person: User, operation: Operation) -> bool:
    """Whether this person may take the operation back."""
    return (
        Status(operation.status) in BEFORE_SENDING
        and (person.pk == operation.maker_id or has_preparer_lost_permission(operation))
        and person.has_perm(permission_for(operation.kind))
    )


def check_permission(person: User, permission: str) -> None:
    """Raises NotAllowedError unless the person has it, as the database says now."""
    if not _is_entitled(person, permission):
        raise errors.PermissionMissingError


def _is_entitled(person: User, permission: str) -> bool:
    """As the database says now, whatever was remembered for the request."""
    return users_with_permission(permission).filter(pk=person.pk).exists()


def _check_preparer(operation: Operation) -> None:
    if not _may_still_prepare(operation):
        raise errors.PreparerNotEntitledError


def _may_still_prepare(operation: Operation) -> bool:
    return _is_entitled(operation.maker, permission_for(operation.kind))


def _check_pending(operation: Operation) -> None:
    """That it can become approved is not enough: so can what is being sent, when nothing of it has left."""
    if operation.status != Status.PENDING:
        raise _wrong_status(operation)


def _wrong_status(operation: Operation) -> errors.WrongStatusError:
    return errors.WrongStatusError(errors.Refusal.STATUS_CHANGED, status=operation.status)


def _check_other_person(person: User, operation: Operation) -> None:
    if person.pk == operation.maker_id:
        raise errors.SelfApprovalError


def _check_in_time(operation: Operation, now: datetime | None = None) -> None:
    if operation.is_past(now or clock.now()):
        raise errors.ExpiredError


def _check_second_factor(second_factor_at: datetime | None) -> None:
    if not is_second_factor_fresh(second_factor_at):
        raise errors.SecondFactorStaleError


def has_preparer_lost_permission(operation: Operation) -> bool:
    """Whether whoever prepared it may no longer do so, so that it is not sent. Told by `operation_page`."""
    return not getattr(operation, "maker_still_entitled", True)


def may_decide_any(person: User) -> bool:
    """Whether operations can wait for this person at all."""
    return person.has_perm(permissions.APPROVE) or person.has_perm(permissions.RELEASE)


def may_check_status(person: User) -> bool:
    """Whether operations are this person's work, and not only reading: who works on them may have the service asked."""
    return any(
        person.has_perm(name)
        for name in (permissions.PREPARE, permissions.PROPOSE, permissions.APPROVE, permissions.RELEASE)
    )


def has_approved(person: User, operation: Operation) -> bool:
    """Whether this person has countersigned already."""
    return any(approval.approver_id == person.pk for approval in operation.approvals.all())
