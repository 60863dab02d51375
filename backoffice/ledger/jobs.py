"""The ledger's sweeper jobs: take a balance snapshot, and sync the mirror."""

from backoffice.ledger.balances import take_due_snapshot
from backoffice.ledger.mirror.sync import sync_if_due

JOBS = {"take_due_snapshot": take_due_snapshot, "sync_if_due": sync_if_due}
