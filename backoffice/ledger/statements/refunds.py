"""Failed debits whose refund is not listed.

A failed record took the amount and its fee, and its refund is a later record (`balance_effect`). So a refund that never
arrives breaks no balance, and reconciliation finds a failure on both sides. The specification names no record of a
refund: any later incoming record of the same amount, with or without the fee, counts as one, and once only.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal

from backoffice.core.cached_reads import cached_in_process
from backoffice.core.fields import EXACT
from backoffice.ledger.models import Facet, Transaction

REFUND_DUE = timedelta(days=1)
PERIOD = timedelta(days=90)
MOST_EXAMINED = 1_000
"""The newest failed debits of the period; older ones are left out."""
_CACHE_SECONDS = 60.0


def missing_refunds(now: datetime) -> list[Transaction]:
    """The failed debits of the last 90 days without a refund for a day, the newest first. At most two queries."""
    failed = Transaction.objects.filter(
        facet__in=Facet.objects.filter(status="failed", direction="out"),
        occurred_at__range=(now - PERIOD, now - REFUND_DUE),
        missing_since=None,
    )
    debits = list(failed.order_by("-occurred_at", "-id")[:MOST_EXAMINED])
    refunds = _incoming(debits)
    oldest_first = debits[::-1]
    unnamed = [debit for debit in oldest_first if not _take_refund(debit, refunds, debit.transaction_id)]
    return [debit for debit in unnamed if not _take_refund(debit, refunds)][::-1]


def cached_missing_refunds(now: datetime) -> list[Transaction]:
    """The same, at most a minute old."""
    return cached_in_process("missing-refunds", lambda: missing_refunds(now), _CACHE_SECONDS)


def _incoming(debits: Iterable[Transaction]) -> dict[tuple[str, Decimal], list[Transaction]]:
    """The incoming records that may be refunds of these, by currency and amount, the oldest first."""
    debits = list(debits)
    found: dict[tuple[str, Decimal], list[Transaction]] = defaultdict(list)
    if not debits:
        return found
    facets = Facet.objects.filter(direction="in", currency__in={one.currency for one in debits})
    incoming = Transaction.objects.filter(
        facet__in=facets.exclude(status="failed"),
        amount__in={amount for one in debits for amount in _amounts(one)},
        occurred_at__gte=debits[-1].occurred_at,
        missing_since=None,
    )
    for one in incoming.order_by("occurred_at", "id"):
        found[one.currency, one.amount].append(one)
    return found


def _amounts(debit: Transaction) -> tuple[Decimal, Decimal]:
    """What its refund brings back: with the fee, which is the usual one, or without it."""
    return EXACT.add(debit.amount, debit.fee or Decimal(0)), debit.amount


def _take_refund(
    debit: Transaction, refunds: dict[tuple[str, Decimal], list[Transaction]], named: str = ""
) -> bool:
    """Take a refund of this debit out of those that are left, if there is one; with this text in its counterparty."""
    for amount in _amounts(debit):
        possible = refunds.get((debit.currency, amount), [])
        for one in possible:
            if one.occurred_at >= debit.occurred_at and named in one.counterparty:
                possible.remove(one)
                return True
    return False
