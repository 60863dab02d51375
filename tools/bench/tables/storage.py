"""Bytes on disk of a transaction, a delivery and an operation, as the product writes them, on PostgreSQL."""

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tools.bench.databases import BenchDatabase, temporary_database
from tools.bench.measure import Measure
from tools.bench.payday import payday_stack
from tools.bench.writes.deliveries import our_receiver, signed_delivery, signing_key
from tools.processes import StackError

AUDIT = "audit_"
_TIMEOUT = 900.0
_SIZES = """
SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
_NOT_CLOSED = "SELECT count(*) FROM operations_operation WHERE prepared_at >= %s AND status <> 'succeeded'"
_OPERATIONS = """
import uuid
from datetime import timedelta
from decimal import Decimal
from django.utils import timezone
from backoffice.accounts.models import User
from backoffice.operations.delivery.release import release_operation
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.kinds.withdrawal import WithdrawalPayload
from backoffice.operations.workflow import approvals, prepare
preparer = User.objects.get(full_name="Tunde Bello")
approver = User.objects.get(full_name="Amara Okafor")
for number in range({count}):
    payload = WithdrawalPayload(
        currency="NGN", amount=Decimal(1000 + number), bank_code="044", bank="Access Bank",
        account_number=f"02{{number:06}}12", account_name="ADA CHIDINMA OBI", typed_name="Ada Chidinma Obi",
        name_reason="", memo="Salary for November",
    )
    made = prepare.prepare_operation(uuid.uuid4(), actor=preparer, kind="withdrawal", payload=payload)
    expected = KINDS["withdrawal"].confirmation(payload)
    approvals.approve_operation(
        made.pk, actor=approver, digest=made.digest, second_factor_at=timezone.now(),
        confirmation=approvals.ApproverConfirmation(expected.expected if expected else ""),
    )
    release_operation(made.pk, actor=approver, digest=made.digest, second_factor_at=timezone.now())
"""


@dataclass(frozen=True)
class TableSize:
    """Bytes of a table, with its long values, and of its indexes."""

    table: int
    indexes: int


def storage_measures(transactions: int, deliveries: int, operations: int) -> Iterator[Measure]:
    """Bytes for each, from the growth of the tables while so many are written."""
    with temporary_database("storage") as database, tempfile.TemporaryDirectory() as folder:
        grown = _grown_by_transactions(database, transactions)
        yield from _measures("transaction", "mirrored transaction", grown, transactions)
        grown = _grown_by_deliveries(database, Path(folder), deliveries)
        yield from _measures("delivery", "webhook delivery", grown, deliveries)
    with temporary_database("storage") as database, tempfile.TemporaryDirectory() as folder:
        grown = _grown_by_operations(database, Path(folder), operations)
        audit = {name: size for name, size in grown.items() if name.startswith(AUDIT)}
        rest = {name: size for name, size in grown.items() if name not in audit}
        yield from _measures("operation", "withdrawal, prepared, approved and confirmed", rest, operations)
        yield from _measures("audit", "its entries of the audit log", audit, operations)


def _grown_by_transactions(database: BenchDatabase, count: int) -> dict[str, TableSize]:
    before = table_sizes(database)
    database.inside("fill", rows=count)
    return growth(before, table_sizes(database))


def _grown_by_deliveries(database: BenchDatabase, folder: Path, count: int) -> dict[str, TableSize]:
    signer, keys = signing_key(folder)
    with ExitStack() as ended:
        receiver = our_receiver(ended, database, keys)
        before = table_sizes(database)
        receiver.deliveries_per_second([signed_delivery(signer) for _ in range(count)])
        return growth(before, table_sizes(database))


def _grown_by_operations(database: BenchDatabase, folder: Path, count: int) -> dict[str, TableSize]:
    """All tables that grow by it but the mirror, to which the provider adds it in any case."""
    with payday_stack(database, folder) as stack, psycopg.connect(database.url, autocommit=True) as session:
        before = table_sizes(database)
        [began] = session.execute("SELECT clock_timestamp()").fetchone() or ()
        stack.manage("shell", "--verbosity", "0", "--command", _OPERATIONS.format(count=count))
        deadline = time.monotonic() + _TIMEOUT
        while session.execute(_NOT_CLOSED, [began]).fetchone() != (0,):
            if time.monotonic() > deadline:
                raise StackError(f"{count} withdrawals were not all confirmed in {_TIMEOUT:.0f} s")
            time.sleep(1)
        grown = growth(before, table_sizes(database))
    return {name: size for name, size in grown.items() if not name.startswith("ledger_")}


def table_sizes(database: BenchDatabase) -> dict[str, TableSize]:
    """The size of every table."""
    with psycopg.connect(database.url) as session:
        return {name: TableSize(table, indexes) for name, table, indexes in session.execute(_SIZES)}


def growth(before: Mapping[str, TableSize], after: Mapping[str, TableSize]) -> dict[str, TableSize]:
    """By how much each table grew, without those that did not."""
    grown = {
        name: TableSize(size.table - before[name].table, size.indexes - before[name].indexes)
        for name, size in after.items()
    }
    return {name: size for name, size in grown.items() if size.table or size.indexes}


def _measures(name: str, what: str, grown: Mapping[str, TableSize], count: int) -> Iterator[Measure]:
    largest = sorted(grown, key=lambda table: -(grown[table].table + grown[table].indexes))[:5]
    note = ", ".join(
        f"{table} {(grown[table].table + grown[table].indexes) / count:,.0f}" for table in largest
    )
    for part in ("table", "indexes"):
        size = sum(getattr(one, part) for one in grown.values()) / count
        yield Measure(f"storage.{name}.{part}", f"{what}, of {count:,}", size, "bytes", note=note)
