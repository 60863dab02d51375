"""Signs of life: every process of web, worker and sweeper stores one row every few seconds, on each machine.

With it come what only that process can see: free space on the disk of its data folder, and which parts of `readiness`
it cannot use.
"""

import logging
import os
import platform
import shutil
import socket
import threading
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypedDict

from django.conf import settings
from django.db import Error, connection, connections
from django.utils import timezone

from backoffice.core import clock, credentials, isolation
from backoffice.core.leases import acquire_lease
from backoffice.core.models import ConfiguredKey, ProcessRow
from backoffice.core.telemetry import provider_calls
from backoffice.core.telemetry.readiness import State, part_states
from payments_gateway import NotSentError

logger = logging.getLogger(__name__)
INTERVAL = timedelta(seconds=15)
SILENT_AFTER = timedelta(minutes=1)  # a process that reported nothing for so long does not run, or hangs
KEPT = timedelta(days=1)
STATISTICS_OF = timedelta(hours=1)
_PRUNE_EVERY = timedelta(minutes=10)
_LEASE = "prune-process-reports"


class KeyAge(TypedDict):
    """A key by its id, and since when it is used."""

    purpose: str  # `encryption`, `checkpoints`, `provider`
    id: str
    since: str | None  # ISO 8601; None for the API key of the environment


class Report(TypedDict):
    """What a process reports of itself, and of what all share: the newest report is shown."""

    version: str  # of Countersign
    python: str
    failed_parts: list[str]  # of `readiness`
    failing_jobs: dict[str, str]  # with the name of the exception, see `isolation.failing_jobs`
    failed_rows: dict[str, int]  # by job, see `isolation.failed_rows`
    disk_free: int  # bytes on the disk of the data folder
    disk_total: int
    database_size: int  # bytes
    keys: list[KeyAge]
    provider: list[dict[str, Any]]  # `CallStatistics` of the last hour


class _Reporting:
    """The process whose thread runs: a forked one has no thread until it starts its own."""

    pid: int | None = None


def start(kind: str) -> None:
    """Report from this process in a thread until it ends. Does nothing if it reports already."""
    if _Reporting.pid == os.getpid():
        return
    _Reporting.pid = os.getpid()
    threading.Thread(target=_report_forever, args=(kind,), name="reporting", daemon=True).start()


def _report_forever(kind: str) -> None:
    started_at, pause = timezone.now(), threading.Event()
    own_report = partial(report, kind, started_at)
    while True:
        for step in (own_report, provider_calls.store_counts, prune_if_due):
            _run(step)
        connections.close_all()
        pause.wait(INTERVAL.total_seconds())


def _run(step: Callable[[], None]) -> None:
    try:
        step()
    except (Error, OSError) as exc:
        logger.warning("The process could not report (%s)", type(exc).__name__)
    except Exception:
        # Any exception: the process works on, and the thread must report again.
        logger.exception("The process could not report")


def report(kind: str, started_at: datetime) -> None:
    """Store the sign of life of this process. Raises database errors and OSError."""
    row = ProcessRow(
        machine=socket.gethostname(),
        kind=kind,
        pid=os.getpid(),
        started_at=started_at,
        at=clock.now(),
        report=_own_report(),
    )
    ProcessRow.objects.bulk_create(
        [row],
        update_conflicts=True,
        unique_fields=["machine", "kind", "pid"],
        update_fields=["started_at", "at", "report"],
    )


def _own_report() -> Report:
    disk = shutil.disk_usage(settings.DATA_DIR)
    return Report(
        version=settings.VERSION,
        python=platform.python_version(),
        failed_parts=[part for part, state in part_states().items() if state == State.FAILED],
        failing_jobs=isolation.failing_jobs(),
        failed_rows=isolation.failed_rows(),
        disk_free=disk.free,
        disk_total=disk.total,
        database_size=database_size(),
        keys=[*_configured_keys(), *_api_key()],
        provider=[asdict(one) for one in provider_calls.statistics_since(timezone.now() - STATISTICS_OF)],
    )


def _configured_keys() -> list[KeyAge]:
    configured = {"encryption": settings.ENCRYPTION_KEYS, "checkpoints": settings.AUDIT_CHECKPOINT_KEYS}
    ids = [
        (purpose, item.partition(":")[0].strip()) for purpose, items in configured.items() for item in items
    ]
    known = {(row.purpose, row.key_id): row.since for row in ConfiguredKey.objects.all()}
    new = [ConfiguredKey(purpose=purpose, key_id=key_id, since=clock.now()) for purpose, key_id in ids]
    new = [row for row in new if (row.purpose, row.key_id) not in known]
    if new:
        ConfiguredKey.objects.bulk_create(new, ignore_conflicts=True)
    known |= {(row.purpose, row.key_id): row.since for row in new}
    return [KeyAge(purpose=one[0], id=one[1], since=known[one].isoformat()) for one in ids]


def _api_key() -> list[KeyAge]:
    try:
        key = credentials.key_in_use()
    except NotSentError:
        return []  # `failed_parts` names it
    return [KeyAge(purpose="provider", id=key.name, since=key.since.isoformat() if key.since else None)]


def prune_if_due() -> None:
    """Delete the rows of processes that ended, and add up old counts of calls; one process does it for all."""
    if acquire_lease(_LEASE, _PRUNE_EVERY) is None:  # never released: it also spaces the runs
        return
    ProcessRow.objects.filter(at__lt=clock.now() - KEPT).delete()
    provider_calls.prune_counts()


def database_size() -> int:
    """The size of the database in bytes, with its indexes."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_database_size(current_database())")
        else:
            cursor.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        return int(cursor.fetchone()[0])
