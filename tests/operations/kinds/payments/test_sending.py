"""Off-ramp payments: the request, and every end."""

import json
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations.delivery import release, send
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import IncidentKind, differences_sentence
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Outcome, Status
from tests import factories
from tests.operations.kinds.payments.steps import BUSINESS, REFERENCE, of, post, sent
from tests.sandbox_process import SandboxProcess
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_request_to_a_bank_is_exactly_the_approved_content(
    preparer: User, approver: User, provider: StubProvider
) -> None:
    sent(preparer, approver, of(outgoing_amount=Decimal("150000.00"), rate_key="k-1"))
    assert provider.changes == ["POST /v2/payment"]
    assert json.loads(provider.posts[0], parse_float=Decimal) == {
        "businessId": BUSINESS,
        "reference": "CS-7D0C1E2F3A4B5C6D7E8F",
        "incomingCurrency": "USDT",
        "incomingAmount": Decimal(100),
        "outgoingCurrency": "NGN",
        "outgoingAmount": Decimal(150000),
        "customerEmail": "customer@example.com",
        "paymentType": "bank",
        "rateKey": "k-1",
        "country": "NG",
        "accountNumber": "0123456789",
        "accountName": "ADA CHIDINMA OBI",
        "bank": "Access Bank",
        "bankCode": "044",
    }


def test_the_request_to_a_user_names_no_account(
    preparer: User, approver: User, provider: StubProvider
) -> None:
    nothing = dict.fromkeys(
        ("country", "bank", "bank_code", "account_number", "account_name", "typed_name"), ""
    )
    sent(preparer, approver, of(payment_type="profile", service_username="ngozi.eze", **nothing))
    assert json.loads(provider.posts[0], parse_float=Decimal) == {
        "businessId": BUSINESS,
        "reference": "CS-7D0C1E2F3A4B5C6D7E8F",
        "incomingCurrency": "USDT",
        "incomingAmount": Decimal(100),
        "outgoingCurrency": "NGN",
        "customerEmail": "customer@example.com",
        "paymentType": "profile",
        "serviceUsername": "ngozi.eze",
    }


@pytest.mark.parametrize(
    ("status", "body", "ends"),
    [
        (200, '{"data": {"_id": "P-9", "state": "pending"}}', Status.SUCCEEDED),
        (200, '{"data": {}}', Status.UNKNOWN),
        (400, '{"message": "rateKey has expired"}', Status.FAILED),
        (401, '{"message": "invalid api key"}', Status.FAILED),
        (404, '{"message": "no such business"}', Status.FAILED),
        (422, '{"message": "amount is too small"}', Status.FAILED),
        (409, '{"message": "reference has been used"}', Status.UNKNOWN),
        (400, '{"message": "reference has been used"}', Status.UNKNOWN),
        (500, '{"message": "internal error"}', Status.UNKNOWN),
        (200, "<html>", Status.UNKNOWN),
    ],
)
def test_every_response_leads_to_a_status(
    preparer: User, approver: User, provider: StubProvider, status: int, body: str, ends: Status
) -> None:
    provider.answer_post = lambda: (status, body)
    assert sent(preparer, approver, of()).status == ends


@pytest.mark.parametrize(
    ("made", "differences"),
    [
        ({"incomingCurrency": "usdt", "incomingAmount": "100.00", "outgoingAmount": 158000}, ""),
        ({"incomingAmount": 1000}, "Pay-in: USDT 1,000.000000 at the provider, USDT 100.000000 expected"),
        (
            {"outgoingCurrency": "USD", "outgoingAmount": 95},
            "Payout: USD 95.00 at the provider, NGN expected",
        ),
    ],
)
def test_a_payment_that_was_created_otherwise_raises_an_incident(
    preparer: User, approver: User, provider: StubProvider, made: dict[str, Any], differences: str
) -> None:
    provider.answer_post = lambda: (200, json.dumps({"data": {"_id": "P-9", **made}}))
    operation = sent(preparer, approver, of())
    assert operation.status == Status.SUCCEEDED
    found = [(one.kind, differences_sentence(one.evidence["differences"])) for one in Incident.objects.all()]
    assert found == ([(IncidentKind.RECORD_MISMATCH, differences)] if differences else [])


def test_the_created_payment_is_stored_as_reported(
    preparer: User, approver: User, provider: StubProvider
) -> None:
    made = {
        "_id": "P-9",
        "reference": "CS-7D0C1E2F3A4B5C6D7E8F",
        "state": "Waiting for funds",
        "address": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
        "expTime": "2026-11-21T10:00:00Z",
        "incomingCurrency": "USDT",
        "incomingAmount": 100,
        "outgoingCurrency": "NGN",
        "outgoingAmount": 158000.5,
        "confirmedAmount": 0,
        "rate": 1580.005,
        "threadTS": "1.2",
    }
    provider.answer_post = lambda: (200, json.dumps({"data": made}))
    sent(preparer, approver, of())
    assert Attempt.objects.get().result == {
        "id": "P-9",
        "reference": "CS-7D0C1E2F3A4B5C6D7E8F",
        "state": "Waiting for funds",
        "address": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
        "expires_at": "2026-11-21T10:00:00+00:00",
        "incoming_currency": "USDT",
        "incoming_amount": "100",
        "outgoing_currency": "NGN",
        "outgoing_amount": "158000.5",
        "confirmed_amount": "0",
        "rate": "1580.005",
        "thread_timestamp": "1.2",
    }


def test_a_lost_response_goes_to_review_at_once(
    preparer: User, approver: User, sandbox: SandboxProcess
) -> None:
    sandbox.fault("payments.create", "drop", when="after_execution")
    operation = sent(preparer, approver, of())
    assert operation.status == Status.UNKNOWN
    assert confirmation.confirm_operation(operation.pk).status == Status.REVIEW
    assert Attempt.objects.get().last_check.startswith("The provider's API does not show this outcome")
    assert Attempt.objects.get().outcome == Outcome.OPEN


def test_two_people_create_a_payment_against_the_provider(
    as_preparer: Client, approver: User, bank: dict[str, str], sandbox: SandboxProcess
) -> None:
    before = sandbox.balance("USDT")
    digest = post(as_preparer, bank).context["digest"]
    post(as_preparer, bank, "prepare", digest=digest)
    operation = factories.approve(Operation.objects.get(), approver)
    release.release_operation(
        operation.pk, actor=approver, digest=operation.digest, second_factor_at=timezone.now(), otp=None
    )
    send.send_operation(operation.pk)
    assert Operation.objects.get().status == Status.SUCCEEDED
    result = Attempt.objects.get().result or {}
    assert (result["reference"], result["state"]) == (REFERENCE, "pending")
    assert result["address"].startswith("T")
    assert sandbox.pay_in(REFERENCE)["state"] != "pending"
    assert sandbox.balance("USDT") == before
