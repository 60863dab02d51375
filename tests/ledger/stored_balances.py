"""Plain functions that make balances and what they were."""

from datetime import datetime, timedelta
from decimal import Decimal

from django.utils import timezone

from backoffice.ledger.balances import snapshot_slot
from backoffice.ledger.models import Balance, BalanceSnapshot


def balance(currency: str = "NGN", amount: str = "8412090.55", at: datetime | None = None) -> Balance:
    return Balance.objects.create(
        currency=currency,
        amount=Decimal(amount),
        total_received=Decimal("41200000"),
        total_sent=Decimal("32787909.45"),
        transaction_count=1204,
        as_of=at or timezone.now(),
    )


def snapshot(amount: str, *, ago: timedelta, currency: str = "NGN") -> BalanceSnapshot:
    at = timezone.now() - ago
    return BalanceSnapshot.objects.create(
        currency=currency,
        slot=snapshot_slot(at),
        amount=Decimal(amount),
        total_received=Decimal(1),
        total_sent=Decimal(0),
        transaction_count=1,
        as_of=at,
    )


def day_of_snapshots(currency: str) -> None:
    """One snapshot for each quarter of an hour of the last day, none of the present one."""
    for quarter in range(1, 96):
        snapshot(f"{8_000_000 + quarter * 1234}.55", ago=timedelta(minutes=15 * quarter), currency=currency)
