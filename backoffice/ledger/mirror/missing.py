"""Transactions that left the service's list. They stay here, and say since when; no sum has them any more."""

import logging
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from backoffice.core import clock, locks
from backoffice.ledger.books import breaks
from backoffice.ledger.mirror.lease import Lease
from backoffice.ledger.mirror.merging import keep_totals
from backoffice.ledger.mirror.totals import Differences
from backoffice.ledger.mirrored import Sighting, Transaction, TransactionChange

logger = logging.getLogger(__name__)

MOST = 10_000
"""A list that lost more than so many is more likely broken than right: then none of them is marked."""
AT_ONCE = 200
"""So many in one transaction: whoever merges meanwhile waits a fraction of a second, wherever in the chain they are."""


def number_missing() -> int:
    """How many transactions are here that the service does not list any more."""
    return Transaction.objects.filter(missing_since__isnull=False).count()


def forget_sightings() -> None:
    """For another `COUNT` pass."""
    Sighting.objects.all().delete()


def mark_missing(lease: Lease, begun_at: datetime) -> None:
    """Mark what was here when the `COUNT` pass began and in no page read since, with an entry in its history.

    It is taken out of the totals, and comes back into them if the service lists it again (`merging`). Some at a time,
    each of which is a durable transaction of its own: whoever comes after one that was broken off marks the rest, since
    what was seen is remembered until the pass has ended. Raises LeaseLostError.
    """
    lost = list(_unseen(begun_at).values_list("pk", flat=True)[: MOST + 1])
    if len(lost) > MOST:
        logger.error("The service's list lost more than %d transactions; none of them is marked", MOST)
        return
    for first in range(0, len(lost), AT_ONCE):
        with transaction.atomic(durable=True):
            lease.prove()
            locks.hold("mirror")
            _mark(lost[first : first + AT_ONCE])


def _mark(pks: list[int]) -> None:
    """Rows, their history, totals and breaks, in the caller's transaction."""
    here = Transaction.objects.filter(pk__in=pks, missing_since__isnull=True)
    lost = list(here.only("currency", "occurred_at", "facet_id", "amount", "fee"))
    now = clock.now()
    TransactionChange.objects.bulk_create(
        TransactionChange(
            transaction=one,
            seen_at=now,
            before={"missing_since": None},
            after={"missing_since": now.isoformat()},
        )
        for one in lost
    )
    differences = Differences()
    for one in lost:
        differences.at(one.occurred_at, one.facet_id).subtract(one.amount, one.fee)
    keep_totals(differences)
    here.update(missing_since=now, changed_at=now)
    breaks.reexamine((one.currency, one.occurred_at) for one in lost)


def _unseen(begun_at: datetime) -> QuerySet[Transaction]:
    seen = Sighting.objects.filter(transaction_id=OuterRef("pk"))
    here = Transaction.objects.filter(first_seen_at__lt=begun_at, missing_since__isnull=True)
    return here.filter(~Exists(seen)).order_by("pk")
