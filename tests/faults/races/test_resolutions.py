"""People resolve an operation at the same moment as each other and as the automatic check (faults 12 and 16)."""

from datetime import timedelta
from uuid import uuid4

import pytest

from backoffice.accounts.models import User
from backoffice.operations.delivery import send
from backoffice.operations.delivery.release import AnotherPayment
from backoffice.operations.kinds.base import Payload
from backoffice.operations.models.operations import Operation
from backoffice.operations.outcome.confirmation import listing_delay
from backoffice.operations.states import Status
from backoffice.operations.workflow.prepare import prepare_operation
from tests import factories
from tests.faults.races.actions import (
    approved_to_another_account,
    approves,
    checks_status,
    lost,
    once_the_list_is_read,
    proposes,
)
from tests.faults.races.conftest import Races
from tests.faults.races.racing import DONE
from tests.operations.provider_list import shows
from tests.operations.steps import status_of
from tests.operations.unknown_outcomes import proposed, record, resolution_form
from tests.stub_provider import StubProvider

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults]


def test_a_concurrent_resolution_and_status_check_close_once(
    races: Races, provider: StubProvider, preparer: User, approver: User, second_approver: User
) -> None:
    for number in races.rounds():
        operation = lost(provider, preparer, approver, age=listing_delay())
        shows(provider, record(f"R-{number}"))
        resolution = proposed(operation, preparer, "executed", f"R-{number}")
        signs = once_the_list_is_read(provider, approves(resolution, second_approver), dawdling=number % 20)
        signed, _ = races.race(signs, checks_status(operation))
        attempt = operation.attempts.get()
        assert (status_of(operation), attempt.provider_transaction_id) == (Status.SUCCEEDED, f"R-{number}")
        assert (signed == DONE) == (attempt.resolution_id == resolution.pk)
        assert signed in {DONE, "CannotResolveError"}
        assert (status_of(resolution) == Status.SUCCEEDED) == (signed == DONE)
        races.are_well(operation)
    races.ended_well()


def test_one_of_two_contradictory_resolutions_is_applied_once(
    races: Races,
    provider: StubProvider,
    preparer: User,
    approver: User,
    second_approver: User,
    third_checker: User,
) -> None:
    for number in races.rounds():
        operation = lost(provider, preparer, approver, age=timedelta(hours=2))
        shows(provider, record(f"R-{number}"))
        happened, absent = (
            resolution_form(operation, "executed", f"R-{number}"),
            resolution_form(operation, "not_executed"),
        )
        assert happened.is_valid(), happened.errors
        assert absent.is_valid(), absent.errors
        results = races.race(proposes(happened.payload(), preparer), proposes(absent.payload(), approver))
        assert sorted(results) == ["DuplicatePendingError", DONE]
        resolution = Operation.objects.get(kind="resolution", status=Status.PENDING)
        results = races.race(approves(resolution, second_approver), approves(resolution, third_checker))
        assert sorted(results) == ["WrongStatusError", DONE]
        said_so = Status.SUCCEEDED if resolution.payload["choice"] == "executed" else Status.FAILED
        assert (status_of(operation), status_of(resolution)) == (said_so, Status.SUCCEEDED)
        races.are_well(operation)
    races.ended_well()


def test_a_concurrent_release_and_resolution_as_paid_end_once(
    races: Races, provider: StubProvider, preparer: User, approver: User, second_approver: User
) -> None:
    """One person sends it beside a similar transaction; two others say that this transaction has paid it."""
    for number in races.rounds():
        operation, paid = approved_to_another_account(preparer, approver), f"E-{number}"
        shows(provider, record(paid))
        send.send_operation(factories.release(operation, approver).pk)
        assert operation.look_alikes.get().transaction_id == paid
        form = resolution_form(operation, "executed", paid)
        assert form.is_valid(), form.errors
        content: Payload = form.payload()

        def resolves(content: Payload = content) -> None:
            resolution = prepare_operation(uuid4(), actor=preparer, kind="resolution", payload=content)
            factories.approve(resolution, second_approver)

        def releases(operation: Operation = operation, paid: str = paid) -> None:
            factories.release(operation, approver, statement=AnotherPayment((paid,), "Another invoice"))
            send.send_operation(operation.pk)

        resolved, _ = races.race(resolves, releases)
        attempts = list(operation.attempts.all())
        assert len(attempts) <= 1
        assert len(provider.posts) == sum(attempt.released_by is not None for attempt in attempts)
        assert (resolved == DONE) == any(attempt.released_by is None for attempt in attempts)
        assert (resolved == DONE) == (attempts != [] and attempts[0].provider_transaction_id == paid)
        races.are_well(operation)
    races.ended_well()
