"""Rules and rights that change while a payment waits: they never let its preparer approve it, and an approval counts
only while its approver may still give it.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.utils import timezone

from backoffice.accounts.groups import create_group
from backoffice.accounts.models import StaffGroup, User
from backoffice.accounts.restrictions import RightsGrant
from backoffice.accounts.roles import Role
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations.delivery import send
from backoffice.operations.kinds.staff_change import StaffChangePayload
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Status
from backoffice.policies.models import PolicyVersion
from tests import factories
from tests.append_only.triggers import lifted
from tests.faults.harness import operations
from tests.faults.harness.refusals import (
    KIND,
    approval_is_refused,
    assert_nothing_left,
    balances,
    payment,
    refused_with,
)
from tests.operations.batches import payouts
from tests.operations.kinds.staff import changes
from tests.policies.versions import group, levels, of_group, of_people, proposed, put_in_effect
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def two_administrators(administrator: User, second_administrator: User) -> None:
    """As many as there have to be before anything is sent."""


@pytest.fixture
def agree(administrator: User, second_administrator: User) -> Callable[[StaffChangePayload], Operation]:
    """Have one administrator propose a change of rights and the other approve it."""
    return partial(changes.agreed, preparer=administrator, approver=second_administrator)


@pytest.fixture
def all_roles(db: None) -> User:
    """A person who may prepare and approve payments, and propose and approve policies."""
    return factories.person("Ngozi Eze", Role.PREPARER, Role.APPROVER, Role.ADMINISTRATOR)


# A policy that names its proposer


def for_everything(person: User) -> dict[str, Any]:
    return levels((1, of_people(person)))


def for_the_own_payments(person: User) -> dict[str, Any]:
    return {"when": {"kinds": [KIND], "preparer": of_people(person)}, **for_everything(person)}


@pytest.mark.parametrize("rule", [for_everything, for_the_own_payments])
def test_a_policy_that_names_its_proposer_alone_is_not_put_into_effect(
    sandbox: SandboxProcess,
    all_roles: User,
    administrator: User,
    approver: User,
    rule: Callable[[User], dict[str, Any]],
) -> None:
    """Neither by the proposer nor by a colleague who overlooks it."""
    before, operation = balances(sandbox), payment(all_roles)
    policy = proposed(all_roles, rule(all_roles))
    refused_with(Refusal.SELF_APPROVAL, factories.approve, policy, all_roles)
    refused_with(Refusal.POLICY_UNSATISFIABLE, factories.approve, policy, administrator)
    assert not PolicyVersion.objects.exists()
    approval_is_refused(Refusal.SELF_APPROVAL, operation, all_roles, sandbox)
    assert_nothing_left(sandbox, before, operation, policy)


def test_nobody_puts_a_policy_of_their_own_into_effect(all_roles: User, approver: User) -> None:
    """Also one that could be satisfied."""
    policy = proposed(all_roles, {"when": {"kinds": [KIND]}, **levels((1, of_people(approver)))})
    refused_with(Refusal.SELF_APPROVAL, factories.approve, policy, all_roles)
    assert not PolicyVersion.objects.exists()


def test_who_alone_approves_by_policy_does_not_become_a_preparer(
    agree: Callable[[StaffChangePayload], Operation], preparer: User, approver: User, second_approver: User
) -> None:
    put_in_effect({"when": {"kinds": [KIND]}, **levels((1, of_people(approver)))})
    both = changes.rights(approver, Role.APPROVER, Role.PREPARER)
    refused_with(Refusal.POLICY_UNSATISFIABLE, agree, both)
    assert set(approver.groups.values_list("name", flat=True)) == {Role.APPROVER}


def test_under_a_policy_that_names_the_preparer_alone_nobody_approves(
    sandbox: SandboxProcess, all_roles: User, approver: User
) -> None:
    before = balances(sandbox)
    put_in_effect(for_the_own_payments(all_roles))
    operation = payment(all_roles)
    approval_is_refused(Refusal.SELF_APPROVAL, operation, all_roles, sandbox)
    approval_is_refused(Refusal.NOT_IN_LEVEL, operation, approver, sandbox)
    assert_nothing_left(sandbox, before, operation)


@pytest.mark.parametrize("is_released", [False, True])
def test_a_policy_that_names_the_preparer_alone_holds_what_another_person_approved(
    sandbox: SandboxProcess, all_roles: User, approver: User, second_approver: User, is_released: bool
) -> None:
    before = balances(sandbox)
    operation = operations.approved(KIND, all_roles, approver)
    if is_released:
        operations.release(operation, second_approver, sandbox)
    put_in_effect(for_the_own_payments(all_roles))
    if not is_released:
        refused_with(Refusal.APPROVALS_MISSING, operations.release, operation, second_approver, sandbox)
    approval_is_refused(Refusal.SELF_APPROVAL, operation, all_roles, sandbox)
    assert_nothing_left(sandbox, before, operation, status=Status.APPROVED)


# A change of groups or roles in between


@pytest.fixture
def directors(approver: User, second_approver: User) -> StaffGroup:
    """With a policy by which one of this group approves crypto transfers."""
    found = group("Directors", approver, second_approver)
    put_in_effect({"when": {"kinds": [KIND]}, **levels((1, of_group(found)))})
    return found


def test_a_preparer_who_joins_the_group_meanwhile_does_not_approve(
    sandbox: SandboxProcess,
    agree: Callable[[StaffChangePayload], Operation],
    preparer: User,
    directors: StaffGroup,
) -> None:
    """Neither while new rights wait nor afterwards."""
    before, operation = balances(sandbox), payment(preparer)
    agree(changes.rights(preparer, Role.PREPARER, Role.APPROVER, groups=(directors,)))
    approval_is_refused(Refusal.NEW_RIGHTS_WAIT, operation, preparer, sandbox)
    with lifted(connection, ["accounts_rightsgrant"]):
        RightsGrant.objects.update(at=timezone.now() - timedelta(hours=25))
    approval_is_refused(Refusal.SELF_APPROVAL, operation, preparer, sandbox)
    assert_nothing_left(sandbox, before, operation)


def leaves_the_group(approver: User, directors: StaffGroup) -> StaffChangePayload:
    return changes.rights(approver, Role.APPROVER)


def loses_the_role(approver: User, directors: StaffGroup) -> StaffChangePayload:
    return changes.rights(approver, groups=(directors,))


def joins_another_group(approver: User, directors: StaffGroup) -> StaffChangePayload:
    return changes.rights(approver, Role.APPROVER, groups=(directors, create_group("Board")))


@pytest.fixture
def approved(preparer: User, approver: User, directors: StaffGroup) -> Operation:
    return operations.approved(KIND, preparer, approver)


@pytest.mark.parametrize("change", [leaves_the_group, loses_the_role, joins_another_group])
def test_an_approval_does_not_count_for_a_release_after_a_change_of_its_approver(
    sandbox: SandboxProcess,
    agree: Callable[[StaffChangePayload], Operation],
    approved: Operation,
    approver: User,
    second_approver: User,
    directors: StaffGroup,
    change: Callable[[User, StaffGroup], StaffChangePayload],
) -> None:
    before = balances(sandbox)
    agree(change(approver, directors))
    refused_with(Refusal.APPROVALS_MISSING, operations.release, approved, second_approver, sandbox)
    assert_nothing_left(sandbox, before, approved, status=Status.APPROVED)


@pytest.fixture
def released(sandbox: SandboxProcess, approved: Operation, second_approver: User) -> Operation:
    return operations.release(approved, second_approver, sandbox)


def latest_refusal() -> str:
    """The code that the audit log has of what was refused last, such as a claim."""
    refused = Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED).latest("position")
    return str(refused.detail["refusal"]["code"])


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (leaves_the_group, Refusal.APPROVALS_MISSING),
        (loses_the_role, Refusal.APPROVER_NOT_ENTITLED),
        (joins_another_group, Refusal.APPROVER_RIGHTS_NEW),
    ],
)
def test_an_approval_does_not_count_at_the_claim_after_a_change_of_its_approver(
    sandbox: SandboxProcess,
    agree: Callable[[StaffChangePayload], Operation],
    released: Operation,
    approver: User,
    directors: StaffGroup,
    change: Callable[[User, StaffGroup], StaffChangePayload],
    refusal: Refusal,
) -> None:
    before = balances(sandbox)
    agree(change(approver, directors))
    assert_nothing_left(sandbox, before, released, status=Status.APPROVED)
    assert latest_refusal() == refusal


def test_without_such_a_change_it_is_sent(sandbox: SandboxProcess, released: Operation) -> None:
    before = balances(sandbox)
    send.send_operation(released.pk)
    assert Attempt.objects.get().operation == released
    assert balances(sandbox) != before


def test_a_row_is_not_claimed_after_the_approver_of_its_batch_lost_the_role(
    sandbox: SandboxProcess, preparer: User, approver: User, second_approver: User
) -> None:
    before = balances(sandbox)
    batch = payouts.applied(preparer, approver, payouts.transfers(1))
    [row] = payouts.row_operations(batch)
    operations.release(row, second_approver, sandbox)
    approver.groups.remove(Group.objects.get(name=Role.APPROVER))
    assert_nothing_left(sandbox, before, row, status=Status.APPROVED)
    assert latest_refusal() == Refusal.APPROVER_NOT_ENTITLED
