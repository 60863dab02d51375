"""What the merge writes, on both engines alike: rows, history and totals, and nothing for what is here already."""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from backoffice.core import clock
from backoffice.ledger.mirror.merge import MergeResult, merge_records
from backoffice.ledger.mirror.rows import UnstorableRecordError, row_of
from backoffice.ledger.mirror.totals import total_discrepancies
from backoffice.ledger.models import DayTotal, Facet, Mirror, Transaction, TransactionChange
from payments_gateway import TransactionRecord

pytestmark = pytest.mark.django_db

LARGEST = "9999999999999999999999.999999999999999999"


@pytest.fixture(autouse=True)
def totals_agree() -> Iterator[None]:
    """Whatever a test merges."""
    Mirror.objects.get_or_create(pk=1)
    yield
    assert list(map(str, total_discrepancies())) == []
    assert Mirror.objects.get().rows == Transaction.objects.count()


def record(name: str = "T1", **members: Any) -> TransactionRecord:
    fields = {
        "transactionId": name,
        "amount": "250000.50",
        "currency": "NGN",
        "type": "deposit",
        "status": "processing",
        "fee": 50,
        "sender": "Adaeze Obi",
        "username": "countersign-demo",
        "createdAt": "2026-03-04T05:06:07.123456Z",
    }
    return TransactionRecord.model_validate(fields | members)


def merged(*records: TransactionRecord, known_before: datetime | None = None) -> MergeResult:
    with transaction.atomic():
        return merge_records(records, known_before=known_before)


FULL: dict[str, Any] = {
    "prevBalance": "1000000.000000000000000001",
    "senderPrevbalance": "-3.50",
    "fromCurrency": "USD",
    "fromAmount": Decimal("1e3"),
    "isFromRegUser": True,
    "businessId": "biz-1",
    "version": "v2",
    "date": "2026-03-04",
    "updatedAt": "2026-03-04T06:06:07+01:00",
}
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "every member": FULL,
    "no members but the id and the amount": {
        **dict.fromkeys(("currency", "type", "status", "sender", "username", "createdAt"), ""),
        "fee": None,
    },
    "the smallest amount": {"amount": "0.000000000000000001", "fee": 0},
    "the largest amount": {"amount": LARGEST, "fee": LARGEST, "prevBalance": "-" + LARGEST},
    "more decimals than are kept": {"amount": "0.0000000000000000015", "fee": "0.1234567890123456785"},
    "what COPY reads as its own": {"sender": "a\\b\tc\nd\re\\N", "username": "\\.", "version": "\\N"},
    "quotes and letters": {"sender": 'O\'Neil "Ṣẹ́gun" 💸; DROP', "date": "NULL"},
    "a no": {"isFromRegUser": False},
    "another offset": {"createdAt": "2026-01-01T00:30:00+01:00"},
}


@pytest.mark.parametrize("members", CASES.values(), ids=CASES.keys())
def test_a_record_is_stored_as_it_was_reported(members: dict[str, Any]) -> None:
    reported = record(**members)
    before = clock.now()
    merged(reported)
    row = Transaction.objects.get()
    values = row_of(reported).values
    assert {name: getattr(row, name) for name in values} == values
    for name in ("currency", "type", "status", "sender", "username", "version", "date", "created_at"):
        assert getattr(row, name) == getattr(reported, name)
    assert row.amount == pytest.approx(reported.amount, abs=Decimal("1e-18"))
    facet = row.facet
    assert (facet.currency, facet.type, facet.status, facet.direction) == (
        *(row.currency, row.type, row.status, row.direction),
    )
    assert before <= row.first_seen_at <= clock.now()
    assert row.occurred_at == (reported.created_at or row.first_seen_at)
    assert (row.changed_at, row.missing_since) == (None, None)
    assert bytes(row.digest) == row_of(reported).digest


@pytest.mark.parametrize("members", CASES.values(), ids=CASES.keys())
def test_an_unchanged_record_is_not_written(members: dict[str, Any]) -> None:
    merged(record(**members))
    before = Transaction.objects.values().get()
    with CaptureQueriesContext(connection) as queries:
        again = merged(record(**members))
    assert (again.new, again.changed, again.is_known) == (0, 0, [True])
    assert Transaction.objects.values().get() == before
    written = [
        query["sql"] for query in queries if "INTO ledger_" in query["sql"] or 'INTO "' in query["sql"]
    ]
    assert written == []
    assert not TransactionChange.objects.exists()


def test_the_history_holds_only_changed_fields() -> None:
    merged(record(**FULL))
    result = merged(record(**FULL | {"amount": "250000.51", "fromCurrency": "", "isFromRegUser": None}))
    assert (result.new, result.changed, result.is_known) == (0, 1, [False])
    change = TransactionChange.objects.get()
    assert change.before == {"amount": "250000.5", "from_currency": "USD", "is_from_registered_user": True}
    assert change.after == {"amount": "250000.51", "from_currency": "", "is_from_registered_user": None}
    assert Transaction.objects.get().changed_at == change.seen_at


def test_an_equal_value_in_another_notation_is_no_change() -> None:
    merged(record(amount="250000.50", fee=50, createdAt="2026-03-04T05:06:07Z"))
    again = record(amount=Decimal("250000.5"), fee="50.00", createdAt="2026-03-04T06:06:07+01:00")
    assert merged(again).changed == 0
    assert Transaction.objects.get().changed_at is None
    assert not TransactionChange.objects.exists()
    assert merged(again).is_known == [True]


def test_a_record_with_a_changed_day_or_facet_moves_between_totals() -> None:
    merged(record("A"), record("B"))
    moved = {"status": "failed", "createdAt": "2026-03-05T00:00:00Z", "amount": "1", "fee": None}
    merged(record("A", **moved))
    totals = [
        (str(total.day), total.facet.status, total.count, f"{total.amount:f}", f"{total.fee:f}")
        for total in DayTotal.objects.select_related("facet")
    ]
    assert totals == [
        ("2026-03-05", "failed", 1, "1", "0"),
        ("2026-03-04", "processing", 1, "250000.5", "50"),
    ]


def test_day_totals_use_utc_days() -> None:
    merged(record(createdAt="2026-01-01T00:30:00+01:00"))
    assert [str(total.day) for total in DayTotal.objects.all()] == ["2025-12-31"]


def test_a_total_can_exceed_the_largest_amount() -> None:
    merged(*(record(f"T{number}", amount=LARGEST) for number in range(3)))
    merged(record("another", amount="0.000000000000000003"))
    assert f"{DayTotal.objects.get().amount:f}" == "30000000000000000000000"


def test_the_later_of_two_versions_of_a_record_counts() -> None:
    result = merged(record(status="processing"), record(status="failed"))
    assert (result.new, Transaction.objects.get().status) == (1, "failed")


def test_a_negative_amount_is_outgoing() -> None:
    merged(record(amount="-3.20"))
    row = Transaction.objects.get()
    assert (f"{row.amount:f}", row.direction) == ("3.2", "out")


def test_a_row_with_a_newly_derived_direction_is_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    reported = record(type="transfer", sender="Our Company Ltd", username="kola.ventures")
    with monkeypatch.context() as before:
        before.setattr("backoffice.ledger.mirror.rows.direction", lambda _: "in")
        merged(reported)
    assert merged(reported).changed == 1
    row = Transaction.objects.get()
    assert (row.direction, row.facet.direction, row.counterparty) == ("", "", "kola.ventures")
    assert [total.facet.direction for total in DayTotal.objects.filter(count=1)] == [""]
    assert TransactionChange.objects.get().before["direction"] == "in"


def test_records_first_seen_too_recently_are_not_yet_known() -> None:
    merged(record("A"))
    moment = clock.now()
    result = merged(record("A"), record("B"), known_before=moment)
    assert result.is_known == [True, False]
    assert merged(record("B"), record("A"), known_before=moment).is_known == [False, True]
    assert not TransactionChange.objects.exists()


def test_of_two_records_with_the_same_time_the_first_listed_is_newer() -> None:
    merged(record("newer"), record("older"))
    assert [row.transaction_id for row in Transaction.objects.all()] == ["newer", "older"]


@pytest.mark.parametrize(
    "members",
    [{"transactionId": "T" * 501}, {"currency": "N" * 501}, {"status": "s" * 400, "type": "t" * 200}],
)
def test_a_value_too_long_for_its_index_is_refused_by_name(members: dict[str, str]) -> None:
    with pytest.raises(UnstorableRecordError, match=r"^Transaction T1?T* cannot be stored: its ID, currency"):
        merged(record(**members))
    assert not Transaction.objects.exists()


def test_an_amount_that_overflows_when_rounded_is_refused() -> None:
    with pytest.raises(UnstorableRecordError, match="a number has too many digits"):
        merged(record(amount=LARGEST + "9"))


def test_long_texts_in_unindexed_fields_are_kept() -> None:
    merged(record(sender="s" * 5000, transactionId="T" * 500))
    assert len(Transaction.objects.get().sender) == 5000


def test_a_merge_is_rolled_back_with_its_transaction() -> None:
    with transaction.atomic():
        merge_records([record()])
        transaction.set_rollback(True)
    assert not Facet.objects.exists()
    merged(record())
    assert Transaction.objects.get().facet.status == "processing"


def test_a_thousand_records_are_merged_in_one_batch() -> None:
    first = [record(f"T{number}", amount=str(number)) for number in range(1000)]
    assert merged(*first).new == 1000
    second = [record(f"T{number}", amount=str(number + number % 10 // 9)) for number in range(1000)]
    result = merged(*second)
    assert (result.new, result.changed) == (0, 100)
    assert [place for place, known in enumerate(result.is_known) if not known] == list(range(9, 1000, 10))


def test_a_tampered_total_is_detected() -> None:
    merged(record())
    DayTotal.objects.update(count=2, amount="7")
    [found] = total_discrepancies()
    assert str(found).endswith("stored 2 of 7, fees 50; counted 1 of 250000.5, fees 50")
    DayTotal.objects.update(count=1, amount="250000.50")


ATTEMPTS = {
    "update": "UPDATE ledger_transactionchange SET seen_at = seen_at",
    "delete": "DELETE FROM ledger_transactionchange",
}
ON_SQLITE = {
    "replace": "INSERT OR REPLACE INTO ledger_transactionchange SELECT * FROM ledger_transactionchange"
}
ON_POSTGRESQL = {
    "truncate": "SET CONSTRAINTS ALL IMMEDIATE; TRUNCATE ledger_transactionchange",
    "as a replica": "SET LOCAL session_replication_role = replica; DELETE FROM ledger_transactionchange",
}
OF_THIS_ENGINE = ATTEMPTS | (ON_SQLITE if connection.vendor == "sqlite" else ON_POSTGRESQL)


@pytest.mark.parametrize("attempt", OF_THIS_ENGINE.values(), ids=OF_THIS_ENGINE.keys())
def test_the_history_of_a_record_is_append_only(attempt: str) -> None:
    merged(record())
    merged(record(status="failed"))
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(attempt)
    assert TransactionChange.objects.get().after == {"status": "failed"}
