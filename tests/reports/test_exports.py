"""Exports in the background: whole files or none, made once whoever makes them, by the rights of their person."""

import csv
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest
from django import forms
from django.contrib.auth.models import Group
from django.db import IntegrityError, OperationalError, connection, transaction
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.reports import catalogue, services
from backoffice.reports.errors import GoneError, NotAllowedError
from backoffice.reports.models import ExportJob, folder
from backoffice.reports.report import Column, Report, no_period
from backoffice.reports.services import lease, running
from backoffice.reports.services.moves import move
from backoffice.reports.services.tidying import FORGOTTEN_AFTER
from backoffice.reports.states import EDGES, State
from backoffice.reports.xlsx import encode_xlsx
from payments_gateway import ReadFailedError
from tests.reports.asking import asked_for, made, now
from tests.stack.test_brokers import database_url

pytestmark = pytest.mark.django_db(transaction=True)
Rows = Callable[[], Iterator[object]]


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Callable[[Rows], None]:
    """A report `numbers` with these rows, for the length of the test."""

    def offered(rows: Rows) -> None:
        report = Report(
            name="numbers",
            title="Numbers",
            about="",
            permission="audit.view_entry",
            form=forms.Form,
            columns=(Column("number", "", lambda row: row), Column("end", "", lambda _row: "")),
            rows=lambda _user, _form: rows(),
            period=no_period,
        )
        monkeypatch.setitem(catalogue.REPORTS, report.name, report)

    return offered


def numbers(person: User) -> ExportJob:
    return asked_for(person, report="numbers", columns=[])


def files() -> list[str]:
    return sorted(path.name for path in folder().iterdir())


def actions(job: ExportJob) -> list[str]:
    return [
        entry.action
        for entry in Entry.objects.order_by("position")
        if entry.detail.get("export") == str(job.pk)
    ]


@pytest.fixture(autouse=True)
def _empty_folder() -> None:
    for path in folder().iterdir():
        path.unlink()


def test_a_finished_export_is_a_file_with_its_digest_and_rows(auditor: User) -> None:
    job = made(auditor)

    content = job.file.read_bytes()
    rows = list(csv.reader(content.decode().splitlines()))
    assert (job.state, job.size, job.rows) == (State.DONE, len(content), len(rows) - 1)
    assert job.sha256 == hashlib.sha256(content).hexdigest()
    assert rows[0] == ["position", "actor", "action"]
    assert rows[1][2] == "export.requested"
    assert job.name.startswith("countersign-audit-log-as-of-")
    assert job.expires_at is not None
    assert job.ended_at is not None
    assert job.expires_at - job.ended_at == timedelta(days=7)


def test_the_file_is_for_nobody_else_on_this_machine(auditor: User) -> None:
    job = made(auditor)

    assert job.file.stat().st_mode & 0o777 == 0o600
    assert folder().stat().st_mode & 0o777 == 0o700
    assert "audit" not in job.stored_as
    assert files() == [job.stored_as]


def test_an_export_is_on_record_from_the_wish_to_the_file(auditor: User) -> None:
    job = made(auditor)

    assert actions(job) == ["export.requested", "export.completed"]
    completed = Entry.objects.filter(action="export.completed").get()
    assert completed.actor_id == auditor.pk
    assert completed.detail["sha256"] == job.sha256
    assert completed.detail["rows"] == job.rows


def test_every_move_that_the_table_does_not_name_is_refused(auditor: User) -> None:
    job = asked_for(auditor)
    for before, to in product(State, State):
        ExportJob.objects.filter(pk=job.pk).update(state=before, size=1, sha256="0", stored_as="x")

        assert move(now(job), to) is (to in EDGES[before]), (before, to)
        assert now(job).state == (to if to in EDGES[before] else before)


def test_the_database_refuses_a_finished_export_without_a_file(auditor: User) -> None:
    job = asked_for(auditor)

    with pytest.raises(IntegrityError), transaction.atomic():
        ExportJob.objects.filter(pk=job.pk).update(state=State.DONE)


def test_who_may_not_read_a_report_cannot_ask_for_it(maker: User) -> None:
    with pytest.raises(NotAllowedError):
        asked_for(maker)

    assert not ExportJob.objects.exists()


def test_whoever_lost_the_right_meanwhile_gets_no_file(auditor: User) -> None:
    job = asked_for(auditor)
    auditor.groups.clear()

    services.run_export(job.pk)

    job = now(job)
    assert (job.state, job.problem) == (State.FAILED, "Femi Ade may not read this report.")
    assert files() == []
    assert actions(job) == ["export.requested", "export.failed"]


def test_whoever_lost_the_right_afterwards_cannot_take_the_file_away(auditor: User) -> None:
    job = made(auditor)
    auditor.groups.clear()

    with pytest.raises(NotAllowedError):
        services.hand_out(job.pk, actor=User.objects.get(pk=auditor.pk))

    assert "export.downloaded" not in actions(job)


def test_every_download_is_on_record(auditor: User) -> None:
    job = made(auditor)

    for _ in range(2):
        _, file = services.hand_out(job.pk, actor=auditor)
        with file:
            assert hashlib.sha256(file.read()).hexdigest() == job.sha256

    assert actions(job)[2:] == ["export.downloaded", "export.downloaded"]


def test_a_file_that_nobody_got_is_not_on_record_as_taken_away(auditor: User) -> None:
    job = made(auditor)
    job.file.unlink()

    with pytest.raises(GoneError):
        services.hand_out(job.pk, actor=auditor)

    assert "export.downloaded" not in actions(job)


def test_an_export_is_made_once_however_many_try(auditor: User, settings: Settings) -> None:
    settings.EXPORTS_AT_ONCE = 10
    job = asked_for(auditor)

    def attempt(_number: int) -> None:
        try:
            services.run_export(job.pk)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(attempt, range(4)))

    assert actions(job) == ["export.requested", "export.completed"]
    assert len(files()) == 1


def test_no_more_are_made_at_once_than_allowed(auditor: User, settings: Settings) -> None:
    settings.EXPORTS_AT_ONCE = 1
    first, second = asked_for(auditor), asked_for(auditor)
    later = clock.now() + timedelta(minutes=1)
    ExportJob.objects.filter(pk=first.pk).update(state=State.RUNNING, lease_until=later)

    assert services.run_due() == 0
    assert now(second).state == State.WAITING


def test_one_round_makes_one_file_so_that_a_stop_is_seen_before_the_next(auditor: User) -> None:
    first, second = asked_for(auditor), asked_for(auditor)

    assert services.run_due() == 1
    assert (now(first).state, now(second).state) == (State.DONE, State.WAITING)
    assert services.run_due() == 1
    assert now(second).state == State.DONE


def test_a_commit_that_breaks_off_takes_no_file_from_a_state_that_names_it(
    auditor: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = asked_for(auditor)
    commit, lost = connection.commit, list[bool]()

    def kept_but_not_told() -> None:
        is_lost = not lost and now(job).state == State.DONE
        commit()
        if is_lost:
            lost.append(True)
            raise OperationalError("The connection was lost")

    monkeypatch.setattr(connection, "commit", kept_but_not_told)

    services.run_export(job.pk)

    job = now(job)
    assert (lost, job.state) == ([True], State.DONE)
    assert hashlib.sha256(job.file.read_bytes()).hexdigest() == job.sha256


def test_what_a_killed_worker_began_is_made_anew_from_nothing(auditor: User) -> None:
    job = asked_for(auditor)
    (folder() / "half.part").write_bytes(b"position,actor")
    ExportJob.objects.filter(pk=job.pk).update(
        state=State.RUNNING, lease_until=clock.now(), rows=999, tries=1
    )

    assert services.run_due() == 1

    job = now(job)
    assert (job.state, job.rows) == (State.DONE, 1)
    assert job.file.read_bytes().startswith(b"position,actor,action\r\n1,")


def test_what_kills_every_worker_is_given_up(auditor: User) -> None:
    job = asked_for(auditor)
    ExportJob.objects.filter(pk=job.pk).update(
        state=State.RUNNING, lease_until=clock.now(), tries=running.TRIES
    )

    services.run_due()

    assert (now(job).state, now(job).problem) == (State.FAILED, "It was broken off 3 times.")


def test_a_runner_that_lost_its_lease_changes_nothing(auditor: User, offer: Callable[[Rows], None]) -> None:
    def overtaken() -> Iterator[object]:
        yield 1
        taken = {"runner": "00000000-0000-4000-8000-000000000000"}
        ExportJob.objects.update(lease_until=clock.now() + timedelta(minutes=1), **taken)
        yield 2

    offer(overtaken)
    job = numbers(auditor)

    services.run_export(job.pk)

    assert now(job).state == State.RUNNING
    assert str(now(job).runner).startswith("00000000")
    assert files() == []
    assert actions(job) == ["export.requested"]


def test_a_lease_is_renewed_and_the_rows_told_while_it_is_made(
    auditor: User, offer: Callable[[Rows], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEWED_EVERY", 0.02)
    told: list[int] = []

    def slow() -> Iterator[object]:
        yield from range(50_000)
        begun, deadline = clock.now() + lease.LEASE, time.monotonic() + 60
        while not told and time.monotonic() < deadline:
            seen = ExportJob.objects.get()
            if seen.rows and seen.lease_until and seen.lease_until > begun:
                told.append(seen.rows)

    offer(slow)
    job = numbers(auditor)

    services.run_export(job.pk)

    assert 0 < told[0] <= 50_000
    assert (now(job).state, now(job).rows) == (State.DONE, 50_000)


def test_who_cancels_stops_the_one_who_makes_it(
    auditor: User, offer: Callable[[Rows], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEWED_EVERY", 0.02)
    told: list[str] = []

    def endless() -> Iterator[object]:
        number = 0
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            yield (number := number + 1)
            if number == 1000:
                services.cancel_export(job.pk, actor=auditor)
        told.append("nobody stopped it")

    offer(endless)
    job = numbers(auditor)

    services.run_export(job.pk)

    assert told == []
    assert now(job).state == State.CANCELLED
    assert files() == []
    assert actions(job) == ["export.requested", "export.cancelled"]


def test_what_has_ended_cannot_be_cancelled(auditor: User) -> None:
    job = made(auditor)

    with pytest.raises(GoneError):
        services.cancel_export(job.pk, actor=auditor)

    assert now(job).state == State.DONE


def test_a_source_that_breaks_off_leaves_no_half_of_a_file(
    auditor: User, offer: Callable[[Rows], None]
) -> None:
    def broken_off() -> Iterator[object]:
        yield from range(100_000)
        raise ReadFailedError("The service went away")

    offer(broken_off)
    job = numbers(auditor)

    services.run_export(job.pk)

    assert (now(job).state, now(job).problem) == (State.FAILED, "The service went away")
    assert files() == []


def test_a_defect_in_a_report_costs_the_file_and_not_the_process(
    auditor: User, offer: Callable[[Rows], None]
) -> None:
    def defective() -> Iterator[object]:
        yield os.environ["COUNTERSIGN_MISSING"]

    offer(defective)
    job = numbers(auditor)

    services.run_export(job.pk)

    assert now(job).state == State.FAILED
    assert "in its log" in now(job).problem


def test_the_same_can_be_asked_for_again(auditor: User) -> None:
    job = made(auditor, filters={"group": ["export"]}, has_mark=True)

    again = services.request_again(job, actor=auditor)

    assert again.pk != job.pk
    assert again.wish == job.wish
    with pytest.raises(GoneError):
        services.request_again(again, actor=auditor)


def test_filters_columns_and_zone_count_in_the_background_too(auditor: User) -> None:
    job = made(
        auditor,
        filters={"group": ["export"], "since": ["2026-01-01"]},
        columns=["at", "action"],
        time_zone="Asia/Kathmandu",
        has_mark=True,
    )

    content = job.file.read_bytes()
    assert content.startswith(b"\xef\xbb\xbfat,action\r\n")
    assert b"+05:45,export.requested\r\n" in content
    assert job.name.startswith("countersign-audit-log-2026-01-01-to-")


def test_after_seven_days_the_file_is_gone(auditor: User) -> None:
    job = made(auditor)
    path = job.file
    ExportJob.objects.filter(pk=job.pk).update(expires_at=clock.now())

    with pytest.raises(GoneError):
        services.hand_out(job.pk, actor=auditor)
    assert services.tidy_exports() == 1

    assert not path.exists()
    assert now(job).state == State.EXPIRED
    assert actions(job)[-1] == "export.expired"
    assert services.tidy_exports() == 0


def test_what_killed_workers_left_is_removed_and_nothing_else(auditor: User) -> None:
    job = made(auditor)
    old = time.time() - FORGOTTEN_AFTER.total_seconds() - 60
    for name in ("left.part", "left"):
        (folder() / name).write_bytes(b"x")
        os.utime(folder() / name, (old, old))
    os.utime(job.file, (old, old))
    (folder() / "being-written.part").write_bytes(b"x")

    assert services.tidy_exports() == 2

    assert files() == sorted(["being-written.part", job.stored_as])


@pytest.fixture
def killed_at_rows() -> Iterator[Path]:
    """What a killed maker of an Excel file leaves: a folder with its rows, from long ago."""
    rows = encode_xlsx(["a", "b"], ([str(number), ""] for number in range(2500)), folder=str(folder()))
    next(rows)
    (room,) = folder().iterdir()
    old = time.time() - 2 * FORGOTTEN_AFTER.total_seconds()
    for path in (*room.iterdir(), room):
        os.utime(path, (old, old))
    yield room
    rows.close()


def test_rows_that_a_killed_worker_left_are_removed(killed_at_rows: Path) -> None:
    assert services.tidy_exports() == 1

    assert files() == []


def test_rows_of_an_export_that_is_being_made_stay(auditor: User, killed_at_rows: Path) -> None:
    begun = clock.now() - 2 * FORGOTTEN_AFTER
    job = asked_for(auditor)
    ExportJob.objects.filter(pk=job.pk).update(state=State.RUNNING, started_at=begun)

    assert services.tidy_exports() == 0

    assert files() == [killed_at_rows.name]


def test_rows_that_are_still_written_stay_however_old_their_folder(killed_at_rows: Path) -> None:
    os.utime(next(killed_at_rows.iterdir()))

    assert services.tidy_exports() == 0


def test_a_filter_that_no_longer_makes_sense_fails_the_export(auditor: User) -> None:
    job = asked_for(auditor, filters={"actor": ["999999"]})

    services.run_export(job.pk)

    assert now(job).state == State.FAILED
    assert "actor" in now(job).problem


def test_a_deactivated_person_gets_no_file(auditor: User) -> None:
    job = asked_for(auditor)
    User.objects.filter(pk=auditor.pk).update(is_active=False)

    services.run_export(job.pk)

    assert now(job).state == State.FAILED


def test_a_role_given_back_lets_a_new_one_be_made(auditor: User) -> None:
    job = asked_for(auditor)
    auditor.groups.clear()
    services.run_export(job.pk)
    auditor.groups.set(Group.objects.filter(name=Role.AUDITOR))

    again = services.request_again(now(job), actor=User.objects.get(pk=auditor.pk))
    services.run_export(again.pk)

    assert now(again).state == State.DONE


@pytest.mark.parametrize("point", ["export.writing", "export.written"])
def test_a_killed_process_leaves_no_half_of_a_file_and_another_begins_anew(
    auditor: User, settings: Settings, point: str
) -> None:
    job = asked_for(auditor)

    killed = swept_by_a_process(settings, point)

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert now(job).state == State.RUNNING
    assert [name for name in files() if not name.endswith(".part")] == []
    assert services.run_due() == 0  # as long as its lease lasts
    with clock.running_by(lambda: timezone.now() + lease.LEASE):
        assert services.run_due() == 1
    job = now(job)
    assert (job.state, job.tries) == (State.DONE, 2)
    assert hashlib.sha256(job.file.read_bytes()).hexdigest() == job.sha256


def swept_by_a_process(settings: Settings, point: str) -> "subprocess.CompletedProcess[str]":
    """One round of the sweeper in a process of its own, around this test's database and folder."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERSIGN_")}
    own = {
        "DJANGO_SETTINGS_MODULE": "backoffice.settings",
        "COUNTERSIGN_DATA_DIR": str(settings.DATA_DIR),
        "COUNTERSIGN_DATABASE_URL": database_url(),
        "COUNTERSIGN_ENVIRONMENT": "sandbox",
        "COUNTERSIGN_GATEWAY_URL": "http://127.0.0.1:9/v2",
        "COUNTERSIGN_GATEWAY_URL_V4": "http://127.0.0.1:9/v4",
        "COUNTERSIGN_FAULT_POINT": f"{point}=kill",
    }
    return subprocess.run(
        [sys.executable, "manage.py", "sweep", "--once"],
        env={**inherited, **own},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
