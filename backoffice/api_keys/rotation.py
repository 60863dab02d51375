"""The guided key rotation: create, test, switch, monitor, retire.

`RotationProgress` derives the present step from people's decisions and the rotation's operations. The
functions below it are the steps that are not operations: start, test, monitor, finish, abandon.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Prefetch
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.api_keys.key_list import own_key
from backoffice.api_keys.models import KeyTestResult, Rotation
from backoffice.api_keys.reveal import ApiKeyError, UnreadableSecretError, secret_of
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import credentials
from backoffice.core.credentials import KeyInUse
from backoffice.core.encryption import DecryptionError
from backoffice.core.models import GatewayKey
from backoffice.core.web.formatting import labelled, local_time, local_time_of_iso, stored_error
from backoffice.operations.kinds.api_keys.base import CREATING_KIND
from backoffice.operations.kinds.api_keys.switch import try_key
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.pages.operation.status import OperationStep as ShownStep
from backoffice.operations.states import NOT_EXECUTED, Status
from payments_gateway import GatewayError

SWITCH_KIND, INVALIDATE_KIND = "api_key_switch", "api_key_invalidate"
_KINDS = (CREATING_KIND, SWITCH_KIND, INVALIDATE_KIND)


class RotationOpenError(ApiKeyError):
    message = _("A rotation is already in progress. Finish or abandon it first.")


class WrongRotationStepError(ApiKeyError):
    message = _("The rotation is no longer at this step. Nothing was changed. Check the current step below.")


class RotationStep(IntEnum):
    """The steps in order; DONE when the rotation can be closed."""

    CREATE = 0
    TEST = 1
    SWITCH = 2
    MONITOR = 3
    RETIRE = 4
    DONE = 5


_LABELS = (
    pgettext_lazy("step of a key rotation", "Create"),
    pgettext_lazy("step of a key rotation", "Test"),
    pgettext_lazy("step of a key rotation", "Switch"),
    pgettext_lazy("step of a key rotation", "Monitor"),
    pgettext_lazy("step of a key rotation", "Retire"),
)


@dataclass(frozen=True)
class RotationProgress:
    """A rotation with the newest operation of each step, the key in use, and all keys stored here."""

    rotation: Rotation
    created: Operation | None
    switched: Operation | None
    retired: Operation | None
    key_in_use: KeyInUse | None
    keys: tuple[GatewayKey, ...]
    step: RotationStep

    @property
    def template(self) -> str:
        """The template of this step."""
        return f"api_keys/_step_{self.step.name.lower()}.html"

    @property
    def is_done(self) -> bool:
        """Whether all five steps are done."""
        return self.step == RotationStep.DONE

    @property
    def operations(self) -> list[Operation]:
        """The operations of the rotation so far, in order."""
        return [one for one in (self.created, self.switched, self.retired) if one is not None]

    @property
    def pending(self) -> Operation | None:
        """The operation of this step, if it was prepared and has not failed."""
        operation = self._operation_of_step
        return None if operation is None or operation.is_closed else operation

    @property
    def failed(self) -> Operation | None:
        """The failed operation of this step, so that another one is needed."""
        operation = self._operation_of_step
        return operation if operation is not None and operation.status in NOT_EXECUTED else None

    @property
    def _operation_of_step(self) -> Operation | None:
        by_step = {
            RotationStep.CREATE: self.created,
            RotationStep.SWITCH: self.switched,
            RotationStep.RETIRE: self.retired,
        }
        return by_step.get(self.step)

    @property
    def is_new_key_gone(self) -> bool:
        """Whether the new key was created but is neither stored nor in use, so that another one must be
        created.
        """
        return (
            self.step == RotationStep.CREATE
            and self.created is not None
            and self.created.status == Status.SUCCEEDED
        )

    @property
    def new_key(self) -> dict[str, str]:
        """Name, short hash, scope and expiry of the new key, for display."""
        result = _attempt_result(self.created)
        return {**result, "expires": local_time_of_iso(result.get("expires", ""))}

    @property
    def old_hash(self) -> str:
        """The short hash of the previous key."""
        return str(self.switched.payload.get("replaced_hash", "")) if self.switched else ""

    @property
    def is_new_key_in_use(self) -> bool:
        """Whether Countersign still uses the new key."""
        return (
            self.key_in_use is not None
            and self.created is not None
            and self.key_in_use.made_by == self.created.pk
        )

    @property
    def counted_key(self) -> GatewayKey | None:
        """The row of the key in use, with the calls counted since the switch."""
        return next(
            (key for key in self.keys if self.key_in_use is not None and key.pk == self.key_in_use.pk), None
        )

    @property
    def former_key(self) -> GatewayKey | None:
        """The old key, if it is still stored."""
        with_old_hash = (key for key in self.keys if key.short_hash == self.old_hash)
        return next((key for key in with_old_hash if key.state == GatewayKey.State.FORMER), None)

    @property
    def next_link(self) -> str:
        """URL of the form that prepares the operation of this step, with its values."""
        links = {
            RotationStep.CREATE: (
                CREATING_KIND,
                {"method": "named", "scope": "M", "expires_in": "90", "expires_unit": "days"},
            ),
            RotationStep.SWITCH: (SWITCH_KIND, {"target": f"made:{self.created.pk}" if self.created else ""}),
            RotationStep.RETIRE: (INVALIDATE_KIND, {"short_hash": self.old_hash}),
        }
        kind, initial = links[self.step]
        return _link(kind, {**initial, "rotation": str(self.rotation.pk)})

    @property
    def back_link(self) -> str:
        """URL of the form that prepares the switch back to the old key; empty if that is not stored."""
        former = self.former_key
        return _link(SWITCH_KIND, {"target": f"kept:{former.pk}"}) if former else ""

    @property
    def steps(self) -> list[ShownStep]:
        """The five steps with a short note each, for the stepper."""
        notes = self._notes()
        return [
            ShownStep(
                str(label),
                "done" if index < self.step else "now" if index == self.step else "todo",
                notes[index],
            )
            for index, label in enumerate(_LABELS)
        ]

    def _notes(self) -> tuple[str, ...]:
        rotation = self.rotation
        watched = local_time(rotation.watched_until) if rotation.watched_until else ""
        return (
            _note(self.created),
            local_time(rotation.tested_at)
            if rotation.is_passed and rotation.tested_at
            else gettext("not yet"),
            _note(self.switched),
            gettext("until {time}").format(time=watched) if watched else gettext("not yet"),
            _note(self.retired),
        )


def open_rotation() -> Rotation | None:
    """The open rotation, if any."""
    return Rotation.objects.select_related("started_by").filter(is_open=True).first()


def progress_of(rotation: Rotation) -> RotationProgress:
    """The present progress. Reads our own database only."""
    operations = _operations_of(rotation)
    created, switched, retired = (_newest(operations, kind) for kind in _KINDS)
    step = _current_step(rotation, created, switched, retired, timezone.now())
    keys = tuple(GatewayKey.objects.all())
    return RotationProgress(rotation, created, switched, retired, own_key(), keys, step)


def _current_step(
    rotation: Rotation,
    created: Operation | None,
    switched: Operation | None,
    retired: Operation | None,
    now: datetime,
) -> RotationStep:
    if _has_succeeded(switched):
        if rotation.watched_until is None or now < rotation.watched_until:
            return RotationStep.MONITOR
        return RotationStep.DONE if _has_succeeded(retired) else RotationStep.RETIRE
    if created is None or not _has_succeeded(created) or not hasattr(created, "secret"):
        return RotationStep.CREATE
    is_tested = rotation.is_passed and rotation.tested_operation == created.pk
    return RotationStep.SWITCH if is_tested else RotationStep.TEST


def _operations_of(rotation: Rotation) -> list[Operation]:
    """All operations prepared for the rotation, newest first."""
    attempts = Prefetch("attempts", Attempt.objects.order_by("number"))
    operations = Operation.objects.filter(
        kind__in=_KINDS, prepared_at__gte=rotation.started_at, payload__rotation=str(rotation.pk)
    )
    return list(
        operations.select_related("preparer", "secret").prefetch_related(attempts).order_by("-prepared_at")
    )


def _newest(operations: list[Operation], kind: str) -> Operation | None:
    """The newest operation of this kind; a successful one takes precedence."""
    operations_of_kind = [one for one in operations if one.kind == kind]
    succeeded = (one for one in operations_of_kind if _has_succeeded(one))
    return next(succeeded, operations_of_kind[0] if operations_of_kind else None)


def _has_succeeded(operation: Operation | None) -> bool:
    return operation is not None and operation.status == Status.SUCCEEDED


def _attempt_result(operation: Operation | None) -> dict[str, str]:
    attempts = list(operation.attempts.all()) if operation else []
    return next((attempt.result for attempt in reversed(attempts) if attempt.result), {})


def _note(operation: Operation | None) -> str:
    if operation is None:
        return gettext("not yet")
    return labelled(operation.reference, operation.get_status_display().lower())


def _link(kind: str, initial: dict[str, str]) -> str:
    return f"{reverse('operations:prepare', args=[kind])}?{urlencode(initial)}"


MAX_ERROR = 350


def start_rotation(*, actor: User) -> Rotation:
    """Start a rotation, which stays open until it is finished or abandoned. Raises RotationOpenError."""
    try:
        with transaction.atomic():
            rotation = Rotation.objects.create(started_by=actor, started_at=timezone.now())
            audit.record(Action.ROTATION_STARTED, actor=actor, target=rotation)
    except IntegrityError as exc:
        raise RotationOpenError from exc
    return rotation


def verify_new_key(rotation_id: UUID, *, actor: User) -> Rotation:
    """Read the balances with the new key (GET /balance) and store the result. Changes nothing at the
    provider.

    The call is made outside a transaction. Raises WrongRotationStepError, UnreadableSecretError.
    """
    progress = _progress_at(rotation_id, RotationStep.TEST, RotationStep.SWITCH)
    made_by = progress.created.pk if progress.created else None
    secret = secret_of(made_by) if made_by else None
    if secret is None:
        raise WrongRotationStepError
    try:
        key = SecretStr(secret.decrypted())
    except DecryptionError as exc:
        raise UnreadableSecretError from exc
    result, parameters = _test_outcome(key)
    with transaction.atomic():
        rotation = _locked(rotation_id)
        rotation.tested_operation, rotation.tested_at = made_by, timezone.now()
        rotation.test_result, rotation.test_parameters = result, parameters
        rotation.save()
        audit.record(
            Action.ROTATION_TESTED,
            actor=actor,
            target=rotation,
            passed=rotation.is_passed,
            **{name: value for name, value in parameters.items() if name in {"count", "currencies", "error"}},
        )
    return rotation


@transaction.atomic
def start_monitoring(rotation_id: UUID, *, actor: User, duration: timedelta) -> Rotation:
    """Monitor the new key for this long before the old one may be invalidated.

    Raises WrongRotationStepError.
    """
    _locked(rotation_id)
    rotation = _progress_at(rotation_id, RotationStep.MONITOR, RotationStep.RETIRE).rotation
    rotation.watched_until = timezone.now() + duration
    rotation.save()
    audit.record(
        Action.ROTATION_WATCH_STARTED,
        actor=actor,
        target=rotation,
        minutes=int(duration.total_seconds()) // 60,
    )
    return rotation


@transaction.atomic
def finish_rotation(rotation_id: UUID, *, actor: User) -> Rotation:
    """Close a rotation whose old key is invalidated, and delete our copy of it. Raises
    WrongRotationStepError.
    """
    _locked(rotation_id)
    progress = _progress_at(rotation_id, RotationStep.DONE)
    if progress.former_key is not None:
        credentials.delete_former_key(progress.former_key.pk)
    return _close(progress.rotation, actor, Action.ROTATION_FINISHED, is_finished=True)


@transaction.atomic
def abandon_rotation(rotation_id: UUID, *, actor: User) -> Rotation:
    """Close the rotation. Keys stay as they are, and pending operations remain pending.

    Raises WrongRotationStepError.
    """
    return _close(_locked(rotation_id), actor, Action.ROTATION_ABANDONED, is_finished=False)


def _close(rotation: Rotation, actor: User, action: Action, *, is_finished: bool) -> Rotation:
    rotation.is_open, rotation.ended_at, rotation.is_finished = False, timezone.now(), is_finished
    rotation.save()
    credentials.stop_counting_calls()
    audit.record(action, actor=actor, target=rotation)
    return rotation


def _locked(rotation_id: UUID) -> Rotation:
    rotation = Rotation.objects.select_for_update().filter(pk=rotation_id, is_open=True).first()
    if rotation is None:
        raise WrongRotationStepError(gettext("This rotation is closed. Nothing was changed."))
    return rotation


def _progress_at(rotation_id: UUID, *steps: RotationStep) -> RotationProgress:
    rotation = Rotation.objects.filter(pk=rotation_id, is_open=True).first()
    progress = progress_of(rotation) if rotation else None
    if progress is None or progress.step not in steps:
        raise WrongRotationStepError
    return progress


def _test_outcome(key: SecretStr) -> tuple[KeyTestResult, dict[str, Any]]:
    try:
        currencies = try_key(key)
    except GatewayError as exc:
        return KeyTestResult.FAILED, dict(stored_error(exc, limit=MAX_ERROR))
    return KeyTestResult.PASSED, {"count": len(currencies), "currencies": ", ".join(currencies)}
