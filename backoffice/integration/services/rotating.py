"""The steps of a rotation that are no operations: start, test, watch, close. What is sensitive is an operation."""

from datetime import timedelta
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import credentials
from backoffice.core.vault import VaultError
from backoffice.integration.errors import RotationOpenError, UnreadableSecretError, WrongStepError
from backoffice.integration.models import Rotation
from backoffice.integration.progress import Progress, Step, progress_of
from backoffice.integration.selectors import secret_of
from backoffice.operations.kinds.api_key_switch import try_key
from payments_gateway import GatewayError

LONGEST = 400


def start_rotation(*, actor: User) -> Rotation:
    """Begin a rotation; the task is kept until it is finished or abandoned. Raises RotationOpenError."""
    try:
        with transaction.atomic():
            rotation = Rotation.objects.create(started_by=actor, started_at=timezone.now())
            audit.record(Action.ROTATION_STARTED, actor=actor, target=rotation)
    except IntegrityError as exc:
        raise RotationOpenError from exc
    return rotation


def try_new_key(rotation_id: UUID, *, actor: User) -> Rotation:
    """Read the balances with the new key (GET /balance) and keep what came of it. Changes nothing at the service.

    The call is made with no transaction open. Raises WrongStepError, UnreadableSecretError.
    """
    progress = _at(rotation_id, Step.TEST, Step.SWITCH)
    made_by = progress.created.pk if progress.created else None
    secret = secret_of(made_by) if made_by else None
    if secret is None:
        raise WrongStepError
    try:
        key = SecretStr(secret.unsealed())
    except VaultError as exc:
        raise UnreadableSecretError from exc
    is_passed, words = _tried(key)
    with transaction.atomic():
        rotation = _locked(rotation_id)
        rotation.tested_operation, rotation.tested_at = made_by, timezone.now()
        rotation.is_passed, rotation.test_result = is_passed, words[:LONGEST]
        rotation.save()
        audit.record(
            Action.ROTATION_TESTED,
            actor=actor,
            target=rotation,
            passed=is_passed,
            answer=rotation.test_result,
        )
    return rotation


@transaction.atomic
def begin_watch(rotation_id: UUID, *, actor: User, lasting: timedelta) -> Rotation:
    """Let the new key be watched so long from now on, before the old one may end. Raises WrongStepError."""
    _locked(rotation_id)
    rotation = _at(rotation_id, Step.WATCH, Step.RETIRE).rotation
    rotation.watched_until = timezone.now() + lasting
    rotation.save()
    audit.record(
        Action.ROTATION_WATCHED, actor=actor, target=rotation, minutes=int(lasting.total_seconds()) // 60
    )
    return rotation


@transaction.atomic
def finish_rotation(rotation_id: UUID, *, actor: User) -> Rotation:
    """Close a rotation whose old key has ended; the sealed copy of that is destroyed. Raises WrongStepError."""
    _locked(rotation_id)
    progress = _at(rotation_id, Step.DONE)
    if progress.former is not None:
        credentials.drop_former_key(progress.former.pk)
    return _close(progress.rotation, actor, Action.ROTATION_FINISHED, is_finished=True)


@transaction.atomic
def abandon_rotation(rotation_id: UUID, *, actor: User) -> Rotation:
    """Close a rotation where it stands: keys stay as they are, and what waits to be countersigned still does."""
    return _close(_locked(rotation_id), actor, Action.ROTATION_ABANDONED, is_finished=False)


def _close(rotation: Rotation, actor: User, action: Action, *, is_finished: bool) -> Rotation:
    rotation.is_open, rotation.ended_at, rotation.is_finished = False, timezone.now(), is_finished
    rotation.save()
    credentials.stop_counting()
    audit.record(action, actor=actor, target=rotation)
    return rotation


def _locked(rotation_id: UUID) -> Rotation:
    rotation = Rotation.objects.select_for_update().filter(pk=rotation_id, is_open=True).first()
    if rotation is None:
        raise WrongStepError("This rotation is closed. Nothing was changed.")
    return rotation


def _at(rotation_id: UUID, *steps: Step) -> Progress:
    rotation = Rotation.objects.filter(pk=rotation_id, is_open=True).first()
    progress = progress_of(rotation) if rotation else None
    if progress is None or progress.step not in steps:
        raise WrongStepError
    return progress


def _tried(key: SecretStr) -> tuple[bool, str]:
    try:
        currencies = try_key(key)
    except GatewayError as exc:
        return False, f"GET /balance with the new key did not succeed: {exc}"
    listed = ", ".join(currencies)
    return True, f"GET /balance with the new key succeeded: {len(currencies)} balances were read ({listed})."
