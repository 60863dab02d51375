"""The lease under which the mirror is written."""

from backoffice.core.leases import Lease, acquire_lease
from backoffice.ledger.mirror.sync import LEASE_DURATION, SYNC_LEASE


def acquired_sync_lease() -> Lease:
    """The lease, which nobody else holds."""
    lease = acquire_lease(SYNC_LEASE, LEASE_DURATION)
    assert lease is not None
    return lease
