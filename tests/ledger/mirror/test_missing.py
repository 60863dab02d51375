"""What the provider lists no more is marked as missing here, and no sum has it, whatever happened before."""

import random
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext

import pytest
from django.db import transaction

from backoffice.core import clock
from backoffice.core.fields import EXACT
from backoffice.core.leases import Lease, LeaseLostError
from backoffice.ledger.mirror import merge, sync
from backoffice.ledger.mirror.merge import mark_missing, merge_records
from backoffice.ledger.mirror.totals import total_discrepancies
from backoffice.ledger.models import DayTotal, Mirror, Sighting, Transaction, TransactionChange
from backoffice.ledger.statements import continuity
from backoffice.ledger.transactions.filters import TransactionFilter
from backoffice.ledger.transactions.volumes import VolumeSummary, currency_flows, volume_summary
from payments_gateway import TransactionRecord
from tests.ledger.sync_lease import acquired_sync_lease

pytestmark = pytest.mark.django_db(transaction=True)

FIRST = datetime(2026, 3, 1, 5, tzinfo=UTC)
LARGEST = Decimal("9999999999999999999999.999999999999999999")
Sums = dict[tuple[date, str, str, str, str], tuple[int, Decimal, Decimal]]


def reported_record(name: str, chance: random.Random) -> TransactionRecord:
    """The record of this name, as the provider may report it now."""
    return TransactionRecord.model_validate(
        {
            "transactionId": name,
            "amount": str(chance.choice([LARGEST, Decimal(chance.randrange(10**9)).scaleb(-4)])),
            "fee": chance.choice([None, "0.25", "1.000000000000000001"]),
            "currency": chance.choice(["NGN", "USDT"]),
            "type": chance.choice(["deposit", "withdrawal"]),
            "status": chance.choice(["processing", "fulfilled", "failed"]),
            "createdAt": (FIRST + timedelta(hours=chance.randrange(60))).isoformat(),
        }
    )


def listed_are(names: set[str]) -> None:
    """A reading of the whole list has just seen these, and no others."""
    seen = Transaction.objects.filter(transaction_id__in=names).values_list("pk", flat=True)
    Sighting.objects.bulk_create(Sighting(transaction_id=pk) for pk in seen)
    with acquired_sync_lease() as lease:
        mark_missing(lease, clock.now())
    Sighting.objects.all().delete()


def from_scratch() -> Sums:
    """Number, amounts and fees by day and facet, of the rows that are listed."""
    sums: Sums = defaultdict(lambda: (0, Decimal(0), Decimal(0)))
    for row in Transaction.objects.filter(missing_since=None):
        key = (row.occurred_at.astimezone(UTC).date(), row.currency, row.type, row.status, row.direction)
        number, amount, fee = sums[key]
        sums[key] = number + 1, amount + row.amount, fee + (row.fee or 0)
    return dict(sums)


def stored_sums() -> Sums:
    return {
        (one.day, one.facet.currency, one.facet.type, one.facet.status, one.facet.direction): (
            one.count,
            one.amount,
            one.fee,
        )
        for one in DayTotal.objects.select_related("facet")
        if one.count or one.amount or one.fee
    }


@pytest.mark.parametrize("seed", range(8))
def test_totals_count_listed_records_only(seed: int) -> None:
    chance, names = random.Random(seed), [f"T{number}" for number in range(12)]  # noqa: S311 - no secret
    Mirror.objects.create(pk=1)
    marked = 0
    for _ in range(12):
        some = chance.sample(names, chance.randrange(1, len(names)))
        with transaction.atomic():
            merge_records([reported_record(name, chance) for name in some])
        if chance.random() < 0.6:
            listed_are(set(chance.sample(names, chance.randrange(len(names)))))
        marked += Transaction.objects.filter(missing_since__isnull=False).count()
        with localcontext(EXACT):
            assert stored_sums() == from_scratch()
        assert list(total_discrepancies()) == []
    assert marked


class LostAfterOneStep(Lease):
    """A lease that another process takes over once it was verified."""

    was_proven = False

    def verify(self) -> None:
        if self.was_proven:
            raise LeaseLostError
        self.was_proven = True


def test_missing_records_are_marked_in_batches_across_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(merge, "MARKED_PER_TRANSACTION", 2)
    chance = random.Random(1)  # noqa: S311 - no secret
    Mirror.objects.create(pk=1)
    with transaction.atomic():
        merge_records([reported_record(f"T{number}", chance) for number in range(7)])
    lost = Transaction.objects.filter(missing_since__isnull=False)
    with pytest.raises(LeaseLostError):
        mark_missing(LostAfterOneStep("mirror", 1, sync.LEASE_DURATION), clock.now())
    with localcontext(EXACT):
        assert lost.count() == 2
        assert stored_sums() == from_scratch()
        assert list(continuity.break_disagreements()) == []
        listed_are(set())
        assert lost.count() == TransactionChange.objects.count() == 7
        assert stored_sums() == from_scratch() == {}


@pytest.fixture
def two_of_three() -> None:
    """Of three deposits on one day, 1, 10 and 100 naira, the provider lists the last one no more."""
    Mirror.objects.create(pk=1)
    amounts = {"A": "1", "B": "10", "C": "100"}
    records = [
        {"transactionId": name, "amount": amount, "currency": "NGN", "type": "deposit", "createdAt": FIRST}
        for name, amount in amounts.items()
    ]
    with transaction.atomic():
        merge_records(map(TransactionRecord.model_validate, records))
    listed_are({"A", "B"})


@pytest.mark.usefixtures("two_of_three")
def test_a_missing_record_is_not_in_the_totals_shown() -> None:
    [flow] = currency_flows(FIRST.date())
    assert (flow.received, flow.count) == (Decimal(11), 2)
    within = TransactionFilter(since=FIRST, until=FIRST + timedelta(hours=1))
    for chosen in (TransactionFilter(), within, TransactionFilter(min_amount=Decimal(1), currency="NGN")):
        added_up = volume_summary(chosen)
        assert added_up is not None
        assert ([volume.amount for volume in added_up.volumes], added_up.missing) == ([Decimal(11)], 1)
    for chosen in (TransactionFilter(min_amount=Decimal(100)), TransactionFilter(transaction_id="C")):
        assert volume_summary(chosen) == VolumeSummary([], 1)
    for chosen in (TransactionFilter(currency="USD"), TransactionFilter(text="ada")):
        assert volume_summary(chosen) == VolumeSummary([], 0)
