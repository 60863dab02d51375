"""The provider's summary of the transactions beside the same figures of the mirror (GET /transaction/summary), and the
discrepancies between them that nothing explains.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, localcontext
from types import MappingProxyType

from django.db import transaction
from pydantic import TypeAdapter

from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.core.cached_reads import CachedRead, CachedValue
from backoffice.core.fields import EXACT
from backoffice.core.gateway import PAGE_TIMEOUT, gateway
from backoffice.core.leases import lock_until_commit
from backoffice.ledger.models import Mirror, Transaction
from backoffice.ledger.transactions.filters import TransactionFilter, known_facets
from backoffice.ledger.transactions.sql import consistent_read
from backoffice.ledger.transactions.volumes import sums_between
from payments_gateway import CURRENCIES, Duration, FiatCurrency, TransactionSummary, TransactionType

SPANS: Mapping[Duration, timedelta] = MappingProxyType(
    {
        "one day": timedelta(days=1),
        "one week": timedelta(weeks=1),
        "one month": timedelta(days=30),
        "one year": timedelta(days=365),
    }
)
"""The durations of the specification as Countersign counts them: the specification does not define when each begins."""
_NEWEST = 100  # records on the page that the provider returns with the summary
_DATE_HEADER_STEP = timedelta(seconds=1)
DISCREPANCY_AFTER = timedelta(minutes=10)
"""A difference is recorded as a discrepancy if it is still unexplained this long after it was first seen."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SummaryQuery:
    """The filters of GET /transaction/summary; None does not restrict."""

    currency: FiatCurrency | None = None
    type: TransactionType | None = None
    duration: Duration | None = None


@dataclass(frozen=True)
class SummaryComparison:
    """The provider's figures, and those of the mirror for the same filters and span, taken together at `read_at`.

    `listed` is the total of the transaction list beside the summary; `reported_duration` has no documented unit.
    Unsynced are the newest transactions of the provider that the mirror did not have yet. Volumes are sums of
    amounts, in and out, without fees. `since` is None for all time.
    """

    reported_count: int
    reported_volume: Decimal
    listed: int
    mirrored_count: int
    mirrored_volume: Decimal
    unsynced_count: int
    unsynced_volume: Decimal
    is_mirror_loaded: bool
    read_at: datetime
    # With defaults, since a stored read has no member that is None.
    reported_duration: Decimal | None = None
    currency: FiatCurrency | None = None
    since: datetime | None = None
    synced_at: datetime | None = None

    @property
    def count_difference(self) -> Decimal:
        """The provider's number less the mirror's."""
        return Decimal(self.reported_count - self.mirrored_count)

    @property
    def volume_difference(self) -> Decimal | None:
        """The provider's volume less the mirror's, without binary rounding residue.

        None for all currencies together, whose sum means nothing.
        """
        if self.currency is None:
            return None
        unit = Decimal(1).scaleb(-CURRENCIES[self.currency].decimals)
        with localcontext(EXACT):
            return (self.reported_volume - self.mirrored_volume).quantize(unit)

    @property
    def differs(self) -> bool:
        """Whether any figure differs."""
        return bool(self.count_difference or self.volume_difference)

    @property
    def is_sync_delay(self) -> bool:
        """Whether the transactions that were not synced yet explain the whole difference."""
        unsynced_volume = None if self.currency is None else self.unsynced_volume
        expected = (Decimal(self.unsynced_count), unsynced_volume)
        return self.differs and (self.count_difference, self.volume_difference) == expected

    @property
    def is_unexplained(self) -> bool:
        """Whether any figure differs and the sync does not explain it."""
        return self.differs and not self.is_sync_delay

    @property
    def contradicts_list(self) -> bool:
        """Whether the provider counts another number in its summary than in the list beside it."""
        return self.reported_count != self.listed


def cached_summary(query: SummaryQuery) -> CachedValue[SummaryComparison]:
    """The comparison as last made, without a request."""
    return _read(query).cached()


def refresh_summary(query: SummaryQuery) -> CachedValue[SummaryComparison]:
    """The comparison made now, or the last one if the provider cannot be read.

    An unexplained difference is followed from one comparison to the next (`discrepancy`).
    """
    cached = _read(query).refresh(lambda: _compare(query))
    if cached.value is not None and not cached.error and query.type is None:
        _follow_difference(query, cached.value)
    return cached


@dataclass(frozen=True)
class Discrepancy:
    """An unexplained difference in one currency and duration, seen `since` then; None: there is none.

    `recorded_at` is when it was recorded in the audit log, None if not yet. Until it is gone, it is the same one,
    even if the figures change.
    """

    since: datetime | None = None
    recorded_at: datetime | None = None


def discrepancy(query: SummaryQuery) -> Discrepancy | None:
    """The discrepancy of this currency and duration that is recorded and not closed. Types have none of their own."""
    found = None if query.type else _discrepancy_read(query).cached().value
    return found if found and found.recorded_at else None


def _discrepancy_read(query: SummaryQuery) -> CachedRead[Discrepancy]:
    key = f"summary-discrepancy:{query.currency or ''}:{query.duration or ''}"
    return CachedRead(key, TypeAdapter(Discrepancy), keep_for=timedelta(days=3650))


@transaction.atomic
def _follow_difference(query: SummaryQuery, found: SummaryComparison) -> None:
    """Record a discrepancy once, on the second comparison, and close it when nothing unexplained is left.

    Not while the mirror is incomplete, nor before it was synced after the first comparison.
    """
    lock_until_commit("summary discrepancies")
    stored = _discrepancy_read(query)
    known, now = stored.cached().value or Discrepancy(), clock.now()
    if not found.is_unexplained:
        if known.recorded_at:
            _record_discrepancy(Action.SUMMARY_DISCREPANCY_CLOSED, query, found)
        if known.since:
            stored.refresh(Discrepancy)
    elif not found.is_mirror_loaded:
        return
    elif known.since is None:
        stored.refresh(lambda: Discrepancy(since=now))
    elif known.recorded_at is None and _is_lasting(known.since, now, found.synced_at):
        stored.refresh(lambda: Discrepancy(known.since, recorded_at=now))
        _record_discrepancy(Action.SUMMARY_DISCREPANCY_FOUND, query, found)


def _is_lasting(since: datetime, now: datetime, synced_at: datetime | None) -> bool:
    return now - since >= DISCREPANCY_AFTER and synced_at is not None and synced_at > since


def _record_discrepancy(action: Action, query: SummaryQuery, found: SummaryComparison) -> None:
    span = f"{query.currency or 'all currencies'}, {query.duration or 'all time'}"
    if action == Action.SUMMARY_DISCREPANCY_FOUND:
        logger.warning("The provider's summary of %s contradicts the synced transactions", span)
    audit.record(
        action,
        actor=None,
        target=f"the provider's summary of {span}",
        count_difference=found.count_difference,
        volume_difference=found.volume_difference,
        read_at=found.read_at,
    )


def _read(query: SummaryQuery) -> CachedRead[SummaryComparison]:
    key = ":".join(part or "" for part in (query.currency, query.type, query.duration))
    return CachedRead(f"summary:{key}", TypeAdapter(SummaryComparison))


def _compare(query: SummaryQuery) -> SummaryComparison:
    """Raises GatewayError."""
    summary = gateway(deadline=PAGE_TIMEOUT).transactions.summary(
        currency=query.currency, type=query.type, duration=query.duration, per_page=_NEWEST
    )
    read_at = summary.page.answered_at or clock.now()
    since = read_at - SPANS[query.duration] if query.duration else None
    with consistent_read():
        count, volume = _mirrored(query, since, read_at + _DATE_HEADER_STEP)
        unsynced_count, unsynced_volume = _unsynced(summary)
        mirror = Mirror.objects.filter(pk=1).first() or Mirror()
    return SummaryComparison(
        reported_count=summary.transaction_count,
        reported_volume=summary.volume,
        reported_duration=summary.duration,
        listed=summary.page.total,
        mirrored_count=count,
        mirrored_volume=volume,
        unsynced_count=unsynced_count,
        unsynced_volume=unsynced_volume,
        is_mirror_loaded=mirror.loaded_at is not None,
        currency=query.currency,
        since=since,
        read_at=read_at,
        synced_at=mirror.as_of,
    )


def _mirrored(query: SummaryQuery, since: datetime | None, until: datetime) -> tuple[int, Decimal]:
    """Number and volume in the mirror; those that the provider no longer lists do not count."""
    criteria = TransactionFilter(currency=query.currency or "", type=query.type or "")
    facets = criteria.matching_facets(known_facets())
    count, volume = 0, Decimal(0)
    with localcontext(EXACT):
        for _facet, number, amount, _fee in sums_between(facets, since, until):
            count, volume = count + number, volume + amount
    return count, volume


def _unsynced(summary: TransactionSummary) -> tuple[int, Decimal]:
    """Number and volume of the newest transactions that the mirror does not have."""
    newest = {record.transaction_id: abs(record.amount) for record in summary.page.records}
    mirrored = Transaction.objects.filter(transaction_id__in=newest).order_by()
    known = set(mirrored.values_list("transaction_id", flat=True))
    missing = [amount for transaction_id, amount in newest.items() if transaction_id not in known]
    with localcontext(EXACT):
        return len(missing), sum(missing, Decimal(0))
