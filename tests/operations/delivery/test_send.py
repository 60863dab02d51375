"""Release and send: what each answer of the provider leads to, and what must hold before the first byte leaves."""

import itertools
import socket
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.ledger import accounts as ledger
from backoffice.operations import jobs
from backoffice.operations.delivery import release, send
from backoffice.operations.errors import ContentChangedError
from backoffice.operations.models.operations import Approval, Attempt, Operation, Release, content_digest
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Outcome, Status
from backoffice.operations.workflow import approvals
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.steps import reloaded
from tests.sandbox_process import SandboxProcess
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_withdrawal_is_sent_once_and_confirmed_by_the_provider(
    sandbox: SandboxProcess, preparer: User, approver: User
) -> None:
    name = ledger.resolve_account_holder("0123456789", "044").account_name
    operation = factories.approved(preparer, approver, account_name=name, typed_name=name)
    factories.release(operation, approver, sandbox.totp())
    send.send_operation(operation.pk)
    assert reloaded(operation).status == Status.PROCESSING
    confirmation.confirm_operation(operation.pk)
    assert reloaded(operation).status == Status.SUCCEEDED
    [withdrawal] = sandbox.ledger()["withdrawals"]
    attempt = Attempt.objects.get()
    assert attempt.provider_transaction_id == withdrawal["transactionId"]
    assert (attempt.outcome, attempt.fee) == (Outcome.SUCCEEDED, Decimal("50"))
    assert Decimal(withdrawal["amount"]) == operation.amount


@pytest.mark.parametrize(
    ("status", "body", "ends", "outcome"),
    [
        (200, '{"data": {"transactionId": "T-1"}}', Status.PROCESSING, Outcome.OPEN),
        (200, '{"data": {}}', Status.PROCESSING, Outcome.OPEN),
        (400, '{"success": false, "message": "Invalid OTP token"}', Status.APPROVED, Outcome.OTP_REJECTED),
        (
            401,
            '{"success": false, "message": "OTP token has expired"}',
            Status.APPROVED,
            Outcome.OTP_REJECTED,
        ),
        (422, '{"success": false, "message": "Insufficient funds"}', Status.FAILED, Outcome.REJECTED),
        (400, '{"success": false, "message": "bankCode is not valid"}', Status.FAILED, Outcome.REJECTED),
        (404, "<html>not here</html>", Status.UNKNOWN, Outcome.OPEN),
        (409, '{"message": "conflict"}', Status.UNKNOWN, Outcome.OPEN),
        (302, "", Status.UNKNOWN, Outcome.OPEN),
        (500, '{"message": "internal error"}', Status.UNKNOWN, Outcome.OPEN),
        (503, '{"message": "try later"}', Status.UNKNOWN, Outcome.OPEN),
        (200, "", Status.UNKNOWN, Outcome.OPEN),
        (200, "<html>welcome</html>", Status.UNKNOWN, Outcome.OPEN),
    ],
)
def test_each_response_leads_to_the_status_it_proves(
    provider: StubProvider, released: Operation, status: int, body: str, ends: Status, outcome: Outcome
) -> None:
    provider.answer_post = lambda: (status, body)
    send.send_operation(released.pk)
    assert reloaded(released).status == ends
    assert Attempt.objects.get().outcome == outcome
    assert len(provider.posts) == 1
    assert not Release.objects.exists()


@pytest.mark.parametrize("status", [200, 400, 500])
def test_nothing_is_resent_automatically(provider: StubProvider, released: Operation, status: int) -> None:
    provider.answer_post = lambda: (status, '{"message": "bankCode is not valid", "data": {}}')
    for _ in range(5):
        send.send_operation(released.pk)
        jobs.send_due()
    assert len(provider.posts) == 1


def test_the_approved_content_is_sent(provider: StubProvider, released: Operation) -> None:
    send.send_operation(released.pk)
    [body] = provider.posts
    for text in (
        '"accountNumber": "0123456789"',
        '"bankCode": "044"',
        '"amount": "250000.00"',
        '"token": "123456"',
    ):
        assert text in body


@pytest.mark.parametrize(
    ("body", "response"),
    [
        (
            '{"message": "Queued for the bank", "data": {}}',
            {"code": "accepted_with_message", "message": "Queued for the bank"},
        ),
        (
            '{"message": "On its way", "data": {"status": "processing"}}',
            {"code": "accepted_as_with_message", "status": "processing", "message": "On its way"},
        ),
        ('{"data": {"status": "processing"}}', {"code": "accepted_as", "status": "processing"}),
        ('{"data": {}}', {"code": "accepted"}),
        (
            '{"message": "Token 123456 was accepted", "data": {}}',
            {"code": "accepted_with_message", "message": "Token [hidden] was accepted"},
        ),
    ],
)
def test_the_message_of_an_accepted_answer_is_kept_without_the_one_time_code(
    provider: StubProvider, released: Operation, body: str, response: dict[str, str]
) -> None:
    provider.answer_post = lambda: (200, body)
    send.send_operation(released.pk)
    assert Attempt.objects.get().responses == [response]


def test_a_new_one_time_code_sends_it_after_a_refused_one(
    provider: StubProvider, released: Operation, approver: User
) -> None:
    provider.answer_post = lambda: (400, '{"message": "Invalid OTP token"}')
    send.send_operation(released.pk)
    provider.answer_post = lambda: (200, '{"data": {"transactionId": "T-9"}}')
    send.send_operation(factories.release(reloaded(released), approver, "654321").pk)
    assert reloaded(released).status == Status.PROCESSING
    assert [attempt.outcome for attempt in Attempt.objects.order_by("number")] == [
        Outcome.OTP_REJECTED,
        Outcome.OPEN,
    ]


def test_a_provider_that_cannot_be_reached_leaves_it_approved(
    settings: Settings, released: Operation
) -> None:
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    send.send_operation(released.pk)
    assert reloaded(released).status == Status.APPROVED
    assert Release.objects.exists()
    assert not Attempt.objects.exists()


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("http://127.0.0.1:9/v2", id="refused"),
        pytest.param("https://no-such-host.invalid/v2", id="unknown name"),
        pytest.param("https://127.0.0.1:{port}/v2", id="no TLS"),
    ],
)
def test_a_failed_connection_proves_it_was_not_sent_and_needs_a_new_release(
    provider: StubProvider,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    released: Operation,
    approver: User,
    address: str,
) -> None:
    """The provider is there until it was claimed, and gone when the request itself is to leave."""
    reads, reached = itertools.count(1), settings.GATEWAY_URL
    broken = address.format(port=urlsplit(reached).port)
    provider.before_get = lambda: setattr(settings, "GATEWAY_URL", broken) if next(reads) == 2 else None
    monkeypatch.setattr(socket, "getaddrinfo", knows_no_host_called("no-such-host.invalid"))
    send.send_operation(released.pk)
    attempt = Attempt.objects.get()
    assert (reloaded(released).status, attempt.outcome) == (Status.APPROVED, Outcome.NOT_SENT)
    assert "Nothing was sent" in attempt.response
    settings.GATEWAY_URL = reached
    send.send_operation(released.pk)
    jobs.send_due()
    assert provider.posts == []
    send.send_operation(factories.release(reloaded(released), approver, "654321").pk)
    assert (reloaded(released).status, len(provider.posts)) == (Status.PROCESSING, 1)


def test_a_request_that_cannot_be_built_was_not_sent_and_names_the_member(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    operation = factories.approved(preparer, approver, bank=" ")
    factories.release(operation, approver)
    send.send_operation(operation.pk)
    attempt = Attempt.objects.get()
    assert (reloaded(operation).status, attempt.outcome) == (Status.APPROVED, Outcome.NOT_SENT)
    assert attempt.response == "The request cannot be sent (bank: empty). Nothing was sent."
    assert (attempt.begun_at, provider.posts) == (None, [])
    assert not Release.objects.exists()


def knows_no_host_called(name: str) -> Callable[..., Any]:
    """What looks names up, as it is where this one does not exist."""
    find = socket.getaddrinfo

    def look_up(host: Any, *args: Any, **options: Any) -> Any:
        if host == name:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return find(host, *args, **options)

    return look_up


def test_content_changed_after_approval_is_not_sent(provider: StubProvider, released: Operation) -> None:
    with lifted(connection):
        Operation.objects.update(payload={**released.payload, "account_number": "9999999999"})
    send.send_operation(released.pk)
    assert (reloaded(released).status, provider.posts) == (Status.APPROVED, [])
    refusal = Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED).get()
    assert (refusal.detail["attempted"], refusal.detail["refusal"]) == ("send", {"code": "log_mismatch"})


@pytest.mark.parametrize("change", ["deactivated", "role taken away"])
def test_nothing_is_sent_if_the_approver_lost_the_permission(
    provider: StubProvider, released: Operation, approver: User, change: str
) -> None:
    if change == "deactivated":
        User.objects.filter(pk=approver.pk).update(is_active=False)
    else:
        approver.groups.remove(Group.objects.get(name="Approver"))
    send.send_operation(released.pk)
    assert (reloaded(released).status, provider.posts) == (Status.APPROVED, [])
    assert Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED).exists()


def test_a_cancelled_operation_is_not_sent_even_if_it_was_released(
    provider: StubProvider, released: Operation
) -> None:
    approvals.cancel_operation(released.pk, actor=released.preparer)
    send.send_operation(released.pk)
    assert (reloaded(released).status, provider.posts) == (Status.CANCELLED, [])


def test_a_refusal_is_stored_as_the_reason(provider: StubProvider, released: Operation) -> None:
    provider.answer_post = lambda: (422, '{"success": false, "message": "Insufficient funds"}')
    send.send_operation(released.pk)
    assert "Insufficient funds" in reloaded(released).reason


def test_a_blocker_of_one_release_does_not_affect_a_later_one(released: Operation, approver: User) -> None:
    stopped = Release.objects.select_related("operation").get()
    Release.objects.update(expires_at=timezone.now())
    later = factories.release(released, approver)
    release.withdraw_release(stopped, ContentChangedError())
    assert Release.objects.filter(operation=later).exists()
    assert not Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED).exists()


def test_unreadable_content_is_not_sent(provider: StubProvider, released: Operation) -> None:
    payload = {**released.payload, "member_of_a_later_release": "x"}
    digest = content_digest(released.pk, released.kind, payload)
    with lifted(connection):
        Operation.objects.update(payload=payload, digest=digest)
        Approval.objects.update(digest=digest)
        Release.objects.update(encrypted_otp=None)
    send.send_operation(released.pk)
    assert (reloaded(released).status, Attempt.objects.count(), provider.posts) == (Status.APPROVED, 0, [])


def test_an_unknown_operation_id_sends_nothing(provider: StubProvider, db: None) -> None:
    send.send_operation(uuid.uuid4())
    assert provider.posts == []
