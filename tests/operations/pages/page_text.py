"""The text of a page, and a balance to show on it."""

from decimal import Decimal

from django.test import Client
from django.utils import timezone

from backoffice.ledger.models import Balance
from backoffice.operations.models.operations import Operation

LIST = "/operations/"


def balance(currency: str = "NGN", amount: str = "8412090.55") -> Balance:
    return Balance.objects.create(
        currency=currency,
        amount=Decimal(amount),
        total_received=Decimal("41200000"),
        total_sent=Decimal("32787909.45"),
        transaction_count=1204,
        as_of=timezone.now(),
    )


def page(client: Client, address: str, **headers: str) -> str:
    answer = client.get(address, headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def references(html: str, *operations: Operation) -> list[bool]:
    return [operation.reference in html for operation in operations]
