"""Transfers to other users of the provider: the form, the request, and every end."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pydantic import SecretStr
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.operations.delivery import release, send
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Operation
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.sandbox_process import SandboxProcess
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]
ADDRESS = "/operations/prepare/transfer/"
FILLED_IN = {"receiver_username": "ngozi.eze", "currency": "NGN", "amount": "60000.00", "memo": "week 46"}


def released(preparer: User, approver: User) -> Operation:
    operation = factories.approve(
        factories.prepared_of_kind("transfer", SAMPLES["transfer"], preparer), approver
    )
    return factories.release(operation, approver)


def review(client: Client, **changes: str) -> Any:
    return client.post(ADDRESS, {**FILLED_IN, **changes, "step": "review"})


def test_the_review_shows_recipient_and_amount(as_preparer: Client, provider: StubProvider) -> None:
    html = review(as_preparer).content.decode()
    assert "<h1>Transfer NGN 60,000.00 to user ngozi.eze</h1>" in html
    assert "Requires one approver who is not the preparer." in html


@pytest.mark.parametrize(
    ("field", "typed", "message"),
    [
        ("receiver_username", "", "Enter a value."),
        ("receiver_username", "ngozi eze", "without spaces"),
        ("receiver_username", "x" * 65, "at most 64"),
        ("currency", "USDT", "“USDT” is not among them"),
        ("amount", "", "Enter an amount."),
        ("amount", "-5", "greater than zero"),
        ("amount", "1e5", "Enter a number such as 5,000.50"),
        ("amount", "0.001", "NGN has at most 2 decimals."),
        ("amount", "0", "greater than zero"),
        ("amount", "6000000", "exceeds the balance of NGN 5,000,000.00"),
        ("memo", "x" * 29, "at most 28 characters"),
    ],
)
def test_invalid_input_is_reported_at_its_field_and_kept(
    as_preparer: Client, provider: StubProvider, field: str, typed: str, message: str
) -> None:
    answer = review(as_preparer, **{field: typed})
    assert answer.status_code == 422
    form = answer.context["form"]
    assert message in " ".join(form.errors[field])
    kept = {name: form[name].value() for name in FILLED_IN if name != field}
    assert kept == {name: value for name, value in FILLED_IN.items() if name != field}
    assert not Operation.objects.exists()


def test_the_request_is_exactly_the_approved_content(
    preparer: User, approver: User, provider: StubProvider
) -> None:
    operation = released(preparer, approver)
    send.send_operation(operation.pk)
    assert provider.changes == ["POST /v2/balance/transfer"]
    assert json.loads(provider.posts[0]) == {
        "receiverUsername": "ngozi.eze",
        "currency": "NGN",
        "amount": "60000.00",
        "memo": "week 46",
        "otpType": "totp",
        "token": "123456",
    }


@pytest.mark.parametrize(
    ("status", "body", "ends"),
    [
        (200, '{"data": {"transactionId": "T-9", "status": "fullfiled"}}', Status.PROCESSING),
        (200, '{"data": {}}', Status.PROCESSING),
        (400, '{"message": "token is not valid"}', Status.APPROVED),
        (404, '{"message": "user does not exist"}', Status.FAILED),
        (422, '{"message": "insufficient funds"}', Status.FAILED),
        (500, '{"message": "internal error"}', Status.UNKNOWN),
        (200, "<html>", Status.UNKNOWN),
    ],
)
def test_every_response_leads_to_a_status(
    preparer: User, approver: User, provider: StubProvider, status: int, body: str, ends: Status
) -> None:
    operation = released(preparer, approver)
    provider.answer_post = lambda: (status, body)
    send.send_operation(operation.pk)
    assert Operation.objects.get().status == ends


def test_two_people_transfer_at_the_provider(preparer: User, approver: User, sandbox: SandboxProcess) -> None:
    before = sandbox.balance("NGN")
    operation = factories.approve(
        factories.prepared_of_kind("transfer", SAMPLES["transfer"], preparer), approver
    )
    release.release_operation(
        operation.pk,
        actor=approver,
        digest=operation.digest,
        second_factor_at=timezone.now(),
        otp=SecretStr(sandbox.totp()),
    )
    send.send_operation(operation.pk)
    assert confirmation.confirm_operation(operation.pk).status == Status.SUCCEEDED
    assert before - sandbox.balance("NGN") == operation.amount


def test_prepare_again_prefills_the_form(
    as_preparer: Client, preparer: User, settings: Settings, provider: StubProvider
) -> None:
    operation = factories.prepared_of_kind("transfer", SAMPLES["transfer"], preparer)
    approvals.cancel_operation(operation.pk, actor=preparer)
    form = as_preparer.get(f"{ADDRESS}?copy={operation.pk}").context["form"]
    shown = {**FILLED_IN, "amount": "60,000.00"}
    assert {name: str(form[name].value()) for name in FILLED_IN} == shown


def test_an_empty_memo_is_not_sent() -> None:
    sample = SAMPLES["transfer"].model_copy(update={"memo": ""})
    assert ("Memo", "") not in KINDS["transfer"].facts(sample)
