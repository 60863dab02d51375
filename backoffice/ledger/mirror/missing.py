"""Transactions that left the service's list. They stay here, and say since when."""

import logging
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from backoffice.core import clock, locks
from backoffice.ledger.mirror.lease import Lease
from backoffice.ledger.mirrored import Sighting, Transaction, TransactionChange

logger = logging.getLogger(__name__)

MOST = 10_000
"""A list that lost more than so many is more likely broken than right: then none of them is marked."""


def number_missing() -> int:
    """How many transactions are here that the service does not list any more."""
    return Transaction.objects.filter(missing_since__isnull=False).count()


def forget_sightings() -> None:
    """For another `COUNT` pass."""
    Sighting.objects.all().delete()


def mark_missing(lease: Lease, begun_at: datetime) -> None:
    """Mark what was here when the `COUNT` pass began and was not seen by it, with an entry in its history.

    Raises LeaseLostError.
    """
    with transaction.atomic(durable=True):
        lease.prove()
        locks.hold("mirror")
        lost = list(_unseen(begun_at).values_list("pk", flat=True)[: MOST + 1])
        if len(lost) > MOST:
            logger.error("The service's list lost more than %d transactions; none of them is marked", MOST)
            return
        now = clock.now()
        TransactionChange.objects.bulk_create(
            TransactionChange(
                transaction_id=pk,
                seen_at=now,
                before={"missing_since": None},
                after={"missing_since": now.isoformat()},
            )
            for pk in lost
        )
        for first in range(0, len(lost), 500):
            Transaction.objects.filter(pk__in=lost[first : first + 500]).update(
                missing_since=now, changed_at=now
            )


def _unseen(begun_at: datetime) -> QuerySet[Transaction]:
    seen = Sighting.objects.filter(transaction_id=OuterRef("pk"))
    here = Transaction.objects.filter(first_seen_at__lt=begun_at, missing_since__isnull=True)
    return here.filter(~Exists(seen)).order_by("pk")
