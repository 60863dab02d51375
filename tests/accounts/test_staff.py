"""People: what they are called, what their roles allow, and how they come and go."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command
from django.db import IntegrityError, transaction

from backoffice.accounts import staff
from backoffice.accounts.models import AuthenticatorDevice, RecoveryCode, User
from backoffice.accounts.roles import PERMISSIONS, Role, users_with_permission
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from tests.accounts import steps

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("full_name", "first_name", "initials"),
    [
        ("Amara Okafor", "Amara", "AO"),
        ("Ada Chidinma Obi", "Ada", "AO"),
        ("Cher", "Cher", "C"),
        ("", "", "?"),
    ],
)
def test_a_name_has_a_first_word_and_initials(full_name: str, first_name: str, initials: str) -> None:
    user = User(full_name=full_name)
    assert (str(user), user.first_name, user.initials) == (full_name, first_name, initials)


def test_the_database_refuses_an_email_address_in_upper_case() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.create(email="Ada@countersign.example", full_name="Ada Obi")


@pytest.mark.parametrize("role", Role)
def test_every_role_has_exactly_the_permissions_of_the_table(role: Role) -> None:
    held = Permission.objects.filter(group__name=role).values_list("content_type__app_label", "codename")
    assert {f"{app}.{codename}" for app, codename in held} == PERMISSIONS[role]


def test_migrate_removes_permissions_not_in_the_table() -> None:
    group, extra = Group.objects.get(name=Role.AUDITOR), Permission.objects.get(codename="approve_operation")
    group.permissions.add(extra)
    call_command("migrate", verbosity=0)
    assert extra not in group.permissions.all()


def test_no_role_both_prepares_and_approves() -> None:
    both = {"operations.prepare_operation", "operations.approve_operation"}
    assert not [role for role, names in PERMISSIONS.items() if both <= names]


def test_users_with_a_permission_are_found_by_their_roles(
    preparer: User, approver: User, second_approver: User, auditor: User
) -> None:
    staff.deactivate_staff(second_approver.pk, actor=None)
    assert list(users_with_permission("operations.approve_operation")) == [approver]
    assert set(users_with_permission("operations.view_operation")) == {preparer, approver, auditor}


def test_the_superuser_flag_grants_nothing(outsider: User) -> None:
    User.objects.filter(pk=outsider.pk).update(is_superuser=True)
    person = User.objects.get(pk=outsider.pk)
    assert not person.has_perm("operations.approve_operation")
    assert not person.has_module_perms("operations")
    assert list(users_with_permission("operations.approve_operation")) == []


def test_a_role_has_module_permissions_for_its_applications_only(auditor: User) -> None:
    assert auditor.has_module_perms("audit")
    assert not auditor.has_module_perms("accounts")


def test_creating_a_user_is_audited_with_the_roles(administrator: User) -> None:
    user = staff.create_staff(
        " Ada@Countersign.example ", full_name="Ada Obi", roles=["Auditor"], actor=administrator
    )
    assert (user.email, user.has_usable_password()) == ("ada@countersign.example", False)
    entry = Entry.objects.get()
    assert (entry.action, entry.actor, entry.target_label) == (Action.STAFF_CREATED, administrator, "Ada Obi")
    assert entry.detail == {"email": "ada@countersign.example", "roles": ["Auditor"]}


def test_an_email_address_is_unique(preparer: User) -> None:
    with pytest.raises(staff.EmailTakenError, match="already"):
        staff.create_staff(preparer.email.upper(), full_name="Twin", roles=[])
    assert not Entry.objects.exists()


@pytest.mark.parametrize("roles", [["Owner"], ["Preparer", "approver"]])
def test_an_unknown_role_is_refused_and_nothing_changes(preparer: User, roles: list[str]) -> None:
    with pytest.raises(staff.UnknownRoleError, match="There is no role"):
        staff.set_roles(preparer.pk, roles=roles, actor=None)
    assert [group.name for group in preparer.groups.all()] == ["Preparer"]


def test_changing_roles_is_audited_with_before_and_after(preparer: User, administrator: User) -> None:
    staff.set_roles(preparer.pk, roles=[Role.APPROVER, Role.AUDITOR], actor=administrator, reason="Moved")
    assert Entry.objects.get().detail == {
        "before": ["Preparer"],
        "after": ["Approver", "Auditor"],
        "reason": "Moved",
        "sessions_ended": 0,
    }
    assert User.objects.get(pk=preparer.pk).has_perm("operations.approve_operation")


def test_resetting_the_second_factor_ends_the_password_too(client: Any, preparer: User) -> None:
    steps.recovery_codes(preparer)
    staff.reset_second_factor(preparer.pk, actor=None)
    assert not AuthenticatorDevice.objects.exists()
    assert not RecoveryCode.objects.exists()
    assert steps.give_password(client, preparer).status_code == 422


def test_a_user_named_in_the_audit_log_cannot_be_deleted(client: Any, preparer: User) -> None:
    steps.give_password(client, preparer)
    with pytest.raises(IntegrityError):
        preparer.delete()
