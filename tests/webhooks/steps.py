"""Deliveries to the receiver and their results."""

from collections.abc import Callable
from typing import Any

from django.test import Client

from backoffice.accounts.models import User
from backoffice.webhooks.models import Delivery
from tests.payments_gateway.vectors.make_vectors import delivery, signed

SECRET = "a-secret-of-these-tests-" + "0" * 20
ADDRESS = f"/hooks/{SECRET}/"
SignIn = Callable[[Client, User], Client]


def status_delivery(transaction_id: str = "T-1", status: str = "fullfiled", updated_at: str = "") -> bytes:
    """A delivery signed by the provider: this transaction has this status by now, since then."""
    members = (transaction_id.encode(), status.encode())
    text = (
        b'{"transactionId":"%s","currency":"NGN","type":"withdrawal","status":"%s","amount":250000' % members
    )
    return delivery(text + (b',"updatedAt":"%s"}' % updated_at.encode() if updated_at else b"}"))


def forged() -> bytes:
    """Signed by a stranger."""
    return delivery(signature=signed(b"{}", "stranger"))


def deliver(body: bytes, *, to: str = ADDRESS, **headers: Any) -> int:
    """Post it as the provider does, without cookies; the status of the answer, which says nothing else."""
    answer = Client(enforce_csrf_checks=True).post(to, body, content_type="application/json", **headers)
    assert not answer.cookies
    assert answer.content == b"" or answer.status_code == 404
    return answer.status_code


def only_delivery() -> Delivery:
    """The one that is kept."""
    return Delivery.objects.get()
