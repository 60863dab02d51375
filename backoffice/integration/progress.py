"""Where a rotation stands: five steps, told from what people decided and from its operations as they are now."""

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from urllib.parse import urlencode

from django.db.models import Prefetch
from django.urls import reverse
from django.utils import timezone

from backoffice.core.credentials import KeyInUse
from backoffice.core.display import kept_time, local_time
from backoffice.core.models import GatewayKey
from backoffice.integration.models import Rotation
from backoffice.integration.selectors import own_key
from backoffice.operations.kinds.listed_keys import MADE_BY
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.progress import Step as ShownStep
from backoffice.operations.states import CAME_TO_NOTHING, Status

SWITCHED_BY, RETIRED_BY = "api_key_switch", "api_key_invalidate"
_KINDS = (MADE_BY, SWITCHED_BY, RETIRED_BY)


class Step(IntEnum):
    """The steps in their order; DONE when nothing is left but to close the task."""

    CREATE = 0
    TEST = 1
    SWITCH = 2
    WATCH = 3
    RETIRE = 4
    DONE = 5


_LABELS = ("Create", "Test", "Switch", "Watch", "Retire")


@dataclass(frozen=True)
class Progress:
    """A rotation with the newest operation of each step, the key in use, and all keys that are sealed here."""

    rotation: Rotation
    created: Operation | None
    switched: Operation | None
    retired: Operation | None
    own: KeyInUse | None
    keys: tuple[GatewayKey, ...]
    step: Step

    @property
    def template(self) -> str:
        """The template that says what this step does."""
        return f"integration/_step_{self.step.name.lower()}.html"

    @property
    def is_done(self) -> bool:
        """Whether all five steps are done, so that it can only be finished."""
        return self.step == Step.DONE

    @property
    def operations(self) -> list[Operation]:
        """The operations of the rotation so far, in their order."""
        return [one for one in (self.created, self.switched, self.retired) if one is not None]

    @property
    def pending(self) -> Operation | None:
        """The operation of this step, if it was prepared and has not come to nothing."""
        by_step = {Step.CREATE: self.created, Step.SWITCH: self.switched, Step.RETIRE: self.retired}
        operation = by_step.get(self.step)
        is_over = operation is None or operation.is_closed
        return None if is_over else operation

    @property
    def failed(self) -> Operation | None:
        """The operation of this step that came to nothing, so that another is needed."""
        by_step = {Step.CREATE: self.created, Step.SWITCH: self.switched, Step.RETIRE: self.retired}
        operation = by_step.get(self.step)
        return operation if operation is not None and operation.status in CAME_TO_NOTHING else None

    @property
    def is_key_gone(self) -> bool:
        """Whether the new key was made, but is neither kept nor in use: a new one has to be made."""
        return (
            self.step == Step.CREATE and self.created is not None and self.created.status == Status.SUCCEEDED
        )

    @property
    def new_key(self) -> dict[str, str]:
        """Name, short hash, scope and end of the new key, for people to read."""
        told = _result(self.created)
        return {**told, "expires": kept_time(told.get("expires", ""))}

    @property
    def old_hash(self) -> str:
        """The short hash of the key that was replaced."""
        return str(self.switched.payload.get("replaced_hash", "")) if self.switched else ""

    @property
    def is_new_key_in_use(self) -> bool:
        """Whether Countersign still calls with the new key."""
        return self.own is not None and self.created is not None and self.own.made_by == self.created.pk

    @property
    def counted(self) -> GatewayKey | None:
        """The row of the key in use, with the calls counted since the switch to it."""
        return next((key for key in self.keys if self.own is not None and key.pk == self.own.pk), None)

    @property
    def former(self) -> GatewayKey | None:
        """The old key, as long as it is kept here."""
        of_old = (key for key in self.keys if key.short_hash == self.old_hash)
        return next((key for key in of_old if key.state == GatewayKey.State.FORMER), None)

    @property
    def next_link(self) -> str:
        """The form that prepares the operation of this step, filled in."""
        links = {
            Step.CREATE: (
                MADE_BY,
                {"way": "named", "scope": "M", "expires_in": "90", "expires_unit": "days"},
            ),
            Step.SWITCH: (SWITCHED_BY, {"target": f"made:{self.created.pk}" if self.created else ""}),
            Step.RETIRE: (RETIRED_BY, {"short_hash": self.old_hash}),
        }
        kind, filled_in = links[self.step]
        return _link(kind, {**filled_in, "rotation": str(self.rotation.pk)})

    @property
    def back_link(self) -> str:
        """The form that prepares the switch back to the old key; empty if that is not kept."""
        former = self.former
        return _link(SWITCHED_BY, {"target": f"kept:{former.pk}"}) if former else ""

    @property
    def steps(self) -> list[ShownStep]:
        """The five steps with a short note each, for the stepper."""
        notes = self._notes()
        return [
            ShownStep(
                label,
                "done" if place < self.step else "now" if place == self.step else "todo",
                notes[place],
            )
            for place, label in enumerate(_LABELS)
        ]

    def _notes(self) -> tuple[str, ...]:
        rotation = self.rotation
        watched = local_time(rotation.watched_until) if rotation.watched_until else ""
        return (
            _note(self.created),
            local_time(rotation.tested_at) if rotation.is_passed and rotation.tested_at else "not yet",
            _note(self.switched),
            f"until {watched}" if watched else "not yet",
            _note(self.retired),
        )


def open_rotation() -> Rotation | None:
    """The rotation that is under way."""
    return Rotation.objects.select_related("started_by").filter(is_open=True).first()


def progress_of(rotation: Rotation) -> Progress:
    """Where it stands now. Reads our own database only."""
    found = _operations_of(rotation)
    created, switched, retired = (_newest(found, kind) for kind in _KINDS)
    step = _step(rotation, created, switched, retired, timezone.now())
    keys = tuple(GatewayKey.objects.all())
    return Progress(rotation, created, switched, retired, own_key(), keys, step)


def _step(
    rotation: Rotation,
    created: Operation | None,
    switched: Operation | None,
    retired: Operation | None,
    now: datetime,
) -> Step:
    if _has_succeeded(switched):
        if rotation.watched_until is None or now < rotation.watched_until:
            return Step.WATCH
        return Step.DONE if _has_succeeded(retired) else Step.RETIRE
    if created is None or not _has_succeeded(created) or not hasattr(created, "secret"):
        return Step.CREATE
    is_tested = rotation.is_passed and rotation.tested_operation == created.pk
    return Step.SWITCH if is_tested else Step.TEST


def _operations_of(rotation: Rotation) -> list[Operation]:
    """Everything that was prepared as a step of the rotation, the newest first."""
    attempts = Prefetch("attempts", Attempt.objects.order_by("number"))
    found = Operation.objects.filter(
        kind__in=_KINDS, prepared_at__gte=rotation.started_at, payload__rotation=str(rotation.pk)
    )
    return list(found.select_related("maker", "secret").prefetch_related(attempts).order_by("-prepared_at"))


def _newest(found: list[Operation], kind: str) -> Operation | None:
    """The newest one of this kind; one that succeeded comes first."""
    of_kind = [one for one in found if one.kind == kind]
    succeeded = (one for one in of_kind if _has_succeeded(one))
    return next(succeeded, of_kind[0] if of_kind else None)


def _has_succeeded(operation: Operation | None) -> bool:
    return operation is not None and operation.status == Status.SUCCEEDED


def _result(operation: Operation | None) -> dict[str, str]:
    attempts = list(operation.attempts.all()) if operation else []
    return next((attempt.result for attempt in reversed(attempts) if attempt.result), {})


def _note(operation: Operation | None) -> str:
    if operation is None:
        return "not yet"
    return f"{operation.reference}: {operation.get_status_display().lower()}"


def _link(kind: str, filled_in: dict[str, str]) -> str:
    return f"{reverse('operations:prepare', args=[kind])}?{urlencode(filled_in)}"
