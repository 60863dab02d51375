"""What the overview tells of operations: the first of those that are open, and where all of them stand. Reads only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db.models import Case, Count, Q, QuerySet, Value, When, Window
from django.db.models.functions import Coalesce, RowNumber
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations.models import Operation
from backoffice.operations.selectors import IS_OPEN, is_waiting_for, visible_operations
from backoffice.operations.states import CLOSED, NEEDS_ATTENTION, OPEN, Status

AT_ONCE = 6
ENDED_LATELY = timedelta(days=30)
URGENT_WITHIN = timedelta(hours=1)
"""Of the time that is left to decide and send; a conversion has thirty minutes in all."""


class Group(StrEnum):
    """What an open operation is to the person who looks; to each person it is one of these."""

    WAITING = "waiting"
    ATTENTION = "attention"
    UNDER_WAY = "under way"


@dataclass(frozen=True)
class Few:
    """The first operations of a group, and how many there are in all.

    What is urgent comes first and has `is_urgent`, then what was prepared the longest time ago.
    """

    first: list[Operation] = field(default_factory=list)
    in_all: int = 0


@dataclass(frozen=True)
class Standing:
    """How many operations have one status. `share` is a whole percentage of the most frequent, for a bar."""

    status: str
    label: str
    count: int
    share: int


def open_operations(person: User) -> Mapping[Group, Few]:
    """The first open operations of each group, for this person. One query."""
    found: dict[Group, list[Any]] = {group: [] for group in Group}
    for operation in _first_of_each_group(person):
        found[Group(operation.group)].append(operation)
    return {group: Few(first, first[0].in_all if first else 0) for group, first in found.items()}


def _first_of_each_group(person: User) -> QuerySet[Any]:
    is_urgent = Q(
        status__in=[Status.PENDING, Status.APPROVED], expires_at__lte=timezone.now() + URGENT_WITHIN
    )
    group = Case(
        When(status__in=NEEDS_ATTENTION, then=Value(Group.ATTENTION)),
        When(is_waiting_for(person), then=Value(Group.WAITING)),
        default=Value(Group.UNDER_WAY),
    )
    order = ("-is_urgent", "prepared_at", "id")
    found = visible_operations(person).filter(IS_OPEN).defer("payload")  # the longest member, and not shown
    numbered = found.annotate(group=group, is_urgent=is_urgent).annotate(
        in_all=Window(Count("pk"), partition_by="group"),
        place=Window(RowNumber(), partition_by="group", order_by=order),
    )
    return numbered.filter(place__lte=AT_ONCE).order_by(*order)


def standings(now: datetime) -> tuple[list[Standing], list[Standing]]:
    """How many operations are open now, and how many ended in the last thirty days, by status. One query.

    Both are counted from an index that holds no others: of all that ended earlier nothing is read.
    """
    lately = _by_status(Q(closed_at__gte=now - ENDED_LATELY))
    counts = dict(_by_status(IS_OPEN).union(lately, all=True))
    return _standings(counts, OPEN), _standings(counts, CLOSED)


def _by_status(within: Q) -> QuerySet[Operation, tuple[str, int]]:
    """Grouped by an expression, lest SQLite takes the index of all operations by status because it is in order."""
    status = Coalesce("status", Value(""))
    return Operation.objects.filter(within).order_by().values_list(status).annotate(number=Count("*"))


def _standings(counts: Mapping[str, int], among: frozenset[Status]) -> list[Standing]:
    found = {status: counts[status] for status in Status if status in among and status in counts}
    most = max(found.values(), default=1)
    return [Standing(status, status.label, count, count * 100 // most) for status, count in found.items()]
