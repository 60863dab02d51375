"""Reads what the service says: balances, account holders, transactions. Never writes."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.core.cache import cache

from backoffice.core.gateway import PATIENCE_OF_A_PAGE, gateway
from backoffice.ledger.models import Balance
from payments_gateway import AccountHolder, TransactionRecord

_HOLDER_KEPT_SECONDS = 120


@dataclass(frozen=True)
class Watermark:
    """What the service showed of one currency just before we sent: anything ours is newer than this."""

    transaction_id: str
    balance: Decimal | None
    service_time: datetime | None


def known_balances() -> list[Balance]:
    """The balances as last kept, by currency; empty before the first read."""
    return list(Balance.objects.all())


def current_balance(currency: str) -> Decimal | None:
    """The balance the service tells now, or None if it names no such currency. Raises GatewayError."""
    balances = gateway(deadline=PATIENCE_OF_A_PAGE).balances.list(currency)
    found = [balance for balance in balances if balance.currency == currency]
    return found[0].amount if found else None


def account_holder(account_number: str, bank_code: str) -> AccountHolder:
    """Who holds this bank account (POST /bank/resolve), remembered for two minutes.

    Raises RejectedError if the service knows no such account, another GatewayError if it cannot tell now.
    """
    key = f"holder:{bank_code}:{account_number}"
    known: AccountHolder | None = cache.get(key)
    if known is None:
        known = gateway(deadline=PATIENCE_OF_A_PAGE).banks.resolve(
            account_number=account_number, bank_code=bank_code
        )
        cache.set(key, known, _HOLDER_KEPT_SECONDS)
    return known


def watermark(currency: str) -> Watermark:
    """The newest transaction and the balance of a currency, right now. Raises GatewayError."""
    newest = gateway().transactions.page(page=1, per_page=1)
    return Watermark(
        transaction_id=newest.records[0].transaction_id if newest.records else "",
        balance=current_balance(currency),
        service_time=newest.answered_at,
    )


def transactions_since(
    mark: Watermark, *, currency: str, tolerance: timedelta
) -> Iterator[TransactionRecord]:
    """The service's transactions of a currency newer than the watermark, newest first. Raises GatewayError.

    Times are the service's own, so our clock plays no part; the tolerance covers a list that is not quite in order.
    """
    oldest = mark.service_time - tolerance if mark.service_time else None
    for record in gateway().transactions.iterate(currency=currency):
        if oldest and record.created_at and record.created_at < oldest:
            return
        if record.transaction_id != mark.transaction_id:
            yield record
        elif oldest is None:
            return
