"""What reads the provider's list waits until the list is here to the end of its days, and says how fresh it is."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.ledger.models import BalanceBreak, Mirror, Transaction
from backoffice.operations.models.reconciliation import Comparison, ReconciliationState, ReconciliationTotal
from backoffice.reports.definitions.catalogue import REPORTS
from backoffice.reports.exports import runner
from backoffice.reports.exports.services import MAX_SYNC_WAIT
from backoffice.reports.models import ExportJob, ExportState
from backoffice.reports.report import StoredReport
from backoffice.reports.schedules import messages, services
from tests.ledger.statements.test_breaks import merged, record
from tests.reports.definitions.test_golden import export_request
from tests.reports.export_requests import made, now, path_of, requested_export
from tests.reports.schedule_requests import is_due, stored_schedule

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("public_address", "empty_folder"),
]
SignIn = Callable[[Client, User], Client]
MIDNIGHT = datetime(2026, 3, 5, tzinfo=UTC)
SECOND = timedelta(seconds=1)
OF_YESTERDAY: dict[str, Any] = {
    "report": "statement",
    "filters": {},
    "columns": [],
    "time_zone": "UTC",
    "hour": 0,
}


@pytest.fixture(autouse=True)
def _at_midnight() -> Iterator[None]:
    with clock.use_clock(lambda: MIDNIGHT + SECOND):
        yield


def read_up_to(moment: datetime, **changes: Any) -> None:
    fields = {"loaded_at": MIDNIGHT - timedelta(days=30), "as_of": moment, **changes}
    Mirror.objects.update_or_create(pk=1, defaults=fields)


def of_yesterday(person: User, **changes: Any) -> ExportJob:
    """What a schedule asks for at midnight."""
    is_due(stored_schedule(person, **{**OF_YESTERDAY, **changes}), MIDNIGHT)
    services.run_due_schedules()
    return ExportJob.objects.get()


def page(browser: Client, job: ExportJob) -> str:
    return browser.get(reverse("reports:export", args=[job.pk])).content.decode()


def test_a_statement_of_yesterday_includes_its_last_minute(auditor: User) -> None:
    read_up_to(MIDNIGHT - 50 * SECOND)
    merged(record("first", 0, "0", "10", createdAt="2026-03-04T10:00:00Z"))
    job = of_yesterday(auditor)
    runner.run_export(job.pk)
    assert (runner.run_next_export(), now(job).state) == (0, ExportState.WAITING)

    merged(record("last", 0, "10", "5", createdAt="2026-03-04T23:59:59Z"))
    read_up_to(MIDNIGHT)
    assert runner.run_next_export() == 1

    job = now(job)
    assert b"last" in path_of(job).read_bytes()
    assert (job.state, job.as_of, job.covers_until) == (ExportState.DONE, MIDNIGHT, MIDNIGHT)
    assert Entry.objects.get(action="export.completed").detail["as_of"].startswith("2026-03-05T00:00:00")


def test_days_end_in_the_zone_of_the_export(auditor: User) -> None:
    lagos = made(auditor, report="transactions", columns=[], filters={"until": ["2026-03-04"]})
    assert lagos.covers_until == MIDNIGHT - timedelta(hours=1)
    of_utc = made(auditor, report="reconciliation", columns=[], filters={"until": ["2026-03-04"]})
    assert of_utc.covers_until == MIDNIGHT


def test_days_end_later_if_the_providers_clock_is_behind(auditor: User) -> None:
    read_up_to(MIDNIGHT + 30 * SECOND, provider_time=MIDNIGHT - 30 * SECOND)
    job = of_yesterday(auditor)
    assert runner.run_next_export() == 0

    read_up_to(MIDNIGHT + 60 * SECOND, provider_time=MIDNIGHT)
    assert runner.run_next_export() == 1
    assert now(job).as_of == MIDNIGHT


@pytest.mark.parametrize("filters", [{}, {"until": ["2026-03-01"]}])
def test_an_export_waits_for_the_first_full_pass(
    auditor: User, client: Client, sign_in: SignIn, filters: dict[str, list[str]]
) -> None:
    read_up_to(MIDNIGHT, loaded_at=None)
    job = made(auditor, report="transactions", columns=[], filters=filters)
    assert job.state == ExportState.WAITING
    assert "the first sync is not complete" in page(sign_in(client, auditor), job)

    read_up_to(MIDNIGHT)
    assert runner.run_next_export() == 1


def test_the_page_shows_what_it_waits_for_and_then_its_freshness(
    auditor: User, client: Client, sign_in: SignIn
) -> None:
    read_up_to(MIDNIGHT - timedelta(hours=4))
    job, browser = of_yesterday(auditor), sign_in(client, auditor)

    html = page(browser, job)
    assert "Waiting for transactions: synced up to" in html
    assert "4 Mar 2026, 21:00:00" in html
    assert "the period ends" in html
    assert "Waiting for other exports to finish." not in html
    read_up_to(MIDNIGHT)
    assert "Waiting for other exports to finish." in page(browser, job)
    runner.run_next_export()
    assert "Transactions are synced up to 5 Mar 2026, 01:00:00 WAT.</p>" in page(browser, job)


def test_after_a_day_it_is_rendered_with_a_note_on_what_is_missing(
    auditor: User, client: Client, sign_in: SignIn
) -> None:
    read_up_to(MIDNIGHT - timedelta(hours=4))
    job = of_yesterday(auditor)
    with clock.use_clock(lambda: MIDNIGHT + MAX_SYNC_WAIT):
        assert runner.run_next_export() == 0
    with clock.use_clock(lambda: MIDNIGHT + SECOND + MAX_SYNC_WAIT):
        assert runner.run_next_export() == 1
        assert messages.send_due_messages() == 1

    words = "Transactions are synced up to 4 Mar 2026, 20:00:00 UTC. Later ones are missing."
    assert words in mail.outbox[0].body
    assert "Later ones are missing." in page(sign_in(client, auditor), now(job))


def test_after_a_day_without_a_full_pass_it_has_a_note(auditor: User) -> None:
    of_yesterday(auditor)
    with clock.use_clock(lambda: MIDNIGHT + SECOND + MAX_SYNC_WAIT):
        assert runner.run_next_export() == 1
        assert messages.send_due_messages() == 1

    assert "The first sync was not complete" in mail.outbox[0].body


def test_the_message_has_the_freshness_in_the_schedules_zone(auditor: User) -> None:
    read_up_to(MIDNIGHT)
    of_yesterday(auditor)
    runner.run_next_export()
    messages.send_due_messages()

    assert "Transactions are synced up to 5 Mar 2026, 00:00:00 UTC." in mail.outbox[0].body


def test_unfinished_days_are_rendered_at_once_with_their_time(auditor: User) -> None:
    hours_ago = MIDNIGHT - timedelta(hours=4)
    read_up_to(hours_ago)
    for filters in ({}, {"until": ["2026-03-05"]}):
        job = made(auditor, report="transactions", columns=[], filters=filters)
        assert (job.state, job.as_of, job.covers_until) == (ExportState.DONE, hours_ago, None)
    assert "as-of-2026-03-04T2000Z" in made(auditor, report="transactions", columns=[]).name


def test_an_export_that_waits_for_the_list_does_not_block_others(auditor: User) -> None:
    read_up_to(MIDNIGHT - SECOND)
    for _ in range(4):
        requested_export(
            auditor, report="statement", columns=[], filters={"until": ["2026-03-04"]}, time_zone="UTC"
        )
    job = requested_export(auditor)

    assert runner.run_all_exports() == 1
    assert now(job).state == ExportState.DONE


def test_the_reconciliation_report_waits_for_the_comparison(auditor: User) -> None:
    read_up_to(MIDNIGHT)
    ReconciliationState.objects.create(pk=1, mirror_as_of=MIDNIGHT - SECOND)
    job = of_yesterday(auditor, report="reconciliation")
    assert runner.run_next_export() == 0

    ReconciliationState.objects.update(mirror_as_of=MIDNIGHT)
    assert runner.run_next_export() == 1
    assert now(job).as_of == MIDNIGHT


def test_the_report_page_shows_the_freshness_of_the_list(
    client: Client, auditor: User, sign_in: SignIn
) -> None:
    browser = sign_in(client, auditor)
    for name, report in REPORTS.items():
        html = browser.get(reverse("reports:report", args=[name])).content.decode()
        assert ('id="mirror"' in html) == (report.synced_until is not None), name


@pytest.mark.parametrize("name", REPORTS)
def test_every_report_from_the_mirror_declares_it(auditor: User, name: str) -> None:
    report = REPORTS[name]
    model = None
    if isinstance(report, StoredReport):
        model = report.query(auditor, export_request(report, auditor).form).model
    reads_it = model in {Transaction, BalanceBreak, Comparison, ReconciliationTotal} or name == "statement"
    assert (report.synced_until is not None) == reads_it
