"""Why an operation waits: the levels done and open, who can approve now, and for everybody else why not."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils.translation import gettext

from backoffice.accounts.models import User
from backoffice.core.web.formatting import exact_time
from backoffice.operations import policy
from backoffice.operations.allow_list import held_until
from backoffice.operations.errors import ContentUnreadableError, OperationError
from backoffice.operations.kinds.base import LocalKind
from backoffice.operations.kinds.registry import KINDS, approval_permission_for, read_content
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status
from backoffice.policies.document import Levels
from backoffice.policies.evaluator import Hindrance, LevelProgress, Person, Progress, hindrance, progress
from backoffice.policies.people import read_people
from backoffice.policies.sentences import level_text

MOST_NAMES = 20


@dataclass(frozen=True)
class WaitingLevel:
    """A level in words, who has approved for it, and how many are missing."""

    text: str
    given: Sequence[str]
    missing: int


@dataclass(frozen=True)
class WaitingReason:
    """Why some people cannot approve now: the reason, and their names, at most `MOST_NAMES`."""

    reason: str
    names: Sequence[str]
    more: int


@dataclass(frozen=True)
class Waiting:
    """What an operation waits for. `refusal` is why nobody can approve it at all; usually empty.

    `cooling_until` is when the time ends that its recipient cannot be paid before, if that holds it.
    """

    levels: Sequence[WaitingLevel]
    open_level: str
    missing: int
    able: Sequence[Person]
    reasons: Sequence[WaitingReason]
    refusal: str = ""
    is_tightened: bool = False
    cooling_until: datetime | None = None

    @property
    def is_held(self) -> bool:
        """Whether only time lets it be sent, however many approve it."""
        return self.cooling_until is not None and not settings.RECIPIENT_COOLING_EXTRA_APPROVAL

    @property
    def people_missing(self) -> int:
        """How many more people than those in `able` the open level needs."""
        return max(next((level.missing for level in self.levels if level.missing), 0) - len(self.able), 0)

    def may_approve(self, person: User) -> bool:
        return any(one.id == person.pk for one in self.able)


def waiting_of(operation: Operation) -> Waiting | None:
    """What a pending operation waits for, or an approved one held by a tightened policy or by cooling; else None."""
    is_sent = not isinstance(KINDS.get(operation.kind), LocalKind)
    if operation.status != Status.PENDING and not (operation.status == Status.APPROVED and is_sent):
        return None
    try:
        levels, until = policy.required_levels(operation), held_until(operation)
    except OperationError as exc:
        return Waiting([], "", 0, [], [], refusal=str(exc))
    if operation.status == Status.APPROVED and levels == operation.required_levels:
        return Waiting([], "", 0, [], [], cooling_until=until) if until else None
    return _described(operation, levels, until)


def _described(operation: Operation, levels: Levels, until: datetime | None) -> Waiting | None:
    asked = [level.of for level in levels]
    people = {one.id: one for one in read_people(approval_permission_for(operation.kind), asked=asked)}
    approvals = list(operation.approvals.all())
    found = progress(
        levels, [people[one.approver_id] for one in approvals], preparer_id=operation.preparer_id
    )
    if operation.status == Status.APPROVED and found.is_complete:
        return None
    shown = [
        WaitingLevel(level_text(one.level), [people[pk].name for pk in one.given], one.missing)
        for one in found.levels
    ]
    hindered, able = _sorted_people(operation, found, list(people.values()))
    return Waiting(
        shown,
        level_text(found.open.level) if found.open else "",
        found.missing,
        able,
        hindered,
        is_tightened=levels != operation.required_levels,
        cooling_until=until,
    )


def _sorted_people(
    operation: Operation, found: Progress, people: Sequence[Person]
) -> tuple[list[WaitingReason], list[Person]]:
    if found.open is None:
        return [], []
    approved = {one.approver_id for one in operation.approvals.all()}
    reasons: dict[Hindrance, list[str]] = {}
    able = []
    affected = _affected_people(operation)
    for person in people:
        reason = _reason(operation, found.open, person, approved, affected)
        if reason is None:
            able.append(person)
        else:
            reasons.setdefault(reason, []).append(person.name)
    order = [reason for reason in Hindrance if reason in reasons]
    return [
        WaitingReason(
            str(reason.label), reasons[reason][:MOST_NAMES], max(len(reasons[reason]) - MOST_NAMES, 0)
        )
        for reason in order
    ], able


def _reason(
    operation: Operation, level: LevelProgress, person: Person, approved: set[int], affected: frozenset[int]
) -> Hindrance | None:
    reason = hindrance(person, level.level, preparer_id=operation.preparer_id, approved=approved)
    return Hindrance.AFFECTED if reason is None and person.id in affected else reason


def _affected_people(operation: Operation) -> frozenset[int]:
    with suppress(ContentUnreadableError):
        kind, payload = read_content(operation)
        return kind.affected_people(payload)
    return frozenset()


def waiting_text(waiting: Waiting) -> str:
    """Why an approved operation is not sent yet."""
    if waiting.refusal:
        return waiting.refusal
    if waiting.cooling_until and not waiting.open_level:
        text = gettext("The recipient was added or changed recently, and can be paid from {time}.")
        return text.format(time=exact_time(waiting.cooling_until))
    if waiting.cooling_until:
        text = gettext(
            "The recipient was added or changed recently, and can be paid from {time}. With one more approval "
            "({level}) it can be sent at once."
        )
        return text.format(time=exact_time(waiting.cooling_until), level=waiting.open_level)
    return gettext("The approval policies were tightened after the approval: it needs {level}.").format(
        level=waiting.open_level
    )
