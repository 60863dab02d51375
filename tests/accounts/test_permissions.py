"""What a person may do, as the session brings it along."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client

from backoffice.accounts import restrictions
from backoffice.accounts.models import User
from backoffice.accounts.roles import PERMISSIONS, Role, roles_with, users_with_permission
from backoffice.accounts.sessions import SessionStore
from backoffice.policies.people import read_people

pytestmark = pytest.mark.django_db
SignIn = Callable[[Client, User], Client]


@pytest.mark.parametrize("role", Role)
def test_session_permissions_are_those_of_the_role(
    client: Client, outsider: User, sign_in: SignIn, role: Role
) -> None:
    outsider.groups.set(Group.objects.filter(name=role))
    session = SessionStore(sign_in(client, outsider).session.session_key)
    assert session.person is not None
    assert session.person.get_all_permissions() == PERMISSIONS[role]
    assert User.objects.get(pk=outsider.pk).get_all_permissions() == PERMISSIONS[role]


def test_a_user_without_a_role_has_no_permissions(client: Client, outsider: User, sign_in: SignIn) -> None:
    session = SessionStore(sign_in(client, outsider).session.session_key)
    assert session.person is not None
    assert session.person.roles_held == frozenset()
    assert session.person.get_all_permissions() == set()


def test_a_permission_assigned_directly_to_a_user_is_ignored(preparer: User) -> None:
    preparer.user_permissions.set(Permission.objects.filter(codename="approve_operation"))
    person = User.objects.get(pk=preparer.pk)
    assert not person.has_perm("operations.approve_operation")
    assert person.get_user_permissions() == set()


def test_a_permission_given_to_a_role_in_the_database_is_ignored(
    client: Client, preparer: User, sign_in: SignIn
) -> None:
    forged = Permission.objects.get(codename="approve_operation")
    Group.objects.get(name=Role.PREPARER).permissions.add(forged)
    person = SessionStore(sign_in(client, preparer).session.session_key).person
    assert person is not None
    assert not person.has_perm("operations.approve_operation")
    assert not users_with_permission("operations.approve_operation").exists()
    assert not any(one.may_approve for one in read_people("operations.approve_operation"))


def test_staff_changes_are_approved_by_the_role_that_recoveries_count() -> None:
    assert roles_with("operations.approve_governance_change") == (restrictions.ADMINISTRATOR,)


def test_a_deactivated_user_has_no_permissions(preparer: User) -> None:
    preparer.is_active = False
    assert not preparer.has_perm("operations.prepare_operation")
    assert preparer.get_all_permissions() == set()


def test_a_removed_role_takes_effect_at_the_next_request(
    client: Client, approver: User, sign_in: SignIn
) -> None:
    sign_in(client, approver)
    approver.groups.clear()
    person = SessionStore(client.session.session_key).person
    assert person is not None
    assert not person.has_perm("operations.approve_operation")
