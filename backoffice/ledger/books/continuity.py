"""The breaks of the chain for people: how many, which, and what they add up to by currency and day."""

import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, localcontext

from django.db.models import QuerySet
from django.utils import timezone

from backoffice.core.fields import SUMS
from backoffice.ledger.books.checking import currencies
from backoffice.ledger.books.counting import UpTo, count_up_to
from backoffice.ledger.mirrored import UNTOLD, BookCheck, Break, Transaction

MOST = 5_000
MANY = 100
"""Whoever has to look at more of them than so many need not know how many more."""
NEWEST_FIRST = ("-at", "-id")
REMEMBERED_SECONDS = 5.0


@dataclass
class DayOfBreaks:
    """The breaks of one currency on one day of the person who looks."""

    currency: str
    day: date
    count: int = 0
    more: Decimal = Decimal(0)
    less: Decimal = Decimal(0)

    @property
    def net(self) -> Decimal:
        """What was found more than expected, without what was found less."""
        with localcontext(SUMS):
            return self.more - self.less


def chosen_breaks(currency: str, since: datetime | None, until: datetime | None) -> QuerySet[Break]:
    """Those of this currency, or of all, from the one moment up to the other, which is excluded."""
    breaks = Break.objects.all()
    breaks = breaks.filter(currency=currency) if currency else breaks
    breaks = breaks.filter(at__gte=since) if since else breaks
    return breaks.filter(at__lt=until) if until else breaks


def days_of(breaks: QuerySet[Break]) -> list[DayOfBreaks] | None:
    """Their sums, newest day first, in the current time zone; None where they are too many to be added up quickly."""
    rows = list(breaks.order_by().values_list("currency", "at", "direction", "difference")[: MOST + 1])
    if len(rows) > MOST:
        return None
    days: dict[tuple[str, date], DayOfBreaks] = {}
    amounts: dict[tuple[str, date, str], Decimal] = defaultdict(Decimal)
    with localcontext(SUMS):
        for currency, at, direction, difference in rows:
            key = currency, timezone.localdate(at)
            days.setdefault(key, DayOfBreaks(*key)).count += 1
            amounts[*key, direction] += difference
    for key, one in days.items():
        one.more, one.less = amounts[*key, "in"], amounts[*key, "out"]
    return sorted(days.values(), key=lambda one: (-one.day.toordinal(), one.currency))


def not_ours_to_tell(currency: str, since: datetime | None, until: datetime | None) -> UpTo:
    """How many records there do not tell which way money went, what was there before, or when: so not whose balance.

    They are never a break, and the chain begins anew behind each (`chain`).
    """
    among = [currency] if currency else currencies()
    rows = Transaction.objects.filter(UNTOLD, currency__in=among, missing_since__isnull=True)
    rows = rows.filter(occurred_at__gte=since) if since else rows
    return count_up_to(MOST, rows.filter(occurred_at__lt=until) if until else rows)


def unchecked() -> list[str]:
    """The currencies whose records were never all checked: of those, breaks may be there that are not kept."""
    checked = set(BookCheck.objects.exclude(whole_at=None).values_list("currency", flat=True))
    return [currency for currency in currencies() if currency not in checked]


def breaks_to_look_at(most: int = MANY) -> UpTo:
    """How many breaks there are, whenever they were: each stands until the records themselves explain it."""
    return count_up_to(most, Break.objects.all())


class _Memory:
    """What this process counted last for its pages, and until when it counts."""

    breaks = UpTo(0)
    until = float("-inf")


def breaks_on_pages() -> UpTo:
    """The same for a page that everybody opens, some seconds old at most."""
    now = time.monotonic()
    if now >= _Memory.until:
        _Memory.breaks, _Memory.until = breaks_to_look_at(), now + REMEMBERED_SECONDS
    return _Memory.breaks


def forget() -> None:
    """Count them anew for the next page of this process."""
    _Memory.until = float("-inf")
