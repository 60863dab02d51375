"""Keeps what the service said."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from backoffice.core import clock
from backoffice.core.gateway import PATIENCE_OF_A_PAGE, gateway
from backoffice.ledger.models import Balance, BalanceSnapshot
from backoffice.ledger.turns import take_turn
from payments_gateway import Balance as TheirBalance
from payments_gateway import GatewayError

SNAPSHOT_EVERY = timedelta(minutes=15)
TRY_AGAIN_AFTER = timedelta(minutes=1)


def refresh_balances() -> list[Balance]:
    """Read every balance from the service and keep it, also as a snapshot where this quarter of an hour has none.

    Raises GatewayError; then nothing is changed.
    """
    return _keep(gateway(deadline=PATIENCE_OF_A_PAGE).balances.list(), clock.now())


def keep_snapshots() -> int:
    """Read the balances if this quarter of an hour has no snapshot yet; how many currencies were read.

    May be called at any time and by several processes: one of them asks, at most once a minute while the service
    cannot be read, and the database keeps one snapshot per currency and quarter whoever asks.
    """
    now = clock.now()
    if BalanceSnapshot.objects.filter(slot=slot_of(now)).exists() or not take_turn(
        "balances", pause=TRY_AGAIN_AFTER
    ):
        return 0
    try:
        return len(refresh_balances())
    except GatewayError:
        return 0  # the gateway has logged it


def slot_of(moment: datetime) -> datetime:
    """The beginning of the quarter of an hour that the moment lies in."""
    return moment.replace(minute=moment.minute - moment.minute % 15, second=0, microsecond=0)


@transaction.atomic
def _keep(answered: Sequence[TheirBalance], now: datetime) -> list[Balance]:
    told = [_members(balance, now) for balance in answered]
    BalanceSnapshot.objects.bulk_create(
        [BalanceSnapshot(slot=slot_of(now), **members) for members in told], ignore_conflicts=True
    )
    return Balance.objects.bulk_create(
        [Balance(**members) for members in told],
        update_conflicts=True,
        unique_fields=["currency"],
        update_fields=["amount", "total_received", "total_sent", "transaction_count", "as_of"],
    )


def _members(balance: TheirBalance, now: datetime) -> dict[str, object]:
    return {
        "currency": balance.currency,
        "amount": balance.amount,
        "total_received": balance.total_received,
        "total_sent": balance.total_sent,
        "transaction_count": balance.transaction_count,
        "as_of": now,
    }
