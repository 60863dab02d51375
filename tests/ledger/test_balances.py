"""Snapshots of the balances: one per currency and quarter of an hour, whoever asks and however often."""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from backoffice.core import clock
from backoffice.core.models import LeaseRow
from backoffice.demo.sample_data import make_sample_balances
from backoffice.ledger import balances
from backoffice.ledger.balances import LONG_TREND_PERIOD, balance_trend, balances_with_long_trend
from backoffice.ledger.models import Balance, BalanceSnapshot
from backoffice.reports.definitions.money import BALANCES
from tests.ledger.stored_balances import balance, snapshot
from tests.sandbox_process import API_KEY, API_USER, SandboxProcess
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


def counted(provider: StubProvider) -> list[int]:
    """One entry for each time that the provider is read from now on."""
    calls: list[int] = []
    provider.before_get = lambda: calls.append(1)
    return calls


def a_quarter_passes() -> None:
    """What was kept and tried lies a quarter of an hour further back."""
    for stored in BalanceSnapshot.objects.all():
        BalanceSnapshot.objects.filter(pk=stored.pk).update(slot=stored.slot - balances.SNAPSHOT_INTERVAL)
    LeaseRow.objects.update(held_until=timezone.now() - timedelta(seconds=1))


@pytest.mark.parametrize(
    ("moment", "slot"),
    [("10:00:00", "10:00"), ("10:14:59", "10:00"), ("10:15:00", "10:15"), ("23:59:59", "23:45")],
)
def test_start_of_the_quarter_hour(moment: str, slot: str) -> None:
    at = datetime.fromisoformat(f"2026-11-20T{moment}+00:00")
    assert balances.snapshot_slot(at).strftime("%H:%M") == slot


def test_the_first_balance_of_a_quarter_hour_is_kept(provider: StubProvider) -> None:
    calls = counted(provider)
    assert [balances.take_due_snapshot() for _ in range(3)] == [1, 0, 0]
    stored = BalanceSnapshot.objects.get()
    assert (stored.currency, stored.amount, len(calls)) == ("NGN", Decimal(5000000), 1)


def test_every_quarter_hour_has_its_own_balance(provider: StubProvider) -> None:
    balances.take_due_snapshot()
    a_quarter_passes()
    assert balances.take_due_snapshot() == 1
    assert BalanceSnapshot.objects.count() == 2


def test_the_last_reported_balance_is_stored_as_well(provider: StubProvider) -> None:
    balances.take_due_snapshot()
    assert Balance.objects.get().as_of == BalanceSnapshot.objects.get().as_of


def test_totals_that_are_not_reported_are_stored_and_exported_as_such(
    provider: StubProvider, settings: Settings, published_process: SandboxProcess
) -> None:
    settings.GATEWAY_URL, settings.GATEWAY_PROFILE = published_process.url, "published"
    settings.GATEWAY_API_KEY, settings.GATEWAY_API_USER = API_KEY, API_USER
    balances.refresh_balances()
    stored = Balance.objects.get(currency="NGN")
    assert stored.amount > 0
    assert {stored.total_received, stored.total_sent, stored.transaction_count} == {None}
    assert [column.function(stored) for column in BALANCES.columns[3:6]] == [None, None, None]
    assert len(balances_with_long_trend(timezone.now())) == Balance.objects.count()


def formatted_as(provider: StubProvider, amount: str, formatted: str) -> None:
    provider.balance = f'{{"toCurrency": "USDT", "amount": {amount}, "formattedAmount": {formatted}}}'
    balances.refresh_balances()


@pytest.mark.parametrize(
    ("amount", "formatted"),
    [
        ("12.345678", "12.34"),
        ("12.345678", "12.345678"),
        ("1234.5", '"1,234.50"'),
        ("-0.009", "0"),
        ("1", "null"),
    ],
)
def test_a_formatted_amount_may_be_exact_or_truncated_to_two_decimals(
    provider: StubProvider, caplog: pytest.LogCaptureFixture, amount: str, formatted: str
) -> None:
    formatted_as(provider, amount, formatted)
    assert "formattedAmount" not in caplog.text


def test_a_formatted_amount_that_differs_is_logged_once_an_hour_for_each_difference(
    provider: StubProvider, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warnings() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]

    both = [
        "The provider's formattedAmount differs from amount by USDT 0.005",
        "The provider's formattedAmount differs from amount by USDT -0.345",
    ]
    for formatted in ("12.35", "12.35", "12", "12.34", "12", "12.35"):
        formatted_as(provider, "12.345", formatted)
    assert warnings() == both
    later = clock.now() + timedelta(minutes=61)
    monkeypatch.setattr(clock, "_source", lambda: later)
    for formatted in ("12.35", "12", "12.35"):
        formatted_as(provider, "12.345", formatted)
    assert warnings() == both + both


def test_sample_snapshots_of_totals_that_are_not_reported_have_none(provider: StubProvider) -> None:
    received = {
        "transactionId": "T-1",
        "currency": "NGN",
        "type": "deposit",
        "amount": 5,
        "prevBalance": 0,
    }
    provider.records = json.dumps(
        [{**received, "status": "fulfilled", "created_at": timezone.now().isoformat()}]
    )
    make_sample_balances([Balance(currency="NGN", amount=Decimal(5), as_of=timezone.now())])
    earlier = BalanceSnapshot.objects.first()
    assert earlier is not None
    assert earlier.amount == 0, "the transaction is subtracted"
    assert (earlier.total_received, earlier.total_sent, earlier.transaction_count) == (None, None, None)


def test_balances_read_by_a_user_are_not_read_again_by_the_sweeper(provider: StubProvider) -> None:
    balances.refresh_balances()
    balances.refresh_balances()
    assert balances.take_due_snapshot() == 0
    assert BalanceSnapshot.objects.count() == 1


def test_two_concurrent_sweepers_read_and_store_once(provider: StubProvider) -> None:
    calls, together = counted(provider), threading.Barrier(2)

    def sweep() -> int:
        together.wait(60)
        try:
            return balances.take_due_snapshot()
        finally:
            connection.close()

    LeaseRow.objects.create(name="balances", acquired_at=timezone.now(), held_until=timezone.now())
    with ThreadPoolExecutor(2) as pool:
        done = [future.result() for future in [pool.submit(sweep) for _ in range(2)]]
    assert sorted(done) == [0, 1]
    assert (BalanceSnapshot.objects.count(), len(calls)) == (1, 1)


def test_an_unreachable_provider_is_retried_once_a_minute(unreachable: None) -> None:
    assert [balances.take_due_snapshot(), balances.take_due_snapshot()] == [0, 0]
    pause = LeaseRow.objects.get().held_until - timezone.now()
    assert timedelta(seconds=50) < pause <= balances.SNAPSHOT_RETRY_AFTER
    assert not BalanceSnapshot.objects.exists()


def points(line: str) -> list[tuple[int, int]]:
    return [tuple(map(int, point.split(","))) for point in line.split()]  # type: ignore[misc]


def test_the_trend_runs_from_the_oldest_to_the_newest_balance() -> None:
    earlier = [snapshot("100", ago=timedelta(hours=12)), snapshot("300", ago=timedelta(hours=6))]
    trend = balance_trend(balance(amount="200"), earlier)
    assert [x for x, _ in points(trend.points)] == pytest.approx([120, 180, 240], abs=1)
    assert [y for _, y in points(trend.points)] == [44, 4, 24]
    assert (trend.change, trend.extremes) == ("Up 100.00 in 12 hours", "Lowest 100.00, highest 300.00")


@pytest.mark.parametrize("at", ["00:00", "11:59", "12:03", "13:02", "23:58"])
def test_the_thirty_days_begin_at_midnight(at: str) -> None:
    now = datetime.fromisoformat(f"2026-11-22T{at}:30+00:00")
    balance(amount="300", at=now)
    for hours in range(24 * 31):
        moment = balances.snapshot_slot(now - timedelta(hours=hours, minutes=1))
        BalanceSnapshot.objects.create(
            currency="NGN",
            slot=moment,
            as_of=moment + timedelta(minutes=1),
            amount=1000 + hours,
            total_received=0,
            total_sent=0,
            transaction_count=0,
        )
    [(_, trend)] = balances_with_long_trend(now)
    begins = min(
        stored.as_of for stored in BalanceSnapshot.objects.all() if stored.as_of >= now - LONG_TREND_PERIOD
    )
    first = BalanceSnapshot.objects.get(as_of=begins).amount
    assert trend.change == f"Down {first - 300:,.2f} in 30 days"


def test_a_constant_balance_is_drawn_in_the_middle() -> None:
    trend = balance_trend(balance(amount="7"), [snapshot("7", ago=timedelta(hours=2))])
    assert {y for _, y in points(trend.points)} == {24}
    assert trend.change == "Unchanged in 2 hours"


@pytest.mark.parametrize(
    "make",
    [
        list,
        lambda: [snapshot("1", ago=timedelta(hours=1), currency="USD")],
        lambda: [snapshot("1", ago=timedelta(hours=25))],
    ],
    ids=["none", "another currency", "too old"],
)
def test_a_single_balance_has_no_trend(make: Callable[[], list[BalanceSnapshot]]) -> None:
    assert balance_trend(balance(), make()).points == ""
