"""What PostgreSQL writes itself: of one moment, in large pieces, read only, and ended when nobody reads any longer."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from django import forms
from django.db import DatabaseError, connection
from django.db.models import Func, TextField, Value
from psycopg.errors import QueryCanceled, UndefinedFunction

from backoffice.accounts.models import User
from backoffice.core import background
from backoffice.ledger.models import Transaction
from backoffice.reports.definitions.catalogue import REPORTS
from backoffice.reports.exports import runner, services
from backoffice.reports.models import ExportState
from backoffice.reports.rendering.csv import CHUNK_BYTES, FileChunk
from backoffice.reports.rendering.database import snapshot_connection
from backoffice.reports.rendering.export_file import csv_chunks
from backoffice.reports.report import Column, ExportRequest, StoredReport
from tests.reports import odd_values
from tests.reports.export_requests import now, requested_export

pytestmark = pytest.mark.django_db(transaction=True)
LONG = timedelta(minutes=5)
UTC = ZoneInfo("UTC")

on_postgresql = pytest.mark.skipif(connection.vendor != "postgresql", reason="only PostgreSQL has COPY")
REPEAT = Func(Value("x"), Value(2000), function="repeat", output_field=TextField())
SLEEP = Func(
    Value(30), function="pg_sleep", template="(%(function)s(%(expressions)s)::text)", output_field=TextField()
)


def chunks(
    user: User, *columns: Column[Transaction], at_most: timedelta = LONG
) -> Generator[FileChunk, None, None]:
    report = StoredReport(
        name="copied",
        title="Copied",
        about="",
        permissions=("ledger.view_transaction",),
        form=forms.Form,
        columns=(Column("transaction_id", "", "transaction_id"), *columns),
        query=lambda _user, _form: Transaction.objects.all(),
        order=("-occurred_at", "-id"),
    )
    return csv_chunks(ExportRequest(report, user, forms.Form({}), UTC, report.columns), at_most=at_most)


def many(times: int) -> None:
    for _ in range(times):
        rows = list(Transaction.objects.all()) or odd_values.stored()
        count = Transaction.objects.count()
        for number, row in enumerate(rows, start=count):
            row.pk, row.transaction_id = None, f"more-{number}"
        Transaction.objects.bulk_create(rows)


def at_work() -> int:
    """How many statements of others the server works at for the exports of this test."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE state = 'active' AND pid <> pg_backend_pid() AND query LIKE 'COPY%'"
            " AND datname = current_database()"
        )
        return int(cursor.fetchone()[0])


def until(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if holds():
            return True
    return False


def test_the_header_is_sent_before_the_first_row(auditor: User) -> None:
    odd_values.stored()
    with closing(chunks(auditor)) as pieces:
        assert next(pieces) == FileChunk(b'"transaction_id"\r\n', 0)


@on_postgresql
def test_a_slow_query_does_not_delay_the_header(auditor: User) -> None:
    odd_values.stored()
    with closing(chunks(auditor, Column("slow", "", SLEEP))) as pieces:
        assert next(pieces).content == b"transaction_id,slow\r\n"
        assert at_work() == 1


def test_the_file_is_read_from_one_snapshot(auditor: User) -> None:
    many(6)  # more than the server sends ahead
    before = Transaction.objects.count()
    with closing(
        chunks(auditor, Column("long", "", REPEAT if connection.vendor == "postgresql" else "sender"))
    ) as pieces:
        next(pieces)
        first = next(pieces)
        Transaction.objects.filter(transaction_id="odd-36").update(transaction_id="changed")
        Transaction.objects.filter(transaction_id__startswith="more-10").delete()
        rest = list(pieces)

    content = b"".join(chunk.content for chunk in [first, *rest])
    assert content.count(b"\r\n") == before
    assert b"changed" not in content


@on_postgresql
def test_chunks_are_large_and_every_row_is_counted(auditor: User) -> None:
    many(6)
    pieces = list(chunks(auditor, Column("long", "", REPEAT)))

    assert all(len(piece.content) >= CHUNK_BYTES for piece in pieces[1:-1])
    assert len(pieces) > 20
    assert sum(piece.rows for piece in pieces) == Transaction.objects.count()


@on_postgresql
def test_an_aborted_download_cancels_the_query(auditor: User) -> None:
    odd_values.stored()
    pieces = chunks(auditor, Column("slow", "", SLEEP))
    next(pieces)
    assert until(lambda: at_work() == 1)

    pieces.close()

    assert until(lambda: at_work() == 0)


@on_postgresql
@pytest.mark.parametrize("end", ["cancel", "stop"])
def test_an_export_can_be_stopped_while_the_query_finds_no_row(
    auditor: User, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    odd_values.stored()
    monkeypatch.setattr(runner, "RENEWAL_SECONDS", 0.02)
    slow = replace(
        REPORTS["audit-log"], name="slow", columns=(Column("slow", "", SLEEP), Column("again", "", SLEEP))
    )
    monkeypatch.setitem(REPORTS, slow.name, slow)
    job = requested_export(auditor, report=slow.name, columns=[])

    def make() -> None:
        try:
            runner.run_export(job.pk)
        finally:
            connection.close()

    preparer = threading.Thread(target=make)
    preparer.start()
    try:
        assert until(lambda: at_work() == 1)
        if end == "cancel":
            services.cancel_export(job.pk, actor=auditor)
        else:
            background.stop_requested.set()
        preparer.join(10)
        assert not preparer.is_alive()
    finally:
        background.stop_requested.clear()
        preparer.join()

    assert at_work() == 0
    assert now(job).state == (ExportState.CANCELLED if end == "cancel" else ExportState.WAITING)


@on_postgresql
def test_a_query_timeout_aborts_the_file(auditor: User) -> None:
    odd_values.stored()
    pieces = chunks(auditor, Column("slow", "", SLEEP), at_most=timedelta(seconds=1))
    next(pieces)

    with pytest.raises(QueryCanceled):
        list(pieces)


@on_postgresql
def test_a_refused_query_gives_no_file(auditor: User) -> None:
    unknown = Func(Value("x"), function="no_such_function", output_field=TextField())

    with pytest.raises(UndefinedFunction):
        list(chunks(auditor, Column("unknown", "", unknown)))


def test_exports_use_a_read_only_transaction(auditor: User) -> None:
    with (
        snapshot_connection(UTC, at_most=LONG) as reading,
        reading.cursor() as cursor,
        pytest.raises(DatabaseError),
    ):
        cursor.execute("DELETE FROM ledger_facet")


def test_the_connection_is_closed_afterwards(auditor: User) -> None:
    with snapshot_connection(UTC, at_most=LONG) as reading:
        assert reading.connection is not None

    assert reading.connection is None
