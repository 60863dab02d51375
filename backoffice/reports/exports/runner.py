"""Run background exports.

Any number of workers and sweepers may call; each export is leased to one of them at a time.

The file is complete and durable in the store of exports before the state becomes DONE; otherwise it is deleted.
"""

import hashlib
import logging
import os
import secrets
import threading
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import F, Q
from psycopg import Error as PostgresError

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import background, clock, fault_points
from backoffice.core.background import StopRequestedError
from backoffice.core.leases import Lease, LeaseLostError, acquire_lease, held_leases
from backoffice.core.storage.files import EXPORTS, FileStoreError, file_store
from backoffice.core.web.formatting import stored_error
from backoffice.reports.errors import Failure, FailureCode, ReportError
from backoffice.reports.exports.limits import check_disk_space, is_disk_full
from backoffice.reports.exports.request_codec import decode_request
from backoffice.reports.exports.services import waiting_for_sync
from backoffice.reports.models import ACTIVE_STATES, ExportJob, ExportState, change_state, work_folder
from backoffice.reports.rendering.csv import FileChunk
from backoffice.reports.rendering.export_file import file_chunks, file_name
from backoffice.reports.report import ExportRequest
from payments_gateway import GatewayError

logger = logging.getLogger(__name__)

LEASE_NAMES = "exports"
LEASE_DURATION = timedelta(seconds=60)
RENEWAL_SECONDS = 2.0  # also the interval at which the number of written rows is updated


class ExportWatch:
    """While an export runs: renews its lease in a thread, which ends with its process, and publishes the row
    count.
    """

    def __init__(self, job: ExportJob, lease: Lease) -> None:
        self.rows = 0
        self._job = job
        self._lease = lease
        self._is_over = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew_until_stopped, name=f"lease-{job.pk}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def check(self) -> None:
        """Raises LeaseLostError once it is known that the lease is lost or the export was cancelled."""
        if self._is_over:
            raise LeaseLostError

    def _renew_until_stopped(self) -> None:
        try:
            while not self._is_over and not self._stop.wait(RENEWAL_SECONDS):
                self._renew()
        finally:
            connection.close()

    def _renew(self) -> None:
        running = ExportJob.objects.filter(
            pk=self._job.pk, state=ExportState.RUNNING, runner=self._job.runner
        )
        try:
            with transaction.atomic():
                self._lease.verify()
                self._is_over = not running.update(rows=self.rows)
        except LeaseLostError:
            self._is_over = True
        except DatabaseError:  # retried at the next interval; no other runner starts before the lease expires
            logger.warning(
                "The lease of export %s could not be renewed; retrying", self._job.pk, exc_info=True
            )


@dataclass(frozen=True)
class WrittenFile:
    """A file on the disk of this machine, still under a temporary name."""

    path: Path
    rows: int
    size: int
    sha256: str


def write_file(chunks: Iterable[FileChunk], path: Path, watch: ExportWatch) -> WrittenFile:
    """Write the whole file durably, readable by this user only. An incomplete file is deleted.

    Raises LeaseLostError, StopRequestedError, QuotaExceededError, and what the chunks raise.
    """
    try:
        return _write_chunks(chunks, path, watch)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _write_chunks(chunks: Iterable[FileChunk], path: Path, watch: ExportWatch) -> WrittenFile:
    digest, size = hashlib.sha256(), 0
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        for chunk in chunks:
            watch.check()
            background.raise_if_stop_requested()
            check_disk_space()
            size += file.write(chunk.content)
            digest.update(chunk.content)
            watch.rows += chunk.rows
            fault_points.reach("export.writing")
        file.flush()
        os.fsync(file.fileno())
    fault_points.reach("export.written")
    watch.check()
    return WrittenFile(path, watch.rows, size, digest.hexdigest())


TIME_LIMIT = timedelta(hours=1)
FILE_LIFETIME = timedelta(days=7)
MAX_TRIES = 3
# What a defect in a report may raise for an unforeseen row: it fails that export, not the worker.
_PROGRAM_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def run_next_export() -> int:
    """Run the oldest export that is waiting or was abandoned by a killed runner.

    Returns how many were started.

    At most one, so that a caller in a loop can stop between two files.
    """
    return _run_first(Q())


def run_all_exports(*, at_most: int = 100) -> int:
    """Run waiting exports until none is left, at most `at_most`. Returns how many were started."""
    return sum(takewhile(bool, (run_next_export() for _ in range(at_most))))


def run_export(pk: UUID) -> None:
    """Run this export, if it is still waiting and a runner is free."""
    _run_first(Q(pk=pk))


def _run_first(which: Q) -> int:
    """Run the oldest of these exports that can be started, with one of the `EXPORTS_AT_ONCE` leases."""
    startable = _startable(which)
    names = (f"{LEASE_NAMES} {number}" for number in range(settings.EXPORTS_AT_ONCE if startable else 0))
    lease = next(filter(None, (acquire_lease(name, LEASE_DURATION) for name in names)), None)
    if lease is None:
        return 0
    with lease:
        for job in startable:
            start_fields = {"runner": str(lease), "started_at": clock.now(), "rows": 0}
            if change_state(job, ExportState.RUNNING, tries=F("tries") + 1, **start_fields):
                _run(ExportJob.objects.get(pk=job.pk), lease)
                return 1
    return 0


def _startable(which: Q) -> list[ExportJob]:
    """Exports that are waiting and whose data is synced, or whose runner no longer holds its lease."""
    active = ExportJob.objects.filter(which, state__in=ACTIVE_STATES)
    if not active.exists():  # as in most rounds of the sweeper
        return []
    active = active.exclude(waiting_for_sync(clock.now()))
    oldest = list(active.order_by("created_at", "pk")[: 2 * settings.EXPORTS_AT_ONCE + 1])
    # Read after the exports, so that one that has just begun is not abandoned.
    held = held_leases(LEASE_NAMES)
    return [job for job in oldest if job.runner not in held]


def _run(job: ExportJob, lease: Lease) -> None:
    """Produce the file and set the final state; a runner that lost its lease changes nothing."""
    try:
        if job.tries > MAX_TRIES:
            raise ReportError(FailureCode.TOO_MANY_TRIES, tries=MAX_TRIES)
        check_disk_space()
        person = User.objects.get(pk=job.person_id)
        export_request = decode_request(person, job, job.filters)
        # Before any read: the file contains everything up to this time.
        job.as_of = export_request.report.as_of()
        with export_request.localized():
            _make_file(job, export_request, lease)
    except LeaseLostError:
        logger.info("Export %s was cancelled or is made by another process", job.pk)
    except StopRequestedError:
        # A requested stop does not count as a try.
        change_state(job, ExportState.WAITING, tries=F("tries") - 1)
    except ReportError as exc:
        _fail(job, exc.failure)
    except GatewayError as exc:
        _fail(job, {"code": FailureCode.PROVIDER_UNREADABLE, **stored_error(exc, limit=300)})
    except FileStoreError:
        logger.exception("Export %s could not be stored", job.pk)
        _fail(job, {"code": FailureCode.STORE_UNAVAILABLE})
    except (DatabaseError, PostgresError, OSError, *_PROGRAM_ERRORS) as exc:
        logger.exception("Export %s failed", job.pk)
        _fail(job, {"code": FailureCode.DISK_FULL if is_disk_full(exc) else FailureCode.INTERNAL_ERROR})


def _make_file(job: ExportJob, export_request: ExportRequest, lease: Lease) -> None:
    with ExportWatch(job, lease) as watch:

        def check() -> None:
            background.raise_if_stop_requested()
            watch.check()

        with closing(file_chunks(export_request, at_most=TIME_LIMIT, check=check)) as chunks:
            written = write_file(chunks, work_folder() / f"{secrets.token_urlsafe(24)}.part", watch)
        _finish(job, export_request, written)


def _finish(job: ExportJob, export_request: ExportRequest, written: WrittenFile) -> None:
    """Put the file into the store, then set the state. Until then no other process knows its name. Call it while the
    lease is renewed: an upload may take longer than a lease lasts.

    If the database connection fails here, the state that names the file may have been committed: so the file
    stays, and `delete_expired_exports` removes it if no export names it.
    """
    name = secrets.token_urlsafe(24)
    try:
        file_store(EXPORTS).put(written.path, name)
    except OSError:
        written.path.unlink(missing_ok=True)
        raise
    fault_points.reach("export.stored")
    if not _record_done(job, export_request, written, name):
        file_store(EXPORTS).delete(name)


@transaction.atomic
def _record_done(job: ExportJob, export_request: ExportRequest, written: WrittenFile, name: str) -> bool:
    now = clock.now()
    outcome = {"rows": written.rows, "size": written.size, "sha256": written.sha256}
    is_ours = change_state(
        job,
        ExportState.DONE,
        **outcome,
        as_of=job.as_of,
        name=file_name(export_request, job.as_of),
        stored_as=name,
        ended_at=now,
        expires_at=now + FILE_LIFETIME,
        mail_due_at=_mail_time(job, now),
    )
    if is_ours:
        audit.record(
            Action.EXPORT_COMPLETED,
            actor=job.person,
            target=str(job),
            export=str(job.pk),
            report=job.report,
            **outcome,
            **({"as_of": job.as_of} if job.as_of else {}),
        )
    return is_ours


@transaction.atomic
def _fail(job: ExportJob, failure: Failure) -> None:
    now = clock.now()
    end_fields = {"failure": failure, "ended_at": now, "mail_due_at": _mail_time(job, now)}
    if change_state(job, ExportState.FAILED, **end_fields):
        audit.record(
            Action.EXPORT_FAILED, actor=job.person, target=str(job), export=str(job.pk), failure=failure
        )


def _mail_time(job: ExportJob, now: datetime) -> datetime | None:
    """When to send the email about the result: only for exports made by a schedule."""
    return now if job.schedule_id else None
