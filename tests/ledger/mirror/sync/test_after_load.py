"""What arrives, changes or leaves after the list was loaded is synced within its promise."""

from datetime import timedelta

import pytest
from django.utils import timezone

from backoffice.ledger.mirror import passes
from backoffice.ledger.mirror.passes import begin_full_pass, continue_full_pass, read_newest
from backoffice.ledger.models import Mirror, Sighting, Transaction, TransactionChange
from tests.ledger.long_list import LongList, member, numbered
from tests.ledger.mirror.sync.steps import DAY, HOUR, MINUTE, here, load, state, sync_after
from tests.ledger.sync_lease import acquired_sync_lease

pytestmark = pytest.mark.django_db


def test_new_records_are_synced_within_a_minute_by_two_pages(provider: LongList) -> None:
    provider.listed = numbered(900)
    load()
    provider.grow("A", "B")
    provider.asked.clear()
    sync_after(timedelta())
    assert provider.asked == []
    sync_after(MINUTE)
    assert here() >= {"A", "B"}
    assert provider.asked == [1, 2, 3]


def test_a_changed_record_is_updated_with_its_history(provider: LongList) -> None:
    provider.listed = [member("A", status="processing", fee=None), *numbered(50)]
    load()
    before = Transaction.objects.get(transaction_id="A")
    provider.listed[0] = member("A", status="fullfiled", fee="1.50", updatedAt="2026-03-04T07:00:00Z")
    sync_after(MINUTE)
    after = Transaction.objects.get(transaction_id="A")
    assert (after.pk, after.first_seen_at, after.status) == (before.pk, before.first_seen_at, "fulfilled")
    change = TransactionChange.objects.get()
    assert change.transaction == after
    assert change.before == {"status": "processing", "fee": None, "updated_at": None}
    assert change.after == {"status": "fulfilled", "fee": "1.5", "updated_at": "2026-03-04T07:00:00+00:00"}
    assert after.changed_at == change.seen_at > before.first_seen_at


@pytest.mark.parametrize(("age", "promise"), [(timedelta(hours=20), HOUR), (timedelta(days=90), DAY)])
def test_a_late_change_is_synced_within_the_promised_time(
    provider: LongList, age: timedelta, promise: timedelta
) -> None:
    moment = (timezone.now() - age).isoformat()
    old = [member(f"D{number}", createdAt=moment) for number in range(300)]
    provider.listed = old + numbered(300)
    load()
    provider.listed[290] = member("D290", createdAt=moment, status="failed")
    sync_after(2 * MINUTE)
    assert Transaction.objects.get(transaction_id="D290").status == "fulfilled"
    sync_after(promise)
    assert Transaction.objects.get(transaction_id="D290").status == "failed"


def test_the_last_day_pass_stops_after_a_page_of_older_records(provider: LongList) -> None:
    moment = timezone.now().isoformat()
    provider.listed = [member(f"D{number}", createdAt=moment) for number in range(250)] + numbered(2000)
    load()
    provider.asked.clear()
    sync_after(HOUR)
    assert max(provider.asked) == 4


def test_a_record_that_leaves_the_list_is_kept_and_marked_missing(provider: LongList) -> None:
    provider.listed = numbered(400)
    load()
    removed = provider.listed.pop(350)
    sync_after(DAY)
    row = Transaction.objects.get(transaction_id=removed["transactionId"])
    assert row.missing_since is not None
    assert (state().missing, state().difference) == (1, 0)
    assert [change.after for change in row.changes.all()] == [
        {"missing_since": row.missing_since.isoformat()}
    ]
    assert not Sighting.objects.exists()

    provider.listed.insert(0, removed)
    sync_after(DAY + MINUTE)
    row.refresh_from_db()
    assert row.missing_since is None
    assert row.changes.count() == 2
    assert state().missing == 0


@pytest.mark.parametrize("which", ["a round", "the last day"])
def test_a_record_relisted_during_the_missing_count_is_not_missing(provider: LongList, which: str) -> None:
    """It stood on a page that the count had not read yet, and comes back on one that it has read."""
    provider.listed = numbered(700)
    load()
    del provider.listed[690]
    moved, lease = provider.listed[-1], acquired_sync_lease()
    begin_full_pass(lease, Mirror.Depth.COUNT)
    while Mirror.objects.get().pass_page < 4:
        continue_full_pass(lease, until=0.0, on_progress=lambda _: None)
    provider.listed.insert(0, provider.listed.pop())
    if which == "a round":
        read_newest(lease)
    else:
        passes.continue_day_pass(lease, until=0.0, on_progress=lambda _: None)
    while Mirror.objects.get().pass_depth:
        continue_full_pass(lease, until=0.0, on_progress=lambda _: None)
    marked = TransactionChange.objects.values_list("transaction__transaction_id", flat=True)
    assert moved["transactionId"] not in marked
    assert len(marked) == 1


def test_a_record_without_a_time_keeps_the_time_first_seen(provider: LongList) -> None:
    provider.listed = [member("A", createdAt=None), *numbered(3)]
    load()
    first = Transaction.objects.get(transaction_id="A")
    assert first.occurred_at == first.first_seen_at
    provider.listed[0] = member("A", createdAt=None, status="failed")
    sync_after(MINUTE)
    second = Transaction.objects.get(transaction_id="A")
    assert (second.status, second.occurred_at) == ("failed", first.occurred_at)
    provider.listed[0] = member("A", createdAt="2025-01-01T00:00:00Z", status="failed")
    sync_after(2 * MINUTE)
    third = Transaction.objects.get(transaction_id="A")
    assert third.occurred_at.isoformat() == "2025-01-01T00:00:00+00:00"


def test_records_that_arrive_between_passes_are_counted(provider: LongList) -> None:
    provider.listed = numbered(400)
    load()
    provider.asked.clear()
    provider.before = lambda number: (
        provider.grow("A") if provider.asked.count(1) == number + 1 == 2 else None
    )
    sync_after(HOUR)
    assert "A" in here()
    assert state().difference == 0
