"""The top of the System page: all well, or each thing that needs attention with its next step; and what follows."""

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.core.database.role import DatabaseRole, RoleProblem
from backoffice.core.models import ConfiguredKey, ProcessRow, ProviderCallCount
from backoffice.core.telemetry import processes, provider_calls
from backoffice.core.telemetry.processes import report
from backoffice.core.telemetry.provider_calls import Call, CallOutcome
from backoffice.operations import jobs
from backoffice.operations.models.monitoring import Heartbeat, Inspection
from payments_gateway import (
    CredentialsError,
    OutcomeUnknownError,
    RateLimitedError,
    ReadFailedError,
    RejectedError,
)
from tests.factories import break_glass

pytestmark = pytest.mark.django_db
SYSTEM = reverse("operations:system")
GB = 10**9


@pytest.fixture
def shown(client: Client, auditor: User, sign_in: Callable[[Client, User], Client]) -> Callable[[], str]:
    """The page, with its entities resolved."""
    sign_in(client, auditor)
    return lambda: unescape(client.get(SYSTEM).content.decode())


@pytest.fixture(autouse=True)
def healthy(db: None, settings: Settings, tmp_path: Any) -> None:
    """An installation in which everything works."""
    now = timezone.now()
    record(Action.OPERATION_PREPARED, actor=None, target="W-1")
    Inspection.objects.create(pk=1, at=now)
    jobs.record_heartbeat("send_due")
    settings.JOURNAL_DIR = tmp_path
    for number, kind in enumerate(ProcessRow.Kind):
        process(kind, number, now)


def process(kind: str, pid: int, at: Any, machine: str = "a", **changes: Any) -> ProcessRow:
    told = {"version": "1", "failed_parts": [], "disk_free": 50 * GB, "disk_total": 100 * GB, **changes}
    return ProcessRow.objects.create(machine=machine, kind=kind, pid=pid, started_at=at, at=at, report=told)


def test_an_installation_that_works_is_all_well(shown: Callable[[], str]) -> None:
    page = shown()
    assert "No problems found." in page
    assert 'class="note bad"' not in page


def stop(kind: str) -> None:
    ProcessRow.objects.filter(kind=kind).update(at=timezone.now() - timedelta(minutes=4))


def break_broker() -> None:
    process("worker", 7, timezone.now(), "b", failed_parts=["broker"])


def fail_job() -> None:
    jobs.record_job_failure("sync_if_due", "ReadTimeout")


def fail_job_on_one_machine() -> None:
    jobs.record_heartbeat("sync_if_due")
    process("sweeper", 7, timezone.now(), "b", failing_jobs={"sync_if_due": "ReadTimeout"})


def fill_disk() -> None:
    process("worker", 7, timezone.now(), "b", disk_free=GB // 2)


def mix_releases() -> None:
    process("worker", 7, timezone.now(), "b", version="2")


def fail_provider() -> None:
    stored = [{"call": "read", "calls": 10, "failed": 4, "average": 1.5, "slowest": 8.0}]
    process("worker", 7, timezone.now() + timedelta(seconds=1), "b", provider=stored)


CASES: dict[str, tuple[Callable[[], object], str, str]] = {
    "sweeper": (lambda: stop("sweeper"), "No process of this kind is running: Sweeper.", "start it"),
    "worker": (
        lambda: stop("worker"),
        "No process of this kind is running: Worker.",
        "the sweeper process sends",
    ),
    "part": (break_broker, "Worker on b: the broker cannot be reached.", "A process is not ready"),
    "job": (fail_job, "The job sync_if_due fails: ReadTimeout.", "its traceback"),
    "job on one machine": (
        fail_job_on_one_machine,
        "The job sync_if_due fails on b: ReadTimeout.",
        "its traceback",
    ),
    "late": (
        lambda: Heartbeat.objects.update(at=timezone.now() - timedelta(minutes=6)),
        "Late jobs: send_due.",
        "check the sweeper",
    ),
    "disk": (fill_disk, "The disk of b is almost full.", "free disk space"),
    "releases": (mix_releases, "Processes run different versions of Countersign: 1, 2.", "restart"),
    "provider": (fail_provider, "4 of 10 requests to the provider failed", "gateway check"),
    "checks": (
        lambda: Inspection.objects.update(at=timezone.now() - timedelta(minutes=6)),
        "The integrity checks are not running.",
        "start the sweeper",
    ),
    "violation": (
        lambda: Inspection.objects.update(violations={"sent_again": {"count": 1, "references": ["W-1"]}}),
        "1 integrity check failed.",
        "Pause payments",
    ),
    "one person alone": (
        lambda: break_glass(User.objects.get()),
        "1 account change by one person alone.",
        "Another person must check",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_needs_attention_is_said_with_the_next_step(shown: Callable[[], str], case: str) -> None:
    happen, text, step = CASES[case]
    happen()
    state = shown().partition('aria-label="State"')[2].partition("</section>")[0]
    assert f"<b>{text}" in state or text in state
    assert step in state
    assert "No problems found." not in state


def test_a_job_that_works_again_is_not_failing() -> None:
    fail_job()
    assert Heartbeat.objects.get(job="sync_if_due").is_failing
    jobs.record_heartbeat("sync_if_due")
    row = Heartbeat.objects.get(job="sync_if_due")
    assert (row.is_failing, row.error) == (False, "ReadTimeout")


def test_the_role_of_the_database_is_named_if_it_has_rights_too_many(
    shown: Callable[[], str], monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.ENVIRONMENT = "staging"
    role = DatabaseRole("countersign", {RoleProblem.MAY_CREATE: ()})
    monkeypatch.setattr("backoffice.operations.pages.system.attention.database_role", lambda: role)
    page = shown()
    assert "The database role countersign has more rights than running Countersign needs." in page
    assert "It can create tables and functions" in page


def test_the_page_says_how_long_rows_are_kept(shown: Callable[[], str], settings: Settings) -> None:
    settings.KEEP_DELIVERIES_DAYS = 123
    settings.KEEP_EXPORTS_DAYS = 0
    page = " ".join(shown().split())
    assert "Webhook deliveries</th>" in page
    assert 'webhooks_delivery</td> <td class="num">123 days</td>' in page
    assert 'reports_exportjob</td> <td class="num">For ever</td>' in page


def test_a_process_reports_its_state_and_that_of_the_installation(
    shown: Callable[[], str], settings: Settings
) -> None:
    ProcessRow.objects.all().delete()
    settings.ENCRYPTION_KEYS = ["2027:" + "N" * 43 + "="]
    report("web", timezone.now())
    report("web", timezone.now())
    stored = ProcessRow.objects.get().report
    assert stored["failed_parts"] == []
    assert stored["disk_free"] > 0
    assert stored["database_size"] > 0
    assert [key["id"] for key in stored["keys"]] == ["2027", "Key configured at installation"]
    assert ConfiguredKey.objects.get().key_id == "2027"
    page = shown()
    assert "In use since the installation" in page
    assert "N" * 43 not in page


def words(html: str) -> str:
    return " ".join(re.sub("<[^>]*>", " ", html).replace("\xa0", " ").split())


def test_the_newest_report_is_shown_whole(shown: Callable[[], str]) -> None:
    provider = [{"call": "read", "calls": 12, "failed": 1, "average": 0.25, "slowest": 8.0}]
    later = timezone.now() + timedelta(seconds=1)
    whole = {
        "disk_free": 40 * 2**30,
        "disk_total": 80 * 2**30,
        "database_size": 3 * 2**30,
        "provider": provider,
    }
    process("web", 8, later, "b", **whole)
    page = words(shown())
    for fact in (
        "Database 3.0 GB",
        "Migrations All applied",
        "Broker Reachable",
        "Free disk · b 40.0 GB of 80.0 GB",
        "12 requests · 1 failed",
        "Average 0.25 s, slowest 8.00 s",
    ):
        assert fact in page
    process("web", 9, later + timedelta(seconds=1), "b", **whole, failed_parts=["migrations", "broker"])
    page = words(shown())
    assert "Migrations Missing" in page
    assert "Broker Cannot be reached" in page


def test_the_age_of_a_key_is_kept() -> None:
    report("web", timezone.now())
    since = timezone.now() - timedelta(days=90)
    ConfiguredKey.objects.update(since=since)
    report("web", timezone.now())
    newest = ProcessRow.objects.order_by("-at")[0].report
    assert newest["keys"][0]["since"] == since.isoformat()


def call(kind: Call, error: Exception | None = None) -> None:
    with provider_calls.counted(kind):
        if error:
            raise error


def test_calls_are_counted_by_outcome_and_added_to_those_of_other_processes() -> None:
    provider_calls.store_counts()
    ProviderCallCount.objects.all().delete()
    for _ in range(2):
        call(Call.READ)
        with pytest.raises(ReadFailedError):
            call(Call.READ, ReadFailedError.of("x"))
        with pytest.raises(RejectedError):
            call(Call.CHANGE, RejectedError.of("x"))
        with pytest.raises(OutcomeUnknownError):
            call(Call.CHANGE, OutcomeUnknownError.of("x"))
        provider_calls.store_counts()
    provider_calls.store_counts()
    read, change = sorted(
        provider_calls.statistics_since(timezone.now() - timedelta(hours=1)),
        key=lambda one: one.call,
        reverse=True,
    )
    assert (read.call, read.calls, read.failed) == (Call.READ, 4, 2)
    assert (change.call, change.calls, change.failed) == (Call.CHANGE, 4, 2)
    totals = {(kind, outcome): number for kind, outcome, number, _ in provider_calls.totals()}
    assert totals[Call.CHANGE, CallOutcome.REJECTED] == 2
    assert totals[Call.CHANGE, CallOutcome.UNKNOWN] == 2


@pytest.mark.parametrize("error", [CredentialsError, RateLimitedError])
def test_calls_fail_while_the_provider_accepts_none_of_ours(error: type[RejectedError]) -> None:
    provider_calls.store_counts()
    ProviderCallCount.objects.all().delete()
    with pytest.raises(error):
        call(Call.READ, error.of("x"))
    provider_calls.store_counts()
    [read] = provider_calls.statistics_since(timezone.now() - timedelta(hours=1))
    assert (read.calls, read.failed) == (1, 1)


def test_counts_that_could_not_be_stored_are_added_to_those_counted_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: at)
    provider_calls.store_counts()
    ProviderCallCount.objects.all().delete()
    call(Call.READ)
    call(Call.READ)

    def count_and_fail(*_statement: object) -> None:
        call(Call.READ)
        raise OperationalError

    with connection.execute_wrapper(count_and_fail), pytest.raises(OperationalError):
        provider_calls.store_counts()
    provider_calls.store_counts()
    [read] = provider_calls.statistics_since(at)
    assert read.calls == 3
    row = ProviderCallCount.objects.get()
    assert row.slowest <= row.seconds <= 3 * row.slowest


def test_totals_never_fall_when_old_counts_are_added_up() -> None:
    now = timezone.now()
    for hours in (0, 30, 31, 32):
        minute = (now - timedelta(hours=hours)).replace(second=0, microsecond=0)
        ProviderCallCount.objects.create(
            minute=minute, call="read", outcome="ok", calls=5, seconds=1.5, slowest=hours
        )
    before = provider_calls.totals()
    for _ in range(2):
        provider_calls.prune_counts()
        assert provider_calls.totals() == before
    assert ProviderCallCount.objects.count() == 2


def test_rows_of_processes_that_ended_are_deleted_after_a_day() -> None:
    process("web", 99, timezone.now() - timedelta(hours=25))
    processes.prune_if_due()
    assert not ProcessRow.objects.filter(pid=99).exists()
    process("web", 98, timezone.now() - timedelta(hours=25))
    processes.prune_if_due()  # not yet due again
    assert ProcessRow.objects.filter(pid=98).exists()
