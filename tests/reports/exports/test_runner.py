"""Whoever makes exports: once whoever tries, whole or not at all, and given up to whoever cancels or takes over."""

import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import ClassVar

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.models import F
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.core import background, clock
from backoffice.core.leases import acquire_lease, held_leases
from backoffice.core.models import LeaseRow
from backoffice.core.storage.files import EXPORTS, PrivateFolder
from backoffice.reports.exports import runner, services
from backoffice.reports.models import ExportJob, ExportState, work_folder
from payments_gateway import ReadFailedError
from tests.reports.export_requests import actions, files, now, numbers, path_of, requested_export
from tests.tools.test_brokers import database_url
from tools.processes import run_python

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_folder")]
Rows = Callable[[], Iterator[object]]


def test_concurrent_runners_render_an_export_once(auditor: User, settings: Settings) -> None:
    settings.EXPORTS_AT_ONCE = 10
    job = requested_export(auditor)

    def attempt(_number: int) -> None:
        try:
            runner.run_export(job.pk)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(attempt, range(4)))

    assert actions(job) == ["export.requested", "export.completed"]
    assert len(files()) == 1


def test_concurrent_exports_are_limited(auditor: User, settings: Settings) -> None:
    settings.EXPORTS_AT_ONCE = 1
    first, second = requested_export(auditor), requested_export(auditor)
    with acquire_lease("exports 0", runner.LEASE_DURATION) or pytest.fail("is free") as lease:
        ExportJob.objects.filter(pk=first.pk).update(state=ExportState.RUNNING, runner=str(lease))

        assert runner.run_next_export() == 0
    assert now(second).state == ExportState.WAITING


def test_one_round_renders_one_file(auditor: User) -> None:
    first, second = requested_export(auditor), requested_export(auditor)

    assert runner.run_next_export() == 1
    assert (now(first).state, now(second).state) == (ExportState.DONE, ExportState.WAITING)
    assert runner.run_next_export() == 1
    assert now(second).state == ExportState.DONE


def test_an_export_of_a_killed_worker_is_restarted(auditor: User) -> None:
    job = requested_export(auditor)
    (work_folder() / "half.part").write_bytes(b"position,actor")
    ExportJob.objects.filter(pk=job.pk).update(
        state=ExportState.RUNNING, runner="exports 0 #1", rows=999, tries=1
    )

    assert runner.run_next_export() == 1

    job = now(job)
    assert (job.state, job.rows) == (ExportState.DONE, 1)
    assert path_of(job).read_bytes().startswith(b"Position,Actor,Action\r\n1,")


def test_a_stopped_runner_ends_at_the_next_chunk_and_another_restarts(
    auditor: User, offer: Callable[[Rows], None]
) -> None:
    reports: list[str] = []

    def endless() -> Iterator[object]:
        yield from range(50_000)
        assert files()  # some of it is written
        background.stop_requested.set()
        yield from range(1_000_000)
        reports.append("nobody stopped it")

    offer(endless)
    job = numbers(auditor)
    try:
        assert runner.run_next_export() == 1
    finally:
        background.stop_requested.clear()

    assert reports == []
    assert (now(job).state, now(job).tries, held_leases("exports")) == (ExportState.WAITING, 0, {})
    assert files() == []
    offer(lambda: iter(range(10)))
    assert runner.run_next_export() == 1
    assert (now(job).state, now(job).rows, now(job).tries) == (ExportState.DONE, 10, 1)


def test_one_run_renders_all_queued_exports_and_reports_them(auditor: User) -> None:
    jobs = [requested_export(auditor) for _ in range(3)]

    call_command("sweep", "--once", stdout=StringIO())

    assert [now(job).state for job in jobs] == [ExportState.DONE] * 3
    assert runner.run_all_exports(at_most=2) == 0
    for _ in range(3):
        requested_export(auditor)
    assert runner.run_all_exports(at_most=2) == 2


def test_an_export_that_kills_every_worker_fails(auditor: User) -> None:
    job = requested_export(auditor)
    ExportJob.objects.filter(pk=job.pk).update(state=ExportState.RUNNING, tries=runner.MAX_TRIES)

    runner.run_next_export()

    assert (now(job).state, now(job).failure_text) == (
        ExportState.FAILED,
        "The export was interrupted 3 times.",
    )


def test_a_runner_that_lost_its_lease_changes_nothing(auditor: User, offer: Callable[[Rows], None]) -> None:
    def overtaken() -> Iterator[object]:
        yield 1
        ExportJob.objects.update(runner="exports 0 #99")
        yield 2

    offer(overtaken)
    job = numbers(auditor)

    runner.run_export(job.pk)

    assert now(job).state == ExportState.RUNNING
    assert now(job).runner == "exports 0 #99"
    assert files() == []
    assert actions(job) == ["export.requested"]


def test_a_runner_whose_lease_another_acquired_stops(
    auditor: User, offer: Callable[[Rows], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "RENEWAL_SECONDS", 0.02)
    reports: list[str] = []

    def endless() -> Iterator[object]:
        deadline = time.monotonic() + 60
        yield from range(1000)
        LeaseRow.objects.update(number=F("number") + 1)
        while time.monotonic() < deadline:
            yield 1
        reports.append("nobody stopped it")

    offer(endless)
    job = numbers(auditor)

    runner.run_export(job.pk)

    assert reports == []
    assert (now(job).state, files()) == (ExportState.RUNNING, [])


def test_a_lease_is_renewed_and_the_rows_counted_while_it_is_made(
    auditor: User, offer: Callable[[Rows], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "RENEWAL_SECONDS", 0.02)
    row_counts: list[int] = []

    def slow() -> Iterator[object]:
        yield from range(50_000)
        begun, deadline = clock.now() + runner.LEASE_DURATION, time.monotonic() + 60
        while not row_counts and time.monotonic() < deadline:
            seen = ExportJob.objects.get()
            if seen.rows and LeaseRow.objects.get().held_until > begun:
                row_counts.append(seen.rows)

    offer(slow)
    job = numbers(auditor)

    runner.run_export(job.pk)

    assert 0 < row_counts[0] <= 50_000
    assert (now(job).state, now(job).rows) == (ExportState.DONE, 50_000)


def test_cancelling_stops_the_runner(
    auditor: User, offer: Callable[[Rows], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "RENEWAL_SECONDS", 0.02)
    reports: list[str] = []

    def endless() -> Iterator[object]:
        number = 0
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            yield (number := number + 1)
            if number == 1000:
                services.cancel_export(job.pk, actor=auditor)
        reports.append("nobody stopped it")

    offer(endless)
    job = numbers(auditor)

    runner.run_export(job.pk)

    assert reports == []
    assert now(job).state == ExportState.CANCELLED
    assert files() == []
    assert actions(job) == ["export.requested", "export.cancelled"]


def test_a_failing_source_leaves_no_partial_file(auditor: User, offer: Callable[[Rows], None]) -> None:
    def broken_off() -> Iterator[object]:
        yield from range(100_000)
        raise ReadFailedError("The service went away")

    offer(broken_off)
    job = numbers(auditor)

    runner.run_export(job.pk)

    assert (now(job).state, now(job).failure_text) == (
        ExportState.FAILED,
        "The provider's data could not be read: The service went away",
    )
    assert files() == []


def test_a_bug_in_a_report_fails_the_export_and_not_the_process(
    auditor: User, offer: Callable[[Rows], None]
) -> None:
    def defective() -> Iterator[object]:
        yield os.environ["COUNTERSIGN_MISSING"]

    offer(defective)
    job = numbers(auditor)

    runner.run_export(job.pk)

    assert now(job).state == ExportState.FAILED
    assert "could not be written" in now(job).failure_text


class SlowFolder(PrivateFolder):
    """Keeps a file only once the lease of its runner was renewed, or after five seconds."""

    were_renewed: ClassVar[list[bool]] = []

    def put(self, path: Path, name: str) -> None:
        lease = LeaseRow.objects.filter(name="exports 0")
        begun, deadline = lease.get().held_until, time.monotonic() + 5
        while not (is_renewed := lease.get().held_until > begun) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.were_renewed.append(is_renewed)
        super().put(path, name)


def test_the_lease_is_kept_while_the_file_is_stored(
    auditor: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Into an object store, a large file takes longer than a lease lasts, and another runner would begin anew."""
    monkeypatch.setattr(runner, "RENEWAL_SECONDS", 0.05)
    folder = {**settings.STORAGES[EXPORTS], "BACKEND": f"{__name__}.{SlowFolder.__name__}"}
    settings.STORAGES = {**settings.STORAGES, EXPORTS: folder}
    job = requested_export(auditor)

    runner.run_export(job.pk)

    assert (SlowFolder.were_renewed, now(job).state) == ([True], ExportState.DONE)


def test_a_failed_commit_keeps_the_file_of_a_finished_export(
    auditor: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = requested_export(auditor)
    commit, lost = connection.commit, list[bool]()

    def stored_but_unconfirmed() -> None:
        is_lost = not lost and now(job).state == ExportState.DONE
        commit()
        if is_lost:
            lost.append(True)
            raise OperationalError("The connection was lost")

    monkeypatch.setattr(connection, "commit", stored_but_unconfirmed)

    runner.run_export(job.pk)

    job = now(job)
    assert (lost, job.state) == ([True], ExportState.DONE)
    assert hashlib.sha256(path_of(job).read_bytes()).hexdigest() == job.sha256


@pytest.mark.parametrize("point", ["export.writing", "export.written"])
def test_a_killed_process_leaves_no_partial_file_and_another_restarts(
    auditor: User, settings: Settings, point: str
) -> None:
    job = requested_export(auditor)

    killed = swept_by_a_process(settings, point)

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert now(job).state == ExportState.RUNNING
    assert [name for name in files() if not name.endswith(".part")] == []
    assert runner.run_next_export() == 0  # as long as its lease lasts
    with clock.use_clock(lambda: timezone.now() + runner.LEASE_DURATION):
        assert runner.run_next_export() == 1
    job = now(job)
    assert (job.state, job.tries) == (ExportState.DONE, 2)
    assert hashlib.sha256(path_of(job).read_bytes()).hexdigest() == job.sha256


def swept_by_a_process(settings: Settings, point: str) -> "subprocess.CompletedProcess[str]":
    """One round of the sweeper in a process of its own, around this test's database and folder."""
    own = {
        "COUNTERSIGN_DATA_DIR": str(settings.DATA_DIR),
        "COUNTERSIGN_DATABASE_URL": database_url(),
        "COUNTERSIGN_ENVIRONMENT": "sandbox",
        "COUNTERSIGN_GATEWAY_URL": "http://127.0.0.1:9/v2",
        "COUNTERSIGN_GATEWAY_URL_V4": "http://127.0.0.1:9/v4",
        "COUNTERSIGN_FAULT_POINT": f"{point}=kill",
    }
    return run_python("manage.py", "sweep", "--once", own=own, timeout=120)
