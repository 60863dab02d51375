"""The sync across processes: killed, concurrent and stalled ones, and the task that requests it."""

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from backoffice import tasks
from backoffice.core import clock
from backoffice.core.leases import Lease, held_leases
from backoffice.ledger.mirror import sync
from backoffice.ledger.mirror.state import mirror_state
from backoffice.ledger.mirror.sync import LEASE_DURATION, SYNC_LEASE
from backoffice.ledger.mirror.totals import total_discrepancies
from backoffice.ledger.models import DayTotal, Mirror, Transaction
from tests.ledger.long_list import LongList, numbered
from tests.ledger.sync_lease import acquired_sync_lease
from tests.stub_provider import serving
from tests.tools.test_brokers import database_url
from tools.processes import run_python

pytestmark = pytest.mark.django_db(transaction=True)
WITHIN = 60  # seconds


@pytest.fixture
def provider(settings: Settings) -> Iterator[LongList]:
    with serving(LongList()) as stub:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = stub.url, stub.url_v4
        yield stub


def here() -> set[str]:
    return set(Transaction.objects.values_list("transaction_id", flat=True))


def closing(job: Callable[[], object]) -> Callable[[], None]:
    """The job, for a thread of its own: with its connection to the database."""

    def done() -> None:
        try:
            job()
        finally:
            connection.close()

    return done


def run(
    provider: LongList, folder: Path, *arguments: str, points: str = ""
) -> "subprocess.CompletedProcess[str]":
    """`manage.py mirror` in a process of its own, around this test's database."""
    own = {
        "COUNTERSIGN_DATA_DIR": str(folder),
        "COUNTERSIGN_DATABASE_URL": database_url(),
        "COUNTERSIGN_ENVIRONMENT": "sandbox",
        "COUNTERSIGN_GATEWAY_URL": provider.url,
        "COUNTERSIGN_GATEWAY_URL_V4": provider.url_v4,
        "COUNTERSIGN_FAULT_POINT": points,
    }
    return run_python("manage.py", "mirror", *arguments, own=own, timeout=WITHIN)


@pytest.mark.parametrize(("point", "merged"), [("mirror.read", 0), ("mirror.merged", 1000)])
def test_a_pass_of_a_killed_process_is_resumed(
    provider: LongList, tmp_path: Path, point: str, merged: int
) -> None:
    provider.listed = numbered(2300)
    killed = run(provider, tmp_path, points=f"{point}=kill")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert Transaction.objects.count() == merged == Mirror.objects.get().rows
    assert list(total_discrepancies()) == []
    assert sync.sync_if_due() == 0  # whoever comes now finds the turn taken

    provider.asked.clear()
    with clock.use_clock(lambda: timezone.now() + LEASE_DURATION):
        while sync.sync_if_due():
            pass
    assert here() == provider.names()
    assert list(total_discrepancies()) == []
    deeper = [number for number in provider.asked if number > 3]
    assert deeper[0] == (10 if merged else 4)


def test_the_command_reports_progress_and_ends(provider: LongList, tmp_path: Path) -> None:
    provider.listed = numbered(2300)
    done = run(provider, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        " 48%  page 11 of 23, 1,000 transactions",
        " 91%  page 21 of 23, 2,000 transactions",
        "100%  page 23 of 23, 2,300 transactions",
        "2,300 transactions stored; the provider's transaction count is 2,300.",
    ]
    assert here() == provider.names()


class Terminal(StringIO):
    """What a person sees."""

    def isatty(self) -> bool:
        return True


def test_progress_overwrites_one_line_on_a_terminal(provider: LongList) -> None:
    provider.listed = numbered(1200)
    shown = Terminal()
    call_command("mirror", stdout=shown)
    _, *bars = shown.getvalue().split("\r")
    assert len(bars) > 1
    assert all(bar.startswith(("█", "░")) and "\n" not in bar for bar in bars[:-1])


def test_the_command_restarts_on_request(provider: LongList) -> None:
    provider.listed = numbered(1200)
    call_command("mirror", stdout=StringIO())
    provider.asked.clear()
    call_command("mirror", stdout=StringIO())
    assert max(provider.asked, default=0) <= 3
    call_command("mirror", "--full", stdout=StringIO())
    assert max(provider.asked) == 12


def test_the_command_reports_why_it_stopped(provider: LongList) -> None:
    provider.listed = numbered(2300)
    provider.spoilt = {15: (500, "{}")}
    with pytest.raises(
        CommandError, match=r"The pages read so far are stored\. Run this command again to continue\."
    ):
        call_command("mirror", stdout=StringIO())
    assert Transaction.objects.count() == 1400


def test_the_command_verifies_the_totals_against_the_rows(provider: LongList) -> None:
    provider.listed = numbered(3)
    output = StringIO()
    call_command("mirror", stdout=StringIO())
    call_command("mirror", "--verify", stdout=output)
    assert output.getvalue() == "All totals and continuity breaks agree with the rows.\n"
    DayTotal.objects.update(count=4)
    with pytest.raises(CommandError, match="1 totals or breaks differ"):
        call_command("mirror", "--verify", stdout=output)
    assert "stored 4 of 37.5, fees 0.75; counted 3 of 37.5, fees 0.75" in output.getvalue()


@pytest.mark.usefixtures("at_once")
def test_a_merge_during_the_verification_of_totals_is_no_difference(provider: LongList) -> None:
    provider.listed = numbered(3)
    sync.load_all(lambda _: None)
    provider.grow("late")
    turns: list[int] = []

    def merge_first(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        """The rows were counted, and before the totals are read another process merges one more."""
        if not turns and 'FROM "ledger_daytotal"' in sql:
            thread = threading.Thread(target=closing(lambda: turns.append(sync.sync_now())))
            thread.start()
            thread.join(WITHIN)
        return execute(sql, *rest)

    output = StringIO()
    with connection.execute_wrapper(merge_first):
        call_command("mirror", "--verify", stdout=output)
    assert turns == [1]
    assert "late" in here()
    assert output.getvalue() == "All totals and continuity breaks agree with the rows.\n"


@pytest.mark.usefixtures("at_once")
def test_two_concurrent_syncs_read_once_and_the_second_request_is_kept(provider: LongList) -> None:
    provider.listed = numbered(300)
    sync.load_all(lambda _: None)
    is_asked, may_answer = threading.Event(), threading.Event()

    def wait(_number: int) -> None:
        is_asked.set()
        assert may_answer.wait(WITHIN)

    provider.before = wait
    first = threading.Thread(target=closing(sync.sync_now))
    first.start()
    assert is_asked.wait(WITHIN)
    assert sync.sync_now() == 0
    provider.before = lambda number: provider.grow("what the second one came for") if number == 1 else None
    may_answer.set()
    first.join(WITHIN)
    assert "what the second one came for" in here()
    assert held_leases(SYNC_LEASE) == {}


@pytest.mark.usefixtures("at_once")
def test_a_process_that_lost_its_lease_merges_nothing(provider: LongList) -> None:
    provider.listed = numbered(300)
    sync.load_all(lambda _: None)
    provider.grow("read by the one that stood still")
    taken_over: list[Lease] = []

    def take_over(_number: int) -> None:
        with clock.use_clock(lambda: timezone.now() + LEASE_DURATION):
            taken_over.append(acquired_sync_lease())
        connection.close()

    provider.before = take_over
    sync.sync_now()
    assert "read by the one that stood still" not in here()
    assert list(held_leases(SYNC_LEASE)) == [str(taken_over[0])]
    assert mirror_state().error == ""


def test_concurrent_processes_read_the_list_once(provider: LongList) -> None:
    provider.listed = numbered(900)
    threads = [threading.Thread(target=closing(sync.sync_if_due)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WITHIN)
    while sync.sync_if_due():
        pass
    assert here() == provider.names()
    assert Mirror.objects.get().rows == 900
    assert list(total_discrepancies()) == []


@pytest.mark.usefixtures("at_once")
def test_the_task_syncs_on_request_before_it_is_due(provider: LongList) -> None:
    provider.listed = numbered(3)
    sync.sync_if_due()
    provider.grow("A")
    sync.sync_if_due()
    assert "A" not in here()
    tasks.sync_mirror.apply(args=("an operation",)).get()
    assert "A" in here()


def test_rounds_that_are_requested_shortly_after_one_another_are_one(provider: LongList) -> None:
    provider.listed = numbered(3)
    sync.load_all(lambda _: None)
    provider.grow("A")
    reads = len(provider.asked)
    assert [sync.sync_now(), sync.sync_now(), sync.sync_if_due()] == [0, 0, 0]
    assert len(provider.asked) == reads
    with clock.use_clock(lambda: timezone.now() + sync.REQUEST_INTERVAL):
        assert sync.sync_if_due() == 1
    assert "A" in here()
