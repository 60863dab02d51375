"""Whoever stops reading and stays connected holds no place, no query and no thread; who reads slowly gets it all."""

import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.ledger.forms import TransactionFilterForm
from backoffice.reports.definitions.money import TRANSACTIONS
from backoffice.reports.exports import downloads, limits
from backoffice.reports.exports.downloads import ExportDownload, ReportDownload, SlowReaderError
from backoffice.reports.models import ExportJob
from backoffice.reports.report import ExportRequest
from tests.ledger.stored_transactions import store, unsaved
from tests.reports.export_requests import made, path_of
from tests.reports.exports.test_downloads import begin, recorded

pytestmark = pytest.mark.django_db(transaction=True)
WITHIN = 30  # seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets so many seconds pass for the deadlines of downloads, and keeps their own thread from checking meanwhile."""
    moment = [1000.0]

    def passes(seconds: float) -> None:
        moment[0] += seconds

    monkeypatch.setattr(downloads, "monotonic", lambda: moment[0])
    monkeypatch.setattr(downloads, "_WATCH_SECONDS", 3600.0)
    return passes


def rows() -> Iterator[object]:
    return (f"{number:0>200}" for number in range(5000))


def endless() -> Iterator[object]:
    return (f"{number:0>200}" for number in itertools.count())


def places(settings: Settings) -> int:
    """How many are free."""
    taken = []
    while limits._slots.acquire(blocking=False):
        taken.append(True)
    for _ in taken:
        limits._slots.release()
    return len(taken)


def test_a_slow_steady_client_gets_the_whole_file(auditor: User, clock: Callable[[float], None]) -> None:
    export = begin(rows, auditor)
    pieces = []
    for piece in export:
        pieces.append(piece)
        clock(downloads.CHUNK_TIME_LIMIT.total_seconds() - 1)
        export.stop_if_slow()

    assert len(pieces) > 5
    assert b"".join(pieces).count(b"\r\n") == 5001
    assert recorded()[-1] == ("report.exported", 5000, True)


def test_a_client_that_reads_nothing_for_a_minute_is_disconnected(
    auditor: User, clock: Callable[[float], None], settings: Settings
) -> None:
    hung_up: list[bool] = []
    export = begin(endless, auditor)
    export._hang_up = lambda: hung_up.append(True)
    next(export)
    next(export)
    assert places(settings) == settings.EXPORT_STREAMS - 1

    clock(downloads.CHUNK_TIME_LIMIT.total_seconds() + 1)
    export.stop_if_slow()

    assert hung_up == [True]
    assert places(settings) == settings.EXPORT_STREAMS
    assert recorded()[-1] == ("report.exported", export.rows_sent, False)
    with pytest.raises(SlowReaderError):
        next(export)
    export.close()
    assert len(recorded()) == 2


def test_a_download_that_is_never_read_is_disconnected(
    auditor: User, clock: Callable[[float], None], settings: Settings
) -> None:
    export = begin(endless, auditor)
    clock(downloads.CHUNK_TIME_LIMIT.total_seconds() + 1)
    export.stop_if_slow()
    assert places(settings) == settings.EXPORT_STREAMS


def test_a_download_is_limited_to_half_an_hour(
    auditor: User, clock: Callable[[float], None], settings: Settings
) -> None:
    export = begin(endless, auditor)
    for _ in range(60):
        next(export)
        clock(30)
    clock(1)
    with pytest.raises(SlowReaderError):
        next(export)
    export.close()
    assert places(settings) == settings.EXPORT_STREAMS
    assert recorded()[-1][2] is False


def test_a_paused_client_holds_no_slot_query_or_thread(
    auditor: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread sends into a real connection whose other end reads nothing and stays, as a server's does."""
    monkeypatch.setattr(downloads, "CHUNK_TIME_LIMIT", timedelta(seconds=1))
    monkeypatch.setattr(downloads, "_WATCH_SECONDS", 0.05)
    store([unsaved(sender="x" * 200) for _ in range(20_000)])
    form = TransactionFilterForm({})
    assert form.is_valid()
    ours, theirs = socket.socketpair()
    export_request = ExportRequest(TRANSACTIONS, auditor, form, ZoneInfo("UTC"), TRANSACTIONS.columns)

    def serve() -> None:
        export = ReportDownload(export_request, hang_up=lambda: ours.shutdown(socket.SHUT_RDWR))
        try:
            for piece in export:
                ours.sendall(piece)
        except OSError:
            broken.append(True)
        finally:
            export.close()
            connection.close()

    broken: list[bool] = []
    server = threading.Thread(target=serve)
    server.start()
    server.join(WITHIN)

    assert not server.is_alive()
    assert broken == [True]
    assert places(settings) == settings.EXPORT_STREAMS
    assert Entry.objects.get(action="report.exported").detail["complete"] is False
    assert queries_at_work() == 0
    theirs.close()
    ours.close()


@pytest.mark.usefixtures("empty_folder")
def test_a_paused_client_of_a_finished_file_holds_no_slot_or_thread(
    auditor: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "CHUNK_TIME_LIMIT", timedelta(seconds=1))
    monkeypatch.setattr(downloads, "_WATCH_SECONDS", 0.05)
    job = finished(auditor, b"x" * 4_000_000)
    ours, theirs = socket.socketpair()
    broken: list[bool] = []

    def serve() -> None:
        file = ExportDownload(job.pk, actor=auditor, hang_up=lambda: ours.shutdown(socket.SHUT_RDWR))
        try:
            for piece in file:
                ours.sendall(piece)
        except OSError:
            broken.append(True)
        finally:
            file.close()
            connection.close()

    server = threading.Thread(target=serve)
    server.start()
    server.join(WITHIN)

    assert not server.is_alive()
    assert broken == [True]
    assert places(settings) == settings.EXPORT_STREAMS
    theirs.close()
    ours.close()


@pytest.mark.usefixtures("empty_folder")
def test_a_large_file_may_take_as_long_as_a_slow_connection_needs(
    auditor: User, clock: Callable[[float], None]
) -> None:
    file = ExportDownload(finished(auditor, b"x" * 1_000_000).pk, actor=auditor)
    allowed = downloads.DOWNLOAD_TIME_LIMIT.total_seconds() + 1_000_000 / downloads.MIN_BYTES_PER_SECOND
    for _ in range(4):
        next(file)
        clock(allowed / 4)
    next(file)
    clock(1)
    with pytest.raises(SlowReaderError):
        next(file)
    file.close()


@pytest.mark.usefixtures("empty_folder")
def test_finished_files_share_the_download_limit(
    client: Client, auditor: User, sign_in: Callable[[Client, User], Client], settings: Settings
) -> None:
    job = finished(auditor, b"x" * 200_000)
    browser, address = sign_in(client, auditor), reverse("reports:download", args=[job.pk])
    held = [browser.get(address) for _ in range(settings.EXPORT_STREAMS)]

    refused = browser.get(address, follow=True)
    assert "Too many downloads are in progress." in refused.content.decode()
    assert Entry.objects.filter(action="export.downloaded").count() == settings.EXPORT_STREAMS

    for answer in held:
        assert (answer["Content-Length"], len(b"".join(answer))) == ("200000", 200_000)
    assert places(settings) == settings.EXPORT_STREAMS
    path_of(job).unlink()
    assert "This file was deleted." in browser.get(address, follow=True).content.decode()
    assert places(settings) == settings.EXPORT_STREAMS


def finished(person: User, content: bytes) -> ExportJob:
    """An export whose file is this."""
    job = made(person)
    path_of(job).write_bytes(content)
    ExportJob.objects.filter(pk=job.pk).update(size=len(content))
    return job


def queries_at_work() -> int:
    """Of others than this connection, in PostgreSQL; SQLite has none that outlive their connection."""
    if connection.vendor != "postgresql":
        return 0
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND query LIKE 'COPY%%' AND state = 'active'"
        )
        return int(cursor.fetchone()[0])
