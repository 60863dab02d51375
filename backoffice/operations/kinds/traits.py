"""What most transactions in the service's list are known by."""

from decimal import Decimal

from backoffice.core.display import exact_time, format_amount
from backoffice.operations.differences import MatchField
from backoffice.operations.kinds.base import Debit, Trait
from backoffice.operations.models import Attempt
from payments_gateway import TransactionRecord

NOT_TOLD = "not told"


def usual_traits(kind: str, debit: Debit, record: TransactionRecord) -> list[Trait]:
    """Type, currency and amount. `kind` is the service's own word."""
    amounts = (format_amount(debit.amount, debit.currency), format_amount(record.amount, record.currency))
    return [
        Trait(MatchField.TYPE, kind, record.type or NOT_TOLD, record.type == kind),
        Trait(
            MatchField.CURRENCY,
            debit.currency,
            record.currency or NOT_TOLD,
            record.currency == debit.currency,
        ),
        Trait(MatchField.AMOUNT, *amounts, record.amount == debit.amount),
    ]


def trait_if_told(field: MatchField, ours: str, theirs: str) -> Trait:
    """One that the service may leave out: nothing said differs from nothing."""
    return Trait(field, ours, theirs or NOT_TOLD, theirs == ours if theirs else None)


def traits_of_attempt(attempt: Attempt, record: TransactionRecord) -> list[Trait]:
    """What tells by when it was sent: the balance before it, and the time, both by the service's own word."""
    seen = record.sender_previous_balance if record.previous_balance is None else record.previous_balance
    mark, is_told = attempt.watermark_balance, None not in {seen, attempt.watermark_balance}
    earliest, latest = attempt.sought_from, attempt.sought_until
    at = record.created_at
    return [
        Trait(
            MatchField.PREVIOUS_BALANCE,
            _amount(mark, record),
            _amount(seen, record),
            seen == mark if is_told else None,
        ),
        Trait(
            MatchField.TIME,
            f"{exact_time(earliest)} to {exact_time(latest)}",
            exact_time(at) if at else NOT_TOLD,
            earliest <= at <= latest if at else None,
        ),
    ]


def _amount(amount: Decimal | None, record: TransactionRecord) -> str:
    return NOT_TOLD if amount is None else format_amount(amount, record.currency)
