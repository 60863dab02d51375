"""What the list shows of an operation, and a look at it, as plain functions."""

from datetime import UTC, datetime, timedelta

from backoffice.operations import services
from backoffice.operations.models import Operation
from backoffice.operations.services.recording import LOOK_AFTER
from tests.operations.listing import shows
from tests.stub_service import StubService

BALANCE = 5_000_000  # as the service tells it just before
HORIZON = LOOK_AFTER[-1]


def ago(**passed: float) -> str:
    return (datetime.now(UTC) - timedelta(**passed)).isoformat()


def confirmed(operation: Operation, service: StubService, *records: dict[str, object]) -> Operation:
    """The operation after a look at such a list."""
    shows(service, *records)
    return services.confirm_operation(operation.pk)
