"""The seeded year: the same for the same seed, believable, and never below zero."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from payments_gateway.sandbox.books.history import HistoryEvent, history, is_payday
from payments_gateway.sandbox.clock import LAGOS

END = datetime(2026, 6, 30, 23, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def year() -> list[HistoryEvent]:
    return list(history(1, 6_000, END))


def test_the_same_seed_gives_the_same_history(year: list[HistoryEvent]) -> None:
    assert list(history(1, 6_000, END)) == year


def test_another_seed_gives_another_history(year: list[HistoryEvent]) -> None:
    assert list(history(2, 6_000, END)) != year


@pytest.mark.parametrize("count", [3, 4, 5, 60, 61, 1_000])
def test_the_number_of_events_is_as_requested(count: int) -> None:
    assert len(list(history(7, count, END))) == count


@pytest.mark.parametrize(("seed", "count"), [(1, 6_000), (2, 60), (3, 600), (4, 6_000), (5, 12_000)])
def test_balances_are_never_negative_and_end_well_funded(seed: int, count: int) -> None:
    balances = Counter[str]()
    for event in history(seed, count, END):
        balances[event.movement.currency] += event.movement.effect
        assert balances[event.movement.currency] >= 0
    assert 8_000_000_00 < balances["NGN"] < 60_000_000_00
    assert 20_000_00 < balances["USD"] < 110_000_00
    assert 8_000_000000 < balances["USDT"] < 40_000_000000


def test_events_are_ordered_within_the_last_year(year: list[HistoryEvent]) -> None:
    moments = [event.at for event in year]
    assert moments == sorted(moments)
    assert END - timedelta(days=365) <= moments[0] < moments[-1] < END
    assert all(event.settled_at >= event.at for event in year)


def test_working_days_and_daytime_have_more_events(year: list[HistoryEvent]) -> None:
    local = [event.at.astimezone(LAGOS) for event in year]
    weekdays = Counter(moment.weekday() for moment in local)
    assert min(weekdays[day] for day in range(5)) > 1.5 * weekdays[5] > 1.5 * weekdays[6]
    office_hours = sum(1 for moment in local if 8 <= moment.hour < 18)
    nights = sum(1 for moment in local if moment.hour < 5)
    assert office_hours > 0.75 * len(local)
    assert 0 < nights < 0.02 * len(local)


def test_salaries_are_paid_on_the_last_working_day(year: list[HistoryEvent]) -> None:
    withdrawals = Counter(
        event.at.astimezone(LAGOS).date() for event in year if event.movement.type == "withdrawal"
    )
    paydays = [withdrawals[day] for day in withdrawals if is_payday(day)]
    others = [withdrawals[day] for day in withdrawals if not is_payday(day)]
    assert len(paydays) == 12
    assert min(paydays) > 2 * sum(others) / len(others)


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2026-01-30", True),
        ("2026-01-31", False),
        ("2026-02-27", True),
        ("2026-03-31", True),
        ("2026-03-30", False),
    ],
)
def test_a_payday_is_the_last_working_day_of_a_month(day: str, expected: bool) -> None:
    assert is_payday(datetime.fromisoformat(day).date()) is expected


def test_every_type_and_currency_appears(year: list[HistoryEvent]) -> None:
    kinds = Counter((event.movement.type, event.movement.currency) for event in year)
    assert {currency for _, currency in kinds} == {"NGN", "USD", "USDT"}
    assert {kind for kind, _ in kinds} == {
        "deposit",
        "withdrawal",
        "sent",
        "transfer",
        "internalTransfer",
        "conversion",
    }
    assert kinds["conversion", "NGN"] == kinds["conversion", "USD"] > 20


def test_both_sides_of_a_conversion_belong_together(year: list[HistoryEvent]) -> None:
    conversions = [event for event in year if event.movement.type == "conversion"]
    for given, received in zip(conversions[::2], conversions[1::2], strict=True):
        assert (given.movement.currency, received.movement.currency) == ("NGN", "USD")
        assert received.movement.given == ("NGN", given.movement.amount)
        assert 1_450 <= given.movement.amount / received.movement.amount <= 1_640
        assert given.at == received.at


def test_failed_withdrawals_are_refunded_next(year: list[HistoryEvent]) -> None:
    failed = [number for number, event in enumerate(year) if event.failed]
    assert len(failed) > 10
    for number in failed:
        reversal = year[number + 1].movement
        assert reversal.sender == f"Reversal of {year[number].transaction_id}"
        assert reversal.effect == -year[number].movement.effect


def test_there_are_many_recipients_at_many_banks(year: list[HistoryEvent]) -> None:
    payees = {event.payee for event in year if event.payee}
    assert len(payees) > 80
    assert len({payee.bank_code for payee in payees}) > 15
    assert len({event.movement.sender for event in year}) > 150


@pytest.mark.parametrize(
    "kind", ["deposit", "withdrawal", "sent", "transfer", "internalTransfer", "conversion"]
)
def test_the_entries_of_a_movement_add_up_to_zero(year: list[HistoryEvent], kind: str) -> None:
    for event in year:
        if event.movement.type == kind:
            entries = event.movement.entries()
            assert sum(amount for _, amount in entries) == 0
            assert ("merchant", event.movement.effect) in entries
