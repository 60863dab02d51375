"""Senders that died or were frozen, the silence that is declared then, and answers that come after it."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.operations import jobs
from backoffice.operations.delivery import journal, record, send
from backoffice.operations.delivery.record import SendResult, record_result
from backoffice.operations.delivery.send import make_request
from backoffice.operations.lifecycle import pause
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import Blocker, ResponseCode, coded
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Outcome, Status
from tests.operations.steps import reloaded
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


def claimed(operation: Operation) -> send.SendClaim:
    journal.write_database(journal.database_line())  # as every sender does before it claims
    claim = send.claim_operation(operation.pk, send.preflight_read(Release.objects.get(pk=operation.pk)))
    assert claim is not None
    return claim


def begun(operation: Operation) -> Attempt:
    """Claim it and commit that its request begins."""
    claim = claimed(operation)
    assert send.begin_request(claim.attempt)
    return claim.attempt


def test_a_dead_sender_leaves_the_outcome_unknown_and_is_not_replaced(
    provider: StubProvider, released: Operation
) -> None:
    begun(released)
    assert jobs.expire_due() == 0
    Attempt.objects.update(deadline_at=timezone.now() - timedelta(minutes=5))
    assert jobs.expire_due() == 1
    send.send_operation(released.pk)
    assert (reloaded(released).status, provider.posts) == (Status.UNKNOWN, [])


def test_a_sender_frozen_past_its_deadline_sends_nothing(provider: StubProvider, released: Operation) -> None:
    answer = make_request(replace(claimed(released), begin_by=timezone.now()))
    assert (answer.outcome, provider.posts) == (Outcome.NOT_SENT, [])


class PassingAt(dict[str, str]):
    """In place of the fault points: at this one so much time passes by every clock."""

    def __init__(self, point: str, time: timedelta) -> None:
        self._point, self._time = point, time
        self._passed = timedelta()

    def get(self, name: str, default: Any = None) -> Any:
        self._passed += self._time if name == self._point else timedelta()
        return default

    def now(self) -> datetime:
        return timezone.now() + self._passed


def test_a_sender_frozen_just_before_sending_sends_nothing(
    provider: StubProvider, released: Operation, settings: Settings
) -> None:
    settings.FAULT_POINTS = night = PassingAt("send.before_request", timedelta(hours=8))
    with clock.use_clock(night.now):
        answer = make_request(claimed(released))
    assert (answer.outcome, provider.posts) == (Outcome.NOT_SENT, [])
    assert "The time limit for sending had passed" in answer.response["error"]


def test_an_outdated_check_before_the_claim_is_reported(
    provider: StubProvider, released: Operation, settings: Settings
) -> None:
    settings.FAULT_POINTS = slow = PassingAt("send.before_claim", timedelta(seconds=6))
    with clock.use_clock(slow.now):
        send.send_operation(released.pk)
    assert Release.objects.get().blocker == Blocker.DATABASE_SLOW
    send.send_operation(released.pk)
    assert (len(provider.posts), reloaded(released).status) == (1, Status.PROCESSING)


class PausedAt(PassingAt):
    """Besides, somebody pauses all sending at this point."""

    def __init__(self, point: str, time: timedelta, person: User) -> None:
        super().__init__(point, time)
        self._person = person

    def get(self, name: str, default: Any = None) -> Any:
        if name == self._point:
            pause.pause_payments(actor=self._person, reason="A key has leaked")
        return super().get(name, default)


def test_a_pause_during_sending_is_not_reported_as_slow(
    provider: StubProvider, released: Operation, preparer: User, settings: Settings
) -> None:
    settings.FAULT_POINTS = slow = PausedAt("send.before_claim", timedelta(seconds=6), preparer)
    with clock.use_clock(slow.now):
        send.send_operation(released.pk)
    assert Release.objects.get().blocker is None


NAMED = SendResult(
    Status.PROCESSING,
    Outcome.OPEN,
    Action.OPERATION_ACCEPTED,
    coded(ResponseCode.ACCEPTED),
    transaction_id="T-1",
)

NEVER_LEFT = SendResult(
    Status.APPROVED,
    Outcome.NOT_SENT,
    Action.OPERATION_RETURNED,
    coded(ResponseCode.ERROR, error="The service could not be reached"),
)


def test_a_response_after_unknown_is_applied(provider: StubProvider, released: Operation) -> None:
    attempt = begun(released)
    record.record_timeout(attempt.pk, now=timezone.now() + timedelta(hours=1))
    record_result(attempt, NAMED)
    assert reloaded(released).status == Status.PROCESSING
    assert Attempt.objects.get().provider_transaction_id == "T-1"


def test_proof_of_nothing_sent_after_unknown_closes_as_failed(
    provider: StubProvider, released: Operation
) -> None:
    attempt = begun(released)
    record.record_timeout(attempt.pk, now=timezone.now() + timedelta(hours=1))
    record_result(attempt, NEVER_LEFT)
    assert reloaded(released).status == Status.FAILED


def test_a_response_during_review_changes_nothing_and_is_audited(
    provider: StubProvider, released: Operation
) -> None:
    attempt = begun(released)
    record.record_timeout(attempt.pk, now=timezone.now() + timedelta(hours=1))
    Attempt.objects.update(started_at=timezone.now() - timedelta(days=2))
    assert confirmation.confirm_operation(released.pk).status == Status.REVIEW
    record_result(attempt, NAMED)
    assert reloaded(released).status == Status.REVIEW
    assert Attempt.objects.get().provider_transaction_id == "T-1"
    assert Entry.objects.filter(action=Action.OPERATION_LATE_RESPONSE_RECORDED).count() == 1


def test_an_attempt_is_declared_unknown_only_while_no_response_is_recorded(
    provider: StubProvider, released: Operation
) -> None:
    attempt = begun(released)
    record_result(attempt, NAMED)
    record.record_timeout(attempt.pk, now=timezone.now() + timedelta(hours=1))
    assert reloaded(released).status == Status.PROCESSING


def test_an_attempt_is_not_declared_unknown_while_a_response_may_be_recorded(
    provider: StubProvider, released: Operation
) -> None:
    attempt = begun(released)
    record.record_timeout(attempt.pk, now=attempt.deadline_at + timedelta(seconds=1))
    assert reloaded(released).status == Status.SENDING


def test_a_response_after_closing_does_not_reassign_the_transaction(
    provider: StubProvider, released: Operation
) -> None:
    attempt = claimed(released).attempt
    record_result(attempt, NAMED)
    closed = {"closed_at": timezone.now(), "outcome": Outcome.SUCCEEDED, "next_check_at": None}
    Attempt.objects.update(provider_transaction_id="T-7", **closed)
    record_result(attempt, NAMED)
    assert Attempt.objects.get().provider_transaction_id == "T-7"
