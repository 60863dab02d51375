"""Forms of bulk decisions, and two operations that can no longer be decided."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db import connection
from django.test import Client
from django.utils import timezone

from backoffice.operations.models.operations import Operation
from tests import factories
from tests.append_only.triggers import lifted

APPROVE = "/operations/approve/"
REJECT = "/operations/reject/"
LIMIT = Decimal("10000000")  # above it, two people have to approve


def confirm(client: Client, address: str, *operations: Operation) -> Any:
    """The page that follows on choosing these in the list."""
    return client.get(address, {"operation": [operation.reference for operation in operations]})


def send(client: Client, address: str, *operations: Operation, **typed: str) -> Any:
    """The form of that page, for exactly these, with what was shown of each."""
    shown = [f"{operation.reference}:{operation.digest}" for operation in operations]
    return client.post(address, {"operation": shown, **typed})


def obstacles(answer: Any) -> dict[str, str]:
    return {row.operation.reference: row.skip_reason for row in answer.context["left_out"]}


def expired(operation: Operation) -> Operation:
    factories.expire(operation, timezone.now() - timedelta(minutes=1))
    return operation


def with_other_content(operation: Operation) -> Operation:
    with lifted(connection):
        Operation.objects.filter(pk=operation.pk).update(payload={**operation.payload, "amount": "999999.00"})
    return operation
