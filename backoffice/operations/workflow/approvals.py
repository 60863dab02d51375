"""Approve, approve and send, reject, cancel or expire an operation; approve or reject several at once.

The last approval applies a kind that is never sent. In bulk each operation is decided on its own: a refusal
of one does not affect the others.
"""

import logging
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db import DatabaseError, transaction
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr

from backoffice.accounts import staff
from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import background, clock
from backoffice.operations import policy, seals
from backoffice.operations.approval.progress import approved_for, decided_progress, time_to_store
from backoffice.operations.delivery.release import add_release
from backoffice.operations.errors import (
    ContentUnreadableError,
    MaybeExecutedError,
    OperationError,
    ReasonMissingError,
    WrongStatusError,
)
from backoffice.operations.kinds.access_review import AccessReviewPayload
from backoffice.operations.kinds.approval_policy import ApprovalPolicyPayload
from backoffice.operations.kinds.base import LocalEffect, LocalKind
from backoffice.operations.kinds.delegation import DelegationPayload
from backoffice.operations.kinds.recipient import RecipientPayload
from backoffice.operations.kinds.recipient_import import RecipientImportPayload
from backoffice.operations.kinds.registry import KINDS, read_content
from backoffice.operations.kinds.resolution.case import ResolutionPayload
from backoffice.operations.kinds.staff_change import StaffChangePayload
from backoffice.operations.lifecycle.access_review import sign_access_review
from backoffice.operations.lifecycle.delegation import lock_delegations, start_delegation
from backoffice.operations.lifecycle.otp_secret import apply_otp_secret
from backoffice.operations.lifecycle.pause import resume_payments
from backoffice.operations.lifecycle.policy_version import apply_policy
from backoffice.operations.lifecycle.recipient import (
    apply_import,
    apply_recipient,
    lock_recipient,
    lock_register,
)
from backoffice.operations.lifecycle.staff_change import apply_staff_change
from backoffice.operations.lifecycle.transitions import (
    OperationAction,
    audit_refusals,
    record_refusal,
    transition,
)
from backoffice.operations.models.batches import Batch
from backoffice.operations.models.operations import Approval, Operation, Release
from backoffice.operations.models.reason_codes import ClosingReason, coded
from backoffice.operations.outcome.resolution import check_evidence, resolve_operation
from backoffice.operations.payee_look_alikes import look_alikes_of_payees
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Status
from backoffice.policies.document import Levels


@dataclass(frozen=True)
class ApproverConfirmation:
    """What the approver confirmed besides the second factor, where the kind requires it.

    `typed` is the value typed from the content; `acknowledged`, whether its acknowledgement was ticked.
    """

    typed: str = ""
    acknowledged: bool = False


_NOTHING_CONFIRMED = ApproverConfirmation()


def add_approval(
    operation_id: UUID,
    actor: User,
    digest: str,
    second_factor_at: datetime | None,
    comment: str,
    confirmation: ApproverConfirmation,
) -> Operation:
    """Approve inside the caller's transaction; the last approval needed sets `approved`. Sends nothing.

    Raises as `approve_operation`, except what applying it raises.
    """
    operation = Operation.objects.get_locked(operation_id)
    delegation = policy.check_may_approve(actor, operation, digest=digest, second_factor_at=second_factor_at)
    policy.check_confirmation(operation, confirmation.typed)
    policy.check_acknowledged(operation, acknowledged=confirmation.acknowledged)
    now = time_to_store(delegation)
    approval = Approval(
        operation=operation,
        approver=actor,
        preparer=operation.preparer,
        digest=digest,
        comment=comment,
        approved_at=now,
        on_behalf_of=delegation.person if delegation else None,
        delegation=delegation,
    )
    approval.make_seal()
    approval.save(force_insert=True)
    given = operation.approvals.count()
    if operation.status == Status.PENDING and decided_progress(operation).is_complete:
        transition(operation, Status.APPROVED, decided_at=now)
    audit.record(
        Action.OPERATION_APPROVED,
        actor=actor,
        target=operation,
        digest=digest,
        comment=comment,
        given=given,
        needed=operation.approvals_needed,
        status=operation.status,
        **({"warning_confirmed": True} if confirmation.acknowledged else {}),
        **approved_for(approval),
    )
    return operation


@audit_refusals(OperationAction.REJECT)
@transaction.atomic
def reject_operation(
    operation_id: UUID, *, actor: User, digest: str, second_factor_at: datetime | None, reason: str
) -> Operation:
    """Reject a pending operation, with a reason for its preparer.

    Raises as `approve_operation`, ReasonMissingError and MaybeExecutedError.
    """
    if not reason.strip():
        raise ReasonMissingError
    operation = Operation.objects.get_locked(operation_id)
    policy.check_may_decide(actor, operation, digest=digest, second_factor_at=second_factor_at)
    stated = coded(ClosingReason.STATED, text=reason)
    transition(operation, Status.REJECTED, closing_reason=stated, decided_at=clock.now())
    audit.record(Action.OPERATION_REJECTED, actor=actor, target=operation, digest=digest, reason=reason)
    return operation


@audit_refusals(OperationAction.CANCEL)
@transaction.atomic
def cancel_operation(operation_id: UUID, *, actor: User) -> Operation:
    """Cancel an operation of which nothing was sent; a waiting release is deleted with its one-time code.

    Raises PermissionMissingError, WrongStatusError, MaybeExecutedError.
    """
    operation = Operation.objects.get_locked(operation_id)
    policy.check_may_cancel(actor, operation)
    Release.objects.filter(operation=operation).delete()
    transition(operation, Status.CANCELLED)
    Batch.objects.filter(operation=operation).update(
        cancelled_by=actor, cancelled_at=clock.now(), is_cancelling=True
    )
    audit.record(Action.OPERATION_CANCELLED, actor=actor, target=operation)
    return operation


@transaction.atomic
def expire_operation(operation_id: UUID) -> Operation | None:
    """Expire an operation past its expiry; None if it is not, is no longer pending or approved, or may have been
    executed before the database was restored.
    """
    operation = Operation.objects.get_locked(operation_id)
    if not operation.has_expired(clock.now()):
        return None
    try:
        transition(operation, Status.EXPIRED)
    except (WrongStatusError, MaybeExecutedError):
        return None
    Release.objects.filter(operation=operation).delete()
    audit.record(Action.OPERATION_EXPIRED, actor=None, target=operation)
    return operation


@audit_refusals(OperationAction.APPROVE)
def approve_operation(
    operation_id: UUID,
    *,
    actor: User,
    digest: str,
    second_factor_at: datetime | None,
    comment: str = "",
    confirmation: ApproverConfirmation = _NOTHING_CONFIRMED,
) -> Operation:
    """Add one approval; the last one needed makes it ready to send, or applies a local kind.

    Raises PermissionMissingError, AccountRestrictedError, SelfApprovalError, AlreadyApprovedError, WrongStatusError,
    ExpiredError, ContentChangedError, SecondFactorStaleError, ConfirmationWrongError, AcknowledgementMissingError,
    PreparerNotEntitledError, as `allow_list.check_recipients_of` and `delegation_to_approve`, AlteredRecordError (with
    an incident) for rows that were not made with Countersign, and what applying it raises: then the approval is rolled
    back too.
    """
    payload = _payload_of(operation_id)
    if isinstance(payload, ResolutionPayload):
        check_evidence(payload)
    with transaction.atomic():
        _lock_what_it_changes(payload)
        operation = add_approval(operation_id, actor, digest, second_factor_at, comment, confirmation)
        if operation.status == Status.APPROVED:
            _apply_local_effect(operation, actor)
    return operation


def _lock_what_it_changes(payload: object) -> None:
    """Lock what the effect of this content changes, before anything else.

    The head of the audit log comes last, as in every other service that changes the same: the entry of the approval
    locks it until the end of the transaction, so it would be too late to lock anything after it.
    """
    if isinstance(payload, ResolutionPayload):
        Operation.objects.get_locked(payload.operation)
    if isinstance(payload, StaffChangePayload):
        staff.lock_staff(payload.person)
    if isinstance(payload, AccessReviewPayload | ApprovalPolicyPayload):
        staff.lock_staff()
    if isinstance(payload, DelegationPayload):
        lock_delegations()
    if isinstance(payload, RecipientPayload):
        lock_recipient(payload.key)
    if isinstance(payload, RecipientImportPayload):
        lock_register()


def _payload_of(operation_id: UUID) -> object:
    """The content of this operation; None if there is none, or it cannot be read."""
    operation = Operation.objects.filter(pk=operation_id).first()
    if operation is None:
        return None
    with suppress(ContentUnreadableError):  # the approval itself is refused for this reason
        return read_content(operation)[1]
    return None


CREATE_ROWS_TASK = "operations.create_rows"


def _enqueue_rows(operation: Operation, _payload: Any, _actor: User) -> None:
    """Have a worker make each row of the batch an operation; the batch stays approved until all are made."""
    background.enqueue_on_commit(CREATE_ROWS_TASK, operation.pk)


_EFFECTS: dict[LocalEffect, Callable[[Operation, Any, User], None]] = {
    LocalEffect.RESOLVES_OPERATION: resolve_operation,
    LocalEffect.RESUMES_PAYMENTS: resume_payments,
    LocalEffect.CHANGES_AUTHENTICATOR: apply_otp_secret,
    LocalEffect.CREATES_OPERATIONS: _enqueue_rows,
    LocalEffect.CHANGES_POLICY: apply_policy,
    LocalEffect.CHANGES_RECIPIENT: apply_recipient,
    LocalEffect.IMPORTS_RECIPIENTS: apply_import,
    LocalEffect.CHANGES_STAFF: apply_staff_change,
    LocalEffect.STARTS_DELEGATION: start_delegation,
    LocalEffect.SIGNS_ACCESS_REVIEW: sign_access_review,
}


def _apply_local_effect(operation: Operation, actor: User) -> None:
    """Apply an operation of a local kind and close it. Other kinds wait for their release."""
    kind, payload = read_content(operation)
    if not isinstance(kind, LocalKind):
        return
    # Again: audit entries follow one another, so a right that was lost before that of this approval is seen now.
    policy.check_approved(operation)
    _EFFECTS[kind.effect](operation, payload, actor)
    if not kind.applied_at_once:
        return
    transition(operation, Status.SUCCEEDED)
    audit.record(Action.OPERATION_APPLIED, actor=actor, target=operation, digest=operation.digest)


@audit_refusals(OperationAction.APPROVE_AND_RELEASE)
@transaction.atomic
def approve_and_release_operation(
    operation_id: UUID,
    *,
    actor: User,
    digest: str,
    second_factor_at: datetime | None,
    otp: SecretStr | None = None,
    comment: str = "",
    confirmation: ApproverConfirmation = _NOTHING_CONFIRMED,
) -> Operation:
    """Give the last approval and the release in one transaction: both happen or neither.

    Raises as `approve_operation` and `release_operation`; WrongStatusError too if further approvals are
    needed.
    """
    operation = add_approval(operation_id, actor, digest, second_factor_at, comment, confirmation)
    if operation.status != Status.APPROVED:
        raise WrongStatusError(Refusal.FURTHER_APPROVAL_NEEDED)
    return add_release(operation_id, actor, digest, second_factor_at, otp)


logger = logging.getLogger(__name__)

BULK_LIMIT = 50
_NOT_CONFIRMED = _("The approval or rejection was not confirmed. Check the operation before you try again.")


class BulkDecision(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"


class BulkOutcome(StrEnum):
    """The result for one operation. The value is the CSS tone in which it is shown."""

    DONE = "good"
    DONE_BEFORE = "info"
    REFUSED = "bad"


@dataclass(frozen=True)
class SelectedOperation:
    """An operation, and the digest of the content that the user saw."""

    operation: Operation
    digest: str


@dataclass(frozen=True)
class BulkResult:
    """The result for one operation, with the sentence for the screen."""

    operation: Operation
    result: BulkOutcome
    text: str


def approve_operations(
    choices: Iterable[SelectedOperation], *, actor: User, second_factor_at: datetime | None, comment: str = ""
) -> list[BulkResult]:
    """Approve each as `approve_operation` does; one result for each, in their order. Nothing is sent.

    Operations that must be approved individually (`policy.check_may_approve_in_bulk`) are refused.
    Idempotent: what this user has approved before is only reported.
    """
    choices = list(choices)
    alike = look_alikes_of_payees({choice.operation.recipient_key or "" for choice in choices})

    def decide(choice: SelectedOperation) -> str:
        _check_may_approve_in_bulk(choice.operation, actor, alike)
        changed = approve_operation(
            choice.operation.pk,
            actor=actor,
            digest=choice.digest,
            second_factor_at=second_factor_at,
            comment=comment,
        )
        text = (
            gettext("Approved. Status: {status}.")
            if is_all_applied_here(changed)
            else gettext("Approved. Status: {status}. Nothing was sent.")
        )
        return text.format(status=changed.get_status_display())

    def was_decided(choice: SelectedOperation) -> bool:
        return Approval.objects.filter(
            operation=choice.operation, approver=actor, digest=choice.digest
        ).exists()

    before = gettext("You had already approved it. Nothing was changed.")
    return [_bulk_result(choice, decide, was_decided, before) for choice in choices]


def reject_operations(
    choices: Iterable[SelectedOperation], *, actor: User, second_factor_at: datetime | None, reason: str
) -> list[BulkResult]:
    """Reject each as `reject_operation` does, with the same reason; one result for each, in their order.

    What this user has rejected before is only reported.
    """

    def decide(choice: SelectedOperation) -> str:
        reject_operation(
            choice.operation.pk,
            actor=actor,
            digest=choice.digest,
            second_factor_at=second_factor_at,
            reason=reason,
        )
        is_applied = is_all_applied_here(choice.operation)
        return gettext("Rejected.") if is_applied else gettext("Rejected. Nothing was sent.")

    def was_decided(choice: SelectedOperation) -> bool:
        return Entry.objects.filter(
            target_type=choice.operation._meta.label_lower,
            target_id=str(choice.operation.pk),
            action=Action.OPERATION_REJECTED,
            actor=actor.pk,
        ).exists()

    before = gettext("You had already rejected it. Nothing was changed.")
    return [_bulk_result(choice, decide, was_decided, before) for choice in choices]


def is_all_applied_here(operation: Operation) -> bool:
    """Whether nothing of it is ever sent, so that nothing has to be said of sending."""
    kind = KINDS.get(operation.kind)
    return isinstance(kind, LocalKind) and kind.effect != LocalEffect.CREATES_OPERATIONS


def _bulk_result(
    choice: SelectedOperation,
    decide: Callable[[SelectedOperation], str],
    was_decided: Callable[[SelectedOperation], bool],
    before: str,
) -> BulkResult:
    """After a refusal, check again whether the same request was processed concurrently."""
    if was_decided(choice):
        return BulkResult(choice.operation, BulkOutcome.DONE_BEFORE, before)
    try:
        return BulkResult(choice.operation, BulkOutcome.DONE, decide(choice))
    except OperationError as exc:
        if was_decided(choice):
            return BulkResult(choice.operation, BulkOutcome.DONE_BEFORE, before)
        return BulkResult(choice.operation, BulkOutcome.REFUSED, str(exc))
    except DatabaseError:
        logger.exception(
            "A bulk decision on operation %s failed in the database and is not confirmed", choice.operation.pk
        )
        return BulkResult(choice.operation, BulkOutcome.REFUSED, str(_NOT_CONFIRMED))


def _check_may_approve_in_bulk(operation: Operation, actor: User, alike: Container[str | None]) -> None:
    try:
        check_may_approve_in_bulk(operation, alike=alike)
    except OperationError as exc:
        record_refusal(operation.pk, OperationAction.APPROVE, actor, exc)
        raise


def check_may_approve_in_bulk(
    operation: Operation, levels: Levels | None = None, *, alike: Container[str | None]
) -> None:
    """Raises as `policy.check_may_approve_in_bulk`; for rows that cannot be read because they were altered
    AlteredRecordError, as `approve_operation` does.
    """
    try:
        policy.check_may_approve_in_bulk(operation, levels, alike=alike)
    except ContentUnreadableError:
        _check_not_altered(operation.pk)
        raise


@transaction.atomic
def _check_not_altered(operation_id: UUID) -> None:
    """Under the lock, as an approval that is being added would otherwise be in the log alone."""
    operation = Operation.objects.get_locked(operation_id)
    seals.check_record(operation, list(operation.approvals.all()), None)
