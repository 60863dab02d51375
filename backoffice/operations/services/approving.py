"""The countersignature alone; where the operation is never sent, the last one applies it."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.operations.errors import OperationAction, UnreadableContentError
from backoffice.operations.kinds import LocalKind, content_of
from backoffice.operations.kinds.base import Effect
from backoffice.operations.kinds.resolution_payload import ResolutionPayload
from backoffice.operations.models import Operation
from backoffice.operations.services.deciding import add_approval
from backoffice.operations.services.moves import move, refusals_are_audited
from backoffice.operations.services.pausing import resume_sending
from backoffice.operations.services.resolving import check_meaning, settle_operation
from backoffice.operations.states import Status


@refusals_are_audited(OperationAction.APPROVE)
def approve_operation(
    operation_id: UUID,
    *,
    actor: User,
    digest: str,
    second_factor_at: datetime | None,
    comment: str = "",
    confirmation: str = "",
) -> Operation:
    """Add one countersignature. With the last one needed it is ready to be sent, or applied if it is never sent.

    `confirmation` is what the kind wants typed from the content. Raises NotAllowedError, SelfApprovalError,
    AlreadyApprovedError, WrongStatusError, ExpiredError, ContentChangedError, SecondFactorStaleError,
    ConfirmationWrongError, and what applying it raises: then the countersignature is not given either.
    """
    settles = _what_it_settles(operation_id)
    if settles:
        check_meaning(settles)
    with transaction.atomic():
        if settles:
            # The operation first and the head of the log last, as whoever else may close it at this moment does. The
            # entry about the countersignature locks the head to the end, so it would be too late afterwards.
            Operation.objects.get_locked(settles.operation)
        operation = add_approval(operation_id, actor, digest, second_factor_at, comment, confirmation)
        if operation.status == Status.APPROVED:
            _apply_here(operation, actor)
    return operation


def _what_it_settles(operation_id: UUID) -> ResolutionPayload | None:
    """What is signed, if it is how another operation ended."""
    operation = Operation.objects.filter(pk=operation_id).first()
    if operation is None:
        return None
    with suppress(UnreadableContentError):  # which the countersignature itself is refused for
        payload = content_of(operation)[1]
        return payload if isinstance(payload, ResolutionPayload) else None
    return None


_EFFECTS: dict[Effect, Callable[[Operation, Any, User], None]] = {
    Effect.SETTLES: settle_operation,
    Effect.RESUMES: resume_sending,
}


def _apply_here(operation: Operation, actor: User) -> None:
    """Do what a kind of our own is for, and close it. Other kinds wait for the word to send."""
    kind, payload = content_of(operation)
    if not isinstance(kind, LocalKind):
        return
    _EFFECTS[kind.effect](operation, payload, actor)
    move(operation, Status.SUCCEEDED)
    audit.record(Action.OPERATION_APPLIED, actor=actor, target=operation, digest=operation.digest)
