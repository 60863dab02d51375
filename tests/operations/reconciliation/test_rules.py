"""What each result means, one situation after the other."""

import uuid
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.ledger.models import Mirror, Transaction
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reconciliation import Comparison, ReconciliationResult
from backoffice.operations.reconciliation.runner import reconcile
from backoffice.operations.states import Outcome
from backoffice.operations.workflow import prepare
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.operations.reconciliation.steps import (
    difference,
    listed,
    long_since,
    on_record,
    read_until,
    reference,
    results,
    sent,
    with_unknown_outcome,
)

pytestmark = pytest.mark.django_db


def test_an_operation_whose_record_says_the_same_is_matched(preparer: User) -> None:
    attempt = sent(preparer)
    listed()
    reconcile()
    assert results() == {reference(attempt): ReconciliationResult.MATCHED}
    assert difference() == ""


@pytest.mark.parametrize(
    ("reported", "words"),
    [
        ({"amount": Decimal("250050.25")}, "amount 50.25 more there"),
        ({"amount": Decimal(249000)}, "amount 1,000.00 less there"),
        ({"currency": "USD"}, "currency NGN here, USD there"),
        ({"fee": Decimal(75)}, "fee 25.00 more there"),
        ({"fee": None}, "fee 50.00 less there"),
        ({"status": "failed"}, "fulfilled here, failed there"),
        ({"amount": Decimal(250001), "fee": Decimal(49)}, "amount 1.00 more there; fee 1.00 less there"),
    ],
)
def test_an_operation_whose_record_says_something_else_is_different(
    preparer: User, reported: dict[str, Any], words: str
) -> None:
    attempt = sent(preparer)
    listed(**reported)
    reconcile()
    assert results() == {reference(attempt): ReconciliationResult.MISMATCHED}
    assert difference() == words


def test_a_failed_operation_is_matched_by_its_failed_record_and_differs_from_a_fulfilled_one(
    preparer: User,
) -> None:
    sent(preparer, "T-1", outcome=Outcome.FAILED)
    sent(preparer, "T-2", outcome=Outcome.FAILED)
    listed("T-1", status="failed")
    listed("T-2", status="fulfilled")
    reconcile()
    assert sorted(results().values()) == [ReconciliationResult.MATCHED, ReconciliationResult.MISMATCHED]
    ends = {"code": "outcome", "local": "failed", "provider": "fulfilled"}
    assert [ends] in Comparison.objects.values_list("differences", flat=True)


def test_a_fee_that_was_not_on_record_is_no_difference(preparer: User) -> None:
    sent(preparer, fee=None)
    listed(fee=Decimal(75))
    reconcile()
    assert list(results().values()) == [ReconciliationResult.MATCHED]


def test_one_that_the_provider_still_processes_is_matched_whatever_its_record_says_of_the_end(
    preparer: User,
) -> None:
    sent(preparer, outcome=Outcome.OPEN, closed_at=None)
    listed(status="processing")
    reconcile()
    assert list(results().values()) == [ReconciliationResult.MATCHED]


def test_one_that_is_not_in_the_mirror_is_missing_only_once_the_list_was_read_an_hour_later(
    preparer: User,
) -> None:
    attempt = sent(preparer)
    assert attempt.closed_at is not None
    reconcile()
    assert list(results().values()) == [ReconciliationResult.PENDING]  # never read at all
    read_until(attempt.closed_at + timedelta(minutes=59))
    reconcile()
    assert list(results().values()) == [ReconciliationResult.PENDING]
    read_until(attempt.closed_at + timedelta(hours=1))
    reconcile()
    assert list(results().values()) == [ReconciliationResult.MISSING_AT_PROVIDER]


def test_it_is_never_missing_while_it_is_open_or_the_first_load_is_under_way(preparer: User) -> None:
    attempt = sent(preparer, outcome=Outcome.OPEN, closed_at=None)
    read_until(long_since())
    reconcile()
    assert list(results().values()) == [ReconciliationResult.PENDING]
    on_record(attempt, outcome=Outcome.SUCCEEDED, closed_at=timezone.now())
    Mirror.objects.update(loaded_at=None)
    reconcile()
    assert list(results().values()) == [ReconciliationResult.PENDING]


def test_one_that_the_provider_lists_no_more_is_missing(preparer: User) -> None:
    attempt = sent(preparer)
    listed(missing_since=timezone.now())
    reconcile()
    assert results() == {reference(attempt): ReconciliationResult.MISSING_AT_PROVIDER}
    assert difference().startswith("the service listed it, and lists it no more since ")


def test_what_failed_without_a_transaction_is_not_searched_for(preparer: User) -> None:
    sent(preparer, None, outcome=Outcome.REJECTED, fee=None)
    with_unknown_outcome(preparer)
    read_until(long_since())
    reconcile()
    assert results() == {}


@pytest.mark.parametrize(
    "reported", [{}, {"status": "failed"}, {"type": "sent"}, {"direction": "", "type": "other"}]
)
def test_a_transaction_that_nobody_prepared_here_is_unrecognised(
    operation: Operation, reported: dict[str, Any]
) -> None:
    listed("X-1", **reported)
    reconcile()
    assert results() == {"X-1": ReconciliationResult.UNRECOGNISED}


def test_what_came_in_needs_nobody_here(operation: Operation) -> None:
    for number, kind in enumerate(("deposit", "internalTransfer", "conversion")):
        listed(f"X-{number}", type=kind, direction="in")
    reconcile()
    assert results() == {}


def test_what_is_older_than_the_first_operation_is_before_our_time(operation: Operation) -> None:
    listed("X-1", occurred_at=operation.prepared_at - timedelta(seconds=1))
    listed("X-2", occurred_at=operation.prepared_at)
    reconcile()
    assert results() == {"X-2": ReconciliationResult.UNRECOGNISED}


def test_before_the_first_operation_everything_is_before_our_time(db: None) -> None:
    listed("X-1")
    reconcile()
    assert results() == {}


def test_a_transaction_that_may_belong_to_an_unknown_outcome_is_pending(preparer: User) -> None:
    attempt = with_unknown_outcome(preparer)
    listed("X-1")
    reconcile()
    assert results() == {"X-1": ReconciliationResult.PENDING}
    assert reference(attempt) in difference()


@pytest.mark.parametrize(
    "reported",
    [
        {"amount": Decimal("250000.01")},
        {"currency": "USD"},
        {"occurred_at": timezone.now() + timedelta(hours=2)},
        {"transaction_id": "SEEN-BEFORE"},
        {"first_seen_at": timezone.now() - timedelta(seconds=1)},
    ],
)
def test_a_transaction_that_cannot_belong_to_the_unknown_outcome_is_unrecognised(
    preparer: User, reported: dict[str, Any]
) -> None:
    with_unknown_outcome(preparer, watermark_seen_ids=["SEEN-BEFORE"])
    listed(**{"transaction_id": "X-1"} | reported)
    reconcile()
    assert list(results().values()) == [ReconciliationResult.UNRECOGNISED]


def test_what_was_taken_for_ours_explains_another_only_while_ours_may_come(preparer: User) -> None:
    """The provider said yes without a name, and works for days on what was taken for ours."""
    attempt = with_unknown_outcome(preparer)
    on_record(attempt, provider_transaction_id="T-1")
    listed("T-1", status="processing")
    twin = listed("X-1")
    reconcile()
    assert results() == {
        reference(attempt): ReconciliationResult.MATCHED,
        "X-1": ReconciliationResult.PENDING,
    }
    begun = timezone.now() - Attempt.EXECUTION_WINDOW - Attempt.CLOCK_SKEW
    Attempt.objects.update(started_at=begun)
    Transaction.objects.filter(pk=twin.pk).update(first_seen_at=timezone.now())
    reconcile()
    assert results()["X-1"] == ReconciliationResult.UNRECOGNISED


def test_one_that_went_to_somebody_else_than_was_signed_is_different(preparer: User) -> None:
    transfer = prepare.prepare_operation(
        uuid.uuid4(), actor=preparer, kind="transfer", payload=SAMPLES["transfer"]
    )
    attempt = factories.attempt(
        transfer,
        provider_transaction_id="T-1",
        balance=transfer.currency,
        outcome=Outcome.SUCCEEDED,
        closed_at=timezone.now(),
    )
    on_record(attempt)
    there = {"type": "transfer", "currency": transfer.currency, "amount": transfer.amount}
    listed("T-1", username="mallory", **there)
    reconcile()
    assert list(results().values()) == [ReconciliationResult.MISMATCHED]
    assert difference().endswith("here, mallory there")


def test_a_status_that_is_not_final_differs_once_the_list_was_read_again(preparer: User) -> None:
    attempt = sent(preparer)
    assert attempt.closed_at is not None
    listed(status="reversed")
    reconcile()
    assert list(results().values()) == [ReconciliationResult.PENDING]
    read_until(attempt.closed_at + timedelta(hours=1))
    reconcile()
    assert list(results().values()) == [ReconciliationResult.MISMATCHED]
    assert difference() == "fulfilled here, reversed there"


def test_one_that_was_settled_days_later_is_missing_only_once_the_whole_list_was_read(preparer: User) -> None:
    attempt = sent(preparer, started_at=timezone.now() - timedelta(days=3))
    assert attempt.closed_at is not None
    read_until(attempt.closed_at + timedelta(hours=2))
    reconcile()
    assert list(results().values()) == [ReconciliationResult.PENDING]
    read_until(attempt.closed_at + timedelta(hours=28), whole_took=timedelta(hours=28))
    reconcile()
    assert list(results().values()) == [ReconciliationResult.PENDING]  # where that began it was not over yet
    read_until(attempt.closed_at + timedelta(hours=29), whole_took=timedelta(hours=28))
    reconcile()
    assert list(results().values()) == [ReconciliationResult.MISSING_AT_PROVIDER]
