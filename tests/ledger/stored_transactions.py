"""Transactions of the mirror as the sync writes them, made up."""

import itertools
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from typing import Any

from backoffice.core.fields import EXACT
from backoffice.ledger.models import DayTotal, Facet, Transaction

_NUMBERS = itertools.count(1)
FACETS = ("currency", "type", "status", "direction")
AT = datetime(2026, 11, 20, 10, 42, 7, tzinfo=UTC)


def unsaved(**members: Any) -> Transaction:
    """One of them, without its facet."""
    number = next(_NUMBERS)
    usual: dict[str, Any] = {
        "transaction_id": f"TX-{number:04d}-4f7e2b0c9d1a",
        "currency": "NGN",
        "type": "withdrawal",
        "status": "fulfilled",
        "direction": "out",
        "occurred_at": AT,
        "amount": Decimal("250000.50"),
        "fee": Decimal(50),
        "sender": "merchant",
        "username": "Ada Chidinma Obi",
        "counterparty": "Ada Chidinma Obi",
        "business_id": "biz-1",
        "from_currency": "",
        "date": "",
        "version": "v2",
        "digest": b"",
        "first_seen_at": AT,
    }
    row = Transaction(**usual | members)
    row.created_at = row.occurred_at
    return row


def stored(**members: Any) -> Transaction:
    """One of them in the mirror."""
    [row] = store([unsaved(**members)])
    return row


def store(rows: list[Transaction]) -> list[Transaction]:
    """Put them into the mirror, each with its facet."""
    words = {row.transaction_id: tuple(getattr(row, name) for name in FACETS) for row in rows}
    new = [Facet(**dict(zip(FACETS, one, strict=True))) for one in sorted(set(words.values()))]
    Facet.objects.bulk_create(new, ignore_conflicts=True)
    facets = {tuple(getattr(facet, name) for name in FACETS): facet for facet in Facet.objects.all()}
    for row in rows:
        row.facet = facets[words[row.transaction_id]]
    return Transaction.objects.bulk_create(rows)


def add_up(rows: list[Transaction]) -> None:
    """Keep the totals of their days, as the sync does."""
    with localcontext(EXACT):
        for row in rows:
            nothing = {"count": 0, "amount": Decimal(0), "fee": Decimal(0)}
            day = row.occurred_at.astimezone(UTC).date()
            total, _ = DayTotal.objects.get_or_create(day=day, facet_id=row.facet_id, defaults=nothing)
            total.count, total.amount = total.count + 1, total.amount + row.amount
            total.save()
