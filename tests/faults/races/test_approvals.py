"""Two people approve or reject one operation at the same moment."""

from decimal import Decimal

import pytest

from backoffice.accounts.models import User
from backoffice.operations.states import Status
from tests import factories
from tests.faults.races.actions import approves, cancels, rejects
from tests.faults.races.conftest import Races
from tests.faults.races.racing import DONE
from tests.operations.steps import status_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults]

LARGE = Decimal("20000000.00")  # needs two approvals


def test_two_concurrent_approvals_both_count_where_two_are_needed(
    races: Races, preparer: User, approver: User, second_approver: User
) -> None:
    for _ in races.rounds():
        operation = factories.prepared_to_another_account(preparer, amount=LARGE)
        assert races.race(approves(operation, approver), approves(operation, second_approver)) == [DONE, DONE]
        assert (status_of(operation), operation.approvals.count()) == (Status.APPROVED, 2)
        races.are_well(operation)
    races.ended_well()


def test_one_of_two_concurrent_approvals_counts_where_one_is_enough(
    races: Races, preparer: User, approver: User, second_approver: User
) -> None:
    for _ in races.rounds():
        operation = factories.prepared_to_another_account(preparer)
        results = races.race(approves(operation, approver), approves(operation, second_approver))
        assert sorted(results) == ["WrongStatusError", DONE]
        assert (status_of(operation), operation.approvals.count()) == (Status.APPROVED, 1)
        races.are_well(operation)
    races.ended_well()


def test_two_concurrent_approvals_by_one_person_count_once(
    races: Races, preparer: User, approver: User
) -> None:
    for _ in races.rounds():
        operation = factories.prepared_to_another_account(preparer, amount=LARGE)
        results = races.race(*[approves(operation, approver)] * 3)
        assert sorted(results) == ["AlreadyApprovedError", "AlreadyApprovedError", DONE]
        assert (status_of(operation), operation.approvals.count()) == (Status.PENDING, 1)
        races.are_well(operation)
    races.ended_well()


def test_concurrent_approval_and_rejection_leave_one_decision(
    races: Races, preparer: User, approver: User, second_approver: User
) -> None:
    for _ in races.rounds():
        operation = factories.prepared_to_another_account(preparer)
        results = races.race(approves(operation, approver), rejects(operation, second_approver))
        assert sorted(results) == ["WrongStatusError", DONE]
        expected = Status.APPROVED if results[0] == DONE else Status.REJECTED
        assert (status_of(operation), operation.approvals.count()) == (expected, int(results[0] == DONE))
        races.are_well(operation)
    races.ended_well()


def test_concurrent_approval_and_cancellation_end_cancelled(
    races: Races, preparer: User, approver: User
) -> None:
    for _ in races.rounds():
        operation = factories.prepared_to_another_account(preparer)
        approved, taken_back = races.race(approves(operation, approver), cancels(operation))
        assert taken_back == DONE
        assert (approved == DONE) == operation.approvals.exists()
        assert status_of(operation) == Status.CANCELLED
        races.are_well(operation)
    races.ended_well()
