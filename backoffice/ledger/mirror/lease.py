"""The sync lease: only one process at a time reads the provider's list.

Expiry is measured by the database's clock.
"""

import time
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Self

from django.db.models import F, Q

from backoffice.core import clock
from backoffice.ledger.models import Mirror

LEASE_DURATION = timedelta(seconds=45)
"""Longer than reading one page may take. After a process is killed, the others wait at most this long."""
_RENEW_AFTER = 5.0  # seconds


class SyncLeaseLostError(Exception):
    """The lease expired and another process took it.

    Records that this process read but did not merge are dropped.
    """


@dataclass
class SyncLease:
    """The right to merge what was read.

    A process that lost it must not write: its data may be older than what is stored.
    """

    holder: uuid.UUID = field(default_factory=uuid.uuid4)
    _renewed: float = field(default_factory=time.monotonic)

    @classmethod
    def take(cls) -> Self | None:
        """Acquire the lease if it is free or expired; otherwise return None."""
        Mirror.objects.get_or_create(pk=1)
        lease, now = cls(), clock.now()
        is_free = Q(lease_until=None) | Q(lease_until__lte=now)
        taken = Mirror.objects.filter(is_free, pk=1).update(
            lease_holder=lease.holder, lease_since=now, lease_until=now + LEASE_DURATION
        )
        return lease if taken else None

    def renew(self) -> None:
        """Extend the lease unless it was extended recently. Raises SyncLeaseLostError."""
        if time.monotonic() - self._renewed > _RENEW_AFTER:
            self.prove()

    def prove(self) -> None:
        """Extend the lease and lock its row until the end of the transaction. Raises SyncLeaseLostError."""
        mine = Mirror.objects.filter(pk=1, lease_holder=self.holder)
        if not mine.update(lease_until=clock.now() + LEASE_DURATION):
            raise SyncLeaseLostError
        self._renewed = time.monotonic()

    def give_up_unless_wanted(self) -> bool:
        """Release the lease, unless a round was requested after the last one began.

        Returns whether it was released.
        """
        is_served = Q(wanted_at=None) | Q(wanted_at__lt=F("as_of"))
        mine = Mirror.objects.filter(is_served, pk=1, lease_holder=self.holder)
        return bool(mine.update(lease_holder=None, lease_until=None))

    def give_up(self) -> None:
        """Release the lease unconditionally. Does nothing if it is lost already."""
        Mirror.objects.filter(pk=1, lease_holder=self.holder).update(lease_holder=None, lease_until=None)
