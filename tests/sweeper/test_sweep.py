"""`manage.py sweep`."""

import signal
import threading
from collections.abc import Callable, Iterator
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.api_keys.models import KnownKey
from backoffice.core import isolation
from backoffice.core.telemetry import processes
from backoffice.ledger.models import BalanceSnapshot, Transaction
from backoffice.operations.models.monitoring import Heartbeat
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status
from backoffice.sweeper.management.commands import sweep
from tests import factories
from tests.sandbox_process import SandboxProcess


@pytest.fixture(autouse=True)
def nothing_put_off() -> Iterator[None]:
    yield
    isolation._postponed_until.clear()
    isolation._failures.clear()


@pytest.fixture(autouse=True)
def no_provider(settings: Settings) -> None:
    """Balances and keys are not read, so that only what these tests prepare is done."""
    settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = "http://127.0.0.1:9/v2", "http://127.0.0.1:9/v4"


def test_a_round_runs_all_due_jobs_and_reports_counts(
    preparer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: dict[str, int | None] = {}

    def counted(name: str, job: Callable[[], int]) -> int | None:
        counts[name] = run_isolated(name, job)
        return counts[name]

    run_isolated = isolation.run_isolated
    monkeypatch.setattr(isolation, "run_isolated", counted)
    operation = factories.prepared(preparer)
    Operation.objects.update(expires_at=timezone.now())
    output = StringIO()
    call_command("sweep", "--once", stdout=output)
    assert Operation.objects.get(pk=operation.pk).status == Status.EXPIRED
    assert counts.keys() == sweep.JOBS_ONCE.keys()
    due = ["expire_due", "inspect_due", "verify_log_due", "reconcile_due"]
    assert [counts[name] for name in due] == [1, 1, 1, 1]
    assert output.getvalue() == f"{sum(count or 0 for count in counts.values())} due items processed\n"


@pytest.mark.django_db
def test_a_round_without_due_jobs_changes_nothing() -> None:
    call_command("sweep", "--once", stdout=StringIO())
    output = StringIO()
    call_command("sweep", "--once", stdout=output)
    assert output.getvalue() == "0 due items processed\n"


@pytest.mark.django_db(transaction=True)
def test_a_failed_job_does_not_stop_the_other_jobs_of_a_round(
    preparer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send_due() -> int:
        raise LookupError

    monkeypatch.setattr(sweep, "JOBS_ONCE", sweep.JOBS_ONCE | {"send_due": send_due})
    operation = factories.prepared(preparer)
    Operation.objects.update(expires_at=timezone.now())
    with pytest.raises(CommandError, match="failed, and the log says why: send_due"):
        call_command("sweep", "--once", stdout=StringIO())
    assert Operation.objects.get(pk=operation.pk).status == Status.EXPIRED


@pytest.mark.parametrize("pause", ["0", "-1", "nan", "31", "a minute"])
def test_a_pause_that_would_stop_the_work_or_never_pause_is_refused(pause: str) -> None:
    with pytest.raises(CommandError, match="is no pause"):
        call_command("sweep", f"--every={pause}")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("error", [InterfaceError, OperationalError])
def test_the_sweeper_survives_database_errors(error: type[Exception]) -> None:
    """In its job, and where it notes the round."""
    stop, rounds = threading.Event(), []

    def tried() -> int:
        rounds.append("one")
        if len(rounds) == 1:
            raise error
        if len(rounds) == 3:
            stop.set()
        return 0

    def cannot_note(execute: Callable[..., object], sql: str, *rest: object) -> object:
        if "heartbeat" in sql and len(rounds) == 2:
            raise error
        return execute(sql, *rest)

    with connection.execute_wrapper(cannot_note):
        sweep._repeat("tried", tried, stop, 0.01)
    assert len(rounds) == 3
    assert Heartbeat.objects.filter(job="tried").count() == 1


@pytest.mark.django_db(transaction=True)
def test_an_unavailable_database_is_logged_without_the_traceback_of_each_heartbeat(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def is_away(*_: object) -> None:
        raise OperationalError("connection refused")

    with connection.execute_wrapper(is_away):
        assert sweep._run_round("idle", lambda: 0, is_due=True) is None
    assert [record.exc_info for record in caplog.records if record.levelname == "ERROR"] in ([], [None])


class ThreeRounds(threading.Event):
    """Waits for nothing, and notes for how long it was asked to, and whether a connection was open meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float | None] = []
        self.is_connected: list[bool] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses.append(timeout)
        self.is_connected.append(connection.connection is not None)
        return len(self.pauses) == 4


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("name", "done", "pauses"),
    [
        ("send_due", 0, [1, 1, 1, 1]),
        ("prune_due", 0, [1, 5, 5, 5]),
        ("deliver_email_due", 0, [1, 5, 5, 5]),
        ("deliver_email_due", 50, [1, 1, 1, 1]),
    ],
)
def test_low_frequency_jobs_run_less_often_and_keep_no_connection_while_nothing_is_due(
    name: str, done: int, pauses: list[float]
) -> None:
    stop = ThreeRounds()
    sweep._repeat(name, lambda: done, stop, 1)
    assert stop.pauses == pauses
    assert stop.is_connected[1:] == [pause == 1 for pause in pauses[1:]]


def test_sending_checking_and_expiring_run_every_round() -> None:
    assert sweep.JOBS.keys() > sweep.LOW_FREQUENCY
    assert not sweep.LOW_FREQUENCY & {
        "send_due",
        "release_due",
        "check_due",
        "expire_due",
        "compare_with_journals",
    }


def test_a_sweeper_compares_with_journals_before_its_jobs_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(processes, "start", lambda _kind: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sweep, "_run_round", lambda name, _job, **_: done.append(name))
    monkeypatch.setattr(sweep, "_repeat", lambda *_: done.append("jobs"))
    call_command("sweep")
    assert done[:2] == ["compare_with_journals", "jobs"]


@pytest.mark.django_db(transaction=True)
def test_quick_rounds_record_one_heartbeat() -> None:
    stop, rounds, written = threading.Event(), [], []

    def tried() -> int:
        rounds.append("one")
        if len(rounds) == 3:
            stop.set()
        return 0

    def count(execute: Callable[..., object], sql: str, *rest: object) -> object:
        if "INSERT" in sql and "heartbeat" in sql:
            written.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(count):
        sweep._repeat("tried", tried, stop, 0.01)
    assert (len(rounds), len(written)) == (3, 1)


@pytest.mark.django_db
def test_a_round_stores_balances_keys_and_transactions(sandbox: SandboxProcess) -> None:
    output = StringIO()
    call_command("sweep", "--once", stdout=output)
    kept = BalanceSnapshot.objects.get(currency="NGN")
    assert kept.amount == sandbox.balance("NGN")
    assert [key.name for key in KnownKey.objects.all()] == ["first key"]
    assert Transaction.objects.exists()
    # Three balances, the keys, the inspection, the verification, the transactions, the reconciliation.
    assert output.getvalue() == "8 due items processed\n"
