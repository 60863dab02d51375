"""The word to send: given by a person, taken back by the machine where it may not or can no longer be followed."""

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Coalesce
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.audit.canonical import storable
from backoffice.core import clock, fault_points, queue, vault
from backoffice.operations import policy, turns
from backoffice.operations.blockers import Blocker
from backoffice.operations.errors import (
    AlreadyReleasedError,
    OperationAction,
    OperationError,
    Refusal,
    SendingPausedError,
    TokenMissingError,
    WrongStatusError,
)
from backoffice.operations.kinds import KINDS, content_of
from backoffice.operations.models import Operation, Release
from backoffice.operations.pause import is_paused
from backoffice.operations.services.deciding import add_approval
from backoffice.operations.services.moves import record_refusal, refusals_are_audited
from backoffice.operations.states import Status

SEND_TASK = "operations.send"


@refusals_are_audited(OperationAction.RELEASE)
@transaction.atomic
def release_operation(
    operation_id: UUID,
    *,
    actor: User,
    digest: str,
    second_factor_at: datetime | None,
    token: SecretStr | None = None,
) -> Operation:
    """Give the word to send an approved operation; a worker sends it in its turn once this is committed.

    The service's token waits encrypted, bound to this content, for at most 90 seconds; without one the word stands for
    15 minutes. Raises NotAllowedError, SelfApprovalError, WrongStatusError, ExpiredError, ContentChangedError,
    SecondFactorStaleError, SendingPausedError, TokenMissingError, AlreadyReleasedError.
    """
    return _release(operation_id, actor, digest, second_factor_at, token)


@refusals_are_audited(OperationAction.APPROVE_AND_RELEASE)
@transaction.atomic
def approve_and_release_operation(
    operation_id: UUID,
    *,
    actor: User,
    digest: str,
    second_factor_at: datetime | None,
    token: SecretStr | None = None,
    comment: str = "",
    confirmation: str = "",
) -> Operation:
    """Give the last countersignature and the word to send in one: both happen or neither.

    Raises as `approve_operation` and `release_operation`; WrongStatusError too if further people must countersign.
    """
    operation = add_approval(operation_id, actor, digest, second_factor_at, comment, confirmation)
    if operation.status != Status.APPROVED:
        raise WrongStatusError(Refusal.FURTHER_APPROVAL_NEEDED)
    return _release(operation_id, actor, digest, second_factor_at, token)


@transaction.atomic
def lapse_release(operation_id: UUID) -> bool:
    """Destroy a release that waited too long; the operation stays approved. False if there was nothing to do."""
    return _lapse(Operation.objects.get_locked(operation_id))


@transaction.atomic
def withdraw_release(release: Release, reason: OperationError) -> None:
    """Take back exactly this release, which may not be followed, and say why. The next one of its balance is called."""
    Operation.objects.get_locked(release.operation_id)
    withdrawn, _ = Release.objects.filter(pk=release.pk, released_at=release.released_at).delete()
    if withdrawn:
        record_refusal(release.operation_id, OperationAction.SEND, None, reason)
        call_next(release.balance)


def record_blocker(operation_id: UUID, blocker: Blocker | None, **parameters: str) -> None:
    """Keep for people why the release of this operation has not left, and since when; None once nothing is in the way.

    The parameters are stored and shown, so they must hold no secret.
    """
    waiting = Release.objects.filter(pk=operation_id)
    if blocker is None:
        blocked = waiting.exclude(blocker=None)
        blocked.update(blocker=None, blocker_parameters={}, blocked_since=None)
        return
    since = Coalesce("blocked_since", clock.now())
    kept = {name: storable(text)[:250] for name, text in parameters.items()}
    waiting.update(blocker=blocker, blocker_parameters=kept, blocked_since=since)


def call_next(balance: str | None) -> None:
    """Ring for the release that leaves this balance next, once this transaction is committed."""
    waiting = turns.next_in_turn(balance, clock.now()) if balance else None
    if waiting is not None:
        queue.ring(SEND_TASK, waiting.pk)


def _release(
    operation_id: UUID, actor: User, digest: str, second_factor_at: datetime | None, token: SecretStr | None
) -> Operation:
    operation = Operation.objects.get_locked(operation_id)
    policy.check_may_release(actor, operation, digest=digest, second_factor_at=second_factor_at)
    _lapse(operation)
    if is_paused():
        raise SendingPausedError
    if Release.objects.filter(operation=operation).exists():
        raise AlreadyReleasedError
    if KINDS[operation.kind].needs_token and not (token and token.get_secret_value().strip()):
        raise TokenMissingError
    _new_release(operation, actor, token).save(force_insert=True)
    audit.record(Action.OPERATION_RELEASED, actor=actor, target=operation, digest=digest)
    transaction.on_commit(lambda: fault_points.reach("release.committed"))
    queue.ring(SEND_TASK, operation_id)
    return operation


def _new_release(operation: Operation, actor: User, token: SecretStr | None) -> Release:
    kind, payload = content_of(operation)
    debit, now = kind.debit(payload), clock.now()
    release = Release(
        operation=operation,
        released_by=actor,
        released_at=now,
        expires_at=now + timedelta(minutes=settings.RELEASE_LIFETIME_MINUTES),
        balance=debit.currency if debit else None,
    )
    if token is not None:
        release.expires_at = now + timedelta(seconds=settings.TOKEN_LIFETIME_SECONDS)
        release.sealed_token = vault.seal(token.get_secret_value().strip(), bound_to=release.bound_to)
    return release


def _lapse(operation: Operation) -> bool:
    lapsed, _ = Release.objects.filter(operation=operation, expires_at__lte=clock.now()).delete()
    if lapsed:
        audit.record(Action.OPERATION_RELEASE_LAPSED, actor=None, target=operation)
    return bool(lapsed)
