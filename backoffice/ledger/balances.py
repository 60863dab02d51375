"""Balances of the merchant: refresh from the provider, store quarter-hour snapshots, compute trends."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_DOWN, Decimal
from typing import NamedTuple

from django.db import transaction
from django.utils.translation import gettext, ngettext
from pydantic import TypeAdapter

from backoffice.core import clock
from backoffice.core.cached_reads import CachedRead
from backoffice.core.gateway import PAGE_TIMEOUT, gateway
from backoffice.core.leases import acquire_lease
from backoffice.core.web.formatting import format_amount
from backoffice.ledger.models import Balance, BalanceSnapshot
from payments_gateway import CURRENCIES, GatewayError
from payments_gateway import Balance as TheirBalance

SNAPSHOT_INTERVAL = timedelta(minutes=15)
SNAPSHOT_RETRY_AFTER = timedelta(minutes=1)
_FORMATTED_UNIT = Decimal("0.01")  # of `formattedAmount`, to which the provider truncates
_DIFFERENCE_LOGGED_EVERY = timedelta(hours=1)
_LOGGED_DIFFERENCES = CachedRead(
    "formatted-differences", TypeAdapter(dict[str, datetime]), keep_for=_DIFFERENCE_LOGGED_EVERY
)
logger = logging.getLogger(__name__)


def refresh_balances() -> list[Balance]:
    """Read and store every balance, also as a snapshot if the current quarter-hour has none.

    Raises GatewayError; then nothing is changed.
    """
    reported = gateway(deadline=PAGE_TIMEOUT).balances.list()
    _compare_formatted(reported)
    return _store(reported, clock.now())


def take_due_snapshot() -> int:
    """Read the balances if the current quarter-hour has no snapshot yet.

    Returns the number of currencies read.

    Safe to call at any time and concurrently: one process reads, at most once a minute while reads fail, and
    the database keeps one snapshot per currency and quarter-hour.
    """
    now = clock.now()
    if BalanceSnapshot.objects.filter(slot=snapshot_slot(now)).exists() or not acquire_lease(
        "balances", SNAPSHOT_RETRY_AFTER
    ):
        return 0
    try:
        return len(refresh_balances())
    except GatewayError:
        return 0  # the gateway has logged it


def snapshot_slot(moment: datetime) -> datetime:
    """The beginning of the moment's quarter-hour."""
    return moment.replace(minute=moment.minute - moment.minute % 15, second=0, microsecond=0)


def _compare_formatted(reported: Sequence[TheirBalance]) -> None:
    """Log where `formattedAmount` is not our own form of `amount`: the amount itself, or truncated to two decimals.

    Each currency and difference at most once an hour, however often and by whichever process the balances are read.
    The balance itself is not logged.
    """
    found = {
        f"{balance.currency} {balance.formatted_amount - balance.amount:f}"
        for balance in reported
        if balance.formatted_amount is not None
        and balance.formatted_amount
        not in {balance.amount, balance.amount.quantize(_FORMATTED_UNIT, rounding=ROUND_DOWN)}
    }
    if not found:
        return
    now = clock.now()
    logged = {
        difference: at
        for difference, at in (_LOGGED_DIFFERENCES.cached().value or {}).items()
        if at > now - _DIFFERENCE_LOGGED_EVERY
    }
    new = sorted(found - logged.keys())
    for difference in new:
        logger.warning("The provider's formattedAmount differs from amount by %s", difference)
    if new:
        _LOGGED_DIFFERENCES.refresh(lambda: logged | dict.fromkeys(new, now))


@transaction.atomic
def _store(reported: Sequence[TheirBalance], now: datetime) -> list[Balance]:
    rows = [_columns(balance, now) for balance in reported]
    BalanceSnapshot.objects.bulk_create(
        [BalanceSnapshot(slot=snapshot_slot(now), **columns) for columns in rows], ignore_conflicts=True
    )
    return Balance.objects.bulk_create(
        [Balance(**columns) for columns in rows],
        update_conflicts=True,
        unique_fields=["currency"],
        update_fields=["amount", "total_received", "total_sent", "transaction_count", "as_of"],
    )


def _columns(balance: TheirBalance, now: datetime) -> dict[str, object]:
    return {
        "currency": balance.currency,
        "amount": balance.amount,
        "total_received": balance.total_received,
        "total_sent": balance.total_sent,
        "transaction_count": balance.transaction_count,
        "as_of": now,
    }


def stored_balances() -> list[Balance]:
    """The balances as last reported, by currency; empty before the first read."""
    return list(Balance.objects.all())


def snapshots_since(moment: datetime) -> list[BalanceSnapshot]:
    """The snapshots of every currency whose quarter-hour began at or after `moment`, newest first."""
    return list(BalanceSnapshot.objects.filter(slot__gte=moment))


def current_balance(currency: str, *, deadline: float = PAGE_TIMEOUT) -> Decimal | None:
    """The balance that the provider reports now; None if it has no such currency. Raises GatewayError."""
    return balance_reader(currency, deadline=deadline)()


def balance_reader(currency: str, *, deadline: float = PAGE_TIMEOUT) -> Callable[[], Decimal | None]:
    """A function that does what `current_balance` does, with the key in use now, and may be called in a thread."""
    # The specification of GET /balance names only these currencies, so no other one is sent as a filter.
    filtered = currency if currency in CURRENCIES else None
    balances = gateway(deadline=deadline).balances

    def read() -> Decimal | None:
        listed = balances.list(filtered)
        return next((balance.amount for balance in listed if balance.currency == currency), None)

    return read


WIDTH, HEIGHT, MARGIN = 240, 48, 4  # units of the SVG drawing
TREND_PERIOD = timedelta(hours=24)
LONG_TREND_PERIOD = timedelta(days=30)


@dataclass(frozen=True)
class BalanceTrend:
    """The trend of one balance in words. `points` are those of an SVG polyline, empty with fewer than two readings."""

    points: str
    change: str
    extremes: str


@dataclass(frozen=True)
class BalanceReading:
    """A balance at one moment."""

    at: datetime
    amount: Decimal


class _StoredBalance(NamedTuple):
    """A balance as reported at one moment, in the columns of `Balance`."""

    currency: str
    amount: Decimal
    total_received: Decimal | None
    total_sent: Decimal | None
    transaction_count: int | None
    as_of: datetime


def balances_with_long_trend(now: datetime) -> list[tuple[Balance, BalanceTrend]]:
    """Every balance as last reported, by currency, with its thirty-day trend.

    One query of a few hundred short rows.
    """
    older_readings = (
        BalanceSnapshot.objects.filter(slot__in=_slots(now)).order_by().values_list(*_StoredBalance._fields)
    )
    all_readings = (
        Balance.objects.order_by().values_list(*_StoredBalance._fields).union(older_readings, all=True)
    )
    readings = [_StoredBalance._make(row) for row in all_readings]
    newest = {reading.currency: reading for reading in sorted(readings, key=lambda reading: reading.as_of)}
    balances = [Balance(**reading._asdict()) for _, reading in sorted(newest.items())]
    return [(balance, balance_trend(balance, readings, period=LONG_TREND_PERIOD)) for balance in balances]


def _slots(now: datetime) -> list[datetime]:
    """The snapshot times of the thirty-day trend: every hour of the last day, and twice a day before that.

    Plus every quarter-hour in the first three hours, because the sentence compares the last reading with the
    first.
    """
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    slots = [hour - timedelta(hours=back) for back in range(LONG_TREND_PERIOD // timedelta(hours=1))]
    first_hours = [hour - LONG_TREND_PERIOD + quarter * timedelta(minutes=15) for quarter in range(12)]
    return [*first_hours, *(slot for back, slot in enumerate(slots) if back < 24 or slot.hour % 12 == 0)]


def balance_trend(
    balance: Balance,
    snapshots: Sequence[BalanceSnapshot | _StoredBalance],
    *,
    period: timedelta = TREND_PERIOD,
) -> BalanceTrend:
    """The trend of a balance up to its last reading. Snapshots of other currencies and times are ignored."""
    since = balance.as_of - period
    older_readings = [
        BalanceReading(snapshot.as_of, snapshot.amount)
        for snapshot in snapshots
        if snapshot.currency == balance.currency and since <= snapshot.as_of < balance.as_of
    ]
    readings = [
        *sorted(older_readings, key=lambda reading: reading.at),
        BalanceReading(balance.as_of, balance.amount),
    ]
    if len(readings) < 2:
        return BalanceTrend("", gettext("No trend yet: this balance was read only once."), "")
    return BalanceTrend(
        _points(readings, since, period),
        _change_sentence(readings, balance.currency),
        _extremes_sentence(readings, balance.currency),
    )


def _points(readings: Sequence[BalanceReading], since: datetime, period: timedelta) -> str:
    amounts = [reading.amount for reading in readings]
    lowest, span = min(amounts), max(amounts) - min(amounts)
    return " ".join(
        f"{int((reading.at - since) * WIDTH / period)},{_y(reading.amount - lowest, span)}"
        for reading in readings
    )


def _y(above: Decimal, span: Decimal) -> int:
    """The y coordinate, from the top down; a balance that never changed is drawn in the middle."""
    share = above / span if span else Decimal("0.5")
    return HEIGHT - MARGIN - int(share * (HEIGHT - 2 * MARGIN))


def _change_sentence(readings: Sequence[BalanceReading], currency: str) -> str:
    """`Down 47,421.60 in 30 days`."""
    change, period = readings[-1].amount - readings[0].amount, readings[-1].at - readings[0].at
    if not change:
        return gettext("Unchanged in {period}").format(period=_duration_text(period))
    text = gettext("Up {amount} in {period}") if change > 0 else gettext("Down {amount} in {period}")
    return text.format(amount=format_amount(abs(change), currency), period=_duration_text(period))


def _extremes_sentence(readings: Sequence[BalanceReading], currency: str) -> str:
    """`Lowest 17,455,596.70, highest 22,212,272.30`."""
    amounts = [reading.amount for reading in readings]
    return gettext("Lowest {lowest}, highest {highest}").format(
        lowest=format_amount(min(amounts), currency), highest=format_amount(max(amounts), currency)
    )


def _duration_text(period: timedelta) -> str:
    """`23 hours`, or `30 days` for more than two days."""
    hours = max(1, round(period / timedelta(hours=1)))
    if hours <= 48:
        return ngettext("{n} hour", "{n} hours", hours).format(n=hours)
    days = round(hours / 24)
    return ngettext("{n} day", "{n} days", days).format(n=days)
