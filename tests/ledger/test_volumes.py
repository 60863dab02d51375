"""What a list of transactions adds up to, held against plain sums over its rows."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext

import pytest
from django.db import connection

from backoffice.core.fields import SUMS
from backoffice.ledger.chosen import Chosen
from backoffice.ledger.mirrored import Transaction
from backoffice.ledger.volumes import Volume, sums_between, volumes
from tests.ledger.transactions import add_up, store, unsaved

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


@pytest.mark.parametrize("until", [*MOMENTS, DAY + timedelta(days=3)], ids=str)
@pytest.mark.parametrize("since", MOMENTS, ids=str)
def test_they_are_exact_whatever_part_of_a_day_is_chosen(
    rows: list[Transaction], since: datetime | None, until: datetime | None
) -> None:
    for chosen in (Chosen(since=since, until=until), Chosen(since=since, until=until, currency="USDT")):
        sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
        with localcontext(SUMS):
            for row in chosen.apply(Transaction.objects.all()):
                sums[row.currency, row.direction] += row.amount
        assert volumes(chosen) == [Volume(*key, amount) for key, amount in sorted(sums.items())]


def test_where_the_database_adds_up_exactly_no_day_is_carried_out_of_it(rows: list[Transaction]) -> None:
    known = [row.facet_id for row in rows]
    told = [facet_id for facet_id, *_ in sums_between(known, None, None)]
    days = {(row.facet_id, row.occurred_at.date()) for row in rows}
    assert len(told) == (len(set(known)) if connection.vendor == "postgresql" else len(days))


@pytest.mark.parametrize(
    "chosen",
    [Chosen(text="ada"), Chosen(counterparty="ada"), Chosen(least=Decimal(1)), Chosen(transaction_id="T")],
)
def test_nothing_is_added_up_where_rows_would_have_to_be_read_through(
    rows: list[Transaction], chosen: Chosen
) -> None:
    assert volumes(chosen) == []
