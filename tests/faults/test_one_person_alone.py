"""One person with several accounts or roles: whatever that person does alone, no money leaves.

Accounts made at a shell of the server, invited accounts, a stand-in of one's own, and a batch. What changes while an
operation waits is in `test_rules_changed_meanwhile.py`.
"""

import uuid
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.db import DatabaseError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from backoffice.accounts import setup_links
from backoffice.accounts.models import StaffGroup, User
from backoffice.accounts.restrictions import BreakGlassChange
from backoffice.accounts.roles import Role
from backoffice.operations.batches import control, creation
from backoffice.operations.errors import AccountRestrictedError
from backoffice.operations.kinds.delegation import check_delegation
from backoffice.operations.models.operations import Approval, Attempt, Release
from backoffice.operations.monitoring.inspection import system_health
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals, bulk_release
from backoffice.policies.delegations import Delegation
from tests import factories
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
from tests.operations.delegations import delegated, leave
from tests.operations.kinds.staff import changes
from tests.policies.versions import put_in_effect
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def two_administrators(administrator: User, second_administrator: User) -> None:
    """From here on every right that the command line gives is a break-glass change."""


# At a shell of the server


def create(name: str, role: str, *why: str) -> User:
    email = f"{name.split()[0].lower()}@countersign.example"
    call_command("staff", "create", email, "--name", name, "--role", role, *why)
    return User.objects.get(email=email)


def test_two_accounts_of_one_person_move_no_money(sandbox: SandboxProcess) -> None:
    before = balances(sandbox)
    preparer = create("Ada Obi", "Preparer", "--break-glass", "Ticket 42")
    approver = create("Kola Bello", "Approver", "--break-glass", "Ticket 42")
    operation = payment(preparer)
    approval_is_refused(Refusal.ACCOUNT_RESTRICTED, operation, approver, sandbox)
    assert_nothing_left(sandbox, before, operation)
    assert [model.objects.count() for model in (Approval, Release, Attempt)] == [0, 0, 0]
    assert system_health().open_break_glass == 2


def test_an_approval_of_another_person_is_not_sent_by_an_account_made_alone(
    sandbox: SandboxProcess, preparer: User, approver: User
) -> None:
    before = balances(sandbox)
    operation = operations.approved(KIND, preparer, approver)
    with pytest.raises(AccountRestrictedError):
        operations.release(operation, create("Kola Bello", "Approver", "--break-glass", "Ticket 42"), sandbox)
    assert_nothing_left(sandbox, before, operation, status=Status.APPROVED, counted=1)


def test_without_break_glass_no_account_is_made() -> None:
    with pytest.raises(CommandError, match="use --break-glass REASON"):
        create("Kola Bello", "Approver")
    assert not User.objects.filter(full_name="Kola Bello").exists()
    assert not BreakGlassChange.objects.exists()


# Two invited accounts

TWO_ACCOUNTS = {"Ada Obi": Role.PREPARER, "Kola Bello": Role.APPROVER}


def test_an_administrator_alone_invites_nobody(administrator: User) -> None:
    for name, role in TWO_ACCOUNTS.items():
        invitation = changes.proposed(changes.invitation(role, name=name), administrator)
        refused_with(Refusal.SELF_APPROVAL, factories.approve, invitation, administrator)
    assert not User.objects.filter(full_name__in=TWO_ACCOUNTS).exists()


def test_the_inviter_of_two_accounts_opens_neither(administrator: User, second_administrator: User) -> None:
    """The preparer of both invitations sees both links. The start codes are for the other administrator."""
    for name, role in TWO_ACCOUNTS.items():
        invitation = changes.invitation(role, name=name)
        agreed = changes.agreed(invitation, administrator, second_administrator)
        link = setup_links.show_handover(agreed.pk, actor=administrator, second_factor_at=timezone.now())
        chosen = {"new_password": factories.PASSWORD, "repeated": factories.PASSWORD}
        for guess in ("", "AAAA-BBBB-CCCC-DDDD"):
            answer = Client().post(reverse("accounts:set_up", args=[link]), chosen | {"start_code": guess})
            assert answer.status_code == 422
    assert not any(one.has_usable_password() for one in User.objects.filter(full_name__in=TWO_ACCOUNTS))


def test_two_accounts_invited_by_one_person_move_no_money(
    sandbox: SandboxProcess, administrator: User, second_administrator: User
) -> None:
    """Even if that person can use both accounts: the invited approver waits for 24 hours."""
    before = balances(sandbox)
    for name, role in TWO_ACCOUNTS.items():
        changes.agreed(changes.invitation(role, name=name), administrator, second_administrator)
    preparer, approver = (User.objects.get(full_name=name) for name in TWO_ACCOUNTS)
    operation = payment(preparer)
    approval_is_refused(Refusal.NEW_RIGHTS_WAIT, operation, approver, sandbox)
    assert_nothing_left(sandbox, before, operation)


def test_two_invited_administrators_do_not_make_their_inviter_an_approver(
    sandbox: SandboxProcess, administrator: User, second_administrator: User, preparer: User
) -> None:
    before, operation = balances(sandbox), payment(preparer)
    for name in TWO_ACCOUNTS:
        invitation = changes.invitation(Role.ADMINISTRATOR, name=name)
        changes.agreed(invitation, administrator, second_administrator)
    first, second = (User.objects.get(full_name=name) for name in TWO_ACCOUNTS)
    wanted = changes.proposed(changes.rights(administrator, Role.ADMINISTRATOR, Role.APPROVER), first)
    refused_with(Refusal.OWN_INVITEES, factories.approve, wanted, second)
    approval_is_refused(Refusal.PERMISSION_MISSING, operation, administrator, sandbox)
    assert_nothing_left(sandbox, before, operation)


# A stand-in of one's own


@pytest.fixture
def all_roles(away: User) -> User:
    """The only approver by the policy of `treasury`, who may also prepare payments and approve delegations."""
    return with_roles(away, Role.PREPARER, Role.APPROVER, Role.ADMINISTRATOR)


def with_roles(person: User, *roles: Role) -> User:
    """The person with these roles, for longer than the waiting time."""
    person.groups.set(Group.objects.filter(name__in=roles))
    return User.objects.get(pk=person.pk)


def test_nobody_delegates_to_themselves_or_agrees_alone(
    sandbox: SandboxProcess, all_roles: User, approver: User, second_approver: User, treasury: StaffGroup
) -> None:
    before, operation = balances(sandbox), payment(all_roles)
    propose = partial(factories.prepared_of_kind, "delegation", preparer=all_roles)
    for person in (all_roles, second_approver):
        refused_with(Refusal.OWN_RIGHTS, propose, leave(person, all_roles, treasury))
    refused_with(Refusal.DELEGATION_OF_ANOTHER, propose, leave(second_approver, approver, treasury))
    proposed = propose(leave(all_roles, approver, treasury))
    refused_with(Refusal.SELF_APPROVAL, factories.approve, proposed, all_roles)
    stand_in = with_roles(approver, Role.APPROVER, Role.ADMINISTRATOR)
    refused_with(Refusal.OWN_RIGHTS, factories.approve, proposed, stand_in)
    assert not Delegation.objects.exists()
    approval_is_refused(Refusal.SELF_APPROVAL, operation, all_roles, sandbox)
    assert_nothing_left(sandbox, before, operation)


def test_a_delegation_to_oneself_can_neither_be_entered_nor_begin(
    all_roles: User, treasury: StaffGroup
) -> None:
    """The form and the effect check it, and the database: it would not begin even if it had been proposed."""
    refused_with(Refusal.DELEGATION_TO_ONESELF, check_delegation, leave(all_roles, all_roles, treasury))
    with pytest.raises(DatabaseError), transaction.atomic():
        delegated(all_roles, all_roles, treasury)


def test_a_stand_in_approves_for_nobody_what_one_of_the_two_prepared(
    sandbox: SandboxProcess, all_roles: User, approver: User, second_approver: User, treasury: StaffGroup
) -> None:
    before, of_the_person_on_leave = balances(sandbox), payment(all_roles)
    delegated(all_roles, approver, treasury)
    approval_is_refused(Refusal.NOT_IN_LEVEL, of_the_person_on_leave, approver, sandbox)
    of_the_stand_in = payment(with_roles(approver, Role.PREPARER, Role.APPROVER))
    approval_is_refused(Refusal.SELF_APPROVAL, of_the_stand_in, approver, sandbox)
    assert_nothing_left(sandbox, before, of_the_person_on_leave, of_the_stand_in)


# A batch


def test_the_preparer_of_a_batch_does_not_approve_it(
    sandbox: SandboxProcess, preparer: User, approver: User
) -> None:
    before = balances(sandbox)
    preparer = with_roles(preparer, Role.PREPARER, Role.APPROVER)
    batch = payouts.prepared(preparer, payouts.transfers(2))
    refused_with(Refusal.SELF_APPROVAL, factories.approve, batch, preparer)
    chosen = approvals.SelectedOperation(batch, batch.digest)
    [result] = approvals.approve_operations([chosen], actor=preparer, second_factor_at=timezone.now())
    assert result.result == approvals.BulkOutcome.REFUSED
    creation.create_operations(batch.pk)
    assert payouts.row_operations(batch) == []
    assert_nothing_left(sandbox, before, batch)


def test_the_preparer_of_a_batch_does_not_send_its_rows(
    sandbox: SandboxProcess, preparer: User, approver: User
) -> None:
    """Neither one by one nor all in one order; nor does the preparer end a pause of the batch."""
    before = balances(sandbox)
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    rows, preparer = payouts.row_operations(batch), with_roles(preparer, Role.PREPARER, Role.APPROVER)
    for row in rows:
        refused_with(Refusal.SELF_APPROVAL, operations.release, row, preparer, sandbox)
    decision: dict[str, Any] = {"actor": preparer, "second_factor_at": timezone.now()}
    order = bulk_release.start_bulk_release(uuid.uuid4(), rows, **decision)
    bulk_release.release_pending(order.pk)
    otp = operations.otp_for(rows[0], sandbox)
    assert otp is not None
    assert not bulk_release.release_with_code(order, **decision, otp=otp)
    control.pause_batch(batch.pk, actor=approver)
    refused_with(Refusal.SELF_APPROVAL, control.resume_batch, batch.pk, actor=preparer)
    assert_nothing_left(sandbox, before, *rows, status=Status.APPROVED, counted=1)


def test_the_preparer_of_a_batch_gives_its_rows_no_missing_approval(
    sandbox: SandboxProcess, preparer: User, approver: User
) -> None:
    """A policy was tightened after the approval of the batch, so that each row needs another one."""
    before = balances(sandbox)
    batch = payouts.applied(preparer, approver, payouts.transfers(1))
    [row], preparer = payouts.row_operations(batch), with_roles(preparer, Role.PREPARER, Role.APPROVER)
    put_in_effect({"levels": [{"needed": 2}]})
    refused_with(Refusal.SELF_APPROVAL, factories.approve, row, preparer)
    refused_with(Refusal.APPROVALS_MISSING, operations.release, row, approver, sandbox)
    assert_nothing_left(sandbox, before, row, status=Status.APPROVED, counted=1)
