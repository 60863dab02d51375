"""The statement and the breaks of the balances as files: the same bytes on both engines."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.ledger.models import BalanceBreak, Mirror
from backoffice.reports.definitions import money
from backoffice.reports.definitions.catalogue import REPORTS
from backoffice.reports.rendering import database
from backoffice.reports.rendering.export_file import csv_chunks
from tests.ledger.statements.test_breaks import merged, record
from tests.reports.definitions.test_golden import LONG, by_its_texts, by_the_database, export_request
from tests.reports.download import Download
from tests.reports.rendering.test_copy import until

pytestmark = pytest.mark.django_db(transaction=True)  # a report reads by a connection of its own
GOLDEN = Path(__file__).with_name("golden")
Get = Callable[..., Download]


@pytest.fixture(autouse=True)
def _books() -> None:
    Mirror.objects.create(pk=1)
    merged(
        record("A", 0, "100", "50.5", sender="=Ada"),
        record("C", 1, "160.5", "1"),  # of one moment: its balance says that it follows
        record("B", 1, "150.5", "10"),
        record("D", 2, "161.5", "20.000000000000000001", type="withdrawal", fee="1.5"),
        record("E", 3, "-3", "7"),
        record("F", 4, None, "5"),
        record("G", 5, "9", "1", type="transfer"),
        record("H", 6, "9", "1", status="processing"),
        record("X", 0, "0", "5", currency="USD"),
    )
    BalanceBreak.objects.update(detected_at="2026-03-04T06:00:00Z")


@pytest.mark.parametrize("name", ["statement", "continuity"])
def test_statement_reports_give_the_stored_bytes(auditor: User, name: str) -> None:
    one = export_request(REPORTS[name], auditor, "Africa/Lagos")
    assert by_the_database(one) == (GOLDEN / f"{name}.csv").read_bytes()


def test_the_breaks_report_is_identical_in_every_renderer(auditor: User) -> None:
    one = export_request(REPORTS["continuity"], auditor)
    assert by_its_texts(one) == by_the_database(one)


def test_a_statement_is_written_from_one_snapshot(auditor: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something comes in before what was read and something changes behind it, after the first lines have left."""
    monkeypatch.setattr(money, "BATCH", 2)
    monkeypatch.setattr(database, "_SNAPSHOT_BATCH", 1)
    one = export_request(REPORTS["statement"], auditor)
    whole = by_the_database(one)
    with timezone.override(one.zone), closing(csv_chunks(one, at_most=LONG)) as pieces:
        begun = [next(pieces)]
        merged(
            record("D", 2, "161.5", "30"),
            record("late", 4, "9", "1"),
            record("Y", 0, "0", "5", currency="EUR"),
        )
        content = b"".join(chunk.content for chunk in [*begun, *pieces])

    assert content == whole
    assert b"late" in by_the_database(one)


def test_the_reader_of_a_statement_may_write_meanwhile_and_no_connection_is_left(auditor: User) -> None:
    usual = connection.connection
    with closing(csv_chunks(export_request(REPORTS["statement"], auditor), at_most=LONG)) as pieces:
        next(pieces)
        BalanceBreak.objects.update(detected_at="2026-03-04T07:00:00Z")

    assert connection.connection is usual
    assert until(lambda: transactions_of_others() == 0), "a server ends what was closed a moment later"


def transactions_of_others() -> int:
    """Open ones, beside this connection's, in PostgreSQL; in SQLite none outlives its connection."""
    if connection.vendor != "postgresql":
        return 0
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND xact_start IS NOT NULL"
        )
        return int(cursor.fetchone()[0])


@pytest.fixture
def _reader(client: Client, auditor: User, sign_in: Callable[[Client, User], Client]) -> None:
    sign_in(client, auditor)


@pytest.mark.usefixtures("_reader")
def test_a_statement_is_filtered_and_of_any_length(download: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = download("statement", currency="NGN").rows
    monkeypatch.setattr(money, "BATCH", 2)
    assert download("statement", currency="NGN").rows == whole
    assert {row["currency"] for row in whole} == {"NGN"}
    later = download("statement", currency="NGN", since="2026-03-05").rows
    assert [(row["line"], row["balance"]) for row in later] == [("opening", "10"), ("closing", "10")]
    assert download("statement", until="2026-03-03").rows == []
    assert download("continuity", currency="USD").rows == []
