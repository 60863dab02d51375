"""The sync lease: one process at a time reads the provider's list, by the database's clock."""

import time
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Self

from django.db.models import F, Q

from backoffice.core import clock
from backoffice.ledger.models import Mirror

LEASE_DURATION = timedelta(seconds=45)
"""Longer than one page may take to be read. Whoever is killed keeps others waiting for as long."""
_RENEW_AFTER = 5.0  # seconds


class SyncLeaseLostError(Exception):
    """This process stood still for so long that another one reads now. What it has not merged is not merged."""


@dataclass
class SyncLease:
    """The right to merge what was read. Whoever lost it writes nothing more: it could be older than what is there."""

    holder: uuid.UUID = field(default_factory=uuid.uuid4)
    _renewed: float = field(default_factory=time.monotonic)

    @classmethod
    def take(cls) -> Self | None:
        """Take it if nobody has it; None if somebody does."""
        Mirror.objects.get_or_create(pk=1)
        lease, now = cls(), clock.now()
        is_free = Q(lease_until=None) | Q(lease_until__lte=now)
        taken = Mirror.objects.filter(is_free, pk=1).update(
            lease_holder=lease.holder, lease_since=now, lease_until=now + LEASE_DURATION
        )
        return lease if taken else None

    def renew(self) -> None:
        """Keep it for longer, if that is not fresh. Raises LeaseLostError."""
        if time.monotonic() - self._renewed > _RENEW_AFTER:
            self.prove()

    def prove(self) -> None:
        """Keep it for longer, and to the end of a transaction let nobody take it. Raises LeaseLostError."""
        mine = Mirror.objects.filter(pk=1, lease_holder=self.holder)
        if not mine.update(lease_until=clock.now() + LEASE_DURATION):
            raise SyncLeaseLostError
        self._renewed = time.monotonic()

    def give_up_unless_wanted(self) -> bool:
        """Let others have it, unless somebody asked for a round that has not been made, and found it taken."""
        is_served = Q(wanted_at=None) | Q(wanted_at__lt=F("as_of"))
        mine = Mirror.objects.filter(is_served, pk=1, lease_holder=self.holder)
        return bool(mine.update(lease_holder=None, lease_until=None))

    def give_up(self) -> None:
        """Let others have it, whatever is wanted; nothing if it is lost already."""
        Mirror.objects.filter(pk=1, lease_holder=self.holder).update(lease_holder=None, lease_until=None)
