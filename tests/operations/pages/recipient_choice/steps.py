"""What the tests of registered and recent recipients do and read."""

import uuid
from datetime import timedelta
from typing import Any

from django.db import connection
from django.test import Client
from django.utils import timezone

from backoffice.operations.models.operations import Operation
from backoffice.operations.states import CLOSED, Status
from tests.append_only.triggers import lifted

WITHDRAWAL, PAYMENT = "/operations/prepare/withdrawal/", "/operations/prepare/payment/"

ACCOUNTS = "/settings/recipients/"

NUMBER, BANK = "0123456789", "044"

TYPED = {
    "submission": str(uuid.uuid4()),
    "currency": "USD",
    "amount": "12,5 half typed",
    "bank_code": "058",
    "account_number": "999",
    "typed_name": "Somebody Else",
    "name_reason": "of another account",
    "unchecked_confirmed": "on",
    "unchecked_reason": "of another account",
    "unchecked_for": "bank:058:999",
    "memo": "week 46",
}


def use(client: Client, ref: str, address: str = WITHDRAWAL, **changes: str) -> Any:
    return client.post(address, {**TYPED, "step": "use", "known-account": ref, **changes})


def values_of(answer: Any) -> dict[str, Any]:
    form = answer.context["form"]
    return {name: form[name].value() for name in form.fields}


def labels(client: Client, address: str = WITHDRAWAL, **typed: str) -> dict[str, list[str]]:
    """What the form offers, by group."""
    answer = client.post(address, {"step": "find", **typed}) if typed else client.get(address)
    choices = answer.context["choice"]().fields["account"].widget.choices[1:]
    return {group: [label for _, label in options] for group, options in choices}


def refs(client: Client) -> list[str]:
    choices = client.get(WITHDRAWAL).context["choice"]().fields["account"].widget.choices[1:]
    return [ref for _, options in choices for ref, _ in options]


def aged(operation: Operation, days: int, status: Status = Status.PENDING) -> Operation:
    """The same as if it had been prepared, and ended in this status, so many days ago: past services and triggers."""
    moment = timezone.now() - timedelta(days=days)
    closed_at = moment if status in CLOSED else None
    with lifted(connection):
        Operation.objects.filter(pk=operation.pk).update(
            prepared_at=moment, status=status, closed_at=closed_at
        )
    return operation
