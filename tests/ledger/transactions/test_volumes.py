"""What a list of transactions adds up to, held against plain sums over its rows."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext

import pytest
from django.db import connection

from backoffice.core.fields import EXACT
from backoffice.ledger.models import Transaction
from backoffice.ledger.transactions import query_planner
from backoffice.ledger.transactions.filters import TransactionFilter
from backoffice.ledger.transactions.listing import sum_rows, transaction_count
from backoffice.ledger.transactions.volumes import DirectionVolume, sums_between, volume_summary
from tests.ledger.stored_transactions import add_up, store, unsaved

pytestmark = pytest.mark.django_db
DAY = datetime(2026, 11, 18, tzinfo=UTC)
HOURS = [timedelta(hours=hour) for hour in (-1, 0, 5, 23, 24, 30, 47, 48, 71, 72)]
MOMENTS = [None, *(DAY + after for after in (timedelta(0), timedelta(hours=5), timedelta(days=1, hours=6)))]


@pytest.fixture
def rows() -> list[Transaction]:
    """Of both directions and two currencies, at and around midnights, with the sums that the sync keeps of them."""
    made = [
        unsaved(
            occurred_at=DAY + after,
            currency=("NGN", "USDT")[number % 2],
            direction=("in", "out")[number % 3 == 0],
            amount=Decimal(f"{10**17}.{number:018d}"),
        )
        for number, after in enumerate(HOURS)
    ]
    add_up(store(made))
    return made


def plain_sums(chosen: TransactionFilter) -> list[DirectionVolume]:
    sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    with localcontext(EXACT):
        for row in chosen.apply(Transaction.objects.all()):
            sums[row.currency, row.direction] += row.amount
    return [DirectionVolume(*key, amount) for key, amount in sorted(sums.items())]


def volumes(chosen: TransactionFilter) -> list[DirectionVolume]:
    added_up = volume_summary(chosen)
    assert added_up is not None
    return added_up.volumes


@pytest.mark.parametrize("until", [*MOMENTS, DAY + timedelta(days=3)], ids=str)
@pytest.mark.parametrize("since", MOMENTS, ids=str)
def test_volumes_are_exact_for_any_part_of_a_day(
    rows: list[Transaction], since: datetime | None, until: datetime | None
) -> None:
    for chosen in (
        TransactionFilter(since=since, until=until),
        TransactionFilter(since=since, until=until, currency="USDT"),
    ):
        assert volumes(chosen) == plain_sums(chosen)


def test_sums_are_computed_in_the_database_where_it_is_exact(rows: list[Transaction]) -> None:
    known = [row.facet_id for row in rows]
    facet_ids = [facet_id for facet_id, *_ in sums_between(known, None, None)]
    days = {(row.facet_id, row.occurred_at.date()) for row in rows}
    assert len(facet_ids) == (len(set(known)) if connection.vendor == "postgresql" else len(days))


@pytest.mark.parametrize(
    "chosen",
    [
        TransactionFilter(text="ada"),
        TransactionFilter(counterparty="ada", currency="NGN"),
        TransactionFilter(min_amount=Decimal(10**17), since=DAY, direction="out"),
        TransactionFilter(max_amount=Decimal(10**17)),
        TransactionFilter(text="nobody"),
    ],
)
def test_rows_without_a_day_total_are_added_up(rows: list[Transaction], chosen: TransactionFilter) -> None:
    number = transaction_count(chosen).number
    assert volumes(chosen) == plain_sums(chosen)
    assert sum_rows(chosen, at_most=number) is not None
    assert sum_rows(chosen, at_most=number - 1) is None or number == 0


def test_a_filter_by_id_adds_up_that_record_alone(rows: list[Transaction]) -> None:
    one = rows[3]
    assert volumes(TransactionFilter(transaction_id=one.transaction_id)) == [
        DirectionVolume(one.currency, one.direction, one.amount)
    ]


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite looks through all rows")
def test_no_volume_is_given_when_the_row_limit_is_reached(
    rows: list[Transaction], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_planner, "MAX_GATHERED", 2)
    monkeypatch.setattr(query_planner, "MAX_SCANNED", 5)
    assert volume_summary(TransactionFilter(min_amount=Decimal(1), since=DAY)) is None
