"""The merge of the mirror beside `bulk_create(update_conflicts)`: new records, and the same records again."""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import connection, transaction

from backoffice.ledger.mirror.merge import facet_ids, merge_records
from backoffice.ledger.mirror.rows import RECORD_COLUMNS, row_of
from backoffice.ledger.models import DayTotal, Mirror, Transaction
from payments_gateway import TransactionRecord
from tools.bench.measure import in_turns

MERGE_BATCH = 1000  # the number that a pass merges in one transaction
OLDEST_RECORD = datetime(2026, 11, 1, 12, tzinfo=UTC)
CURRENCIES = ("NGN", "USD", "USDT")
UPDATED = [name for name in (*RECORD_COLUMNS, "facet", "occurred_at") if name != "transaction_id"]


def records(number: int) -> list[TransactionRecord]:
    """This many records, newest first, as the client parses them; each balance follows from the one before."""
    balances = dict.fromkeys(CURRENCIES, Decimal(1_000_000_000))
    told = []
    for one in range(number):
        currency, is_in = CURRENCIES[one % 5 % 3], one % 4 < 2
        amount, fee = Decimal(100 + one * 7919 % 9_000_000) / 100, Decimal(0 if is_in else one % 50)
        at = OLDEST_RECORD + timedelta(seconds=9 * one)
        told.append(
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
    return [TransactionRecord.model_validate(record) for record in reversed(told)]


def measure_merge(rounds: int, records_of_ours: int, records_of_rival: int) -> dict[str, Any]:
    """Records per second of both, new and repeated, in each round. The alternative gets fewer: its rate is
    constant.
    """
    Mirror.objects.get_or_create(pk=1)
    told = records(records_of_ours)
    few = told[:records_of_rival]
    sides: dict[str, Callable[[], float]] = {}
    found: dict[str, list[float]] = {
        name: [] for name in ("ours_new", "ours_again", "rival_new", "rival_again")
    }

    def both(
        side: str, write: Callable[[Sequence[TransactionRecord]], None], given: list[TransactionRecord]
    ) -> float:
        _empty_mirror()
        found[f"{side}_new"].append(_records_per_second(write, given))
        found[f"{side}_again"].append(_records_per_second(write, given))
        return 0.0

    sides = {
        "ours": lambda: both("ours", _merge_ours, told),
        "rival": lambda: both("rival", _merge_rival, few),
    }
    in_turns(rounds, sides)
    return found


def fill_mirror(rows: int) -> None:
    """Put this many records into an empty mirror."""
    Mirror.objects.get_or_create(pk=1)
    told = records(rows)
    for first in range(0, rows, MERGE_BATCH):
        _merge_ours(told[first : first + MERGE_BATCH])


def _records_per_second(
    write: Callable[[Sequence[TransactionRecord]], None], given: list[TransactionRecord]
) -> float:
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
    facets = facet_ids({row.words for row in rows})
    with transaction.atomic(durable=True):
        Transaction.objects.bulk_create(
            [
                Transaction(
                    **row.values,
                    facet_id=facets[row.words],
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
