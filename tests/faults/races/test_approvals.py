"""Two people approve or reject one operation at the same moment (fault 12)."""

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


def test_two_approvers_where_two_are_needed_both_count(
    races: Races, maker: User, checker: User, second_checker: User
) -> None:
    for _ in races.rounds():
        operation = factories.prepared_to_another_account(maker, amount=LARGE)
        assert races.race(approves(operation, checker), approves(operation, second_checker)) == [DONE, DONE]
        assert (status_of(operation), operation.approvals.count()) == (Status.APPROVED, 2)
        races.are_well(operation)
    races.ended_well()


def test_two_approvers_where_one_is_enough_one_moves_it(
    races: Races, maker: User, checker: User, second_checker: User
) -> None:
    for _ in races.rounds():
        operation = factories.prepared_to_another_account(maker)
        results = races.race(approves(operation, checker), approves(operation, second_checker))
        assert sorted(results) == ["WrongStatusError", DONE]
        assert (status_of(operation), operation.approvals.count()) == (Status.APPROVED, 1)
        races.are_well(operation)
    races.ended_well()


def test_one_person_twice_counts_once(races: Races, maker: User, checker: User) -> None:
    for _ in races.rounds():
        operation = factories.prepared_to_another_account(maker, amount=LARGE)
        results = races.race(*[approves(operation, checker)] * 3)
        assert sorted(results) == ["AlreadyApprovedError", "AlreadyApprovedError", DONE]
        assert (status_of(operation), operation.approvals.count()) == (Status.PENDING, 1)
        races.are_well(operation)
    races.ended_well()


def test_approving_against_rejecting_one_of_them_stands(
    races: Races, maker: User, checker: User, second_checker: User
) -> None:
    for _ in races.rounds():
        operation = factories.prepared_to_another_account(maker)
        results = races.race(approves(operation, checker), rejects(operation, second_checker))
        assert sorted(results) == ["WrongStatusError", DONE]
        stands = Status.APPROVED if results[0] == DONE else Status.REJECTED
        assert (status_of(operation), operation.approvals.count()) == (stands, int(results[0] == DONE))
        races.are_well(operation)
    races.ended_well()


def test_approving_against_taking_it_back_it_is_taken_back(races: Races, maker: User, checker: User) -> None:
    for _ in races.rounds():
        operation = factories.prepared_to_another_account(maker)
        approved, taken_back = races.race(approves(operation, checker), cancels(operation))
        assert taken_back == DONE
        assert (approved == DONE) == operation.approvals.exists()
        assert status_of(operation) == Status.CANCELLED
        races.are_well(operation)
    races.ended_well()
