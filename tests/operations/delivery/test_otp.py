"""One-time codes that people enter: how long they are kept, and that each is used once."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.test import Client
from pydantic import SecretStr
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.operations import errors
from backoffice.operations.delivery import otp, send
from backoffice.operations.delivery.release import release_operation
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.otp import UsedOtp
from backoffice.operations.states import Outcome, Status
from tests import factories
from tests.operations.delivery.test_late_senders import PassingAt
from tests.operations.steps import status_of, text_of
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]
AT = datetime(2026, 11, 25, 9, 0, 10, tzinfo=UTC)


def profile(settings: Settings, tmp_path: Path, *lines: str) -> None:
    file = tmp_path / "profile.toml"
    file.write_text("\n".join(lines))
    settings.GATEWAY_PROFILE = str(file)


def enter(code: str, operation: Operation, approver: User) -> Operation:
    return release_operation(
        operation.pk,
        actor=approver,
        digest=operation.digest,
        second_factor_at=clock.now(),
        otp=SecretStr(code),
    )


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        ([], 20 + 30),
        (["otp_tolerance_seconds = 0"], 20),
        (['otp_type = "otp"'], 90),
    ],
)
def test_a_code_is_kept_as_long_as_the_provider_accepts_it(
    settings: Settings, tmp_path: Path, lines: list[str], seconds: int
) -> None:
    profile(settings, tmp_path, *lines)
    assert otp.valid_until(AT) == AT + timedelta(seconds=seconds)
    assert otp.longest_lifetime() >= timedelta(seconds=seconds)


def test_the_configured_lifetime_replaces_both(settings: Settings) -> None:
    settings.OTP_LIFETIME_SECONDS = 45
    assert otp.valid_until(AT) == AT + timedelta(seconds=45)
    assert otp.longest_lifetime() == timedelta(seconds=45)


def test_a_released_code_expires_with_its_step(released: Operation) -> None:
    release = Release.objects.get()
    assert release.expires_at == otp.valid_until(release.released_at)


def test_a_code_is_entered_once(
    provider: StubProvider, released: Operation, approver: User, sign_in: SignIn
) -> None:
    other = factories.approved(released.preparer, approver)
    with pytest.raises(errors.OtpUsedError, match=released.reference):
        enter("123456", other, approver)
    page = sign_in(Client(), approver)
    answer = page.post(f"/operations/{other.pk}/release/", {"digest": other.digest, "otp": "123456"})
    assert answer.status_code == 422
    assert "the provider accepts each code only once. Nothing was sent." in text_of(answer)
    assert not Attempt.objects.filter(operation=other).exists()
    send.send_operation(released.pk)
    with pytest.raises(errors.OtpUsedError):
        enter("123456", other, approver)
    send.send_operation(enter("654321", other, approver).pk)


def test_a_code_that_was_used_is_kept_only_as_a_keyed_hash_while_it_is_valid(
    released: Operation, approver: User, settings: Settings
) -> None:
    first = UsedOtp.objects.get()
    assert "123456" not in first.hash
    later = first.valid_until + timedelta(seconds=1)
    with clock.use_clock(lambda: later):
        other = factories.approved(released.preparer, approver)
        enter("123456", other, approver)
    assert UsedOtp.objects.get().reference == other.reference


def test_a_code_entered_before_a_change_of_encryption_keys_is_still_known(
    released: Operation, approver: User, settings: Settings
) -> None:
    settings.ENCRYPTION_KEYS = [f"new:{'B' * 43}=", *settings.ENCRYPTION_KEYS]
    other = factories.approved(released.preparer, approver)
    with pytest.raises(errors.OtpUsedError):
        enter("123456", other, approver)


def test_a_code_may_be_entered_again_where_the_provider_takes_it_again(
    released: Operation, approver: User, settings: Settings, tmp_path: Path
) -> None:
    profile(settings, tmp_path, "otp_single_use = false")
    enter("777777", factories.approved(released.preparer, approver), approver)
    enter("777777", factories.approved(released.preparer, approver), approver)


@pytest.mark.parametrize("point", ["send.before_request", "send.connected"])
def test_a_request_does_not_begin_with_a_code_that_has_ended(
    provider: StubProvider, released: Operation, settings: Settings, point: str
) -> None:
    """The connection takes three seconds; the code is valid for two, and a request may begin within five."""
    settings.FAULT_POINTS = slow = PassingAt(point, timedelta(seconds=3))
    with clock.use_clock(slow.now):
        factories.change_release(Release.objects.get(), expires_at=clock.now() + timedelta(seconds=2))
        send.send_operation(released.pk)
    assert provider.posts == []
    assert status_of(released) == Status.APPROVED
    assert Attempt.objects.get().outcome == Outcome.NOT_SENT


def test_a_request_without_a_code_begins_although_the_release_ends_meanwhile(
    provider: StubProvider, preparer: User, approver: User, settings: Settings
) -> None:
    settings.OTP_MODE = "not_asked"
    settings.FAULT_POINTS = slow = PassingAt("send.before_request", timedelta(seconds=3))
    released = factories.release(factories.approved(preparer, approver), approver)
    with clock.use_clock(slow.now):
        factories.change_release(Release.objects.get(), expires_at=clock.now() + timedelta(seconds=2))
        send.send_operation(released.pk)
    assert len(provider.posts) == 1
