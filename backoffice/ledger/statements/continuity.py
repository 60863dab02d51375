"""Balance continuity: breaks by currency, period and day, and a daily check of the stored breaks.

`breaks` updates them with every merge. The daily check finds breaks among rows that are older than that code,
and repairs what a defect may have left.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any, Self

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from backoffice.core import clock, leases
from backoffice.core.cached_reads import cached_in_process
from backoffice.core.fields import EXACT
from backoffice.core.web.formatting import format_count
from backoffice.ledger.models import UNPLACEABLE, BalanceBreak, ContinuityCheck, Facet, Transaction
from backoffice.ledger.statements.breaks import break_differences, examine_chain, store_breaks
from backoffice.ledger.statements.chain_reader import landmark_before


@dataclass(frozen=True)
class CappedCount:
    """A count up to a limit; `is_more` if there are more."""

    number: int
    is_more: bool = False

    @classmethod
    def from_count(cls, number: int, at_most: int) -> Self:
        """From a number that was counted no further than `at_most + 1`."""
        return cls(min(number, at_most), is_more=number > at_most)

    def __str__(self) -> str:
        """`1,234`, or `more than 1,000`."""
        number = format_count(self.number)
        return gettext("more than {number}").format(number=number) if self.is_more else number

    def __bool__(self) -> bool:
        return self.number > 0


def count_up_to(at_most: int, rows: QuerySet[Any]) -> CappedCount:
    """Count the rows. One query, which reads no more than `at_most + 1` of them."""
    return CappedCount.from_count(rows.order_by()[: at_most + 1].count(), at_most)


logger = logging.getLogger(__name__)

CHECK_INTERVAL = timedelta(days=1)
RECORDS_PER_CHECK = 10_000
"""Records per transaction, so that a concurrent merge waits only a fraction of a second."""
_NEVER = datetime.min.replace(tzinfo=UTC)
_ONE_TICK = timedelta(microseconds=1)


def run_due_check() -> int:
    """Check some records of a currency that is due. Returns 1 if this call did.

    Safe to call at any time and concurrently: each call continues where the last one ended.
    """
    currency = next(_due_currencies(), None)
    if currency is None:
        return 0
    with transaction.atomic(durable=True):
        leases.lock_until_commit("mirror")
        _check_some(ContinuityCheck.objects.get_or_create(currency=currency)[0])
    return 1


def break_disagreements() -> Iterator[str]:
    """Every stored break that the rows do not show, and vice versa.

    Minutes for ten million rows, so only for a command.

    Run it in a transaction with a consistent snapshot, or while no sync runs.
    """
    for currency in known_currencies():
        obsolete, new = break_differences([examine_chain(currency, None)])
        yield from (f"{balance_break} is stored, but the rows do not show it" for balance_break in obsolete)
        yield from (f"{balance_break} is not stored, but the rows show it" for balance_break in new)


def known_currencies() -> list[str]:
    """Every currency that occurs in a mirrored record."""
    return list(is_checked_by_currency())


def is_checked_by_currency() -> dict[str, bool]:
    """Every currency that occurs in a mirrored record, and whether it was ever completely checked.

    One that was not may have breaks that are not stored. One query.
    """
    completed = ContinuityCheck.objects.filter(currency=OuterRef("currency"), completed_at__isnull=False)
    known = Facet.objects.exclude(currency="").order_by("currency").annotate(is_checked=Exists(completed))
    return dict(known.values_list("currency", "is_checked").distinct())


def _due_currencies() -> Iterator[str]:
    """The currencies that are due, the least recently checked first, so that none is starved."""
    checks = {check.currency: check for check in ContinuityCheck.objects.all()}
    before = clock.now() - CHECK_INTERVAL
    last_completed = {
        currency: checks[currency].completed_at if currency in checks else None
        for currency in known_currencies()
    }
    for currency, completed_at in sorted(last_completed.items(), key=lambda one: one[1] or _NEVER):
        if completed_at is None or completed_at <= before or checks[currency].checked_until:
            yield currency


def _check_some(check: ContinuityCheck) -> None:
    landmark = (
        landmark_before(check.currency, check.checked_until + _ONE_TICK) if check.checked_until else None
    )
    examined = examine_chain(check.currency, landmark, RECORDS_PER_CHECK)
    changed = store_breaks([examined])
    if changed and check.completed_at:
        logger.error(
            "The stored continuity breaks of %s differed from the rows; %d were corrected",
            check.currency,
            changed,
        )
    check.checked_until = examined.until
    if examined.until is None:
        check.completed_at = clock.now()
    check.save()


MAX_SUMMED_BREAKS = 5_000
MAX_COUNTED_BREAKS = 100
"""Counts on screens stop at this number."""
NEWEST_BREAKS_FIRST = ("-at", "-id")
COUNT_CACHE_SECONDS = 5.0


@dataclass
class DailyBreaks:
    """The breaks of one currency on one day, in the viewer's time zone."""

    currency: str
    day: date
    count: int = 0
    more: Decimal = Decimal(0)
    less: Decimal = Decimal(0)

    @property
    def net(self) -> Decimal:
        """The surplus found, minus the shortfall found."""
        with localcontext(EXACT):
            return self.more - self.less


def filtered_breaks(currency: str, since: datetime | None, until: datetime | None) -> QuerySet[BalanceBreak]:
    """The breaks of this currency, or of all, from `since` up to `until`, which is excluded."""
    breaks = BalanceBreak.objects.all()
    breaks = breaks.filter(currency=currency) if currency else breaks
    breaks = breaks.filter(at__gte=since) if since else breaks
    return breaks.filter(at__lt=until) if until else breaks


def breaks_by_day(breaks: QuerySet[BalanceBreak]) -> list[DailyBreaks] | None:
    """Sums by local day, newest first; None if there are more than `MAX_SUMMED_BREAKS` breaks."""
    rows = list(
        breaks.order_by().values_list("currency", "at", "direction", "difference")[: MAX_SUMMED_BREAKS + 1]
    )
    if len(rows) > MAX_SUMMED_BREAKS:
        return None
    days: dict[tuple[str, date], DailyBreaks] = {}
    amounts: dict[tuple[str, date, str], Decimal] = defaultdict(Decimal)
    with localcontext(EXACT):
        for currency, at, direction, difference in rows:
            key = currency, timezone.localdate(at)
            days.setdefault(key, DailyBreaks(*key)).count += 1
            amounts[*key, direction] += difference
    for key, one in days.items():
        one.more, one.less = amounts[*key, "in"], amounts[*key, "out"]
    return sorted(days.values(), key=lambda one: (-one.day.toordinal(), one.currency))


def unplaceable_count(
    currencies: Collection[str], since: datetime | None, until: datetime | None
) -> CappedCount:
    """Count the records of these currencies that cannot be placed: without a direction, a previous balance, or a
    time.

    They never count as a break, and the chain restarts after each (`chain`).
    """
    rows = Transaction.objects.filter(UNPLACEABLE, currency__in=currencies, missing_since__isnull=True)
    rows = rows.filter(occurred_at__gte=since) if since else rows
    return count_up_to(MAX_SUMMED_BREAKS, rows.filter(occurred_at__lt=until) if until else rows)


def unchecked_currencies() -> list[str]:
    """The currencies that were never completely checked: they may have breaks that are not stored."""
    return [currency for currency, is_checked in is_checked_by_currency().items() if not is_checked]


def open_break_count(at_most: int = MAX_COUNTED_BREAKS) -> CappedCount:
    """The number of breaks of all times. A break remains until the records themselves explain it."""
    return count_up_to(at_most, BalanceBreak.objects.all())


def cached_break_count() -> CappedCount:
    """The number of breaks, cached for `COUNT_CACHE_SECONDS`, for pages that many people open."""
    return cached_in_process("balance-breaks", open_break_count, COUNT_CACHE_SECONDS)
