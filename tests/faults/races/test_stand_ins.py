"""Stand-ins at the same moment as the end of their delegation, or of the right: what they approved before counts."""

import itertools
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from backoffice.accounts.models import StaffGroup, User
from backoffice.accounts.roles import Role
from backoffice.operations.approval.progress import approval_progress
from backoffice.operations.lifecycle.delegation import end_delegation
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.states import Status
from backoffice.policies.delegations import Delegation
from tests import factories
from tests.faults.races.actions import approves, approves_and_sends, sends
from tests.faults.races.conftest import Races
from tests.faults.races.racing import DONE, Act, debits_of
from tests.operations.delegations import delegated
from tests.operations.steps import status_of
from tests.policies.versions import group, levels, of_people, put_in_effect
from tests.stub_provider import StubProvider

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults]
_SOON = timedelta(milliseconds=150)  # longer than an approval takes until it reads the delegations
_STATEMENTS = 16  # of an approval after that, about


def ends(delegation: Delegation, person: User) -> Act:
    return lambda: end_delegation(delegation.pk, actor=person)


def test_concurrent_approval_and_end_of_the_delegation(
    races: Races,
    provider: StubProvider,
    preparer: User,
    away: User,
    approver: User,
    second_approver: User,
    treasury: StaffGroup,
) -> None:
    """What the stand-in approved before the end counts, and is sent; nothing else."""
    for _ in races.rounds():
        operation = factories.prepared_to_another_account(preparer)
        delegation = delegated(away, approver, treasury)
        acts = approves_and_sends(operation, approver), ends(delegation, away)
        _, ended = races.race(*acts)
        assert ended == DONE
        delegation.refresh_from_db()
        counts = [delegation.covers(one.approved_at) for one in operation.approvals.all()]
        assert counts in ([], [True])
        assert debits_of(operation, provider) == int(counts == [True])
        assert (status_of(operation) == Status.PROCESSING) == (counts == [True])
        races.are_well(operation)


def test_an_approval_while_the_delegation_ends_by_itself_counts_or_is_not_stored(
    races: Races, preparer: User, away: User, approver: User, treasury: StaffGroup
) -> None:
    """Each round it ends before another statement of the transaction that has already read the delegation."""
    for number in races.rounds():
        operation = factories.prepared_to_another_account(preparer)
        ends_at = timezone.now() + _SOON
        delegation = delegated(away, approver, treasury, ends_at=ends_at)
        [result] = races.race(_late(approves(operation, approver), ends_at, before=number % _STATEMENTS))
        counts = [delegation.covers(one.approved_at) for one in operation.approvals.all()]
        assert counts == ([True] if result == DONE else [])
        assert status_of(operation) == (Status.APPROVED if result == DONE else Status.PENDING)
        if result != DONE:
            approves(operation, away)()
        races.are_well(operation)


def _late(act: Act, moment: datetime, *, before: int) -> Act:
    """The same, but of the statements after delegations are read, the one with this number waits until the moment."""

    def late() -> None:
        number = itertools.count()
        read: list[str] = []

        def wait(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
            if read and next(number) == before:
                while timezone.now() <= moment:
                    pass
            found = execute(sql, params, many, context)
            read.extend([sql] if "policies_delegation" in sql else [])
            return found

        with connection.execute_wrapper(wait):
            act()

    return late


def test_concurrent_claim_and_end_of_the_delegation(
    races: Races,
    provider: StubProvider,
    preparer: User,
    away: User,
    approver: User,
    second_approver: User,
    treasury: StaffGroup,
) -> None:
    """It was approved before the end, so it is sent once, whichever is first."""
    for _ in races.rounds():
        operation = factories.prepared_to_another_account(preparer)
        delegation = delegated(away, approver, treasury)
        factories.release(factories.approve(operation, approver), second_approver)
        assert races.race(sends(operation), ends(delegation, away)) == [DONE, DONE]
        assert (status_of(operation), debits_of(operation, provider)) == (Status.PROCESSING, 1)
        races.are_well(operation)


def test_concurrent_claim_and_deactivation_of_the_person_on_leave(
    races: Races,
    provider: StubProvider,
    preparer: User,
    away: User,
    approver: User,
    second_approver: User,
    treasury: StaffGroup,
) -> None:
    """An approval counts while both may approve: it is sent, or not at all."""
    delegated(away, approver, treasury)
    for _ in races.rounds():
        User.objects.filter(pk=away.pk).update(is_active=True)
        operation = factories.prepared_to_another_account(preparer)
        factories.release(factories.approve(operation, approver), second_approver)
        races.race(sends(operation), lambda: User.objects.filter(pk=away.pk).update(is_active=False))
        sent = debits_of(operation, provider)
        assert (status_of(operation), sent) in {(Status.PROCESSING, 1), (Status.APPROVED, 0)}
        assert not Release.objects.exists()
        races.are_well(operation)


def test_a_stand_in_of_two_people_counts_once(
    races: Races, preparer: User, away: User, approver: User, second_approver: User, treasury: StaffGroup
) -> None:
    """A level asks for both people that the stand-in acts for, and the stand-in approves twice at the same moment."""
    other = factories.person("Ngozi Eze", Role.APPROVER)
    both = group("Directors", other, approver)
    put_in_effect(levels((2, of_people(away, other))))
    for person, of in ((away, treasury), (other, both)):
        delegated(person, approver, of)
    for _ in races.rounds():
        operation = factories.prepared_to_another_account(preparer)
        results = races.race(*[approves(operation, approver)] * 3)
        assert sorted(results) == ["AlreadyApprovedError", "AlreadyApprovedError", DONE]
        assert (status_of(operation), operation.approvals.count()) == (Status.PENDING, 1)
        assert approval_progress(Operation.objects.get(pk=operation.pk)).missing == 1
        races.are_well(operation)
