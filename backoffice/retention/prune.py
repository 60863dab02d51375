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

    A round that leaves some releases its lease, so that the next round continues at once.
    """
    lease = acquire_lease("prune", LEASE_DURATION)
    if lease is None:
        return 0
    deleted = prune(batches=BATCHES_AT_ONCE)
    is_over = not any(map(_has_due_rows, declared_tables()))
    lease.release(free_at=clock.now() + INTERVAL if is_over else None)
    return deleted.total()


def prune(*, batches: int | None = None) -> Counter[str]:
    """Delete what is due in all tables, or as much as so many batches hold; returns the rows of each table.

    One audit entry names what was deleted.
    """
    deleted: Counter[str] = Counter()
    for number, (name, count) in enumerate(_batches(), start=1):
        deleted[name] += count
        if number == batches:
            break
    if deleted:
        with transaction.atomic():
            tables = ", ".join(sorted(deleted))
            audit.record(Action.DATA_PRUNED, actor=None, target=tables, tables=dict(deleted))
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
    return by_model.get(table.model._meta.label, 0)


def _has_due_rows(table: TableRetention) -> bool:
    return due_rows(table, clock.now()).exists()
