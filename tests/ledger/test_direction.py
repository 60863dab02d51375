"""Which way the money went, for every type of the service's records."""

from decimal import Decimal

import pytest
from django.conf import settings

from backoffice.ledger.direction import direction
from payments_gateway import TransactionRecord

US, THEM = settings.GATEWAY_API_USER, "kola.ventures"


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"type": "deposit", "sender": THEM}, "in"),
        ({"type": "deposit", "sender": US}, "in"),
        ({"type": "withdrawal", "sender": US}, "out"),
        ({"type": "sent", "sender": US}, "out"),
        ({"type": "transfer", "sender": US}, "out"),
        ({"type": "transfer", "sender": THEM}, "in"),
        ({"type": "internalTransfer", "sender": US}, "out"),
        ({"type": "internalTransfer", "sender": THEM}, "in"),
        ({"type": "conversion", "sender": US, "from_currency": "NGN"}, "out"),
        ({"type": "conversion", "sender": US, "from_currency": "USD"}, "in"),
        ({"type": "conversion", "sender": US}, "out"),
        ({"type": "refund", "sender": THEM}, "in"),
        ({"type": "refund"}, ""),
    ],
)
def test_the_direction_of(members: dict[str, str], expected: str) -> None:
    record = TransactionRecord(transaction_id="t1", amount=Decimal(1), currency="NGN", **members)

    assert direction(record) == expected
