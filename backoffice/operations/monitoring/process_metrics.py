"""The metrics of processes, machines, the provider's responses and the database, read from the database."""

from collections.abc import Iterator

from django.conf import settings
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from backoffice.core import clock
from backoffice.core.models import ProcessRow
from backoffice.core.telemetry import provider_calls
from backoffice.core.telemetry.processes import SILENT_AFTER, database_size
from backoffice.core.telemetry.provider_calls import Call
from backoffice.core.telemetry.readiness import Part
from backoffice.operations.models.monitoring import Heartbeat


def process_metrics() -> Iterator[Metric]:
    """All of them. Labels are bounded by the kinds of processes, the machines and the jobs that there are."""
    build = GaugeMetricFamily(
        "countersign_build_info", "The release that answers; always 1", labels=["version"]
    )
    build.add_metric([settings.VERSION], 1)
    yield build
    yield from _processes()
    yield from _provider_calls()
    failed = GaugeMetricFamily(
        "countersign_job_failed", "1 if the last round of a job of the sweeper failed", labels=["job"]
    )
    for heartbeat in Heartbeat.objects.order_by("job"):
        failed.add_metric([heartbeat.job], int(heartbeat.is_failing))
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
    yield _family("countersign_processes", "Processes that reported within the last minute", "kind", running)
    yield _family(
        "countersign_processes_not_ready",
        "Processes that cannot use the database, its migrations, the broker or the keys",
        "part",
        not_ready,
    )
    yield _family(
        "countersign_failed_rows",
        "Failures of single rows in a job of the sweeper in the last ten minutes",
        "job",
        failed_rows,
    )
    yield _family("countersign_disk_free_bytes", "Free space on the disk of the data folder", "machine", free)


def _family(name: str, text: str, label: str, values: dict[str, int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family


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
