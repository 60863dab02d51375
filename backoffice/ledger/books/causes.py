"""What may explain a break, by what is known of the records around it."""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from functools import reduce

from backoffice.ledger.books.chain import Broken, effect
from backoffice.ledger.mirror.totals import EXACT
from backoffice.ledger.mirrored import Break, Transaction, TransactionChange

_MONEY = ("amount", "fee", "previous_balance", "direction", "currency", "created_at")
_Vanished = list[tuple[datetime, Decimal]]
"""When records occurred that left the list, and what each added."""


def kinds_of(currency: str, broken: list[Broken]) -> list[Break.Kind]:
    """The kind of each of these breaks, which come in order of time. Three queries, however many there are."""
    around = [link.pk for one in broken for link in (one.before, one.after)]
    changed = set(_changed(around))
    fees = dict(Transaction.objects.filter(pk__in=around).values_list("pk", "fee"))
    vanished = _vanished(currency, broken)
    return [_kind(one, vanished, fees, changed) for one in broken]


def _kind(one: Broken, vanished: _Vanished, fees: dict[int, Decimal | None], changed: set[int]) -> Break.Kind:
    added = [adds for at, adds in vanished if one.before.at <= at <= one.after.at]
    if added and one.difference in {*added, reduce(EXACT.add, added)}:
        return Break.Kind.VANISHED
    if one.difference == fees[one.before.pk]:
        return Break.Kind.FEE
    if one.found == one.before.before:
        return Break.Kind.UNMOVED
    return Break.Kind.CHANGED if {one.before.pk, one.after.pk} & changed else Break.Kind.GAP


def _changed(pks: list[int]) -> Iterator[int]:
    """Those of the records that told other money, or another time, before."""
    changes = TransactionChange.objects.filter(transaction__in=pks).order_by()
    for pk, after in changes.values_list("transaction_id", "after"):
        if any(name in after for name in _MONEY):
            yield pk


def _vanished(currency: str, broken: list[Broken]) -> _Vanished:
    gone = Transaction.objects.filter(missing_since__isnull=False, currency=currency).order_by()
    rows = gone.filter(occurred_at__gte=broken[0].before.at, occurred_at__lte=broken[-1].after.at)
    told = rows.values_list("occurred_at", "direction", "amount", "fee")
    added = ((at, effect(direction, amount, fee)) for at, direction, amount, fee in told)
    return [(at, adds) for at, adds in added if adds is not None]
