"""Escalate operations: to the next level after too long a wait, to administrators if there are too few approvers.

A job of the sweeper; each level of an operation is escalated once. The audit entry names the people, who are notified.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import translation

from backoffice.accounts.roles import users_with_permission
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry, target_uuid
from backoffice.core import clock
from backoffice.core.leases import acquire_lease
from backoffice.operations.approval.approvers import Approvers, answer
from backoffice.operations.approval.requirements import levels_of_many
from backoffice.operations.approval.waiting import approved_that_may_lack_approvals
from backoffice.operations.kinds.registry import approval_permission_for
from backoffice.operations.models.operations import Operation
from backoffice.operations.permissions import PROPOSE
from backoffice.operations.selectors import IS_OPEN
from backoffice.operations.states import Status
from backoffice.policies.evaluator import is_among
from backoffice.policies.people import Staff, read_staff
from backoffice.policies.sentences import level_text, people_text

INTERVAL = timedelta(minutes=1)
ADMINISTRATORS = "administrators"
"""To whom an operation is escalated if no level follows, as the audit entry names them."""
_ACTIONS = (Action.OPERATION_WAITING_ESCALATED, Action.OPERATION_WITHOUT_APPROVERS)


@dataclass(frozen=True)
class Escalation:
    """One entry to record: the open level in words, and who is notified. `to` is empty for administrators."""

    operation: Operation
    action: Action
    place: int  # of the open level, from 1
    level: str
    to: str
    people: Sequence[int]


def escalate_due() -> int:
    """Record what is due, every minute; returns how many. A level of an operation is escalated once."""
    if not acquire_lease("escalation", INTERVAL):
        return 0
    operations = list(_waiting())
    if not operations:
        return 0
    known = _recorded(operations)
    with translation.override(settings.LANGUAGE_CODE):
        due = [
            one
            for one in _found(operations, clock.now())
            if (str(one.operation.pk), one.action, one.place) not in known
        ]
    for one in due:
        with transaction.atomic():
            audit.record(
                one.action,
                actor=None,
                target=one.operation,
                place=one.place,
                level=one.level,
                to=one.to or ADMINISTRATORS,
                notified=list(one.people),
            )
    return len(due)


def _recorded(operations: Iterable[Operation]) -> set[tuple[str, str, object]]:
    entries = Entry.objects.filter(
        action__in=_ACTIONS,
        target_type=Operation._meta.label_lower,
        target_id__in=[str(operation.pk) for operation in operations],
    )
    found = entries.only("target_id", "action", "detail")
    return {
        (entry.target_id, entry.action, place)
        for entry in found
        if isinstance(place := entry.detail_of("place"), Hashable)
    }


def outdated(positions: Collection[int]) -> set[int]:
    """Those of these entries of escalations whose operation does not wait at that level any more, or has enough people
    for it again.
    """
    entries = Entry.objects.filter(position__in=positions, action__in=_ACTIONS)
    recorded = list(entries.values_list("position", "target_id", "action", "detail__place"))
    in_time = _waiting().filter(expires_at__gt=clock.now())
    operations = list(
        in_time.filter(pk__in={pk for _, target, _, _ in recorded if (pk := target_uuid(target))})
    )
    evaluated = (
        {str(operation.pk): found for operation, _, found in answers(operations)} if operations else {}
    )
    # One that cannot be evaluated still waits.
    waiting = {str(operation.pk) for operation in operations} - evaluated.keys()
    return {
        position
        for position, target, action, place in recorded
        if target not in waiting and not _applies(evaluated.get(target), Action(action), place)
    }


def _applies(found: Approvers | None, action: Action, place: object) -> bool:
    if found is None or found.progress.open is None or _place(found) != place:
        return False
    return action != Action.OPERATION_WITHOUT_APPROVERS or bool(found.missing_people)


def _waiting() -> QuerySet[Operation]:
    """What waits for an approval; of what is approved, all that may lack one since a rule or a right changed."""
    waits = Q(status=Status.PENDING) | approved_that_may_lack_approvals()
    return with_approvals(Operation.objects.filter(IS_OPEN, waits))


def with_approvals(operations: QuerySet[Operation]) -> QuerySet[Operation]:
    """These operations with the related rows that `answers` needs."""
    found = operations.select_related("preparer")
    return found.prefetch_related("approvals__delegation", "approvals__approver", "approvals__on_behalf_of")


def answers(
    operations: Sequence[Operation], staff: Mapping[str, Staff] | None = None
) -> Iterator[tuple[Operation, Staff, Approvers]]:
    """Each operation that can be approved, the people who approve its kind, and who can approve it. In few queries.

    Needs `with_approvals`. `staff` are the people by permission, if they were read before.
    """
    levels = levels_of_many(operations)
    if staff is None:
        staff = {name: read_staff(name) for name in {approval_permission_for(one.kind) for one in operations}}
    for operation in operations:
        if operation.pk in levels:
            people = staff[approval_permission_for(operation.kind)]
            approvals = list(operation.approvals.all())
            yield operation, people, answer(operation, levels[operation.pk], people, approvals)


def _place(found: Approvers) -> int:
    """The place of the open level, from 1; 0 if none is open."""
    return 0 if found.progress.open is None else found.progress.levels.index(found.progress.open) + 1


def _found(operations: Sequence[Operation], now: datetime) -> Iterator[Escalation]:
    administrators = sorted(users_with_permission(PROPOSE).order_by().values_list("pk", flat=True))
    for operation, people, found in answers(operations):
        if found.progress.open is None:
            continue
        place = _place(found)
        text = level_text(found.progress.open.level)
        if found.missing_people:
            action = Action.OPERATION_WITHOUT_APPROVERS
            yield Escalation(operation, action, place, text, "", administrators)
        since = max([operation.prepared_at, *(one.approved_at for one in found.counted)])
        hours = settings.NOTIFY_ESCALATE_HOURS
        if hours and now - since >= timedelta(hours=hours):
            to, notified = _next_level(operation, found, people, place)
            action = Action.OPERATION_WAITING_ESCALATED
            yield Escalation(operation, action, place, text, to, notified or administrators)


def _next_level(operation: Operation, found: Approvers, staff: Staff, place: int) -> tuple[str, list[int]]:
    """The people of the next level in words, and their ids; nothing if no level follows, or nobody is in it."""
    if place >= len(found.levels) or found.levels[place].of.is_everyone:
        return "", []
    following = found.levels[place].of
    people = [
        one.id
        for one in staff.people
        if one.is_active and one.may_approve and is_among(one, following) and one.id != operation.preparer_id
    ]
    return people_text(following) if people else "", people
