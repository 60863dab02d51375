"""Withdrawals in the provider's list, and operations that were sent and answered."""

import json
from datetime import UTC, datetime

from backoffice.accounts.models import User
from backoffice.operations.delivery import send
from backoffice.operations.models.operations import Operation
from tests import factories
from tests.stub_provider import Answer, StubProvider

NAMED = (200, '{"data": {"transactionId": "T-1"}}')
NAMELESS = (200, '{"data": {}}')
REFUSED = (422, '{"message": "no"}')
OTP_REJECTED = (400, '{"message": "Invalid token"}')


def record(transaction_id: str, status: str = "fullfiled", **changes: object) -> dict[str, object]:
    """A withdrawal of now in the provider's list, by default of what `factories.prepared` sends."""
    return {
        "transactionId": transaction_id,
        "currency": "NGN",
        "type": "withdrawal",
        "status": status,
        "amount": 250000,
        "fee": 50,
        "createdAt": datetime.now(UTC).isoformat(),
        **changes,
    }


OLD = record("OLD", createdAt="2026-01-01T08:00:00Z")


def shows(provider: StubProvider, *records: dict[str, object]) -> None:
    """Let the provider's list have these, the newest first, and an old one."""
    provider.records = json.dumps([*records, OLD])


def sent(
    provider: StubProvider, preparer: User, approver: User, answer: Answer, **changes: object
) -> Operation:
    """A withdrawal that was sent and answered so."""
    provider.answer_post = lambda: answer
    operation = factories.approved(preparer, approver, **changes)
    factories.release(operation, approver)
    send.send_operation(operation.pk)
    return Operation.objects.get(pk=operation.pk)
