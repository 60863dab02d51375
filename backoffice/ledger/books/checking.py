"""Holds the kept breaks against the rows, from the beginning of each currency to its end, once a day.

`breaks` keeps them right by itself. This finds those of rows that were here before breaks were kept, and mends what a
defect of ours may have left.
"""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from django.db import transaction

from backoffice.core import clock, locks
from backoffice.ledger.books.breaks import differences, examine, keep
from backoffice.ledger.books.reading import landmark_before
from backoffice.ledger.mirrored import BookCheck, Facet

logger = logging.getLogger(__name__)

EVERY = timedelta(days=1)
AT_ONCE = 10_000
"""Records in one transaction: whoever merges meanwhile waits a fraction of a second."""
_NEVER = datetime.min.replace(tzinfo=UTC)
_NEXT = timedelta(microseconds=1)


def check_due() -> int:
    """Check some records of a currency whose turn it is; 1 if this call did it.

    May be called at any time and by several processes: each goes on where the last one ended.
    """
    currency = next(_due(), None)
    if currency is None:
        return 0
    with transaction.atomic(durable=True):
        locks.hold("mirror")
        _check_some(BookCheck.objects.get_or_create(currency=currency)[0])
    return 1


def disagreements() -> Iterator[str]:
    """Every break that is kept and not there, or there and not kept: for a command, minutes for ten million rows.

    In a transaction that sees one state of the database, or while no sync runs.
    """
    for currency in currencies():
        gone, new = differences([examine(currency, None)])
        yield from (f"{broken} is kept, but the rows do not show it" for broken in gone)
        yield from (f"{broken} is not kept, but the rows show it" for broken in new)


def currencies() -> list[str]:
    """Every currency in which records were told."""
    known = Facet.objects.exclude(currency="").order_by("currency")
    return list(known.values_list("currency", flat=True).distinct())


def _due() -> Iterator[str]:
    """Those whose turn it is, the one first whose last check is the oldest: so each has its turn."""
    checks = {check.currency: check for check in BookCheck.objects.all()}
    before = clock.now() - EVERY
    ended = {currency: checks[currency].whole_at if currency in checks else None for currency in currencies()}
    for currency, whole_at in sorted(ended.items(), key=lambda one: one[1] or _NEVER):
        if whole_at is None or whole_at <= before or checks[currency].reached:
            yield currency


def _check_some(check: BookCheck) -> None:
    landmark = landmark_before(check.currency, check.reached + _NEXT) if check.reached else None
    part = examine(check.currency, landmark, AT_ONCE)
    changed = keep([part])
    if changed and check.whole_at:
        logger.error("The kept breaks of %s differed from the rows in %d places", check.currency, changed)
    check.reached = part.until
    if part.until is None:
        check.whole_at = clock.now()
    check.save()
