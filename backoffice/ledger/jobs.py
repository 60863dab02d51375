"""The sweeper's jobs of the ledger: keep a snapshot of the balances, and read on in the provider's list."""

from backoffice.ledger.balances import take_due_snapshot
from backoffice.ledger.mirror.sync import sync_if_due

JOBS = {"take_due_snapshot": take_due_snapshot, "sync_if_due": sync_if_due}
