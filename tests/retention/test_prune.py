"""Rows are deleted when their time is over, a few at a time; evidence never is."""

from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from threading import Event

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import background, clock, leases
from backoffice.core.background import StopRequestedError
from backoffice.core.models import AnsweredForm, LeaseRow
from backoffice.core.storage.retention import Keeping
from backoffice.notifications.models import Occurrence
from backoffice.operations.models.operations import Operation
from backoffice.reports.models import ExportJob, ExportState
from backoffice.retention import prune
from backoffice.retention.tables import TABLES
from tests import factories

pytestmark = pytest.mark.django_db


def old_occurrences(count: int, days: int = 401) -> None:
    at = timezone.now() - timedelta(days=days)
    Occurrence.objects.bulk_create([Occurrence(key=f"{days}-{number}", at=at) for number in range(count)])


def test_rows_past_their_time_are_deleted_and_named_in_the_audit_log() -> None:
    old_occurrences(3)
    old_occurrences(2, days=399)
    assert prune.prune() == {"notifications_occurrence": 3}
    assert Occurrence.objects.count() == 2
    entry = Entry.objects.get(action=Action.DATA_PRUNED)
    assert entry.detail == {"tables": {"notifications_occurrence": 3}}
    assert prune.prune() == {}
    assert Entry.objects.filter(action=Action.DATA_PRUNED).count() == 1


def test_a_setting_of_zero_keeps_rows_for_ever(settings: Settings) -> None:
    settings.KEEP_OCCURRENCES_DAYS = 0
    old_occurrences(1, days=4000)
    assert prune.prune() == {}


def test_a_round_is_bounded_and_the_next_one_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "BATCH_ROWS", 2)
    monkeypatch.setattr(prune, "BATCHES_AT_ONCE", 2)
    old_occurrences(7)
    assert [prune.prune_due(), prune.prune_due(), prune.prune_due()] == [4, 3, 0]


def test_it_runs_once_a_day_and_in_one_process() -> None:
    old_occurrences(1)
    assert prune.prune_due() == 1
    old_occurrences(1)
    assert prune.prune_due() == 0
    held_until = LeaseRow.objects.get(name="prune").held_until
    assert timedelta(hours=23) < held_until - clock.now() <= timedelta(days=1)


def stop_before(statement: str) -> None:
    background.stop_requested.set()


def fail_before(statement: str) -> None:
    raise OperationalError(statement)


@pytest.mark.parametrize(
    ("interrupt", "error"), [(stop_before, StopRequestedError), (fail_before, OperationalError)]
)
def test_a_run_that_is_interrupted_has_recorded_its_deletions(
    monkeypatch: pytest.MonkeyPatch, interrupt: Callable[[str], None], error: type[Exception]
) -> None:
    monkeypatch.setattr(prune, "BATCH_ROWS", 2)
    monkeypatch.setattr(background, "stop_requested", Event())
    old_occurrences(5)
    deletions = []

    def watch(execute: Callable[..., object], sql: str, *more: object) -> object:
        if sql.startswith("DELETE"):
            deletions.append(sql)
            if len(deletions) == 2:
                interrupt(sql)
        return execute(sql, *more)

    with connection.execute_wrapper(watch), pytest.raises(error):
        prune.prune_due()
    gone = 5 - Occurrence.objects.count()
    assert gone in {2, 4}
    entries = Entry.objects.filter(action=Action.DATA_PRUNED)
    assert sum(entry.detail["tables"]["notifications_occurrence"] for entry in entries) == gone
    assert leases.is_held("prune") is (error is OperationalError), "the next round tries again in ten minutes"
    background.stop_requested.clear()
    assert prune.prune().total() == 5 - gone


def test_what_a_killed_process_left_is_deleted_once_its_lease_expires() -> None:
    old_occurrences(1)
    leases.acquire_lease("prune", prune.LEASE_DURATION)
    assert prune.prune_due() == 0
    LeaseRow.objects.filter(name="prune").update(held_until=clock.now())
    assert prune.prune_due() == 1


def test_evidence_of_any_age_stays(preparer: User) -> None:
    operation = factories.prepared(preparer)
    entries = Entry.objects.count()
    with clock.use_clock(lambda: timezone.now() + timedelta(days=10_000)):
        prune.prune()
    assert Operation.objects.filter(pk=operation.pk).exists()
    assert Entry.objects.count() >= entries
    evidence = [table for table in TABLES if table.keeping != Keeping.PRUNED]
    assert [table.kept_for for table in evidence] == [None] * len(evidence)


def test_an_export_with_a_file_or_in_progress_stays(auditor: User) -> None:
    long_ago = timezone.now() - timedelta(days=500)
    for state in ExportState:
        ExportJob.objects.create(
            person=auditor,
            report="audit-log",
            time_zone="UTC",
            state=state,
            created_at=long_ago,
            ended_at=long_ago,
            size=1,
            sha256="x",
            stored_as="x",
        )
    prune.prune()
    left = set(ExportJob.objects.values_list("state", flat=True))
    assert left == {ExportState.WAITING, ExportState.RUNNING, ExportState.DONE}


def test_the_command_counts_and_deletes() -> None:
    AnsweredForm.objects.all().delete()
    old_occurrences(2)
    counted, deleted = StringIO(), StringIO()
    call_command("prune", dry_run=True, stdout=counted)
    assert "notifications_occurrence: 2 rows (kept for 400 days)" in counted.getvalue()
    assert Occurrence.objects.count() == 2
    call_command("prune", stdout=deleted)
    assert "notifications_occurrence: 2 rows" in deleted.getvalue()
    assert not Occurrence.objects.exists()
