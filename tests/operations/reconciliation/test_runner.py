"""What is kept by difference is what comes out from scratch, whatever happened in between and whoever compared."""

import random
import threading
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.ledger.models import Transaction
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import DifferenceCode, IncidentKind
from backoffice.operations.models.reconciliation import (
    Comparison,
    ReconciliationResult,
    ReconciliationState,
    ReconciliationTotal,
)
from backoffice.operations.reconciliation import runner
from backoffice.operations.reconciliation.runner import reconcile, reconcile_due
from backoffice.operations.states import Outcome
from tests.operations.forgeries import forge_entry, make_unreadable
from tests.operations.reconciliation.steps import (
    AMOUNT,
    everything_kept,
    listed,
    long_since,
    on_record,
    read_until,
    reference,
    reported_again,
    results,
    sent,
    totals,
    with_unknown_outcome,
)

pytestmark = pytest.mark.django_db


def from_scratch() -> tuple[object, ...]:
    """The same with nothing remembered."""
    for kept in (Comparison, ReconciliationTotal, ReconciliationState):
        kept.objects.all().delete()
    reconcile()
    return everything_kept()


class History:
    """Whatever can happen, at random."""

    def __init__(self, seed: int, preparer: User) -> None:
        self.random = random.Random(seed)  # noqa: S311 - the same history each time
        self.preparer, self.read_at = preparer, timezone.now()
        self.ids = [f"T-{number}" for number in range(12)]

    def go_on(self) -> None:
        """One thing."""
        happening = [
            self.send,
            self.list_one,
            self.list_one,
            self.report_again,
            self.close,
            self.bind,
            self.lose,
        ]
        self.random.choice([*happening, self.read_the_list, reconcile, reconcile])()

    def send(self) -> None:
        free = set(self.ids) - set(Attempt.objects.values_list("provider_transaction_id", flat=True))
        if not free or self.random.random() < 0.3:
            if not Attempt.objects.unmatched("NGN").exists():
                with_unknown_outcome(self.preparer)
            return
        sent(self.preparer, self.random.choice(sorted(free)), outcome=self.outcome(), **self.watermark())

    def outcome(self) -> str:
        return self.random.choice([Outcome.SUCCEEDED, Outcome.FAILED])

    def watermark(self) -> dict[str, object]:
        return {"watermark_provider_time": self.random.choice([None, timezone.now()])}

    def list_one(self) -> None:
        here = set(Transaction.objects.values_list("transaction_id", flat=True))
        if free := sorted(set(self.ids) - here):
            listed(self.random.choice(free), **self.random_fields())

    def random_fields(self) -> dict[str, object]:
        back = timedelta(days=self.random.choice([0, 0, 0, 1, 400]))
        return {
            "amount": self.random.choice([AMOUNT, AMOUNT, AMOUNT + Decimal("0.01")]),
            "fee": self.random.choice([Decimal(50), Decimal(50), None]),
            "direction": self.random.choice(["out", "out", "out", "in", ""]),
            "status": self.random.choice(["fulfilled", "failed", "processing"]),
            "occurred_at": timezone.now() - back,
        }

    def report_again(self) -> None:
        rows = list(Transaction.objects.order_by("pk"))
        if rows:
            reported_again(self.random.choice(rows), **self.random_fields())

    def lose(self) -> None:
        rows = list(Transaction.objects.order_by("pk"))
        if rows:
            reported_again(self.random.choice(rows), missing_since=self.random.choice([timezone.now(), None]))

    def close(self) -> None:
        attempt = Attempt.objects.filter(closed_at__isnull=True).first()
        if attempt is not None:
            on_record(attempt, outcome=Outcome.FAILED, closed_at=timezone.now())

    def bind(self) -> None:
        """An attempt learns its transaction, or that it was another one: an open one has no entry."""
        claimed = set(Attempt.objects.values_list("provider_transaction_id", flat=True))
        free, attempts = sorted(set(self.ids) - claimed), list(Attempt.objects.order_by("pk"))
        if not free or not attempts:
            return
        attempt, name = self.random.choice(attempts), self.random.choice(free)
        if attempt.closed_at is None and attempt.provider_transaction_id is None:
            Attempt.objects.filter(pk=attempt.pk).update(provider_transaction_id=name)
        else:
            on_record(attempt, provider_transaction_id=name)

    def read_the_list(self) -> None:
        self.read_at = max(self.read_at, self.random.choice([timezone.now(), long_since()]))
        read_until(self.read_at)


@pytest.mark.parametrize("seed", range(12))
def test_the_stored_result_equals_a_full_recomputation(
    preparer: User, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "BATCH_SIZE", 3)  # so that every feed is read in several steps
    monkeypatch.setattr(runner, "ROWS_PER_STEP", 2)
    history = History(seed, preparer)
    for _ in range(60):
        history.go_on()
    read_until(
        history.read_at + timedelta(seconds=1)
    )  # rows arrive with a sync, after which all are compared
    reconcile()
    kept = everything_kept()
    assert kept == from_scratch()
    assert kept[1] == summed_up()


def summed_up() -> set[tuple[object, ...]]:
    """The totals, added up from the rows."""
    sums: dict[tuple[object, ...], list[Decimal]] = {}
    for row in Comparison.objects.all():
        found = sums.setdefault((row.day, row.currency, row.result), [Decimal(0)] * 3)
        for place, number in enumerate((Decimal(1), row.amount, row.fee or Decimal(0))):
            found[place] += number
    return {(*key, int(count), amount, fee) for key, (count, amount, fee) in sums.items()}


def test_a_transaction_is_matched_once_its_attempt_is_known(preparer: User) -> None:
    attempt = with_unknown_outcome(preparer)
    row = listed("T-1")
    reconcile()
    assert results() == {"T-1": ReconciliationResult.PENDING}
    on_record(attempt, provider_transaction_id="T-1", outcome=Outcome.SUCCEEDED, closed_at=timezone.now())
    reconcile()
    assert results() == {reference(attempt): ReconciliationResult.MATCHED}
    assert totals() == {(row.occurred_at.date(), "NGN", "matched", 1, AMOUNT, Decimal(50))}


def test_a_forged_entry_about_no_operation_stops_no_comparison(preparer: User) -> None:
    attempt = with_unknown_outcome(preparer)
    reconcile()
    listed("T-1")
    forge_entry(Action.OPERATION_SUCCEEDED, "operations.operation", "x", {})
    on_record(attempt, provider_transaction_id="T-1", outcome=Outcome.SUCCEEDED, closed_at=timezone.now())
    reconcile()
    assert results() == {reference(attempt): ReconciliationResult.MATCHED}


def test_of_two_equal_transactions_the_other_is_unrecognised_once_ours_is_known(preparer: User) -> None:
    attempt = with_unknown_outcome(preparer)
    listed("T-1")
    listed("T-2")
    reconcile()
    assert set(results().values()) == {ReconciliationResult.PENDING}
    on_record(attempt, provider_transaction_id="T-2", outcome=Outcome.SUCCEEDED, closed_at=timezone.now())
    reconcile()
    assert results() == {
        reference(attempt): ReconciliationResult.MATCHED,
        "T-1": ReconciliationResult.UNRECOGNISED,
    }


def test_a_matched_record_that_vanishes_is_missing_until_it_returns(
    preparer: User,
) -> None:
    sent(preparer)
    row = listed()
    reconcile()
    assert list(results().values()) == [ReconciliationResult.MATCHED]
    reported_again(row, missing_since=timezone.now())
    reconcile()
    assert list(results().values()) == [ReconciliationResult.MISSING_AT_PROVIDER]
    reported_again(row, missing_since=None)
    reconcile()
    assert list(results().values()) == [ReconciliationResult.MATCHED]


def test_changes_missed_by_the_feeds_are_found_within_a_day(preparer: User) -> None:
    attempt = sent(preparer)
    row = listed()
    reconcile()
    Transaction.objects.filter(pk=row.pk).update(amount=Decimal(1))  # past the sync
    Attempt.objects.filter(pk=attempt.pk).update(fee=None)  # past the services
    reconcile()
    assert list(results().values()) == [ReconciliationResult.MATCHED]
    ReconciliationState.objects.update(full_pass_begun_at=timezone.now() - timedelta(days=1))
    reconcile()
    assert list(results().values()) == [ReconciliationResult.MISMATCHED]
    assert len(totals()) == 1


def test_an_unchanged_result_is_not_rewritten(preparer: User) -> None:
    sent(preparer)
    listed()
    listed("X-1")
    reconcile()
    before = set(Comparison.objects.values_list("pk", flat=True)), everything_kept()
    ReconciliationState.objects.all().delete()  # everything is judged once more
    reconcile()
    assert (set(Comparison.objects.values_list("pk", flat=True)), everything_kept()) == before


def test_gaps_between_ids_cost_no_queries(preparer: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "ROWS_PER_STEP", 2)
    monkeypatch.setattr(runner, "TIME_BUDGET_SECONDS", 0.5)
    with_unknown_outcome(preparer)  # so that something was prepared here before
    for number in range(5):
        listed(f"X-{number}", pk=10**9 * number + 1, amount=Decimal(number + 1))
    reconcile()
    assert set(results()) == {f"X-{number}" for number in range(5)}
    assert ReconciliationState.objects.get().full_pass_rows_to is None


def test_open_rows_are_compared_in_batches_to_the_last(
    preparer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an upgrade: everything that is here is pending at first, and none of it raises an incident later."""
    for number in range(7):
        sent(preparer, f"T-{number}")
    reconcile()
    assert list(results().values()) == [ReconciliationResult.PENDING] * 7
    monkeypatch.setattr(runner, "BATCH_SIZE", 2)
    monkeypatch.setattr(runner, "TIME_BUDGET_SECONDS", 0.0)  # a round is one step
    left = []
    for minutes in range(4):  # and the mirror moves meanwhile
        read_until(long_since() + timedelta(minutes=minutes))
        reconcile()
        left.append(Comparison.objects.filter(result=ReconciliationResult.PENDING).count())
    assert left == [5, 3, 1, 0]


def test_open_rows_beyond_the_batch_are_compared_in_turn(
    preparer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = [sent(preparer, None, outcome=Outcome.OPEN, closed_at=None, balance=None) for _ in range(5)]
    reconcile()
    for attempt in attempts:  # it has no entry
        Attempt.objects.filter(pk=attempt.pk).update(provider_transaction_id=f"T-{attempt.pk}")
    monkeypatch.setattr(runner, "BATCH_SIZE", 2)
    monkeypatch.setattr(runner, "TIME_BUDGET_SECONDS", 0.0)
    for known in (2, 4, 5):
        reconcile()
        assert len(results()) == known


def test_a_round_is_due_seconds_after_the_last(operation: Operation) -> None:
    assert [reconcile_due(), reconcile_due()] == [1, 0]
    with clock.use_clock(lambda: timezone.now() + runner.ROUND_INTERVAL):
        assert reconcile_due() == 1


@pytest.mark.django_db(transaction=True)
def test_concurrent_rounds_give_the_result_of_one(preparer: User) -> None:
    for number in range(40):
        sent(preparer, f"T-{number}")
        listed(f"T-{number}")
        listed(f"X-{number}")
    failures: list[BaseException] = []

    def compare() -> None:
        try:
            reconcile()
        except BaseException as exc:  # noqa: BLE001 - reported below, whatever it is
            failures.append(exc)
        finally:
            connection.close()

    threads = [threading.Thread(target=compare) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert (
        sorted(results().values())
        == [ReconciliationResult.MATCHED] * 40 + [ReconciliationResult.UNRECOGNISED] * 40
    )
    assert everything_kept() == from_scratch()


def test_a_closed_attempt_recompares_only_possible_debits(preparer: User) -> None:
    now = timezone.now()
    attempt = sent(preparer, None, outcome=Outcome.REJECTED, watermark_provider_time=now)
    alike = listed("X-1")
    listed("X-2", amount=AMOUNT + 1)
    listed("X-3", currency="USD")
    listed("X-4", occurred_at=now + timedelta(days=2))
    reconcile()
    position = Entry.objects.latest("position").position
    on_record(attempt)
    scope = runner.ReconciliationScope()
    runner._read_entries(scope, position)
    assert (scope.attempts, scope.rows) == ({attempt.pk}, {alike.pk})


def test_only_attempts_near_each_row_are_compared(preparer: User) -> None:
    """The full pass compares the oldest rows together with the newest ones."""
    now = timezone.now()

    def rejected(at: datetime, **changes: Any) -> Attempt:
        return sent(preparer, None, outcome=Outcome.REJECTED, watermark_provider_time=at, **changes)

    old, _between, new = (rejected(now - timedelta(days=days)) for days in (40, 20, 0))
    rejected(now, balance="USD")
    rows = [listed("X-1", occurred_at=now - timedelta(days=40)), listed("X-2", occurred_at=now)]
    assert runner._closed_attempts_near(rows)["NGN", AMOUNT] == [old, new]


def test_an_attempt_that_cannot_be_read_is_compared_like_the_others_and_has_its_incident(
    preparer: User,
) -> None:
    unreadable, _ = sent(preparer, "T-1"), sent(preparer, "T-2")
    listed("T-1", amount=AMOUNT + 1)
    listed("T-2")
    make_unreadable(unreadable, "responses")
    for _ in range(2):
        reconcile()
        found = dict(Comparison.objects.values_list("transaction__transaction_id", "result"))
        assert found == {"T-1": "mismatched", "T-2": "matched"}
    incident = Incident.objects.get(kind=IncidentKind.RECORD_MISMATCH)
    assert incident.operation_id == unreadable.operation_id


def test_an_attempt_of_unreadable_content_is_reported_and_ends_no_other_comparison(preparer: User) -> None:
    unreadable, _ = sent(preparer, "T-1"), sent(preparer, "T-2")
    for name in ("T-1", "T-2", "T-3"):
        listed(name)
    make_unreadable(unreadable.operation)
    for _ in range(2):  # also while the unreadable one is skipped
        reconcile()
        found = dict(Comparison.objects.values_list("transaction__transaction_id", "result"))
        assert found == {"T-1": "mismatched", "T-2": "matched", "T-3": "unrecognised"}
    compared = Comparison.objects.get(attempt=unreadable)
    assert compared.differences == [{"code": DifferenceCode.CONTENT_UNREADABLE}]
    incident = Incident.objects.get(kind=IncidentKind.RECORD_MISMATCH)
    assert incident.operation_id == unreadable.operation_id
