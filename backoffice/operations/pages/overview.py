"""The overview: balances, what waits for this user, what needs attention, and operations by status."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.db.models import Case, Count, Q, QuerySet, Value, When, Window
from django.db.models.functions import Coalesce, RowNumber
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from backoffice.accounts.access import does_not_extend_session
from backoffice.accounts.models import User
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.cached_reads import failed_read_text
from backoffice.ledger import balances as ledger_services
from backoffice.ledger.balances import balances_with_long_trend
from backoffice.ledger.mirror.state import mirror_state
from backoffice.ledger.statements.continuity import cached_break_count
from backoffice.ledger.transactions.volumes import currency_flows
from backoffice.operations import permissions
from backoffice.operations.models.operations import Operation
from backoffice.operations.monitoring.inspection import system_health
from backoffice.operations.policy import may_decide_any
from backoffice.operations.selectors import IS_OPEN, is_waiting_for, visible_operations
from backoffice.operations.states import CLOSED, NEEDS_ATTENTION, OPEN, Status
from payments_gateway import GatewayError

SHOWN_PER_GROUP = 6
ENDED_WITHIN = timedelta(days=30)
URGENT_WITHIN = timedelta(hours=1)
"""The remaining time below which an operation is urgent; a conversion has thirty minutes in all."""


class GroupName(StrEnum):
    """The groups of open operations on the overview; each operation is in one of them for each user."""

    WAITING = "waiting"
    ATTENTION = "attention"
    UNDER_WAY = "under way"


@dataclass(frozen=True)
class OperationGroup:
    """The first operations of a group, and the number of all.

    Urgent ones come first and have `is_urgent`; then the oldest.
    """

    first: list[Operation] = field(default_factory=list)
    total: int = 0


@dataclass(frozen=True)
class StatusCount:
    """The number of operations of one status."""

    status: str
    label: str
    count: int


def open_operations(person: User) -> Mapping[GroupName, OperationGroup]:
    """The first open operations of each group, for this user. One query."""
    found: dict[GroupName, list[Any]] = {group: [] for group in GroupName}
    for operation in _first_of_each_group(person):
        found[GroupName(operation.group)].append(operation)
    return {group: OperationGroup(first, first[0].in_all if first else 0) for group, first in found.items()}


def _first_of_each_group(person: User) -> QuerySet[Any]:
    is_urgent = Q(
        status__in=[Status.PENDING, Status.APPROVED], expires_at__lte=timezone.now() + URGENT_WITHIN
    )
    group = Case(
        When(status__in=NEEDS_ATTENTION, then=Value(GroupName.ATTENTION)),
        When(is_waiting_for(person), then=Value(GroupName.WAITING)),
        default=Value(GroupName.UNDER_WAY),
    )
    order = ("-is_urgent", "prepared_at", "id")
    # the largest column, and not shown
    found = visible_operations(person).filter(IS_OPEN)
    numbered = found.annotate(group=group, is_urgent=is_urgent).annotate(
        in_all=Window(Count("pk"), partition_by="group"),
        place=Window(RowNumber(), partition_by="group", order_by=order),
    )
    return numbered.filter(place__lte=SHOWN_PER_GROUP).order_by(*order)


def status_counts(now: datetime) -> tuple[list[StatusCount], list[StatusCount]]:
    """The numbers of open operations and of those closed in the last thirty days, by status. One query.

    Both are counted from partial indexes, so operations closed earlier are not read.
    """
    lately = _by_status(Q(closed_at__gte=now - ENDED_WITHIN))
    counts = dict(_by_status(IS_OPEN).union(lately, all=True))
    return _status_counts(counts, OPEN), _status_counts(counts, CLOSED)


def _by_status(within: Q) -> QuerySet[Operation, tuple[str, int]]:
    """Grouped by an expression, to keep SQLite from using the index of all operations by status."""
    status = Coalesce("status", Value(""))
    return Operation.objects.filter(within).order_by().values_list(status).annotate(number=Count("*"))


def _status_counts(counts: Mapping[str, int], among: frozenset[Status]) -> list[StatusCount]:
    return [
        StatusCount(status, str(status.label), counts[status])
        for status in Status
        if status in among and status in counts
    ]


@require_safe
def overview(request: StaffRequest) -> HttpResponse:
    """The overview, from small tables only: neither the provider nor the whole mirror is read."""
    person, now = request.user, timezone.now()
    context = {
        "greeting": _greeting(person, timezone.localtime().hour),
        **_balances_context(person, now),
        **_operations_context(person, now),
    }
    return render(request, "operations/overview.html", context)


@does_not_extend_session
@require_safe
@permission_required("ledger.view_balance", raise_exception=True)
def balances(request: StaffRequest) -> HttpResponse:
    """The balances as the provider reports them now, or last reported if it does not answer."""
    context: dict[str, object] = {"fresh": True}
    try:
        ledger_services.refresh_balances()
    except GatewayError as exc:
        context["problem"] = failed_read_text(exc)
    context["balances"] = balances_with_long_trend(timezone.now())
    return render(request, "operations/_overview_balances.html", context)


def _balances_context(person: User, now: datetime) -> dict[str, object]:
    seen: dict[str, object] = {}
    if person.has_perm("ledger.view_balance"):
        seen["balances"] = balances_with_long_trend(now)
    if person.has_perm("ledger.view_transaction"):
        seen["flows"] = currency_flows(now.astimezone(UTC).date())
        seen["mirror"] = mirror_state()
        seen["breaks"] = cached_break_count()
    return seen


def _operations_context(person: User, now: datetime) -> dict[str, object]:
    if not person.has_perm(permissions.VIEW):
        return {}
    groups = open_operations(person)
    open_now, ended_lately = status_counts(now)
    return {
        "decides": may_decide_any(person),
        "waiting": groups[GroupName.WAITING],
        "waiting_count": groups[GroupName.WAITING].total,  # shown in the page header, too
        "attention": groups[GroupName.ATTENTION],
        "under_way": groups[GroupName.UNDER_WAY],
        "open_now": open_now,
        "ended_lately": ended_lately,
        "health": system_health(),
    }


def _greeting(person: User, hour: int) -> str:
    if hour < 12:
        text = gettext("Good morning, {name}")
    elif hour < 18:
        text = gettext("Good afternoon, {name}")
    else:
        text = gettext("Good evening, {name}")
    return text.format(name=person.first_name)
