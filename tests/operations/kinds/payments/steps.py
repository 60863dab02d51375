"""Off-ramp payments: the filled-in form, and a sent payment."""

from typing import Any

from django.test import Client
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations.delivery import release, send
from backoffice.operations.kinds.payment import PaymentPayload
from backoffice.operations.models.operations import Operation
from tests import factories
from tests.operations.kinds.samples import SAMPLES

ADDRESS = "/operations/prepare/payment/"
SUBMISSION = "7d0c1e2f-3a4b-4c6d-8e8f-101112131415"
REFERENCE = "CS-7D0C1E2F3A4B4C6D8E8F"
BUSINESS = "b5f1c2d94a7e4f0ba1c83d56"
TO_BANK = {
    "incoming_currency": "USDT",
    "incoming_amount": "100",
    "outgoing_currency": "NGN",
    "outgoing_amount": "",
    "customer_email": "customer@example.com",
    "payment_type": "bank",
    "country": "NG",
    "bank_code": "044",
    "account_number": "0123456789",
    "typed_name": "",
    "name_reason": "",
    "service_username": "",
    "rate_key": "",
    "reference": "",
}
TO_USER = {**TO_BANK, "payment_type": "profile", "service_username": "ngozi.eze", "account_number": ""}


def of(**changes: Any) -> PaymentPayload:
    return SAMPLES["payment"].model_copy(update=changes)  # type: ignore[return-value]


def post(client: Client, typed: dict[str, str], step: str = "review", **more: str) -> Any:
    return client.post(ADDRESS, {**typed, "submission": SUBMISSION, "step": step, **more})


def sent(preparer: User, approver: User, payload: PaymentPayload) -> Operation:
    """A payment that was sent, with whatever came of it."""
    operation = factories.approve(factories.prepared_of_kind("payment", payload, preparer), approver)
    release.release_operation(
        operation.pk, actor=approver, digest=operation.digest, second_factor_at=timezone.now(), otp=None
    )
    send.send_operation(operation.pk)
    operation.refresh_from_db()
    return operation
