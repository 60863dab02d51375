"""Delete rows whose time is over, a few at a time, each batch in a commit of its own.

Whatever ends the process, the next run continues: what is due is read from the tables. Several may run at once.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Model, QuerySet

from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import background, clock
from backoffice.core.leases import acquire_lease
from backoffice.core.storage.retention import TableRetention, declared_tables

INTERVAL = timedelta(days=1)
LEASE_DURATION = timedelta(minutes=10)
BATCH_ROWS = 1000
BATCHES_AT_ONCE = 50
"""Batches in one round of the sweeper; the next round continues."""


def due_rows(table: TableRetention, now: datetime) -> QuerySet[Model]:
    """The rows whose time is over."""
    kept = table.kept_for
    rows = table.model._default_manager.all()
    if kept is None:
        return rows.none()
    return rows.filter(table.which, **{f"{table.since}__lt": now - kept})


def prune_due() -> int:
    """Once a day by one process of all machines: delete what is due; returns how many rows.

    A round that leaves some, or is asked to stop, releases its lease, so that the next round continues at once. After
    one that fails, the next round waits until the lease expires.
    """
    lease = acquire_lease("prune", LEASE_DURATION)
    if lease is None:
        return 0
    try:
        deleted = prune(batches=BATCHES_AT_ONCE)
        is_over = not any(map(_has_due_rows, declared_tables()))
    except background.StopRequestedError:
        lease.release()
        raise
    lease.release(free_at=clock.now() + INTERVAL if is_over else None)
    return deleted.total()


def prune(*, batches: int | None = None) -> Counter[str]:
    """Delete what is due in all tables, or as much as so many batches hold; returns the rows of each table.

    Each batch is committed with its audit entry, so whatever ends the run, what it deleted is recorded.
    """
    deleted: Counter[str] = Counter()
    for number, (name, count) in enumerate(_batches(), start=1):
        deleted[name] += count
        if number == batches:
            break
    return deleted


def _batches() -> Iterator[tuple[str, int]]:
    for table in declared_tables():
        while count := _delete_batch(table):
            yield table.name, count


def _delete_batch(table: TableRetention) -> int:
    background.raise_if_stop_requested()
    if table.kept_for is None:
        return 0
    now = clock.now()
    with transaction.atomic():
        oldest = list(due_rows(table, now).order_by(table.since).values_list("pk", flat=True)[:BATCH_ROWS])
        if not oldest:
            return 0
        # The condition again: a row that changed meanwhile stays.
        _, by_model = due_rows(table, now).filter(pk__in=oldest).delete()
        deleted = by_model.get(table.model._meta.label, 0)
        if deleted:
            audit.record(Action.DATA_PRUNED, actor=None, target=table.name, tables={table.name: deleted})
    return deleted


def _has_due_rows(table: TableRetention) -> bool:
    return due_rows(table, clock.now()).exists()
