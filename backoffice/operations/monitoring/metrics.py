"""The Prometheus metrics and their endpoint. Numbers only, read from the database at each request.

Those of HTTP requests are counted by the web processes: `core/telemetry/http_metrics.py`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import Error as DatabaseError
from django.db.models import Count, Max, Min
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from backoffice.core import clock
from backoffice.core.models import ProcessRow
from backoffice.core.telemetry import provider_calls
from backoffice.core.telemetry.http_metrics import render_http_metrics
from backoffice.core.telemetry.processes import SILENT_AFTER, database_size
from backoffice.core.telemetry.provider_calls import Call
from backoffice.core.telemetry.readiness import Part
from backoffice.core.web.middleware import is_from_this_machine
from backoffice.ledger.mirror.state import mirror_state
from backoffice.ledger.statements.continuity import open_break_count, unchecked_currencies
from backoffice.ledger.statements.refunds import cached_missing_refunds
from backoffice.operations.models.monitoring import Heartbeat, is_paused
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.monitoring.inspection import SystemHealth, system_health
from backoffice.operations.monitoring.integrity_checks import INTEGRITY_CHECKS
from backoffice.operations.reconciliation.selectors import (
    ReconciliationFilter,
    reconciliation_state,
    result_counts,
    unrecognised_count,
)
from backoffice.operations.states import OPEN, Status

logger = logging.getLogger(__name__)
_BREAKS_COUNTED = 10_000
FURTHER_METRICS: dict[str, Callable[[datetime], Iterable[GaugeMetricFamily]]] = {}
"""The functions that give the metrics of apps above this one, by app label. Each app registers its own."""


def render_metrics() -> bytes:
    """All metrics in Prometheus' text format, as they are at this moment.

    A registry of its own for each request: every process reports the same, since all values come from the
    database. Only those of requests are counted by the web workers of this machine.
    """
    registry = CollectorRegistry()
    registry.register(_MetricsCollector())
    return generate_latest(registry) + render_http_metrics()


class _MetricsCollector(Collector):
    """The present state of the database as gauges."""

    def collect(self) -> Iterator[Metric]:
        now = timezone.now()
        last = system_health()
        yield from _inspection(last)
        yield from _operations(now)
        open_now = last.open_incidents + last.open_break_glass
        yield _gauge("incidents_open", "Incidents that are not closed", open_now)
        yield _gauge("payments_paused", "1 while payments are paused", int(is_paused()))
        yield _gauge("releases_waiting", "Releases that no worker has claimed yet", Release.objects.count())
        yield _gauge(
            "releases_standstill_seconds",
            "Longest time for which a release was blocked, or nothing was sent from a balance with releases; 0 if none",
            _longest_standstill(now),
        )
        yield from _mirror()
        yield from _continuity(now)
        yield from _reconciliation(now)
        yield from _sweeper(now)
        yield from _of_processes()
        for further in FURTHER_METRICS.values():
            yield from further(now)

    def describe(self) -> Iterator[Metric]:
        """Empty, so that registering does not query the database."""
        return iter(())


def _longest_standstill(now: datetime) -> float:
    """In seconds. A long queue that is being sent does not stand still, however old its last release is."""
    queues = (
        Release.objects.order_by().values_list("balance").annotate(Min("released_at"), Min("blocked_since"))
    )
    since: list[datetime] = []
    for balance, oldest, blocked_since in queues:
        later = (
            Attempt.objects.filter(balance=balance, started_at__gt=oldest)
            if balance
            else Attempt.objects.none()
        )
        since.append(later.aggregate(at=Max("started_at"))["at"] or oldest)
        since += [blocked_since] if blocked_since else []
    return (now - min(since)).total_seconds() if since else 0.0


def _inspection(last: SystemHealth) -> Iterator[GaugeMetricFamily]:
    broken = {violation.rule: violation.count for violation in last.violations}
    violations = _family("integrity_violations", "Violations found by the last integrity checks", "rule")
    for rule in INTEGRITY_CHECKS:
        violations.add_metric([rule.name], broken.get(rule.name, 0))
    yield violations
    yield _gauge(
        "integrity_checks_age_seconds", "Time since the integrity checks last ended", last.seconds_since
    )
    yield _gauge("integrity_checks_duration_seconds", "Duration of the last integrity checks", last.seconds)


def _operations(now: datetime) -> Iterator[GaugeMetricFamily]:
    found = Operation.objects.filter(closed_at__isnull=True).order_by().values_list("status")
    counts = dict(found.annotate(number=Count("pk")))
    family = _family("operations", "Open operations", "status")
    for status in Status:
        if status in OPEN:
            family.add_metric([status], counts.get(status.value, 0))
    yield family
    unknown = Attempt.objects.filter(closed_at__isnull=True, operation__status=Status.UNKNOWN)
    oldest = unknown.aggregate(at=Min("started_at"))["at"]
    age = (now - oldest).total_seconds() if oldest else 0
    yield _gauge(
        "oldest_unknown_outcome_age_seconds",
        "Time since the oldest attempt with an unknown outcome was sent; 0 if there is none",
        age,
    )


def _mirror() -> Iterator[GaugeMetricFamily]:
    state = mirror_state()
    yield _gauge(
        "mirror_age_seconds",
        "Time since the mirror was last up to date with the provider's list",
        state.seconds_behind,
    )
    yield _gauge(
        "mirror_loaded", "1 after the first complete load of the provider's list", int(state.is_loaded)
    )
    yield _gauge("mirror_sync_failed", "1 if the last sync failed", int(bool(state.error)))
    yield _gauge("mirror_transactions", "Transactions in the mirror", state.rows)
    yield _gauge(
        "mirror_missing", "Transactions in the mirror that the provider no longer lists", state.missing
    )
    yield _gauge("mirror_difference", "The provider's transaction count minus the mirror's", state.difference)


def _continuity(now: datetime) -> Iterator[GaugeMetricFamily]:
    breaks = open_break_count(_BREAKS_COUNTED)
    yield _gauge(
        "continuity_breaks",
        f"Breaks in balance continuity without an explanation, at most {_BREAKS_COUNTED}",
        breaks.number,
    )
    yield _gauge(
        "continuity_unchecked_currencies",
        "Currencies whose balance continuity was never completely checked",
        len(unchecked_currencies()),
    )
    yield _gauge(
        "refunds_missing",
        "Failed debits of the last 90 days for which no refund is listed after a day",
        len(cached_missing_refunds(now)),
    )


def _reconciliation(now: datetime) -> Iterator[GaugeMetricFamily]:
    family = _family(
        "reconciliation", "Operations and provider transactions by result of the reconciliation", "result"
    )
    for result, _, number in result_counts(ReconciliationFilter()):
        family.add_metric([result], number)
    yield family
    yield _gauge(
        "unrecognised_transactions_open",
        "Transactions at the provider that belong to no operation here and are not acknowledged",
        unrecognised_count(),
    )
    at = reconciliation_state().at
    age = (now - at).total_seconds() if at else float("inf")
    yield _gauge("reconciliation_age_seconds", "Time since the last reconciliation with the mirror", age)


def _sweeper(now: datetime) -> Iterator[GaugeMetricFamily]:
    family = _family("sweeper_age_seconds", "Time since a job of the sweeper last ended a round", "job")
    for heartbeat in Heartbeat.objects.order_by("job"):
        if heartbeat.at is not None:
            family.add_metric([heartbeat.job], (now - heartbeat.at).total_seconds())
    yield family


def _of_processes() -> Iterator[Metric]:
    """Those of processes, machines, the provider's responses and the database. Labels are bounded by the kinds of
    processes, the machines and the jobs that there are.
    """
    build = GaugeMetricFamily(
        "countersign_build_info", "The release that answers; always 1", labels=["version"]
    )
    build.add_metric([settings.VERSION], 1)
    yield build
    yield from _processes()
    yield from _provider_calls()
    failed = GaugeMetricFamily(
        "countersign_job_failed",
        "1 if the last round of a job of the sweeper failed, on any machine",
        labels=["job"],
    )
    running = ProcessRow.objects.filter(at__gte=clock.now() - SILENT_AFTER)
    on_machines = {job for row in running for job in row.report.get("failing_jobs", {})}
    for heartbeat in Heartbeat.objects.order_by("job"):
        failed.add_metric([heartbeat.job], int(heartbeat.is_failing or heartbeat.job in on_machines))
    yield failed
    yield GaugeMetricFamily(
        "countersign_database_size_bytes", "Size of the database with its indexes", value=database_size()
    )


def _processes() -> Iterator[Metric]:
    rows = ProcessRow.objects.filter(at__gte=clock.now() - SILENT_AFTER).order_by("-at")
    running = {kind.value: 0 for kind in ProcessRow.Kind}
    not_ready = {part.value: 0 for part in Part}
    free: dict[str, int] = {}
    failed_rows: dict[str, int] = {}
    for row in rows:
        running[row.kind] += 1
        free.setdefault(row.machine, row.report.get("disk_free", 0))
        for part in row.report.get("failed_parts", []):
            not_ready[part] = not_ready.get(part, 0) + 1
        for job, number in row.report.get("failed_rows", {}).items():
            failed_rows[job] = failed_rows.get(job, 0) + number
    yield _filled("processes", "Processes that reported within the last minute", "kind", running)
    yield _filled(
        "processes_not_ready",
        "Processes that cannot use the database, its migrations, the broker or the keys",
        "part",
        not_ready,
    )
    yield _filled(
        "failed_rows",
        "Failures of single rows in a job of the sweeper in the last ten minutes",
        "job",
        failed_rows,
    )
    yield _filled("disk_free_bytes", "Free space on the disk of the data folder", "machine", free)


def _provider_calls() -> Iterator[Metric]:
    counts = CounterMetricFamily(
        "countersign_provider_calls", "Calls to the provider by outcome", labels=["call", "outcome"]
    )
    durations = SummaryMetricFamily(
        "countersign_provider_call_duration_seconds", "Duration of the calls to the provider", labels=["call"]
    )
    calls, seconds = dict.fromkeys(Call, 0), dict.fromkeys(Call, 0.0)
    for call, outcome, number, took in provider_calls.totals():
        counts.add_metric([call, outcome], number)
        calls[call] += number
        seconds[call] += took
    for call in Call:
        durations.add_metric([call], calls[call], seconds[call])
    yield counts
    yield durations


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"countersign_{name}", text, value=value)


def _family(name: str, text: str, label: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"countersign_{name}", text, labels=[label])


def _filled(name: str, text: str, label: str, values: dict[str, int]) -> GaugeMetricFamily:
    family = _family(name, text, label)
    for value, number in values.items():
        family.add_metric([value], number)
    return family


@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics, for requests from this machine or with the configured token. No sign-in."""
    if not _may_read_metrics(request):
        return HttpResponse("Forbidden\n", status=403, content_type="text/plain")
    try:
        return HttpResponse(render_metrics(), content_type=CONTENT_TYPE_PLAIN_0_0_4)
    except DatabaseError as exc:
        logger.exception("The metrics cannot be read: %s", type(exc).__name__)
        return HttpResponse("database not available\n", status=503, content_type="text/plain")


def _may_read_metrics(request: HttpRequest) -> bool:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if settings.METRICS_TOKEN and scheme.lower() == "bearer":
        return constant_time_compare(token.strip(), settings.METRICS_TOKEN)
    return is_from_this_machine(request)
