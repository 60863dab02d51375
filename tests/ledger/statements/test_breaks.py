"""The kept breaks are those that the rows show, whatever is merged, changes, moves, leaves the list and comes back."""

import itertools
import random
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from backoffice.core import clock
from backoffice.ledger.mirror.merge import mark_missing, merge_records
from backoffice.ledger.models import BalanceBreak, ContinuityCheck, Mirror, Sighting, Transaction
from backoffice.ledger.statements import chain, chain_reader, continuity
from payments_gateway import TransactionRecord
from tests.ledger.sync_lease import acquired_sync_lease

pytestmark = pytest.mark.django_db

Kind = BalanceBreak.Kind


@pytest.fixture(autouse=True)
def mirror(db: None) -> None:
    Mirror.objects.create(pk=1)


def record(name: str, second: int, before: object, amount: object, **members: Any) -> TransactionRecord:
    """A deposit without a fee, unless something else is said."""
    fields = {
        "transactionId": name,
        "createdAt": f"2026-03-04T05:06:{second:02}Z",
        "prevBalance": before,
        "amount": amount,
        "currency": "NGN",
        "type": "deposit",
        "status": "fullfiled",
    }
    return TransactionRecord.model_validate(fields | members)


def merged(*records: TransactionRecord) -> None:
    with transaction.atomic():
        merge_records(records)


def lose(*names: str) -> None:
    """A whole reading of the list was without these; those that were lost before stay so."""
    here = Transaction.objects.exclude(transaction_id__in=names).values_list("pk", flat=True)
    Sighting.objects.all().delete()
    Sighting.objects.bulk_create(Sighting(transaction_id=pk) for pk in here)
    with acquired_sync_lease() as lease:
        mark_missing(lease, clock.now() + timedelta(days=1))


def stored_breaks() -> list[tuple[str, str, str, str, str]]:
    """Records before and after, kind, difference and its direction, the oldest first."""
    return [
        (one.before.transaction_id, one.after.transaction_id, one.kind, f"{one.difference:f}", one.direction)
        for one in BalanceBreak.objects.order_by("at", "pk")
    ]


def test_an_unbroken_chain_stores_nothing() -> None:
    merged(record("A", 0, 0, 10), record("B", 1, 10, 5), record("C", 2, 15, 1, type="withdrawal", fee=2))
    merged(record("D", 3, 12, 1))
    assert stored_breaks() == []


def test_a_break_is_stored_until_the_missing_record_arrives() -> None:
    merged(record("A", 0, 0, 10), record("C", 4, 15, 1))
    assert stored_breaks() == [("A", "C", Kind.GAP, "5", "in")]
    merged(record("B", 2, 10, 5))
    assert stored_breaks() == []


def test_a_lasting_break_keeps_its_detection_time() -> None:
    merged(record("A", 0, 0, 10), record("B", 1, 15, 1))
    noticed = BalanceBreak.objects.get().detected_at
    merged(record("C", 2, 16, 1))
    merged(record("B", 1, 15, 1, status="failed"))
    assert BalanceBreak.objects.get().detected_at == noticed


@pytest.mark.parametrize(
    ("before", "found", "kind", "difference", "direction"),
    [
        ({"type": "withdrawal", "fee": "0.5"}, "90", Kind.FEE, "0.5", "in"),
        ({"type": "withdrawal", "fee": "0.5"}, "100", Kind.UNMOVED, "10.5", "in"),
        ({"type": "withdrawal", "fee": "0"}, "89", Kind.GAP, "1", "out"),
        ({}, "100", Kind.UNMOVED, "10", "out"),
        ({}, "110.000000000000000001", Kind.GAP, "0.000000000000000001", "in"),
    ],
)
def test_the_explanation_of_a_break_is_shown(
    before: dict[str, str], found: str, kind: str, difference: str, direction: str
) -> None:
    merged(record("A", 0, 100, 10, **before), record("B", 1, found, 1))
    assert stored_breaks() == [("A", "B", kind, difference, direction)]


def test_a_record_that_was_changed_is_named_as_the_reason() -> None:
    merged(record("A", 0, 0, 10), record("B", 1, 10, 5), record("C", 2, 15, 1))
    merged(record("B", 1, 10, 7))
    assert stored_breaks() == [("B", "C", Kind.CHANGED, "2", "out")]


def test_a_record_that_left_the_list_is_named_as_the_reason_and_may_come_back() -> None:
    chain = [record("A", 0, 0, 10), record("B", 1, 10, 5), record("C", 2, 15, 1), record("D", 3, 16, 1)]
    merged(*chain)
    lose("B")
    assert stored_breaks() == [("A", "C", Kind.VANISHED, "5", "in")]
    lose("B", "C")
    assert stored_breaks() == [("A", "D", Kind.VANISHED, "6", "in")]
    merged(*chain)
    assert stored_breaks() == []


def test_an_unlisted_record_that_explains_nothing_is_no_break() -> None:
    merged(record("A", 0, 0, 10), record("twin", 1, 0, 10), record("C", 2, 10, 1))
    assert stored_breaks() == [("A", "twin", Kind.UNMOVED, "10", "out")]
    lose("twin")
    assert stored_breaks() == []


def test_each_currency_has_its_own_chain() -> None:
    merged(record("A", 0, 0, 10), record("B", 1, 99, 5, currency="USD"), record("C", 2, 7, 1, currency=""))
    merged(record("D", 3, 10, 1), record("E", 4, 104, 5, currency="USD"), record("F", 5, 1, 1, currency=""))
    assert stored_breaks() == []
    merged(record("E", 4, 104, 5))
    assert stored_breaks() == [("D", "E", Kind.CHANGED, "93", "in")]


def random_record(rng: random.Random) -> TransactionRecord:
    fields: dict[str, Any] = {
        "type": rng.choice(("deposit", "deposit", "withdrawal", "transfer")),
        "currency": rng.choice(("NGN", "NGN", "USD")),
        "fee": rng.choice((None, 0, 1)),
    }
    if rng.random() < 0.1:
        fields["createdAt"] = ""
    before = None if rng.random() < 0.1 else rng.randrange(4)
    return record(f"T{rng.randrange(24)}", rng.randrange(12), before, rng.randrange(1, 3), **fields)


@pytest.mark.parametrize("most", [4, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_stored_breaks_equal_a_full_recomputation(
    seed: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)  # noqa: S311 - to be repeatable, not secret
    monkeypatch.setattr(chain, "MAX_RECORDS_WITHOUT_LANDMARK", most)
    for name in ("_FIRST_BATCH", "_BATCH", "_LOOKBACK"):  # so that every seam between two reads occurs
        monkeypatch.setattr(chain_reader, name, rng.randrange(2, 5))
    seen = set()
    for _ in range(14):
        if rng.random() < 0.2:
            here = list(Transaction.objects.values_list("transaction_id", flat=True))
            lose(*rng.sample(here, k=min(len(here), 2)))
        else:
            merged(*(random_record(rng) for _ in range(rng.randrange(1, 9))))
        assert list(continuity.break_disagreements()) == []
        seen.add(BalanceBreak.objects.count())
    assert len(seen) >= 3


def test_a_change_is_checked_incrementally() -> None:
    merged(*(record(f"T{second}", second, second, 1) for second in range(60)))
    rows = [
        record(
            f"U{minute}", 0, 60 + minute, 1, createdAt=f"2026-03-05T{minute // 60:02}:{minute % 60:02}:00Z"
        )
        for minute in range(600)
    ]
    merged(*rows)
    with CaptureQueriesContext(connection) as queries:
        merged(record("T30", 30, 30, "1.5"))
    read = [query["sql"] for query in queries if '"previous_balance"' in query["sql"]]
    assert len([sql for sql in read if "LIMIT 10" in sql and "DESC" not in sql]) == 1
    assert not any("LIMIT 100" in sql or "LIMIT 500" in sql for sql in read)
    assert [one[:2] for one in stored_breaks()] == [("T30", "T31")]


def by_the_day(number: int) -> list[TransactionRecord]:
    """So many deposits of one, fifty on each day, which go round in a circle: no day shows where it ends."""
    return [
        record(f"D{k}", 0, k % 50, 1, createdAt=f"{date(2020, 1, 1) + timedelta(days=k // 50)}")
        if k % 50 < 49
        else record(
            f"D{k}", 0, 49, 49, type="withdrawal", createdAt=f"{date(2020, 1, 1) + timedelta(days=k // 50)}"
        )
        for k in range(number)
    ]


def test_reads_are_bounded_without_landmarks() -> None:
    """A provider that reports days, each of which ends with the balance with which it began."""
    merged(*by_the_day(3000))
    with CaptureQueriesContext(connection) as queries:
        merged(*by_the_day(3050)[3000:])
        last = chain_reader.last_link_before("NGN", clock.now())
    assert last is not None
    read = [
        query["sql"] for query in queries if '"previous_balance"' in query["sql"] and "LIMIT" in query["sql"]
    ]
    assert sum(int(sql.rpartition("LIMIT ")[2]) for sql in read) < 10 * chain.lookback_limit()
    assert list(continuity.break_disagreements()) == []


def pair(second: int, before: int) -> list[TransactionRecord]:
    """One comes in and the same goes out, in whichever order."""
    members = {"type": "withdrawal"}
    return [
        record(f"in{second}", second, before, 1),
        record(f"out{second}", second, before + 1, 1, **members),
    ]


def test_a_range_left_unchecked_after_a_lost_landmark_stores_no_break(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chain, "MAX_RECORDS_WITHOUT_LANDMARK", 4)
    merged(*pair(1, 0), *pair(2, 0), record("T", 3, 0, 5), *pair(4, 5), *pair(5, 7))
    assert [(one[2], one[3]) for one in stored_breaks()] == [(Kind.GAP, "2")]
    merged(record("U", 3, 5, 5, type="withdrawal"))
    assert stored_breaks() == []
    assert list(continuity.break_disagreements()) == []


def check_all() -> int:
    return sum(1 for _ in iter(continuity.run_due_check, 0))


def test_existing_rows_are_checked_in_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    merged(*(record(f"T{second}", second, second if second < 40 else second + 1, 1) for second in range(50)))
    merged(record("U", 3, 7, 1, currency="USD"))
    found = stored_breaks()
    BalanceBreak.objects.all().delete()
    monkeypatch.setattr(continuity, "RECORDS_PER_CHECK", 10)
    assert check_all() == 7
    assert stored_breaks() == found == [("T39", "T40", Kind.GAP, "1", "in")]
    assert check_all() == 0
    with clock.use_clock(lambda: timezone.now() + timedelta(days=1.01)):
        assert check_all() == 7
    assert {check.checked_until for check in ContinuityCheck.objects.all()} == {None}


def test_a_check_ends_at_the_start_of_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(continuity, "RECORDS_PER_CHECK", 10)
    merged(*by_the_day(100))
    assert len(list(itertools.islice(iter(continuity.run_due_check, 0), 5))) == 1
    assert ContinuityCheck.objects.get().completed_at is not None


def test_the_currency_that_was_checked_longest_ago_is_checked_first() -> None:
    merged(record("A", 0, 0, 10), record("B", 1, 1, 1, currency="USD"), record("C", 2, 1, 1, currency="XAF"))
    for currency, hours in (("NGN", 25), ("USD", 30)):
        ContinuityCheck.objects.create(currency=currency, completed_at=clock.now() - timedelta(hours=hours))
    turns = []
    while continuity.run_due_check():
        turns.append(ContinuityCheck.objects.latest("completed_at").currency)
    assert turns == ["XAF", "USD", "NGN"]


def test_a_wrong_stored_break_is_repaired_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    merged(record("A", 0, 0, 10), record("B", 1, 15, 1))
    check_all()
    BalanceBreak.objects.update(difference=Decimal(7), expected=Decimal(8))
    assert [str(one) for one in continuity.break_disagreements()] == [
        "NGN 2026-03-04 05:06:01+00:00: gap is stored, but the rows do not show it",
        "NGN 2026-03-04 05:06:01+00:00: gap is not stored, but the rows show it",
    ]
    with clock.use_clock(lambda: timezone.now() + timedelta(days=1.01)):
        check_all()
    assert stored_breaks() == [("A", "B", Kind.GAP, "5", "in")]
    assert "The stored continuity breaks of NGN differed from the rows; 2 were corrected" in caplog.text
