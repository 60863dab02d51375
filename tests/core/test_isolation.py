"""One row after the other: what the database does to one, or to all of them."""

import math
import time
from collections.abc import Hashable, Iterator

import pytest
from django.db import InterfaceError, InternalError, OperationalError, connection

from backoffice.core import isolation
from backoffice.operations.models.operations import Release

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_unavailable_database_is_not_blamed_on_a_row() -> None:
    def is_away(*_: object) -> None:
        raise OperationalError("The server closed the connection unexpectedly")

    with connection.execute_wrapper(is_away), pytest.raises(OperationalError):
        isolation.run_each_isolated(marked, {1: "one"}, failed=isolation.ignore)
    assert isolation.postponed() == set()


def test_a_read_only_database_is_not_blamed_on_a_row(only_reading: None) -> None:
    """As after a fail-over to a standby: PostgreSQL calls it an internal error."""
    with pytest.raises((InternalError, OperationalError)):
        isolation.run_each_isolated(marked, {1: "one"}, failed=isolation.ignore)
    assert isolation.run_isolated("mark", lambda: marked(1)) is None
    assert isolation.postponed() == set()


@pytest.mark.parametrize("error", [OperationalError, InternalError, InterfaceError])
def test_a_database_error_on_one_row_does_not_stop_the_others(error: type[Exception]) -> None:
    """A statement that took too long, a deadlock: the database answers whoever asks next."""
    tried: list[str] = []

    def fails_for_the_first(row: str) -> None:
        tried.append(row)
        connection.ensure_connection()
        if row == "first":
            raise error

    def round_of_all() -> int:
        return len(
            isolation.run_each_isolated(
                fails_for_the_first, {"first": "1", "second": "2"}, failed=isolation.ignore
            )
        )

    assert [round_of_all(), round_of_all()] == [1, 1]
    assert tried == ["first", "second", "second"]


def test_an_incident_that_cannot_be_raised_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_: int) -> None:
        raise LookupError

    def cannot_be_recorded(*_: object) -> None:
        raise OperationalError

    assert isolation.run_each_isolated(fails, {1: "one", 2: "two"}, failed=cannot_be_recorded) == []
    assert "The failure of one could not be stored" in caplog.text
    assert len(isolation.postponed()) == 2


def test_what_is_no_longer_postponed_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that failed and was then closed elsewhere is never tried again, and its key may hold much."""

    def fails(_: int) -> None:
        raise LookupError

    isolation.run_each_isolated(fails, {1: "one"}, failed=isolation.ignore)
    assert len(isolation._postponed_until) == 1
    later = time.monotonic() + isolation.POSTPONED_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert isolation.run_each_isolated(marked, {2: "two"}, failed=isolation.ignore) == [0]
    assert isolation._postponed_until == {}


def test_a_job_is_not_postponed_by_a_database_error(caplog: pytest.LogCaptureFixture) -> None:
    tried: list[str] = []

    def is_cut_off_once() -> int:
        tried.append("once more")
        if len(tried) == 1:
            raise InterfaceError
        return 7

    assert [isolation.run_isolated("sync", is_cut_off_once) for _ in range(2)] == [None, 7]
    assert "The job sync failed in the database" in caplog.text


def test_an_unavailable_database_takes_one_line_a_minute_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All jobs of a sweeper fail every second, and an outage must not fill the disk of its log."""
    now = time.monotonic() + isolation.POSTPONED_SECONDS
    monkeypatch.setattr(isolation, "_unavailable_logged_at", -math.inf)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    failures: list[str] = []

    def is_away(*_: object) -> None:
        raise OperationalError("connection refused\nIs the server running?")

    def round_of_two_jobs() -> list[object]:
        with connection.execute_wrapper(is_away):
            return [
                isolation.run_isolated(name, lambda: marked(1), failed=lambda job, _: failures.append(job))
                for name in ("mark", "sync")
            ]

    assert [round_of_two_jobs() for _ in range(3)] == [[None, None]] * 3
    now += isolation.POSTPONED_SECONDS
    round_of_two_jobs()
    assert [(record.exc_info, record.message.partition(": ")[2]) for record in caplog.records] == [
        (None, "connection refused Is the server running?")
    ] * 2
    assert failures == [], "a database that is away cannot store them"
    assert isolation.postponed() == set()


def marked(_: int) -> int:
    return Release.objects.update(blocker=None)


@pytest.fixture
def only_reading() -> Iterator[None]:
    """Connections, new ones too, that the database lets only read."""
    before = connection.settings_dict["OPTIONS"]
    reads = (
        {"init_command": "PRAGMA query_only = ON"}
        if connection.vendor == "sqlite"
        else {"options": "-c default_transaction_read_only=on"}
    )
    connection.close()
    connection.settings_dict["OPTIONS"] = {**before, **reads}
    yield
    connection.settings_dict["OPTIONS"] = before
    connection.close()


class TestLostConnection:
    """A database that fails over and is back at once: rows are not postponed."""

    def test_a_connection_lost_at_a_row_is_reopened_and_the_row_retried(self) -> None:
        assert self.round_that_is_cut_off(times=1) == ([True], set())

    def test_a_row_that_loses_the_connection_twice_is_postponed(self) -> None:
        done, put_off = self.round_that_is_cut_off(times=2)
        assert (done, len(put_off)) == ([], 1)

    def round_that_is_cut_off(self, *, times: int) -> tuple[list[bool], set[Hashable]]:
        """Of one row, which loses its connection so many times."""
        left = [None] * times

        def is_cut_off(_: str) -> bool:
            Release.objects.exists()
            if left:
                left.pop()
                cut_off()
            return Release.objects.exists() is False

        done = isolation.run_each_isolated(is_cut_off, {"row": "one"}, failed=isolation.ignore)
        return done, isolation.postponed()


def cut_off() -> None:
    """End this session at the server; where there is no server, close what replaces it."""
    if connection.vendor == "sqlite":
        connection.close()
        raise OperationalError
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no server that could fail over")
def test_a_row_that_met_a_read_only_server_is_retried_on_a_new_connection() -> None:
    """As after a fail-over behind one name: the old connection leads to what is a standby by now."""
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    assert isolation.run_each_isolated(marked, {1: "one"}, failed=isolation.ignore) == [0]
    assert isolation.postponed() == set()


def test_failed_rows_are_counted_by_job_for_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: int) -> None:
        raise LookupError

    def job() -> int:
        return len(isolation.run_each_isolated(fails, {1: "one", 2: "two"}, failed=isolation.ignore))

    assert isolation.run_isolated("run_due_schedules", job) == 0
    isolation.run_each_isolated(fails, {3: "three"}, failed=isolation.ignore)
    assert isolation.failed_rows() == {"run_due_schedules": 2, "other": 1}
    later = time.monotonic() + isolation.FAILURE_WINDOW_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert isolation.failed_rows() == {}


def test_a_job_fails_in_this_process_until_a_round_of_it_succeeds() -> None:
    def fails() -> int:
        raise LookupError

    assert isolation.run_isolated("sync_if_due", fails) is None
    assert isolation.run_isolated("sync_if_due", fails) is None  # postponed
    assert isolation.failing_jobs() == {"sync_if_due": "LookupError"}
    isolation._postponed_until.clear()
    assert isolation.run_isolated("sync_if_due", lambda: 0) == 0
    assert isolation.failing_jobs() == {}
