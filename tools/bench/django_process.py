"""Functions that run inside Django, in one process per database:
`python -m tools.inside_django tools.bench.django_process <function> <JSON>`.

Each function takes the arguments given to `main` and returns its result as JSON.
"""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.db.models import Sum
from django.http import QueryDict

from backoffice.accounts.models import AuthenticatorDevice, User
from backoffice.accounts.roles import Role
from backoffice.accounts.sessions import SessionStore
from backoffice.core import clock
from backoffice.core.web.pagination import cursor_at, keyset_page
from backoffice.ledger.forms import TransactionListForm
from backoffice.ledger.mirror.merge import facet_ids, merge_records
from backoffice.ledger.mirror.rows import RECORD_COLUMNS, row_of
from backoffice.ledger.models import Balance, DayTotal, Mirror, Transaction
from backoffice.ledger.transactions.filters import ORDERS
from backoffice.ledger.transactions.listing import transaction_page
from backoffice.operations.models.monitoring import Inspection
from backoffice.operations.models.operations import Operation
from backoffice.policies.document import Level, stored_levels
from backoffice.reports.definitions.money import TRANSACTIONS
from backoffice.reports.exports.request_codec import filter_form
from backoffice.reports.rendering.csv import copy_sql
from backoffice.reports.rendering.database import text_select
from backoffice.reports.report import ExportRequest
from backoffice.webhooks.deliveries import NEWEST_FIRST as NEWEST_DELIVERY_FIRST
from backoffice.webhooks.deliveries import DeliveryFilterForm
from backoffice.webhooks.models import Delivery
from payments_gateway import TransactionRecord
from tools.bench.measure import alternate
from tools.bench.rivals import measure_rendering
from tools.bench.seeding import OPERATIONS

READER = "bench@countersign.example"
PREPARER_EMAIL = "bench-preparer@countersign.example"
MERGE_BATCH = 1000  # the number that a pass merges in one transaction
OLDEST_RECORD = datetime(2026, 11, 1, 12, tzinfo=UTC)
CURRENCIES = ("NGN", "USD", "USDT")
_MONTH = re.compile(r"_\d{4}_\d{2}$")  # the end of a partition's name
MergeBatch: TypeAlias = Callable[[Sequence[TransactionRecord]], None]
UPDATED = [name for name in (*RECORD_COLUMNS, "facet", "occurred_at") if name != "transaction_id"]


def session() -> dict[str, str]:
    """The cookie of a person with all read permissions, just signed in with both factors."""
    user = reader()
    found = SessionStore()
    found.update(
        {
            "_auth_user_id": str(user.pk),
            "_auth_user_backend": "backoffice.accounts.roles.StaffBackend",
            "_auth_user_hash": user.get_session_auth_hash(),
        }
    )
    found.create()
    found.confirm_second_factor(AuthenticatorDevice.objects.get(user=user))
    found.save()
    return {"cookie": f"countersign_session={found.session_key}"}


def reader() -> User:
    """A person with the roles that see the most."""
    user, is_new = User.objects.get_or_create(email=READER, defaults={"full_name": "Bench Visitor"})
    if is_new:
        user.set_unusable_password()
        user.recovery_codes_stored_at = clock.now()
        user.save()
        user.groups.set(Group.objects.filter(name__in=[Role.AUDITOR, Role.APPROVER]))
        device = AuthenticatorDevice(user=user, confirmed=True)
        device.set_new_seed()
        device.save()
    return user


def newest(rows: int) -> dict[str, Any]:
    """The first day of about the newest `rows` rows, and the exact number of rows from it on."""
    times = Transaction.objects.order_by("-occurred_at").values_list("occurred_at", flat=True)
    at = times[min(rows, Transaction.objects.count()) - 1]
    since = date.fromisoformat(at.date().isoformat())
    return {
        "since": since.isoformat(),
        "rows": Transaction.objects.filter(occurred_at__date__gte=since).count(),
    }


def statement_of_copy(since: str) -> dict[str, str]:
    """The COPY statement of our export of these rows."""
    form: Any = filter_form(TRANSACTIONS, {"since": [since]})
    form.is_valid()
    export_request = ExportRequest(TRANSACTIONS, reader(), form, ZoneInfo("UTC"), TRANSACTIONS.columns)
    select = text_select(export_request, TRANSACTIONS, connection)
    if select is None:
        raise ValueError(f"No row since {since}")
    return {"statement": copy_sql(select, connection, len(TRANSACTIONS.columns))}


def cursors(queries: list[str]) -> list[str]:
    """For each list (as a query string), a cursor into the middle of it."""
    return [_cursor_into_the_middle(query) for query in queries]


def _cursor_into_the_middle(query: str) -> str:
    form = TransactionListForm(QueryDict(query))
    if not form.is_valid():
        raise ValueError(f"{query}: {form.errors}")
    chosen, order = form.transaction_filter(), ORDERS[form.cleaned_data["sort"]][1]
    column = order[0].lstrip("-")
    ends = Transaction.objects.order_by("occurred_at")
    if column == "occurred_at":
        since = chosen.since or ends.values_list(column, flat=True)[0]
        until = chosen.until or ends.reverse().values_list(column, flat=True)[0]
        middle: Any = since + (until - since) / 2
    else:
        lower, upper = chosen.min_amount or 0, chosen.max_amount
        middle = (lower + upper) / 2 if upper is not None else max(60_000, lower * 2)
    return cursor_at([str(middle), 0], order, selection=str(chosen))


def read_lists(transactions: dict[str, str], deliveries: dict[str, str], rounds: int) -> dict[str, Any]:
    """For each list (as a query string): milliseconds of its first page in each round, and how many partitions it
    reads.
    """
    reads = {name: partial(_transaction_page, query) for name, query in transactions.items()}
    reads |= {name: partial(_delivery_page, query) for name, query in deliveries.items()}
    found = {}
    for name, read in reads.items():
        partitions = _partitions_read(read)
        found[name] = {"ms": [_milliseconds(read) for _ in range(rounds)], "partitions": len(partitions)}
    return found


def _transaction_page(query: str) -> None:
    form = TransactionListForm(QueryDict(query))
    if not form.is_valid():
        raise ValueError(f"{query}: {form.errors}")
    transaction_page(form.transaction_filter(), order=ORDERS[form.cleaned_data["sort"]][1], cursor=None)


def _delivery_page(query: str) -> None:
    form = DeliveryFilterForm(QueryDict(query))
    if not form.is_valid():
        raise ValueError(f"{query}: {form.errors}")
    keyset_page(form.apply(Delivery.objects.all()), order=NEWEST_DELIVERY_FIRST, cursor=None)


def _milliseconds(read: Callable[[], None]) -> float:
    began = time.perf_counter()
    read()
    return (time.perf_counter() - began) * 1000


def _partitions_read(read: Callable[[], None]) -> set[str]:
    """The partitions by month that the queries of this read touch."""
    statements: list[tuple[str, Any]] = []

    def note(execute: Any, query: str, values: Any, many: bool, context: Any) -> Any:
        statements.append((query, values))
        return execute(query, values, many, context)

    with connection.execute_wrapper(note):
        read()
    touched: set[str] = set()
    for query, values in statements:
        if query.startswith(("SELECT", "(")):
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {query}", values)
                touched |= set(_relations(cursor.fetchone()[0][0]["Plan"]))
    return {name for name in touched if _MONTH.search(name)}


def _relations(node: dict[str, Any]) -> Iterator[str]:
    if node.get("Actual Loops") and "Relation Name" in node:
        yield node["Relation Name"]
    for inner in node.get("Plans", []):
        yield from _relations(inner)


def refresh() -> dict[str, str]:
    """Mark the mirror and the balances as synced, and the integrity checks as run, now."""
    for currency in CURRENCIES:
        read = {"amount": Decimal(1_000_000), "as_of": clock.now()}
        Balance.objects.update_or_create(currency=currency, defaults=read)
    Inspection.objects.update_or_create(pk=1, defaults={"at": clock.now(), "took": 0.1, "violations": {}})
    now, rows = clock.now(), DayTotal.objects.aggregate(rows=Sum("count"))["rows"] or 0
    synced = {
        "rows": rows,
        "provider_count": rows,
        "as_of": now,
        "loaded_at": now,
        "full_pass_ended_at": now,
        "day_pass_begun_at": now,
    }
    Mirror.objects.update_or_create(pk=1, defaults=synced)
    return {}


def add_operations(rows: int, still_open: int) -> dict[str, str]:
    """Write this many operations of another person, the newest of which are open, unless some were written."""
    if Operation.objects.exists():
        return {}
    preparer, _ = User.objects.get_or_create(email=PREPARER_EMAIL, defaults={"full_name": "Bench Preparer"})
    levels = json.dumps(stored_levels((Level(needed=1),)))
    given: dict[str, int | str] = {
        "rows": rows,
        "open": still_open,
        "preparer": preparer.pk,
        "levels": levels,
    }
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE operations_operation DISABLE TRIGGER USER")
        cursor.execute(OPERATIONS, given)
        cursor.execute("ALTER TABLE operations_operation ENABLE TRIGGER USER")
        cursor.execute("VACUUM (ANALYZE) operations_operation")
    return {}


def records(number: int) -> list[TransactionRecord]:
    """This many records, newest first, as the client parses them; each balance follows from the one before."""
    balances = dict.fromkeys(CURRENCIES, Decimal(1_000_000_000))
    listed = []
    for one in range(number):
        currency, is_in = CURRENCIES[one % 5 % 3], one % 4 < 2
        amount, fee = Decimal(100 + one * 7919 % 9_000_000) / 100, Decimal(0 if is_in else one % 50)
        at = OLDEST_RECORD + timedelta(seconds=9 * one)
        listed.append(
            {
                "transactionId": f"{one:08d}-4f7e-2b0c-9d1a-5d6c7b8a9e0f",
                "amount": str(amount),
                "currency": currency,
                "type": "deposit" if is_in else "withdrawal",
                "status": "fulfilled",
                "fee": str(fee),
                "prevBalance": str(balances[currency]),
                "sender": f"Ada Obi {one * 7 % 3000}" if is_in else "merchant",
                "username": "merchant" if is_in else f"Tunde Bello {one * 11 % 3000}",
                "businessId": f"biz-{one % 3}",
                "version": "v2",
                "createdAt": at.isoformat(),
                "updatedAt": (at + timedelta(minutes=1)).isoformat(),
            }
        )
        balances[currency] += amount if is_in else -amount - fee
    return [TransactionRecord.model_validate(record) for record in reversed(listed)]


def measure_merge(rounds: int, records_of_ours: int, records_of_rival: int) -> dict[str, list[float]]:
    """Records per second of both, new and repeated, in each round."""
    Mirror.objects.get_or_create(pk=1)
    provider_records = records(records_of_ours)
    found: dict[str, list[float]] = {}

    def new_and_again(side: str, write: MergeBatch, given: list[TransactionRecord]) -> float:
        _empty_mirror()
        for which in ("new", "again"):
            found.setdefault(f"{side}_{which}", []).append(_records_per_second(write, given))
        return 0.0

    sides = {
        "ours": lambda: new_and_again("ours", _merge_ours, provider_records),
        "rival": lambda: new_and_again("rival", _merge_rival, provider_records[:records_of_rival]),
    }
    alternate(rounds, sides)
    return found


def fill(rows: int) -> dict[str, str]:
    """Merge this many records into an empty mirror, on any engine."""
    Mirror.objects.get_or_create(pk=1)
    provider_records = records(rows)
    for first in range(0, rows, MERGE_BATCH):
        _merge_ours(provider_records[first : first + MERGE_BATCH])
    return refresh()


def _records_per_second(write: MergeBatch, given: list[TransactionRecord]) -> float:
    began = time.perf_counter()
    for first in range(0, len(given), MERGE_BATCH):
        write(given[first : first + MERGE_BATCH])
    return len(given) / (time.perf_counter() - began)


def _merge_ours(batch: Sequence[TransactionRecord]) -> None:
    """Merge with rows, history and totals."""
    with transaction.atomic(durable=True):
        merge_records(batch)


def _merge_rival(batch: Sequence[TransactionRecord]) -> None:
    """The rows alone, upserted as in Django's documentation."""
    now = datetime.now(UTC)
    rows = [row_of(record) for record in batch]
    facets = facet_ids({row.facet_key for row in rows})
    with transaction.atomic(durable=True):
        Transaction.objects.bulk_create(
            [
                Transaction(
                    **row.values,
                    facet_id=facets[row.facet_key],
                    digest=row.digest,
                    occurred_at=row.record.created_at or now,
                    first_seen_at=now,
                )
                for row in rows
            ],
            update_conflicts=True,
            unique_fields=["transaction_id"],
            update_fields=UPDATED,
        )


def _empty_mirror() -> None:
    """Empty the mirror of a benchmark database; elsewhere its history is append-only."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE ledger_transactionchange DISABLE TRIGGER USER")
            cursor.execute("TRUNCATE ledger_transaction, ledger_daytotal, ledger_names CASCADE")
        return
    DayTotal.objects.all().delete()
    Transaction.objects.all().delete()


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "session": session,
    "newest": newest,
    "copy_statement": statement_of_copy,
    "cursors": cursors,
    "fill": fill,
    "read_lists": read_lists,
    "refresh": refresh,
    "add_operations": add_operations,
    "merge": measure_merge,
    "render": lambda **given: measure_rendering(reader(), **given),
}


def main() -> int:
    """Run the function named by the first argument with the second one; the last line of the output is the
    result.
    """
    print(json.dumps(FUNCTIONS[sys.argv[1]](**json.loads(sys.argv[2]))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
