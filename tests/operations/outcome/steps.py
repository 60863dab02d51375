"""An operation's records in the provider's list, and its status check."""

from datetime import UTC, datetime, timedelta

from backoffice.operations.delivery.record import CHECK_AFTER
from backoffice.operations.models.operations import Operation
from backoffice.operations.outcome import confirmation
from tests.operations.provider_list import shows
from tests.stub_provider import StubProvider

BALANCE = 5_000_000  # as the provider reports it just before
HORIZON = CHECK_AFTER[-1]


def ago(**passed: float) -> str:
    return (datetime.now(UTC) - timedelta(**passed)).isoformat()


def confirmed(operation: Operation, provider: StubProvider, *records: dict[str, object]) -> Operation:
    """The operation after a check against such a list."""
    shows(provider, *records)
    return confirmation.confirm_operation(operation.pk)
