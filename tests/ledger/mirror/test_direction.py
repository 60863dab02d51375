"""Which way the money went, for every type of the provider's records."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.conf import settings

from backoffice.ledger.mirror.rows import counterparty, direction
from payments_gateway import TransactionRecord
from payments_gateway.sandbox.books.history import history

US, THEM = settings.GATEWAY_API_USER, "kola.ventures"


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"type": "deposit", "sender": THEM}, "in"),
        ({"type": "deposit", "sender": US}, "in"),
        ({"type": "withdrawal", "sender": US}, "out"),
        ({"type": "sent", "sender": US}, "out"),
        ({"type": "transfer", "sender": US, "username": THEM}, "out"),
        ({"type": "transfer", "sender": f" {US.upper()} "}, "out"),
        ({"type": "transfer", "sender": THEM, "username": US}, "in"),
        ({"type": "transfer", "sender": THEM, "username": f" {US.title()} "}, "in"),
        ({"type": "transfer", "sender": "Our Company Ltd", "username": THEM}, ""),
        ({"type": "transfer", "sender": "money@our.company", "username": THEM}, ""),
        ({"type": "transfer", "sender": THEM}, ""),
        ({"type": "transfer", "sender": " ", "username": US}, ""),
        ({"type": "internalTransfer", "sender": US, "username": THEM}, "out"),
        ({"type": "internalTransfer", "sender": THEM, "username": US}, "in"),
        ({"type": "conversion", "sender": US, "from_currency": "NGN"}, "out"),
        ({"type": "conversion", "sender": US, "from_currency": "USD"}, "in"),
        ({"type": "conversion", "sender": US}, "out"),
        ({"type": "refund", "sender": US, "username": THEM}, "out"),
        ({"type": "refund", "sender": THEM, "username": US}, ""),
        ({"type": "refund"}, ""),
    ],
)
def test_direction_of_each_type(members: dict[str, str], expected: str) -> None:
    assert direction(record(**members)) == expected


def test_the_direction_of_every_record_of_a_year_is_derived_as_it_was() -> None:
    derived = {}
    for event in history(7, 5_000, datetime(2026, 11, 1, tzinfo=UTC)):
        moved = event.movement
        one = record(
            type=moved.type,
            currency=moved.currency,
            sender=moved.sender,
            username=moved.username,
            from_currency=moved.given[0],
        )
        derived[moved.type, moved.incoming] = direction(one)
        assert direction(one) == ("in" if moved.incoming else "out"), moved
    assert {way for way in derived if way[0] == "conversion"} == {("conversion", True), ("conversion", False)}
    assert {"transfer", "internalTransfer", "deposit", "withdrawal", "sent"} <= {kind for kind, _ in derived}


@pytest.mark.parametrize(("sender", "receiver"), [(THEM, US), (US, THEM), ("Our Company Ltd", THEM)])
def test_the_counterparty_is_never_the_merchant(sender: str, receiver: str) -> None:
    for kind in ("transfer", "refund"):
        assert counterparty(record(type=kind, sender=sender, username=receiver)) == THEM


def record(**members: str) -> TransactionRecord:
    return TransactionRecord(**{"transaction_id": "t1", "amount": Decimal(1), "currency": "NGN"} | members)
