"""The release: who may give it, and what becomes of the one-time code."""

import json
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pydantic import SecretStr
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations import errors, jobs
from backoffice.operations.delivery import send
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from tests import factories
from tests.stub_provider import StubProvider

SignIn = Callable[[Client, User], Client]

pytestmark = pytest.mark.django_db(transaction=True)


def reloaded(operation: Operation) -> Operation:
    return Operation.objects.get(pk=operation.pk)


def test_only_one_release_is_open_at_a_time(released: Operation, approver: User) -> None:
    with pytest.raises(errors.AlreadyReleasedError):
        factories.release(released, approver)


@pytest.mark.parametrize("otp", ["", "   "])
def test_an_empty_one_time_code_is_refused(preparer: User, approver: User, otp: str) -> None:
    with pytest.raises(errors.OtpMissingError):
        factories.release(factories.approved(preparer, approver), approver, otp)


def test_the_preparer_cannot_release(preparer: User, approver: User) -> None:
    preparer.groups.add(Group.objects.get(name="Approver"))
    with pytest.raises(errors.SelfApprovalError):
        factories.release(factories.approved(preparer, approver), preparer)


def test_a_release_needs_a_fresh_second_factor(preparer: User, approver: User) -> None:
    with pytest.raises(errors.SecondFactorStaleError):
        factories.release(
            factories.approved(preparer, approver),
            approver,
            second_factor_at=timezone.now() - timedelta(minutes=6),
        )


def test_a_pending_operation_cannot_be_released(preparer: User, approver: User) -> None:
    with pytest.raises(errors.WrongStatusError):
        factories.release(factories.prepared(preparer), approver)


def test_approve_and_send_is_atomic(preparer: User, approver: User) -> None:
    operation = factories.prepared(preparer, amount=Decimal("20000000.00"))
    with pytest.raises(errors.WrongStatusError):
        approvals.approve_and_release_operation(
            operation.pk,
            actor=approver,
            digest=operation.digest,
            second_factor_at=timezone.now(),
            otp=SecretStr("123456"),
        )
    assert (operation.approvals.count(), Release.objects.count()) == (0, 0)


def test_an_expired_one_time_code_is_deleted(provider: StubProvider, released: Operation) -> None:
    Release.objects.update(expires_at=timezone.now())
    send.send_operation(released.pk)
    jobs.send_due()
    assert jobs.expire_due() == 1
    assert (reloaded(released).status, Release.objects.count(), provider.posts) == (Status.APPROVED, 0, [])
    assert Entry.objects.filter(action=Action.OPERATION_RELEASE_EXPIRED).count() == 1


def test_the_one_time_code_is_stored_encrypted_and_is_gone_after_the_claim(
    provider: StubProvider, released: Operation
) -> None:
    encrypted = bytes(Release.objects.get().encrypted_otp or b"")
    assert b"123456" not in encrypted
    send.send_operation(released.pk)
    assert not Release.objects.exists()
    assert "123456" not in "".join(str(entry.detail) for entry in Entry.objects.all())


def test_a_one_time_code_is_bound_to_its_operation(
    provider: StubProvider, released: Operation, approver: User
) -> None:
    other = factories.release(factories.approved(released.preparer, approver), approver, "999999")
    Release.objects.filter(pk=released.pk).update(
        encrypted_otp=Release.objects.get(pk=other.pk).encrypted_otp
    )
    send.send_operation(released.pk)
    assert (reloaded(released).status, provider.posts) == (Status.APPROVED, [])


def test_an_expired_release_can_be_replaced(
    provider: StubProvider, released: Operation, approver: User
) -> None:
    Release.objects.update(expires_at=timezone.now())
    send.send_operation(factories.release(released, approver, "654321").pk)
    assert '"token": "654321"' in provider.posts[0]


def test_no_one_time_code_is_requested_where_the_provider_needs_none(
    provider: StubProvider,
    preparer: User,
    approver: User,
    sign_in: SignIn,
    settings: Settings,
    tmp_path: Path,
) -> None:
    file = tmp_path / "profile.toml"
    file.write_text("otp_required = false\n")
    settings.GATEWAY_PROFILE = str(file)
    operation = factories.approved(preparer, approver)
    address = reverse("operations:release", args=[operation.pk])
    answer = sign_in(Client(), approver).post(address, {"digest": operation.digest})
    assert answer.status_code == 302
    send.send_operation(operation.pk)
    assert "token" not in json.loads(provider.posts[0])


def test_no_one_time_code_is_requested_where_the_setting_says_that_none_is(
    provider: StubProvider, preparer: User, approver: User, sign_in: SignIn, settings: Settings
) -> None:
    settings.OTP_MODE = "not_asked"
    operation = factories.approved(preparer, approver)
    page = sign_in(Client(), approver)
    assert b"one-time code" not in page.get(operation.get_absolute_url()).content
    address = reverse("operations:release", args=[operation.pk])
    assert page.post(address, {"digest": operation.digest}).status_code == 302
    send.send_operation(operation.pk)
    assert "token" not in json.loads(provider.posts[0])
