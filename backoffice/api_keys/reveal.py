"""Show a new key once, to the person who released its operation, and delete it in the same commit."""

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.accounts.second_factor import is_second_factor_fresh
from backoffice.api_keys.models import Rotation
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core.encryption import DecryptionError
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.secret import Secret

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class ApiKeyError(Exception):
    """The request was refused and nothing was changed. The message says why and what to do."""

    message: "StrOrPromise" = _("This could not be done. Nothing was changed.")

    def __init__(self, message: "StrOrPromise | None" = None) -> None:
        self.message = message or self.message
        super().__init__(str(self.message))


class NotSenderOfKeyError(ApiKeyError):
    message = _(
        "Only the person who sent the operation can view the key. Nothing was shown, and the refusal was recorded."
    )


class SecretGoneError(ApiKeyError):
    message = _("The key can no longer be viewed: it was already viewed, or Countersign was switched to it.")


class ReservedForRotationError(ApiKeyError):
    message = _(
        "This key is reserved for Countersign by the guided rotation. Nothing was shown. "
        "To use it elsewhere, abandon the rotation first."
    )


class UnreadableSecretError(ApiKeyError):
    message = _(
        "The key cannot be decrypted: its encryption key is not configured. Nothing was shown. "
        "Contact the operator."
    )


class StaleSecondFactorError(ApiKeyError):
    message = _(
        "Your last authenticator code is more than five minutes old. Nothing was shown. Enter a new one."
    )


def secrets_waiting() -> list[Secret]:
    """Secrets created by operations that have been neither shown nor put into use, newest first."""
    return list(
        Secret.objects.select_related("operation", "viewer")
        .defer("encrypted_value")
        .order_by("-encrypted_at")
    )


def secret_of(operation_id: UUID) -> Secret | None:
    """The secret that an operation created, if it is still stored."""
    return Secret.objects.select_related("operation", "viewer").filter(operation=operation_id).first()


Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


def _audit_refusals(
    service: Callable[Concatenate[UUID, Arguments], Returned],
) -> Callable[Concatenate[UUID, Arguments], Returned]:
    """Record a refused request in a transaction of its own, since that of the service is rolled back."""

    @wraps(service)
    def audited(operation_id: UUID, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        try:
            return service(operation_id, *args, **kwargs)
        except ApiKeyError as exc:
            _record_refusal(operation_id, kwargs.get("actor"), exc)
            raise

    return audited


@transaction.atomic
def _record_refusal(operation_id: UUID, actor: object, reason: ApiKeyError) -> None:
    operation = Operation.objects.filter(pk=operation_id).first()
    audit.record(
        Action.SECRET_REFUSED,
        actor=actor if isinstance(actor, User) else None,
        target=operation or str(operation_id),
        reason=reason.message,
    )


@_audit_refusals
@transaction.atomic
def check_may_reveal(operation_id: UUID, *, actor: User) -> Secret:
    """The secret, if this person may see it; nothing is revealed yet.

    Raises SecretGoneError, NotSenderOfKeyError, ReservedForRotationError.
    """
    return _secret_for(operation_id, actor)


@_audit_refusals
@transaction.atomic(durable=True)
def reveal_secret(operation_id: UUID, *, actor: User, second_factor_at: datetime | None) -> SecretStr:
    """Return the secret that an operation created, and delete it: only its short hash remains, in the
    operation.

    The audit entry and the deletion are committed before the secret is returned. Raises as
    `check_may_reveal`, StaleSecondFactorError, UnreadableSecretError.
    """
    secret = _secret_for(operation_id, actor)
    if not is_second_factor_fresh(second_factor_at):
        raise StaleSecondFactorError
    try:
        shown = SecretStr(secret.decrypted())
    except DecryptionError as exc:
        raise UnreadableSecretError from exc
    deleted, _ = Secret.objects.filter(pk=secret.pk).delete()
    if deleted != 1:
        raise SecretGoneError
    audit.record(Action.SECRET_REVEALED, actor=actor, target=secret.operation)
    return shown


def _secret_for(operation_id: UUID, actor: User) -> Secret:
    secret = (
        Secret.objects.select_for_update(of=("self",))
        .select_related("operation")
        .filter(operation=operation_id)
        .first()
    )
    if secret is None:
        raise SecretGoneError
    if secret.viewer_id != actor.pk:
        raise NotSenderOfKeyError
    if _is_reserved_for_rotation(secret.operation):
        raise ReservedForRotationError
    return secret


def _is_reserved_for_rotation(operation: Operation) -> bool:
    rotation = operation.payload.get("rotation")
    return bool(rotation) and Rotation.objects.filter(pk=rotation, is_open=True).exists()
