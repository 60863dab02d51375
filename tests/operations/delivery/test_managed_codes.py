"""Codes that Countersign makes: from the stored secret, at the moment of sending, each once."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.operations import jobs, seals
from backoffice.operations.delivery import otp, send
from backoffice.operations.delivery.release import release_operation
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.otp import OtpSecret
from backoffice.operations.models.reason_codes import Blocker, IncidentKind
from backoffice.operations.states import Outcome, Status
from tests import factories
from tests.operations.otp_secrets import AUTHENTICATOR, stored
from tests.operations.steps import status_of
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
REFUSED = (400, '{"success": false, "message": "Invalid OTP token"}')


@pytest.fixture(autouse=True)
def managed(settings: Settings) -> None:
    settings.OTP_MODE = "managed"


@pytest.fixture
def secret(administrator: User, approver: User) -> OtpSecret:
    return OtpSecret.objects.get(operation=stored(administrator, approver))


@pytest.fixture
def released(preparer: User, approver: User) -> Operation:
    return release(factories.approved(preparer, approver), approver)


def release(operation: Operation, approver: User) -> Operation:
    return release_operation(
        operation.pk, actor=approver, digest=operation.digest, second_factor_at=timezone.now()
    )


@contextmanager
def steps_later(steps: int) -> Iterator[datetime]:
    """In the middle of a later time step of the authenticator."""
    step = AUTHENTICATOR.step_at(timezone.now()) + steps
    moment = datetime.fromtimestamp(step * 30 + 15, tz=UTC)
    with clock.use_clock(lambda: moment):
        yield moment


def tokens(provider: StubProvider) -> list[str]:
    return [json.loads(body)["token"] for body in provider.posts]


def blocker_of(operation: Operation) -> str | None:
    return Release.objects.get(operation=operation).blocker


def test_the_request_carries_the_code_of_its_step(
    provider: StubProvider, secret: OtpSecret, released: Operation
) -> None:
    with steps_later(1) as moment:
        send.send_operation(released.pk)
        code = AUTHENTICATOR.code(AUTHENTICATOR.step_at(moment)).get_secret_value()
    assert tokens(provider) == [code]
    assert json.loads(provider.posts[0])["otpType"] == "totp"
    assert Release.objects.count() == 0


def test_the_code_is_made_after_the_claim(
    provider: StubProvider, secret: OtpSecret, released: Operation
) -> None:
    waiting = Release.objects.select_related("operation").get()
    with steps_later(1):
        claim = send.claim_operation(released.pk, send.preflight_read(waiting))
    assert claim is not None
    assert claim.otp is None
    assert claim.otp_step is not None


def test_without_a_secret_nothing_is_sent_and_the_release_says_so(
    provider: StubProvider, released: Operation
) -> None:
    send.send_operation(released.pk)
    assert blocker_of(released) == Blocker.OTP_SECRET_MISSING
    assert (provider.posts, Attempt.objects.count(), status_of(released)) == ([], 0, Status.APPROVED)


def test_a_secret_that_cannot_be_decrypted_blocks_the_release(
    provider: StubProvider, secret: OtpSecret, released: Operation
) -> None:
    OtpSecret.objects.update(encrypted_address=b"development\0" + b"x" * 40)
    send.send_operation(released.pk)
    assert blocker_of(released) == Blocker.OTP_SECRET_UNREADABLE
    assert (provider.posts, Attempt.objects.count()) == ([], 0)


def test_each_step_is_used_once_and_the_next_release_waits_for_the_next(
    provider: StubProvider, secret: OtpSecret, released: Operation, preparer: User, approver: User
) -> None:
    other = release(factories.approved(preparer, approver, currency="USD", amount="20.00"), approver)
    with steps_later(1):
        send.send_operation(released.pk)
        send.send_operation(other.pk)
        assert len(provider.posts) == 1
        assert blocker_of(other) == Blocker.OTP_NEXT_STEP
        assert not Attempt.objects.filter(operation=other).exists()
    with steps_later(2):
        send.send_operation(other.pk)
    first, second = tokens(provider)
    assert first != second


def test_a_step_is_reserved_once(secret: OtpSecret) -> None:
    kind = KINDS["withdrawal"]
    with steps_later(1):
        assert otp.reserve_step(kind) is not None
        with pytest.raises(otp.CodeNotReadyError) as refused:
            otp.reserve_step(kind)
    assert refused.value.blocker == Blocker.OTP_NEXT_STEP


def test_a_step_that_was_taken_meanwhile_is_not_taken_again(secret: OtpSecret) -> None:
    """The other sender takes it between our read of the secret and our compare-and-set."""
    with steps_later(1) as moment:
        pass

    def taken_meanwhile() -> datetime:
        OtpSecret.objects.update(last_step=AUTHENTICATOR.step_at(moment))
        return moment

    with clock.use_clock(taken_meanwhile), pytest.raises(otp.CodeNotReadyError):
        otp.reserve_step(KINDS["withdrawal"])


def test_a_step_is_used_again_where_the_provider_takes_a_code_again(
    secret: OtpSecret, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "profile.toml"
    file.write_text("otp_single_use = false\n")
    settings.GATEWAY_PROFILE = str(file)
    with steps_later(1):
        assert otp.reserve_step(KINDS["withdrawal"]) == otp.reserve_step(KINDS["withdrawal"])


def test_no_code_is_made_that_would_be_refused_when_the_request_begins(
    secret: OtpSecret, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "profile.toml"
    file.write_text("otp_tolerance_seconds = 0\n")
    settings.GATEWAY_PROFILE = str(file)
    with steps_later(1) as moment:
        late = moment + timedelta(seconds=12)
    with clock.use_clock(lambda: late), pytest.raises(otp.CodeNotReadyError):
        otp.check_ready(KINDS["withdrawal"])


def test_a_refused_code_is_followed_by_the_next_one_by_itself(
    provider: StubProvider, secret: OtpSecret, released: Operation
) -> None:
    provider.answer_post = lambda: REFUSED
    with steps_later(1):
        send.send_operation(released.pk)
        assert status_of(released) == Status.APPROVED
        seals.check_record(released, list(released.approvals.all()), Release.objects.get())
        send.send_operation(released.pk)
        assert len(provider.posts) == 1
    provider.answer_post = lambda: (200, '{"data": {"transactionId": "T-1"}}')
    with steps_later(2):
        send.send_operation(released.pk)
    assert status_of(released) == Status.PROCESSING
    assert len(set(tokens(provider))) == 2
    outcomes = list(released.attempts.values_list("number", "outcome"))
    assert outcomes == [(1, Outcome.OTP_REJECTED), (2, Outcome.OPEN)]
    assert Entry.objects.filter(action=Action.OPERATION_RELEASE_RENEWED).count() == 1


def test_a_code_that_the_provider_calls_used_is_followed_by_no_other(
    provider: StubProvider, secret: OtpSecret, released: Operation
) -> None:
    """A proxy sent the request twice: the first one was executed, the second one refused, and the list is late."""
    provider.answer_post = lambda: (400, '{"success": false, "message": "token has already been used"}')
    for step in (1, 2):
        with steps_later(step):
            send.send_operation(released.pk)
    assert len(provider.posts) == 1
    assert status_of(released) == Status.UNKNOWN
    assert not Release.objects.exists()


def test_after_three_refused_codes_it_stays_approved_with_an_incident(
    provider: StubProvider, secret: OtpSecret, released: Operation, approver: User
) -> None:
    provider.answer_post = lambda: REFUSED
    for step in range(1, 6):
        with steps_later(step):
            send.send_operation(released.pk)
    assert len(provider.posts) == 3
    assert (status_of(released), Release.objects.count()) == (Status.APPROVED, 0)
    assert Incident.objects.get().kind == IncidentKind.MANAGED_CODES_REFUSED


def test_a_refused_code_that_a_person_entered_is_not_followed_by_another(
    provider: StubProvider, settings: Settings, preparer: User, approver: User
) -> None:
    settings.OTP_MODE = "entered"
    operation = factories.release(factories.approved(preparer, approver), approver)
    provider.answer_post = lambda: REFUSED
    send.send_operation(operation.pk)
    assert (status_of(operation), Release.objects.count()) == (Status.APPROVED, 0)


def test_what_the_provider_shows_as_executed_is_not_sent_with_the_next_code(
    provider: StubProvider, secret: OtpSecret, released: Operation
) -> None:
    provider.answer_post = lambda: REFUSED
    with steps_later(1):
        send.send_operation(released.pk)
    provider.records = json.dumps(
        [
            {
                "txnID": "T-9",
                "type": "withdrawal",
                "status": "fulfilled",
                "currency": "NGN",
                "amount": "250000.00",
                "createdAt": timezone.now().isoformat(),
            }
        ]
    )
    with steps_later(2):
        send.send_operation(released.pk)
    assert len(provider.posts) == 1
    assert status_of(released) == Status.APPROVED


def test_the_sweeper_sends_with_the_next_code(
    provider: StubProvider, secret: OtpSecret, released: Operation
) -> None:
    with steps_later(1) as moment:
        OtpSecret.objects.update(last_step=AUTHENTICATOR.step_at(moment))
        jobs.send_due()
    assert provider.posts == []
    with steps_later(2):
        jobs.send_due()
    assert len(provider.posts) == 1


def test_no_page_asks_for_a_code(secret: OtpSecret, preparer: User, approver: User) -> None:
    operation = factories.approved(preparer, approver)
    page = factories.sign_in(Client(), approver).get(operation.get_absolute_url())
    assert b'name="otp"' not in page.content
