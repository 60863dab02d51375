"""Keeps what the service said."""

from django.utils import timezone

from backoffice.core.gateway import PATIENCE_OF_A_PAGE, gateway
from backoffice.ledger.models import Balance


def refresh_balances() -> list[Balance]:
    """Read every balance from the service and keep it. Raises GatewayError; then nothing is changed."""
    answered, now = gateway(deadline=PATIENCE_OF_A_PAGE).balances.list(), timezone.now()
    rows = [
        Balance(
            currency=balance.currency,
            amount=balance.amount,
            total_received=balance.total_received,
            total_sent=balance.total_sent,
            transaction_count=balance.transaction_count,
            as_of=now,
        )
        for balance in answered
    ]
    return Balance.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["currency"],
        update_fields=["amount", "total_received", "total_sent", "transaction_count", "as_of"],
    )
