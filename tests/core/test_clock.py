"""The clock that all processes share."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from backoffice.core import clock
from tools.processes import ROOT

pytestmark = pytest.mark.django_db(transaction=True)


def test_now_is_the_current_time_with_its_zone() -> None:
    assert abs(clock.now() - timezone.now()) < timedelta(minutes=1)


def test_now_advances_within_a_transaction() -> None:
    with transaction.atomic():
        assert clock.now() < clock.now()


@pytest.mark.skipif(
    connection.vendor == "sqlite", reason="SQLite is part of this process and has no clock of its own"
)
def test_now_is_the_clock_of_the_database() -> None:
    with connection.execute_wrapper(
        lambda execute, sql, *rest: execute("SELECT timestamptz '2001-02-03 04:05:06Z'", *rest[0:])
    ):
        assert clock.now() == datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)


def test_a_recent_time_is_read_at_most_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    steady = [1_000.0]
    monkeypatch.setattr(clock, "_steady_seconds", lambda: steady[-1])
    monkeypatch.setattr(clock, "_last_reading", None)
    first = clock.recent()
    steady.append(1_000.9)
    with CaptureQueriesContext(connection) as queries:
        later = clock.recent()
    assert len(queries) == 0
    if connection.vendor == "postgresql":
        assert later - first == timedelta(seconds=0.9)
    steady.append(1_001.1)
    assert abs(clock.recent() - clock.now()) < timedelta(seconds=1)


def test_a_recent_time_follows_a_simulated_clock() -> None:
    clock.recent()
    then = datetime(2030, 1, 1, tzinfo=UTC)
    with clock.use_clock(lambda: then):
        assert clock.recent() == then


def test_nothing_but_the_selection_of_what_is_due_uses_a_recent_time() -> None:
    used = re.compile(r"clock\.recent\(\)")
    found = {
        str(path.relative_to(ROOT / "backoffice")): len(used.findall(path.read_text()))
        for path in (ROOT / "backoffice").rglob("*.py")
        if used.search(path.read_text())
    }
    assert found == {
        "operations/jobs.py": 3,  # releases, orders and expiries that are due
        "operations/outcome/schedule.py": 2,  # checks that are due, and which of them share a reading
        "operations/delivery/send_queue.py": 3,  # the head of a queue; the claim decides
        "operations/delivery/send.py": 1,  # whether it is worth reading the provider
        "notifications/delivery.py": 1,  # messages that are due
        "notifications/recording/later_deciders.py": 1,  # who is on leave, to look again once that changes
        "operations/approval/approvers.py": 1,  # who is on leave, for the page
        "operations/approval/waiting.py": 1,  # and for the badge and the lists
        "operations/allow_list.py": 1,  # which recipients are cooling, for the same lists
    }


def test_a_simulated_clock_is_restored() -> None:
    then = datetime(2030, 1, 1, tzinfo=UTC)
    with clock.use_clock(lambda: then):
        assert clock.now() == then
    assert clock.now() != then


def test_a_deadline_is_checked_without_the_database() -> None:
    is_long, is_over = (
        clock.deadline_checker(clock.now() + timedelta(hours=1)),
        clock.deadline_checker(clock.now()),
    )
    with connection.execute_wrapper(away):
        assert (is_long(), is_over()) == (True, False)


def away(*_asked: object) -> None:
    raise OperationalError("The database is away")


def test_a_deadline_passes() -> None:
    then = datetime(2030, 1, 1, tzinfo=UTC)
    moments = [then]
    with clock.use_clock(lambda: moments[-1]):
        is_to_come = clock.deadline_checker(then + timedelta(seconds=5))
        assert is_to_come()
        moments.append(then + timedelta(seconds=5))
        assert not is_to_come()
