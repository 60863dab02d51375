"""Shows a secret once, to the person who had it sent, and destroys it in the same commit."""

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar
from uuid import UUID

from django.db import transaction
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.accounts.policy import is_fresh
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core.vault import VaultError
from backoffice.integration.errors import (
    IntegrationError,
    KeptForRotationError,
    NothingToShowError,
    NotYoursError,
    StaleSecondFactorError,
    UnreadableSecretError,
)
from backoffice.integration.models import Rotation
from backoffice.operations.models import Operation, Secret

Rest = ParamSpec("Rest")
Shown = TypeVar("Shown")


def refusals_are_audited(
    service: Callable[Concatenate[UUID, Rest], Shown],
) -> Callable[Concatenate[UUID, Rest], Shown]:
    """Record a refused look in a transaction of its own, since the refused one is rolled back."""

    @wraps(service)
    def audited(operation_id: UUID, /, *args: Rest.args, **kwargs: Rest.kwargs) -> Shown:
        try:
            return service(operation_id, *args, **kwargs)
        except IntegrationError as exc:
            _record_refusal(operation_id, kwargs.get("actor"), exc)
            raise

    return audited


@refusals_are_audited
@transaction.atomic
def check_may_be_shown(operation_id: UUID, *, actor: User) -> Secret:
    """The secret that this person may have shown; nothing is shown yet.

    Raises NothingToShowError, NotYoursError, KeptForRotationError.
    """
    return _theirs(operation_id, actor)


@refusals_are_audited
@transaction.atomic(durable=True)
def reveal_secret(operation_id: UUID, *, actor: User, second_factor_at: datetime | None) -> SecretStr:
    """Hand out the secret that an operation made, and destroy it: only its short hash remains, in the operation.

    The entry in the log and the deletion are on disk before the secret leaves this function. Raises as
    `check_may_be_shown`, StaleSecondFactorError, UnreadableSecretError.
    """
    secret = _theirs(operation_id, actor)
    if not is_fresh(second_factor_at):
        raise StaleSecondFactorError
    try:
        shown = SecretStr(secret.unsealed())
    except VaultError as exc:
        raise UnreadableSecretError from exc
    deleted, _ = Secret.objects.filter(pk=secret.pk).delete()
    if deleted != 1:
        raise NothingToShowError
    audit.record(Action.SECRET_REVEALED, actor=actor, target=secret.operation)
    return shown


def _theirs(operation_id: UUID, actor: User) -> Secret:
    secret = (
        Secret.objects.select_for_update(of=("self",))
        .select_related("operation")
        .filter(operation=operation_id)
        .first()
    )
    if secret is None:
        raise NothingToShowError
    if secret.belongs_to_id != actor.pk:
        raise NotYoursError
    if _is_of_an_open_rotation(secret.operation):
        raise KeptForRotationError
    return secret


def _is_of_an_open_rotation(operation: Operation) -> bool:
    rotation = operation.payload.get("rotation")
    return bool(rotation) and Rotation.objects.filter(pk=rotation, is_open=True).exists()


@transaction.atomic
def _record_refusal(operation_id: UUID, actor: object, reason: IntegrationError) -> None:
    operation = Operation.objects.filter(pk=operation_id).first()
    audit.record(
        Action.SECRET_REFUSED,
        actor=actor if isinstance(actor, User) else None,
        target=operation or str(operation_id),
        reason=str(reason),
    )
