"""Release and send: what each answer of the service leads to, and what must hold before the first byte leaves."""

import uuid
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone
from pydantic import SecretStr
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.ledger import selectors as ledger
from backoffice.operations import errors, services
from backoffice.operations.models import Attempt, Operation, Release
from backoffice.operations.states import Outcome, Status
from tests import factories, stub_service
from tests.sandbox_process import SandboxProcess
from tests.stub_service import StubService

pytestmark = pytest.mark.django_db(transaction=True)


def release(operation: Operation, actor: User, token: str = "123456", **changes: object) -> Operation:
    arguments = {"digest": operation.digest, "second_factor_at": timezone.now(), **changes}
    return services.release_operation(
        operation.pk,
        actor=actor,
        token=SecretStr(token),
        **arguments,  # type: ignore[arg-type]
    )


def reloaded(operation: Operation) -> Operation:
    return Operation.objects.get(pk=operation.pk)


@pytest.fixture
def service(settings: Settings) -> Iterator[StubService]:
    with stub_service.running() as stub:
        settings.GATEWAY_URL = stub.url
        yield stub


@pytest.fixture
def released(maker: User, checker: User) -> Operation:
    return release(factories.approved(maker, checker), checker)


def test_a_withdrawal_is_sent_once_and_confirmed_by_the_service(
    sandbox: SandboxProcess, maker: User, checker: User
) -> None:
    name = ledger.account_holder("0123456789", "044").account_name
    operation = factories.approved(maker, checker, account_name=name, typed_name=name)
    release(operation, checker, sandbox.token())
    services.send_operation(operation.pk)
    assert reloaded(operation).status == Status.PROCESSING
    services.confirm_operation(operation.pk)
    assert reloaded(operation).status == Status.SUCCEEDED
    [withdrawal] = sandbox.ledger()["withdrawals"]
    attempt = Attempt.objects.get()
    assert attempt.service_transaction_id == withdrawal["transactionId"]
    assert (attempt.outcome, attempt.fee) == (Outcome.SUCCEEDED, Decimal("50"))
    assert Decimal(withdrawal["amount"]) == operation.amount


@pytest.mark.parametrize(
    ("status", "body", "ends", "outcome"),
    [
        (200, '{"data": {"transactionId": "T-1"}}', Status.PROCESSING, Outcome.OPEN),
        (200, '{"data": {}}', Status.PROCESSING, Outcome.OPEN),
        (400, '{"success": false, "message": "Invalid OTP token"}', Status.APPROVED, Outcome.TOKEN_REFUSED),
        (
            401,
            '{"success": false, "message": "OTP token has expired"}',
            Status.APPROVED,
            Outcome.TOKEN_REFUSED,
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
def test_each_answer_leads_to_the_state_that_it_proves(
    service: StubService, released: Operation, status: int, body: str, ends: Status, outcome: Outcome
) -> None:
    service.answer_post = lambda: (status, body)
    services.send_operation(released.pk)
    assert reloaded(released).status == ends
    assert Attempt.objects.get().outcome == outcome
    assert len(service.posts) == 1
    assert not Release.objects.exists()


@pytest.mark.parametrize("status", [200, 400, 500])
def test_nothing_is_sent_a_second_time_by_the_program(
    service: StubService, released: Operation, status: int
) -> None:
    service.answer_post = lambda: (status, '{"message": "bankCode is not valid", "data": {}}')
    for _ in range(5):
        services.send_operation(released.pk)
        services.send_due()
    assert len(service.posts) == 1


def test_what_is_sent_is_what_was_approved(service: StubService, released: Operation) -> None:
    services.send_operation(released.pk)
    [body] = service.posts
    for text in (
        '"accountNumber": "0123456789"',
        '"bankCode": "044"',
        '"amount": "250000.00"',
        '"token": "123456"',
    ):
        assert text in body


def test_after_a_refused_token_a_new_one_sends_it(
    service: StubService, released: Operation, checker: User
) -> None:
    service.answer_post = lambda: (400, '{"message": "Invalid OTP token"}')
    services.send_operation(released.pk)
    service.answer_post = lambda: (200, '{"data": {"transactionId": "T-9"}}')
    services.send_operation(release(reloaded(released), checker, "654321").pk)
    assert reloaded(released).status == Status.PROCESSING
    assert [attempt.outcome for attempt in Attempt.objects.order_by("number")] == [
        Outcome.TOKEN_REFUSED,
        Outcome.OPEN,
    ]


def test_a_service_that_cannot_be_reached_leaves_it_approved(settings: Settings, released: Operation) -> None:
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    services.send_operation(released.pk)
    assert reloaded(released).status == Status.APPROVED
    assert Release.objects.exists()
    assert not Attempt.objects.exists()


def test_the_token_is_stored_encrypted_and_is_gone_after_the_claim(
    service: StubService, released: Operation
) -> None:
    sealed = bytes(Release.objects.get().sealed_token or b"")
    assert b"123456" not in sealed
    services.send_operation(released.pk)
    assert not Release.objects.exists()
    assert "123456" not in "".join(str(entry.detail) for entry in Entry.objects.all())


def test_a_token_that_waited_too_long_is_destroyed(service: StubService, released: Operation) -> None:
    Release.objects.update(expires_at=timezone.now())
    services.send_operation(released.pk)
    services.send_due()
    assert services.tidy_up() == 1
    assert (reloaded(released).status, Release.objects.count(), service.posts) == (Status.APPROVED, 0, [])
    assert Entry.objects.filter(action=Action.OPERATION_RELEASE_LAPSED).count() == 1


def test_a_token_of_another_operation_opens_nothing(
    service: StubService, released: Operation, checker: User
) -> None:
    other = release(factories.approved(released.maker, checker), checker, "999999")
    Release.objects.filter(pk=released.pk).update(sealed_token=Release.objects.get(pk=other.pk).sealed_token)
    services.send_operation(released.pk)
    assert (reloaded(released).status, service.posts) == (Status.APPROVED, [])


def test_content_changed_after_approval_is_not_sent(service: StubService, released: Operation) -> None:
    Operation.objects.update(payload={**released.payload, "account_number": "9999999999"})
    services.send_operation(released.pk)
    assert (reloaded(released).status, service.posts) == (Status.APPROVED, [])
    refusal = Entry.objects.filter(action=Action.OPERATION_REFUSED).get()
    assert refusal.detail["attempted"] == "send_operation"


@pytest.mark.parametrize("change", ["deactivated", "role taken away"])
def test_nothing_is_sent_if_the_approver_is_no_longer_entitled(
    service: StubService, released: Operation, checker: User, change: str
) -> None:
    if change == "deactivated":
        User.objects.filter(pk=checker.pk).update(is_active=False)
    else:
        checker.groups.remove(Group.objects.get(name="Approver"))
    services.send_operation(released.pk)
    assert (reloaded(released).status, service.posts) == (Status.APPROVED, [])
    assert Entry.objects.filter(action=Action.OPERATION_REFUSED).exists()


def test_only_one_release_at_a_time(released: Operation, checker: User) -> None:
    with pytest.raises(errors.AlreadyReleasedError):
        release(released, checker)


@pytest.mark.parametrize("token", ["", "   "])
def test_an_empty_token_is_refused(maker: User, checker: User, token: str) -> None:
    with pytest.raises(errors.TokenMissingError):
        release(factories.approved(maker, checker), checker, token)


def test_the_maker_cannot_send_it(maker: User, checker: User) -> None:
    maker.groups.add(Group.objects.get(name="Approver"))
    with pytest.raises(errors.SelfApprovalError):
        release(factories.approved(maker, checker), maker)


def test_a_stale_second_factor_cannot_send(maker: User, checker: User) -> None:
    with pytest.raises(errors.SecondFactorStaleError):
        release(
            factories.approved(maker, checker),
            checker,
            second_factor_at=timezone.now() - timedelta(minutes=6),
        )


def test_a_pending_operation_cannot_be_released(maker: User, checker: User) -> None:
    with pytest.raises(errors.WrongStatusError):
        release(factories.prepared(maker), checker)


def test_approve_and_send_in_one_does_both_or_neither(maker: User, checker: User) -> None:
    operation = factories.prepared(maker, amount=Decimal("20000000.00"))
    with pytest.raises(errors.WrongStatusError):
        services.approve_and_release_operation(
            operation.pk,
            actor=checker,
            digest=operation.digest,
            second_factor_at=timezone.now(),
            token=SecretStr("123456"),
        )
    assert (operation.approvals.count(), Release.objects.count()) == (0, 0)


def test_a_cancelled_operation_is_not_sent_even_if_it_was_released(
    service: StubService, released: Operation
) -> None:
    services.cancel_operation(released.pk, actor=released.maker)
    services.send_operation(released.pk)
    assert (reloaded(released).status, service.posts) == (Status.CANCELLED, [])


def test_a_sender_that_died_leaves_unknown_and_is_never_followed_by_another(
    service: StubService, released: Operation
) -> None:
    claim = services.claim_operation(released.pk, ledger.watermark("NGN"))
    assert claim is not None
    assert services.tidy_up() == 0
    Attempt.objects.update(deadline_at=timezone.now() - timedelta(minutes=5))
    assert services.tidy_up() == 1
    services.send_operation(released.pk)
    assert (reloaded(released).status, service.posts) == (Status.UNKNOWN, [])


def test_an_unknown_operation_id_sends_nothing(service: StubService, db: None) -> None:
    services.send_operation(uuid.uuid4())
    assert service.posts == []
