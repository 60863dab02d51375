"""What came in and went out: every figure against a plain sum over the same day totals."""

import random
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, localcontext

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from backoffice.ledger.models import DayTotal, Facet
from backoffice.ledger.transactions.filters import TransactionFilter, forget_facets
from backoffice.ledger.transactions.volumes import FLOW_DAYS, CurrencyFlow, currency_flows, volume_summary

pytestmark = pytest.mark.django_db

TODAY = date(2026, 11, 20)
LARGEST = Decimal("9999999999999999999999.999999999999999999")


def facet(currency: str = "NGN", kind: str = "deposit", way: str = "in", status: str = "fulfilled") -> Facet:
    return Facet.objects.get_or_create(currency=currency, type=kind, status=status, direction=way)[0]


def total(of: Facet, amount: str | Decimal, *, ago: int = 0, count: int = 1) -> DayTotal:
    day = TODAY - timedelta(days=ago)
    return DayTotal.objects.create(day=day, facet=of, count=count, amount=Decimal(amount), fee=Decimal(1))


def only(found: list[CurrencyFlow]) -> CurrencyFlow:
    assert len(found) == 1
    return found[0]


def years_of_totals() -> list[DayTotal]:
    """Of every facet on most days, more than the thirty that count."""
    chance = random.Random(6)  # noqa: S311 - the same every time, no secret
    facets = [
        facet(currency, kind, way, status)
        for currency in ("NGN", "USD", "USDT")
        for kind in ("deposit", "withdrawal", "transfer", "conversion")
        for way in ("in", "out", "")
        for status in ("fulfilled", "failed")
    ]
    return DayTotal.objects.bulk_create(
        DayTotal(
            day=TODAY - timedelta(days=ago),
            facet=one,
            count=chance.randrange(1, 50),
            amount=Decimal(chance.randrange(10**12)).scaleb(-6),
            fee=Decimal(0),
        )
        for ago in range(-2, FLOW_DAYS + 5)
        for one in facets
        if chance.random() < 0.7
    )


def test_every_figure_is_the_sum_of_the_mirrored_records() -> None:
    kept = [one for one in years_of_totals() if TODAY - timedelta(days=FLOW_DAYS) < one.day <= TODAY]
    found = currency_flows(TODAY)
    assert [flow.currency for flow in found] == ["NGN", "USD", "USDT"]
    for flow in found:
        own = [one for one in kept if one.facet.currency == flow.currency]
        for day in flow.days:
            for way, shown in (("in", day.received), ("out", day.sent)):
                assert shown == sum(
                    one.amount for one in own if one.day == day.day and one.facet.direction == way
                )
        for volume, kind in zip(flow.volumes, by_volume(own), strict=True):
            of_type = [one for one in own if one.facet.type == kind]
            assert volume.amount == sum(one.amount for one in of_type)
            assert volume.count == sum(one.count for one in of_type)
        assert flow.count == sum(one.count for one in own)


def by_volume(totals: list[DayTotal]) -> list[str]:
    sums = {one.facet.type: Decimal(0) for one in totals}
    for one in totals:
        sums[one.facet.type] += one.amount
    return sorted(sums, key=lambda kind: -sums[kind])


def test_flows_take_one_query() -> None:
    total(facet(), "1")
    with CaptureQueriesContext(connection) as queries:
        currency_flows(TODAY)
    assert len(queries) == 1


def test_every_day_is_present_and_zero_without_movement() -> None:
    total(facet(), "7", ago=3)
    days = only(currency_flows(TODAY)).days
    assert [day.day for day in days] == [TODAY - timedelta(days=ago) for ago in range(29, -1, -1)]
    assert [(day.received, day.sent) for day in days if day.received or day.sent] == [
        (Decimal(7), Decimal(0))
    ]


@pytest.mark.parametrize(("ago", "counts"), [(-1, False), (0, True), (29, True), (30, False)])
def test_thirty_days_count_up_to_today(ago: int, counts: bool) -> None:
    total(facet(), "7", ago=ago)
    assert bool(currency_flows(TODAY)) is counts


def test_failed_transactions_count_because_their_reversal_does() -> None:
    total(facet(kind="withdrawal", way="out", status="failed"), "50")
    total(facet(), "50")
    flow = only(currency_flows(TODAY))
    assert (flow.received, flow.sent) == (Decimal(50), Decimal(50))


def test_transactions_of_unknown_direction_count_as_volume_only() -> None:
    total(facet(kind="transfer", way=""), "5", count=2)
    flow = only(currency_flows(TODAY))
    assert (flow.received, flow.sent, flow.count) == (Decimal(0), Decimal(0), 2)
    assert [(volume.label, volume.amount) for volume in flow.volumes] == [("Transfers", Decimal(5))]


def test_currencies_are_never_added_together() -> None:
    total(facet("NGN"), "1")
    total(facet("USD"), "2")
    assert [(flow.currency, flow.received) for flow in currency_flows(TODAY)] == [
        ("NGN", Decimal(1)),
        ("USD", Decimal(2)),
    ]


def test_sums_of_the_largest_amounts_are_exact() -> None:
    for ago in range(3):
        total(facet(), LARGEST, ago=ago)
    flow = only(currency_flows(TODAY))
    with localcontext(prec=60):
        assert flow.received == flow.volumes[0].amount == LARGEST * 3


def test_a_bar_is_as_long_as_its_share_of_the_largest() -> None:
    total(facet(), "200")
    total(facet(kind="conversion"), "50")
    total(facet(kind="sent", way="out"), "0")
    shares = [(volume.label, volume.share) for volume in only(currency_flows(TODAY)).volumes]
    assert shares == [("Deposits", 100), ("Conversions", 25), ("Crypto sent", 0)]


@pytest.mark.parametrize(
    ("kind", "label"),
    [("internalTransfer", "Internal transfers"), ("loan", "loan"), ("", "Type not provided")],
)
def test_types_are_labelled_and_unknown_ones_shown_as_reported(kind: str, label: str) -> None:
    total(facet(kind=kind), "1")
    assert only(currency_flows(TODAY)).volumes[0].label == label


def test_a_day_without_remaining_transactions_is_not_counted() -> None:
    total(facet(), "0", count=0)
    assert currency_flows(TODAY) == []


def test_the_totals_of_the_list_agree_with_the_flows_of_the_same_days() -> None:
    years_of_totals()
    forget_facets()
    start = datetime.combine(TODAY - timedelta(days=FLOW_DAYS - 1), time.min, UTC)
    summary = volume_summary(TransactionFilter(since=start, until=start + timedelta(days=FLOW_DAYS)))
    assert summary is not None
    assert [(one.currency, one.received, one.sent) for one in summary.totals] == [
        (flow.currency, flow.received, flow.sent) for flow in currency_flows(TODAY)
    ]
