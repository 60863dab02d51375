"""The overview: balances, what waits for this user, what needs attention, and operations by status."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.db.models import Count, DateTimeField, Exists, Q, QuerySet, Value, Window
from django.db.models.functions import Coalesce
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import get_language, gettext
from django.views.decorators.http import require_safe

from backoffice.accounts.access import does_not_extend_session
from backoffice.accounts.models import User
from backoffice.accounts.sessions import StaffRequest
from backoffice.accounts.setup_links import MOST_TO_PASS_ON, halves_to_pass_on
from backoffice.core.cached_reads import cached_in_process, failed_read_text
from backoffice.core.database.queries import Argument, CompiledQuery, composed_once
from backoffice.ledger import balances as ledger_services
from backoffice.ledger.balances import balances_with_long_trend
from backoffice.ledger.mirror.state import mirror_state
from backoffice.ledger.statements.continuity import cached_break_count
from backoffice.ledger.transactions.volumes import CurrencyFlow, currency_flows
from backoffice.operations import permissions
from backoffice.operations.approval.waiting import WaitingOperations, batches_of, waiting_for
from backoffice.operations.models.operations import Operation
from backoffice.operations.monitoring.inspection import system_health
from backoffice.operations.policy import may_decide_any
from backoffice.operations.selectors import IS_OPEN, all_operations
from backoffice.operations.states import CLOSED, NEEDS_ATTENTION, OPEN, Status
from backoffice.operations.workflow.bulk_release import unsent_bulk_releases
from payments_gateway import CURRENCIES, GatewayError

SHOWN_PER_GROUP = 5
CHARTS = 3
"""As many as the currencies that the provider keeps balances in, and as fit beside each other."""
FLOWS_KEPT_SECONDS = 10.0
ENDED_WITHIN = timedelta(days=30)
URGENT_WITHIN = timedelta(hours=1)
"""The remaining time below which an operation is urgent; a conversion has thirty minutes in all."""
_IN_PROGRESS = IS_OPEN & ~Q(status__in=NEEDS_ATTENTION)


@dataclass(frozen=True)
class OperationGroup:
    """The first of some operations, and the number of all.

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


def first_waiting(person: User) -> OperationGroup:
    """The first that this user can approve or send now, with one line for each batch whose rows can be sent.

    One query besides those of `waiting_for`, and one more if such rows wait, or nothing else does.
    """
    if not person.has_perm(permissions.VIEW):
        return OperationGroup()
    waiting, until = waiting_for(person), timezone.now() + URGENT_WITHIN
    return _with_batches(
        lambda: waiting.find(_waiting_alone, until=until), lambda: waiting.find(_waiting_batches, until=until)
    )


def _waiting_alone(waiting: WaitingOperations) -> QuerySet[Operation]:
    operations = all_operations()
    return _alone(operations.filter(waiting.alone), operations.filter(waiting.rows))


def _waiting_batches(waiting: WaitingOperations) -> QuerySet[Operation]:
    operations = all_operations()
    return _first_of(operations.filter(batches_of(operations.filter(waiting.rows))))


def _with_batches(
    find_alone: Callable[[], list[Operation]], find_batches: Callable[[], list[Operation]]
) -> OperationGroup:
    """The first of both. One query if something is found alone and no row of a batch is, otherwise two."""
    alone = _group(find_alone())
    if alone.first and not vars(alone.first[0])["are_rows"]:
        return alone
    batches = _group(find_batches())
    first = sorted(
        [*alone.first, *batches.first],
        key=lambda one: (not vars(one)["is_urgent"], one.prepared_at, one.pk),
    )
    return OperationGroup(first[:SHOWN_PER_GROUP], alone.total + batches.total)


def first_in_progress(person: User) -> OperationGroup:
    """The first open operations whose outcome is not unknown, for a user who decides on none, with one line for each
    batch of which such rows are open. At most two queries.
    """
    if not person.has_perm(permissions.VIEW):
        return OperationGroup()
    until = timezone.now() + URGENT_WITHIN
    return _with_batches(
        lambda: _in_progress_alone().all(until=until), lambda: _in_progress_batches().all(until=until)
    )


@composed_once
def _in_progress_alone() -> CompiledQuery[Operation]:
    found = all_operations().filter(_IN_PROGRESS)
    return CompiledQuery(_alone(found.filter(batch_row__isnull=True), found.filter(batch_row__isnull=False)))


@composed_once
def _in_progress_batches() -> CompiledQuery[Operation]:
    operations = all_operations()
    rows = operations.filter(_IN_PROGRESS, batch_row__isnull=False)
    return CompiledQuery(_first_of(operations.filter(batches_of(rows))))


def first_needing_attention(person: User) -> OperationGroup:
    """The first operations with an unknown outcome. One query."""
    if not person.has_perm(permissions.VIEW):
        return OperationGroup()
    return _group(_needing_attention().all(until=timezone.now() + URGENT_WITHIN))


@composed_once
def _needing_attention() -> CompiledQuery[Operation]:
    return CompiledQuery(_first_of(all_operations().filter(status__in=NEEDS_ATTENTION)))


def _alone(single: QuerySet[Operation], rows: QuerySet[Operation]) -> QuerySet[Operation]:
    """The first of these, with `are_rows`: whether there are any of those rows."""
    return _first_of(single.annotate(are_rows=Exists(rows)))


def _first_of(operations: QuerySet[Operation]) -> QuerySet[Operation]:
    """The first of these, each with their number, for `_group`. What expires by the argument `until` is urgent.

    A single query for several lists, with window functions over all open operations, takes twice the time of both.
    """
    # The rows of a batch that succeeded are approved, and expire with it.
    is_urgent = Q(
        status__in=[Status.PENDING, Status.APPROVED, Status.SUCCEEDED],
        expires_at__lte=Argument("until", DateTimeField()),
    )
    found: QuerySet[Any] = operations.annotate(is_urgent=is_urgent, in_all=Window(Count("pk")))
    return found.order_by("-is_urgent", "prepared_at", "id")[:SHOWN_PER_GROUP]


def _group(first: list[Operation]) -> OperationGroup:
    return OperationGroup(first, vars(first[0])["in_all"] if first else 0)


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
        flows = _flows_until(now.astimezone(UTC).date())
        flows.sort(key=lambda flow: flow.currency not in CURRENCIES)
        seen["flows"], seen["other_flows"] = flows[:CHARTS], flows[CHARTS:]
        seen["mirror"] = mirror_state()
        seen["breaks"] = cached_break_count()
    return seen


def _flows_until(day: date) -> list[CurrencyFlow]:
    """The thirty days up to this one, as they were a moment ago: nothing is decided by them. With the names of their
    kinds in the language of the reader.
    """
    key = f"flows-{day}-{get_language()}"
    return cached_in_process(key, lambda: currency_flows(day), FLOWS_KEPT_SECONDS)


def _operations_context(person: User, now: datetime) -> dict[str, object]:
    if not person.has_perm(permissions.VIEW):
        return {}
    decides = may_decide_any(person)
    main = first_waiting(person) if decides else first_in_progress(person)
    open_now, ended_lately = status_counts(now)
    health = system_health()
    needs_attention = any(one.status in NEEDS_ATTENTION for one in open_now)
    bulk_sends = unsent_bulk_releases(person) if health.is_bulk_send_open else []
    to_continue = [one for one in bulk_sends if decides and one.waits_for(person)]
    halves = halves_to_pass_on(person) if decides and health.links_to_pass_on else []
    return {
        "decides": decides,
        "waiting": main if decides else OperationGroup(),
        "halves": halves[:MOST_TO_PASS_ON],
        "links_to_pass_on": sum(half.is_link for half in halves),
        "codes_to_pass_on": sum(not half.is_link for half in halves),
        "waiting_count": main.total if decides else 0,  # shown in the page header, too
        "to_continue": to_continue,
        "bulk_sends": [one for one in bulk_sends if one not in to_continue],
        "attention": first_needing_attention(person) if needs_attention else OperationGroup(),
        "in_progress": main,
        "open_now": open_now,
        "ended_lately": ended_lately,
        "health": health,
    }


def _greeting(person: User, hour: int) -> str:
    if hour < 12:
        text = gettext("Good morning, {name}")
    elif hour < 18:
        text = gettext("Good afternoon, {name}")
    else:
        text = gettext("Good evening, {name}")
    return text.format(name=person.first_name)
