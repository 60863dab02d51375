"""Stand-ins who would act past what two people agreed on: refused, and nothing is sent."""

import uuid
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from backoffice.accounts.models import StaffGroup, User
from backoffice.accounts.roles import Role
from backoffice.operations.delivery import send
from backoffice.operations.errors import OperationError
from backoffice.operations.models.operations import Approval, Operation, Release
from backoffice.operations.monitoring.inspection import inspect
from backoffice.operations.states import Status
from backoffice.policies.delegations import Delegation
from tests import factories
from tests.append_only.triggers import lifted
from tests.faults.races.actions import approves, approves_and_sends
from tests.faults.races.racing import Act
from tests.operations.delegations import delegated, leave
from tests.operations.steps import status_of
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


def is_refused(act: Act) -> bool:
    try:
        act()
    except OperationError:
        return True
    return False


def by_delegation_to_oneself(away: User, _approver: User, treasury: StaffGroup) -> None:
    assert is_refused(lambda: factories.prepared_of_kind("delegation", leave(away, away, treasury), away))
    with pytest.raises(DatabaseError), transaction.atomic():
        delegated(away, away, treasury)


def by_a_row_of_the_database(away: User, approver: User, treasury: StaffGroup) -> None:
    """Whoever has the database alone can make no seal."""
    now = timezone.now()
    Delegation.objects.create(
        person=away,
        stand_in=approver,
        group=treasury,
        starts_at=now - timedelta(days=3),
        ends_at=now + timedelta(days=3),
        agreed_at=now - timedelta(days=4),
        operation=uuid.uuid4(),
        seal="1:" + "0" * 64,
    )


def by_a_longer_leave(away: User, approver: User, treasury: StaffGroup) -> None:
    now = timezone.now()
    delegated(away, approver, treasury, ends_at=now - timedelta(hours=1))
    with lifted(connection):
        Delegation.objects.update(ends_at=now + timedelta(days=9))


@pytest.mark.parametrize("attempt", [by_delegation_to_oneself, by_a_row_of_the_database, by_a_longer_leave])
def test_an_attempt_to_become_a_stand_in_is_refused(
    provider: StubProvider,
    preparer: User,
    away: User,
    approver: User,
    second_approver: User,
    treasury: StaffGroup,
    attempt: Callable[[User, User, StaffGroup], None],
) -> None:
    operation = factories.prepared_to_another_account(preparer)
    attempt(away, approver, treasury)
    assert is_refused(approves(operation, approver))
    assert is_refused(approves_and_sends(operation, approver))
    send.send_operation(operation.pk)
    assert (status_of(operation), provider.posts) == (Status.PENDING, [])
    assert not Approval.objects.exists()
    is_stored = Delegation.objects.exists()
    assert ("altered_delegation" in inspect(full=False).violations) == is_stored


def test_a_preparer_does_not_approve_as_the_stand_in(
    provider: StubProvider, away: User, approver: User, second_approver: User, treasury: StaffGroup
) -> None:
    approver.groups.add(Group.objects.get(name=Role.PREPARER))
    operation = factories.prepared_to_another_account(User.objects.get(pk=approver.pk))
    found = delegated(away, approver, treasury)
    assert is_refused(approves(operation, approver))
    assert is_refused(approves_and_sends(operation, approver))
    with pytest.raises(DatabaseError), transaction.atomic():
        Approval.objects.create(
            operation=operation,
            approver=approver,
            preparer=approver,
            digest=operation.digest,
            approved_at=timezone.now(),
            on_behalf_of=away,
            delegation=found,
        )
    send.send_operation(operation.pk)
    assert (status_of(operation), provider.posts) == (Status.PENDING, [])


@pytest.fixture
def approved(preparer: User, away: User, approver: User, treasury: StaffGroup) -> Operation:
    """An operation that a stand-in has approved."""
    delegated(away, approver, treasury)
    return factories.approve(factories.prepared_to_another_account(preparer), approver)


@pytest.mark.parametrize("lost", ["Chidi Eze", "Amara Okafor"])
@pytest.mark.parametrize("is_released", [False, True])
def test_a_right_that_was_taken_after_the_approval_holds_the_payment(
    provider: StubProvider, approved: Operation, second_approver: User, lost: str, is_released: bool
) -> None:
    operation = approved
    if is_released:
        factories.release(operation, second_approver)
    User.objects.filter(full_name=lost).update(is_active=False)
    if not is_released:
        assert is_refused(lambda: factories.release(operation, second_approver))
    send.send_operation(operation.pk)
    assert (status_of(operation), provider.posts) == (Status.APPROVED, [])
    assert not Release.objects.exists()


def test_an_approval_under_a_delegation_that_was_altered_since_does_not_count(
    provider: StubProvider, approved: Operation, second_approver: User
) -> None:
    operation = factories.release(approved, second_approver)
    with lifted(connection):
        Delegation.objects.update(ends_at=timezone.now() + timedelta(days=99))
    send.send_operation(operation.pk)
    assert (status_of(operation), provider.posts) == (Status.APPROVED, [])
