"""Sending at the same moment as another action: one request or none, whichever wins (faults 12 and 16)."""

import json
from datetime import timedelta

import pytest
from django.db import connection

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.operations import jobs
from backoffice.operations.delivery import journal, send
from backoffice.operations.lifecycle.pause import pause_payments
from backoffice.operations.models.monitoring import is_paused
from backoffice.operations.models.operations import Attempt, Release
from backoffice.operations.outcome import confirmation, schedule
from backoffice.operations.outcome.confirmation import listing_delay
from backoffice.operations.states import Status
from tests import factories
from tests.append_only.triggers import lifted
from tests.faults.races.actions import (
    LOST,
    approved_to_another_account,
    approves_and_sends,
    backdated,
    begins_and_records,
    cancels,
    checks_status,
    edits,
    expires,
    gives_up,
    once_the_list_is_read,
    releases,
    resumed,
    sends,
)
from tests.faults.races.conftest import Races
from tests.faults.races.racing import DONE, debits_of
from tests.operations.provider_list import shows
from tests.operations.steps import status_of
from tests.operations.unknown_outcomes import record
from tests.stub_provider import StubProvider

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults]


def test_two_concurrent_releases_make_one_debit(
    races: Races, provider: StubProvider, preparer: User, approver: User, second_approver: User
) -> None:
    for _ in races.rounds():
        operation = approved_to_another_account(preparer, approver)
        results = races.race(releases(operation, approver), releases(operation, second_approver))
        assert results.count(DONE) == 1
        assert set(results) <= {DONE, "AlreadyReleasedError", "WrongStatusError"}
        assert (status_of(operation), debits_of(operation, provider)) == (Status.PROCESSING, 1)
        races.are_well(operation)
    races.ended_well()


def test_concurrent_release_and_cancellation(
    races: Races, provider: StubProvider, preparer: User, approver: User
) -> None:
    for _ in races.rounds():
        operation = approved_to_another_account(preparer, approver)
        _, taken_back = races.race(releases(operation, approver), cancels(operation))
        ends = (Status.CANCELLED, 0) if taken_back == DONE else (Status.PROCESSING, 1)
        assert (status_of(operation), debits_of(operation, provider)) == ends
        assert not Release.objects.exists()
        races.are_well(operation)
    races.ended_well()


def test_concurrent_approve_and_send_and_expiry(
    races: Races, provider: StubProvider, preparer: User, approver: User
) -> None:
    for number in races.rounds():
        operation = factories.prepared_to_another_account(preparer)
        last_moment = clock.now() + timedelta(milliseconds=number % 80)
        factories.expire(operation, last_moment)
        approved, _ = races.race(approves_and_sends(operation, approver), expires(operation))
        status = status_of(operation)
        assert (status, debits_of(operation, provider)) in {(Status.EXPIRED, 0), (Status.PROCESSING, 1)}
        assert approved == DONE or status == Status.EXPIRED
        assert not Release.objects.exists()
        races.are_well(operation)
    races.ended_well()


def test_an_edit_of_the_row_during_sending_never_sends_unapproved_content(
    races: Races, provider: StubProvider, preparer: User, approver: User
) -> None:
    """The triggers that forbid the edit are disabled, so that only the digest protects the content."""
    with lifted(connection):
        for number in races.rounds():
            operation = factories.prepared_to_another_account(preparer)
            first, second = approves_and_sends(operation, approver), edits(operation)
            races.race(*((first, second) if number % 2 else (second, first)))
            left = debits_of(operation, provider)
            assert (status_of(operation), left, len(provider.posts)) in {
                (Status.PENDING, 0, 0),
                (Status.APPROVED, 0, 0),
                (Status.PROCESSING, 1, 1),
            }
            races.are_well(operation)


def test_concurrent_claim_and_pause(
    races: Races, provider: StubProvider, preparer: User, approver: User, second_approver: User
) -> None:
    def pause() -> None:
        pause_payments(actor=second_approver, reason="A key has leaked")

    for number in races.rounds():
        operation = factories.release(approved_to_another_account(preparer, approver), approver)
        pauses = once_the_list_is_read(provider, pause, dawdling=number % 20)
        assert races.race(sends(operation), pauses) == [DONE, DONE]
        left = debits_of(operation, provider)
        assert is_paused()
        send.send_operation(operation.pk)
        assert debits_of(operation, provider) == left
        assert (status_of(operation) == Status.PROCESSING) == (left == 1)
        races.are_well(operation, resumed(preparer, approver))
        send.send_operation(operation.pk)
        races.are_well(operation)
    races.ended_well()


def test_a_request_begins_or_its_operation_is_returned(
    races: Races, provider: StubProvider, preparer: User, approver: User
) -> None:
    """The sweeper gives up an attempt at the moment at which its sender commits that it begins."""
    for number in races.rounds():
        operation = factories.release(approved_to_another_account(preparer, approver), approver)
        journal.write_database(journal.database_line())  # as every sender does before it claims
        claim = send.claim_operation(operation.pk, send.preflight_read(operation.release))
        assert claim is not None
        begins, ends = begins_and_records(claim), gives_up(claim, dawdling=number % 20)
        assert races.race(*((begins, ends) if number % 2 else (ends, begins))) == [DONE, DONE]
        attempt = Attempt.objects.get(operation=operation)
        outcome = (status_of(operation), attempt.begun_at is not None, debits_of(operation, provider))
        assert outcome in {(Status.APPROVED, False, 0), (Status.PROCESSING, True, 1)}
        races.are_well(operation)
    races.ended_well()


def test_two_concurrent_claims_of_one_balance_are_sent_one_after_the_other(
    races: Races, provider: StubProvider, preparer: User, approver: User, second_approver: User
) -> None:
    named = provider.answer_post
    for number in races.rounds():
        shows(provider)
        pair = [approved_to_another_account(preparer, approver) for _ in range(2)]
        first, second = (factories.release(each, second_approver) for each in pair)
        provider.answer_post = lambda: LOST
        assert races.race(sends(second), sends(first), sends(first)) == [DONE, DONE, DONE]
        provider.answer_post = named
        assert (status_of(first), status_of(second)) == (Status.UNKNOWN, Status.APPROVED)
        backdated(first, listing_delay())
        shows(provider, record(f"R-{number}"))
        confirmation.confirm_operation(first.pk)
        send.send_operation(second.pk)
        assert (status_of(first), status_of(second)) == (Status.SUCCEEDED, Status.PROCESSING)
        order = [json.loads(body)["accountNumber"] for body in provider.posts]
        assert order == [each.payload["account_number"] for each in (first, second)]
        races.are_well(first, second)
    races.ended_well()


def test_two_sweepers_and_two_workers_send_and_close_each_operation_once(
    races: Races, provider: StubProvider, preparer: User, approver: User
) -> None:
    for _ in races.rounds():
        shows(provider)
        operation = factories.release(approved_to_another_account(preparer, approver), approver)
        released_at = clock.now() - timedelta(seconds=2)
        factories.change_release(Release.objects.get(operation=operation), released_at=released_at)
        races.race(sends(operation), jobs.send_due, sends(operation), jobs.send_due)
        attempt = Attempt.objects.get(operation=operation)
        assert debits_of(operation, provider) == 1
        shows(provider, record(attempt.provider_transaction_id or ""))
        Attempt.objects.filter(pk=attempt.pk).update(next_check_at=clock.now())
        checks = [schedule.check_due, checks_status(operation)]
        races.race(*checks, *checks)
        assert status_of(operation) == Status.SUCCEEDED
        races.are_well(operation)
    races.ended_well()
