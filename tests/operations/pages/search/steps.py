"""A search and its results."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from django.test import Client
from django.utils import timezone

from backoffice.operations.models.operations import Operation


def search(client: Client, text: str) -> Any:
    return client.post("/search/", {"q": text})


def listed(client: Client, text: str, headers: Mapping[str, str] = MappingProxyType({})) -> Any:
    """The provider's transactions, which fill in the page."""
    return client.post("/search/", {"q": text, "transactions": "yes"}, headers=headers)


def found(client: Client, text: str) -> list[str]:
    """References of the operations that were found."""
    return [row.reference for row in search(client, text).context["found"].operations.rows]


def paid(operation: Operation) -> Operation:
    Operation.objects.filter(pk=operation.pk).update(status="approved")
    Operation.objects.filter(pk=operation.pk).update(status="sending")
    Operation.objects.filter(pk=operation.pk).update(status="succeeded", closed_at=timezone.now())
    return operation
