"""Looking again: for a transaction that was named, when nothing is found, and when it is time."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from unittest.mock import Mock

import pytest
from django.db import connection
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.ledger import provider_list
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import CheckResult
from backoffice.operations.outcome import confirmation, schedule
from backoffice.operations.states import Status
from payments_gateway import ReadFailedError
from tests.append_only.triggers import lifted
from tests.operations.outcome.steps import HORIZON, confirmed
from tests.operations.provider_list import record, sent
from tests.operations.steps import let_pass
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_processing_operation_is_checked_by_its_own_transaction(
    processing: Operation, provider: StubProvider
) -> None:
    assert confirmed(processing, provider, record("T-2")).status == Status.PROCESSING
    assert confirmed(processing, provider, record("T-2"), record("T-1", "failed")).status == Status.FAILED
    assert Operation.objects.get().reason == "The provider reports this transaction as failed."


def test_a_named_transaction_is_found_regardless_of_its_time(
    processing: Operation, provider: StubProvider
) -> None:
    old = (datetime.now(UTC) - timedelta(hours=3)).isoformat()
    assert confirmed(processing, provider, record("T-1", createdAt=old)).status == Status.SUCCEEDED


def test_a_processing_named_transaction_is_checked_beyond_the_horizon(
    processing: Operation, provider: StubProvider
) -> None:
    let_pass(HORIZON)
    assert confirmed(processing, provider, record("T-1", "processing")).status == Status.PROCESSING
    assert confirmed(processing, provider, record("T-1")).status == Status.SUCCEEDED


def test_a_named_transaction_with_an_unknown_status_goes_to_review(
    processing: Operation, provider: StubProvider
) -> None:
    assert confirmed(processing, provider, record("T-1", "reversed")).status == Status.PROCESSING
    let_pass(HORIZON)
    assert confirmed(processing, provider, record("T-1", "reversed")).status == Status.REVIEW


def test_frequent_checks_do_not_bring_review_forward(unknown: Operation, provider: StubProvider) -> None:
    for _ in range(30):
        assert confirmation.confirm_operation(unknown.pk).status == Status.UNKNOWN


def test_an_operation_is_closed_after_any_number_of_checks(
    processing: Operation, provider: StubProvider
) -> None:
    """An operation that is under way for hours while webhooks come: PostgreSQL refuses what a column cannot count."""
    Attempt.objects.update(checks=32_767)
    assert confirmed(processing, provider, record("T-1")).status == Status.SUCCEEDED
    assert Attempt.objects.get().checks == 32_768


def test_an_unmatched_operation_is_not_resent_and_goes_to_review_after_a_day(
    unknown: Operation, provider: StubProvider
) -> None:
    let_pass(HORIZON)
    assert confirmation.confirm_operation(unknown.pk).status == Status.REVIEW
    assert len(provider.posts) == 1
    assert Entry.objects.filter(action=Action.OPERATION_ESCALATED).count() == 1


@pytest.mark.parametrize("passed", [timedelta(), HORIZON])
def test_an_unreadable_list_changes_nothing_and_is_retried(
    unknown: Operation, provider: StubProvider, passed: timedelta
) -> None:
    let_pass(passed)
    provider.records = "nonsense"
    assert confirmation.confirm_operation(unknown.pk).status == Status.UNKNOWN
    attempt = Attempt.objects.get()
    assert attempt.last_check.startswith("The provider's data could not be read")
    assert attempt.next_check_at is not None


def test_unreadable_content_does_not_stop_other_checks(
    unknown: Operation, provider: StubProvider, preparer: User, approver: User
) -> None:
    dollars = {"currency": "USD", "amount": Decimal(300)}
    other = sent(provider, preparer, approver, (200, '{"data": {"transactionId": "T-9"}}'), **dollars)
    with lifted(connection):
        Operation.objects.filter(pk=unknown.pk).update(kind="from another release")
    provider.records = json.dumps([record("T-9")])
    Attempt.objects.update(next_check_at=timezone.now())
    assert schedule.check_due() == 2
    assert Operation.objects.get(pk=other.pk).status == Status.SUCCEEDED
    assert "cannot read the content" in Attempt.objects.get(operation=unknown).last_check


def test_a_closed_operation_is_not_changed_by_later_reports(
    unknown: Operation, provider: StubProvider
) -> None:
    confirmed(unknown, provider, record("T-7"))
    assert confirmed(unknown, provider, record("T-7", "failed")).status == Status.SUCCEEDED


def test_a_due_check_is_made_by_one_sweeper(unknown: Operation, provider: StubProvider) -> None:
    Attempt.objects.update(next_check_at=timezone.now() + timedelta(minutes=1))
    assert schedule.check_due() == 0
    provider.records = json.dumps([record("T-7")])
    Attempt.objects.update(next_check_at=timezone.now())
    assert (schedule.check_due(), schedule.check_due()) == (1, 0)
    assert Operation.objects.get().status == Status.SUCCEEDED


def test_checks_that_are_due_together_share_one_reading_of_the_list(
    unknown: Operation, provider: StubProvider, preparer: User, approver: User
) -> None:
    for number in (8, 9):
        answer = f'{{"data": {{"transactionId": "T-{number}"}}}}'
        sent(provider, preparer, approver, (200, answer), amount=Decimal(300 + number))
    provider.records = json.dumps([record("T-7"), record("T-8"), record("T-9")])
    Attempt.objects.update(next_check_at=timezone.now())
    reads: list[str] = []
    provider.before_get = lambda: reads.append("read")
    assert schedule.check_due() == 3
    assert set(Operation.objects.values_list("status", flat=True)) == {Status.SUCCEEDED}
    assert len(reads) == 3  # one for both whose transaction is known, two passes for the other


def test_an_old_attempt_is_checked_with_a_reading_of_its_own(
    unknown: Operation, provider: StubProvider, preparer: User, approver: User
) -> None:
    answer = '{"data": {"transactionId": "T-9"}}'
    old = sent(provider, preparer, approver, (200, answer), amount=Decimal(300))
    started = timezone.now() - schedule.SHARED_PERIOD
    Attempt.objects.filter(operation=old).update(started_at=started, watermark_provider_time=started)
    both = schedule._with_readings(Attempt.objects.select_related("operation").order_by("pk"))
    assert [due.reading is None for due in both] == [False, True]


def test_a_provider_that_cannot_be_read_is_not_called_for_each_check(
    unknown: Operation,
    provider: StubProvider,
    preparer: User,
    approver: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent(provider, preparer, approver, (200, '{"data": {"transactionId": "T-9"}}'), amount=Decimal(300))
    refuse = Mock(side_effect=ReadFailedError("no answer"))
    monkeypatch.setattr(provider_list, "recent_transactions", lambda *_, **__: map(refuse, [1]))
    Attempt.objects.update(next_check_at=timezone.now())
    Attempt.objects.update(provider_transaction_id=None)
    assert schedule.check_due() == 2
    assert set(Attempt.objects.values_list("check_result", flat=True)) == {CheckResult.PROVIDER_UNREADABLE}
    assert refuse.call_count == 1
