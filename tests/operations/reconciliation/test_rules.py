"""What each result means, one situation after the other."""

import uuid
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.ledger.models import Mirror, Transaction
from backoffice.operations.kinds.staff_change import StaffChange
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reconciliation import Comparison, ReconciliationResult
from backoffice.operations.reconciliation.runner import reconcile
from backoffice.operations.states import Outcome
from backoffice.operations.workflow import prepare
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.operations.kinds.staff.changes import agreed, of_group
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


def test_an_operation_with_an_equal_record_is_matched(preparer: User) -> None:
    attempt = sent(preparer)
    listed()
    reconcile()
    assert results() == {reference(attempt): ReconciliationResult.MATCHED}
    assert difference() == ""


@pytest.mark.parametrize(
    ("reported", "words"),
    [
        ({"amount": Decimal("250050.25")}, "amount 50.25 higher at the provider"),
        ({"amount": Decimal(249000)}, "amount 1,000.00 lower at the provider"),
        ({"currency": "USD"}, "currency USD at the provider, NGN expected"),
        ({"fee": Decimal(75)}, "fee 25.00 higher at the provider"),
        ({"fee": None}, "fee 50.00 lower at the provider"),
        ({"status": "failed"}, "failed at the provider, recorded as succeeded"),
        (
            {"amount": Decimal(250001), "fee": Decimal(49)},
            "amount 1.00 higher at the provider; fee 1.00 lower at the provider",
        ),
    ],
)
def test_an_operation_with_a_differing_record_is_mismatched(
    preparer: User, reported: dict[str, Any], words: str
) -> None:
    attempt = sent(preparer)
    listed(**reported)
    reconcile()
    assert results() == {reference(attempt): ReconciliationResult.MISMATCHED}
    assert difference() == words


def test_a_failed_operation_matches_a_failed_record_only(
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


def test_an_unrecorded_fee_is_no_mismatch(preparer: User) -> None:
    sent(preparer, fee=None)
    listed(fee=Decimal(75))
    reconcile()
    assert list(results().values()) == [ReconciliationResult.MATCHED]


def test_a_processing_operation_is_matched_whatever_the_records_status(
    preparer: User,
) -> None:
    sent(preparer, outcome=Outcome.OPEN, closed_at=None)
    listed(status="processing")
    reconcile()
    assert list(results().values()) == [ReconciliationResult.MATCHED]


def test_an_unmirrored_operation_is_missing_only_after_a_list_read_an_hour_later(
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


def test_an_operation_is_not_missing_while_open_or_during_the_first_load(preparer: User) -> None:
    attempt = sent(preparer, outcome=Outcome.OPEN, closed_at=None)
    read_until(long_since())
    reconcile()
    assert list(results().values()) == [ReconciliationResult.PENDING]
    on_record(attempt, outcome=Outcome.SUCCEEDED, closed_at=timezone.now())
    Mirror.objects.update(loaded_at=None)
    reconcile()
    assert list(results().values()) == [ReconciliationResult.PENDING]


def test_an_operation_no_longer_listed_is_missing(preparer: User) -> None:
    attempt = sent(preparer)
    listed(missing_since=timezone.now())
    reconcile()
    assert results() == {reference(attempt): ReconciliationResult.MISSING_AT_PROVIDER}
    assert difference().startswith("no longer in the provider's list since ")


def test_a_failed_operation_without_a_transaction_is_not_compared(preparer: User) -> None:
    sent(preparer, None, outcome=Outcome.REJECTED, fee=None)
    with_unknown_outcome(preparer)
    read_until(long_since())
    reconcile()
    assert results() == {}


@pytest.mark.parametrize(
    "reported", [{}, {"status": "failed"}, {"type": "sent"}, {"direction": "", "type": "other"}]
)
def test_a_transaction_without_an_operation_is_unrecognised(
    operation: Operation, reported: dict[str, Any]
) -> None:
    listed("X-1", **reported)
    reconcile()
    assert results() == {"X-1": ReconciliationResult.UNRECOGNISED}


def test_incoming_transactions_need_no_operation(operation: Operation) -> None:
    for number, kind in enumerate(("deposit", "internalTransfer", "conversion")):
        listed(f"X-{number}", type=kind, direction="in")
    reconcile()
    assert results() == {}


def test_transactions_older_than_the_first_operation_are_ignored(operation: Operation) -> None:
    listed("X-1", occurred_at=operation.prepared_at - timedelta(seconds=1))
    listed("X-2", occurred_at=operation.prepared_at)
    reconcile()
    assert results() == {"X-2": ReconciliationResult.UNRECOGNISED}


def test_setting_up_the_team_does_not_begin_the_comparison(
    administrator: User, second_administrator: User
) -> None:
    """Until the first payment is prepared here, payments are made elsewhere."""
    agreed(of_group(StaffChange.CREATE_GROUP, "Treasury"), administrator, second_administrator)
    listed("X-1", occurred_at=timezone.now())
    reconcile()
    assert results() == {}


def test_all_transactions_are_ignored_before_the_first_operation(db: None) -> None:
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


def test_a_claimed_transaction_explains_another_only_while_ours_may_appear(preparer: User) -> None:
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


def test_a_transaction_to_another_recipient_is_mismatched(preparer: User) -> None:
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
    assert difference().startswith("Recipient's username: mallory at the provider, ")


def test_a_non_final_status_is_a_mismatch_after_the_next_list_read(preparer: User) -> None:
    attempt = sent(preparer)
    assert attempt.closed_at is not None
    listed(status="reversed")
    reconcile()
    assert list(results().values()) == [ReconciliationResult.PENDING]
    read_until(attempt.closed_at + timedelta(hours=1))
    reconcile()
    assert list(results().values()) == [ReconciliationResult.MISMATCHED]
    assert difference() == "“reversed” at the provider, recorded as succeeded"


def test_a_late_settled_operation_is_missing_only_after_a_full_pass(preparer: User) -> None:
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
