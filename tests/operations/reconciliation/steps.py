"""Events here, at the provider and in the mirror, and the results of reconciliation."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.ledger.models import Mirror, Transaction, TransactionChange
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reconciliation import Comparison, ReconciliationTotal
from backoffice.operations.states import Outcome
from tests import factories
from tests.ledger.stored_transactions import stored

AMOUNT = Decimal("250000.00")


def sent(preparer: User, transaction_id: str | None = "T-1", **changes: Any) -> Attempt:
    """A withdrawal of NGN 250,000.00 that succeeded a moment ago as this transaction; on record as the services do."""
    operation = factories.prepared(preparer)
    now = timezone.now()
    usual = {"balance": "NGN", "outcome": Outcome.SUCCEEDED, "closed_at": now, "fee": Decimal(50)}
    attempt = factories.attempt(operation, provider_transaction_id=transaction_id, **usual | changes)
    on_record(attempt)
    return attempt


def with_unknown_outcome(preparer: User, **changes: Any) -> Attempt:
    """One that left just now, and of which nobody knows anything."""
    nothing_known = {"outcome": Outcome.OPEN, "closed_at": None, "fee": None}
    now = timezone.now()
    return sent(
        preparer, None, **nothing_known | {"watermark_provider_time": now, "watermark_seen_ids": []} | changes
    )


def on_record(attempt: Attempt, **changes: Any) -> None:
    """Change it, with the entry that every service writes in the same commit."""
    with transaction.atomic():
        Attempt.objects.filter(pk=attempt.pk).update(**changes or {"checks": 1})
        audit.record(Action.OPERATION_CLAIMED, actor=None, target=attempt.operation)


def listed(transaction_id: str = "T-1", **changes: Any) -> Transaction:
    """A withdrawal of the same in the mirror."""
    now = timezone.now()
    usual = {"amount": AMOUNT, "fee": Decimal(50), "occurred_at": now, "first_seen_at": now}
    return stored(transaction_id=transaction_id, **usual | changes)


def reported_again(row: Transaction, **changes: Any) -> None:
    """The provider reports it otherwise now: the row and its history, as the merge writes them."""
    Transaction.objects.filter(pk=row.pk).update(**changes)
    TransactionChange.objects.create(
        transaction=row,
        seen_at=timezone.now(),
        before={},
        after={name: str(value) for name, value in changes.items()},
    )


def read_until(moment: datetime, *, whole_took: timedelta = timedelta(hours=24)) -> None:
    """The mirror has read the list back a day, and the whole of it in so long, and ended at this moment."""
    times = {"loaded_at": moment, "as_of": moment, "day_pass_begun_at": moment, "full_pass_ended_at": moment}
    Mirror.objects.update_or_create(pk=1, defaults={**times, "full_pass_begun_at": moment - whole_took})


def long_since() -> datetime:
    """Later than anything of today may be missing."""
    return timezone.now() + timedelta(hours=2)


def results() -> dict[str, str]:
    """The result on each attempt, by its operation's reference, and on each transaction, by the provider's id."""
    return {_name(one): one.result for one in _all()}


def differences() -> list[dict[str, Any]]:
    """What the only comparison keeps of the differences."""
    return list(Comparison.objects.get().differences)


def difference() -> str:
    """The same in words."""
    return Comparison.objects.get().difference_sentence


def totals() -> set[tuple[object, ...]]:
    """Everything that is kept of sums."""
    return set(ReconciliationTotal.objects.values_list("day", "currency", "result", "count", "amount", "fee"))


def everything_kept() -> tuple[object, ...]:
    """All that reconciliation keeps, but the numbers of rows."""
    names = (
        "attempt",
        "transaction",
        "result",
        "occurred_at",
        "day",
        "currency",
        "amount",
        "fee",
        "differences",
        "resembles",
    )
    return set(map(repr, Comparison.objects.values_list(*names))), totals()


def reference(attempt: Attempt) -> str:
    return Operation.objects.get(pk=attempt.operation_id).reference


def _all() -> list[Comparison]:
    return list(Comparison.objects.select_related("attempt__operation", "transaction"))


def _name(one: Comparison) -> str:
    if one.attempt is not None:
        return one.attempt.operation.reference
    assert one.transaction is not None
    return one.transaction.transaction_id
