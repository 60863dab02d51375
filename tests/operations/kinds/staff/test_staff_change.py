"""A change of staff: two administrators agree, neither is the person changed, and what remains can still work."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts import groups, setup_links, staff
from backoffice.accounts.models import AuthenticatorDevice, GroupMembership, SetupLink, StaffSession, User
from backoffice.accounts.protection.lockout import WRONG_FOR_ACCOUNT_AND_ADDRESS
from backoffice.accounts.restrictions import AccountChange, RightsGrant
from backoffice.accounts.roles import Role, users_with_permission
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations import errors
from backoffice.operations.approval import waiting
from backoffice.operations.delivery import send
from backoffice.operations.kinds.staff_change import (
    StaffChange,
    StaffChangeForm,
    StaffChangeKind,
    StaffChangePayload,
)
from backoffice.operations.models.operations import Approval, Attempt, Operation, Release
from backoffice.operations.monitoring.recorded_rights import unrecorded_rights
from backoffice.operations.permissions import APPROVE
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from tests import factories
from tests.append_only import triggers
from tests.operations.batches import payouts
from tests.operations.kinds.staff import changes
from tests.operations.steps import show, status_of, text_of
from tests.policies.versions import group, levels, of_group, put_in_effect
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db
SignIn = Callable[[Client, User], Client]


@pytest.fixture(autouse=True)
def two_administrators(administrator: User, second_administrator: User) -> None:
    """Most changes need them, and no other rule may be the one that refuses."""


def refused_with(code: Refusal, action: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    with pytest.raises(errors.OperationError) as refused:
        action(*args, **kwargs)
    assert refused.value.refusal["code"] == code


def test_an_approved_invitation_makes_an_account_with_roles_groups_and_a_link(
    administrator: User, second_administrator: User
) -> None:
    treasury = groups.create_group("Treasury")
    operation = changes.agreed(
        changes.invitation(Role.APPROVER, Role.AUDITOR, groups=(treasury,)),
        administrator,
        second_administrator,
    )
    assert operation.status == Status.SUCCEEDED
    ada = User.objects.get(email="ada@countersign.example")
    assert staff.role_names(ada) == [Role.APPROVER, Role.AUDITOR]
    assert not ada.has_usable_password()
    assert GroupMembership.objects.get().operation == operation.pk
    grant = RightsGrant.objects.get()
    assert (grant.user, grant.change, grant.roles, grant.groups) == (
        ada,
        AccountChange.CREATED,
        [Role.APPROVER, Role.AUDITOR],
        [treasury.pk],
    )
    assert (grant.prepared_by, grant.approved_by) == (administrator, second_administrator)
    assert {Action.STAFF_CREATED, Action.STAFF_GROUPS_CHANGED, Action.SETUP_LINK_CREATED} <= set(
        Entry.objects.values_list("action", flat=True)
    )


def test_the_preparer_does_not_approve_the_invitation(administrator: User) -> None:
    operation = changes.proposed(changes.invitation(Role.APPROVER), administrator)
    with pytest.raises(errors.SelfApprovalError):
        factories.approve(operation, administrator)
    assert not User.objects.filter(email="ada@countersign.example").exists()


def test_an_approver_of_payments_does_not_approve_a_change_of_staff(
    administrator: User, approver: User, sign_in: SignIn
) -> None:
    operation = changes.proposed(changes.invitation(Role.APPROVER), administrator)
    with pytest.raises(errors.PermissionMissingError):
        factories.approve(operation, approver)
    assert operation not in waiting.operations_waiting_for(approver)
    address = reverse("operations:approve", args=[operation.pk])
    assert sign_in(Client(), approver).post(address).status_code == 403


def test_an_administrator_does_not_approve_payments(operation: Operation, administrator: User) -> None:
    with pytest.raises(errors.PermissionMissingError):
        factories.approve(operation, administrator)


def test_a_change_of_staff_waits_for_the_other_administrator_only(
    administrator: User, second_administrator: User, approver: User
) -> None:
    operation = changes.proposed(changes.invitation(Role.APPROVER), administrator)
    assert list(waiting.operations_waiting_for(second_administrator)) == [operation]
    assert list(waiting.operations_waiting_for(administrator)) == []
    assert [waiting.waiting_count(one) for one in (second_administrator, administrator)] == [1, 0]
    assert waiting.deciders(operation) == {second_administrator.pk}


def test_nobody_prepares_a_change_of_their_own_rights(administrator: User) -> None:
    payload = changes.rights(administrator, Role.ADMINISTRATOR, Role.APPROVER)
    refused_with(Refusal.OWN_RIGHTS, changes.proposed, payload, administrator)


def test_nobody_approves_a_change_of_their_own_rights(
    administrator: User, second_administrator: User, sign_in: SignIn
) -> None:
    payload = changes.rights(second_administrator, Role.ADMINISTRATOR, Role.APPROVER)
    operation = changes.proposed(payload, administrator)
    refused_with(Refusal.OWN_RIGHTS, factories.approve, operation, second_administrator)
    rejection = {
        "actor": second_administrator,
        "digest": operation.digest,
        "second_factor_at": timezone.now(),
        "reason": "I want to keep it as it is",
    }
    refused_with(Refusal.OWN_RIGHTS, approvals.reject_operation, operation.pk, **rejection)
    assert staff.role_names(second_administrator) == [Role.ADMINISTRATOR]
    assert list(waiting.operations_waiting_for(second_administrator)) == []
    assert waiting.waiting_count(second_administrator) == 0
    page = text_of(show(sign_in(Client(), second_administrator), operation))
    assert "Waiting for approval" in page
    assert 'name="digest"' not in page


def test_two_accounts_invited_by_one_person_give_that_person_no_rights(
    administrator: User, second_administrator: User
) -> None:
    puppets = []
    for name in ("Ada Obi", "Bola Ige"):
        payload = changes.invitation(Role.ADMINISTRATOR, name=name)
        changes.agreed(payload, administrator, second_administrator)
        puppets.append(User.objects.get(full_name=name))
    payload = changes.rights(administrator, Role.ADMINISTRATOR, Role.APPROVER)
    operation = changes.proposed(payload, puppets[0])
    refused_with(Refusal.OWN_INVITEES, factories.approve, operation, puppets[1])
    assert (status_of(operation), Approval.objects.filter(operation=operation).count()) == (Status.PENDING, 0)
    third = factories.person("Third Person", Role.ADMINISTRATOR)
    assert factories.approve(operation, third).status == Status.SUCCEEDED


def test_one_person_cannot_open_two_invited_accounts(administrator: User, second_administrator: User) -> None:
    """The preparer sees the links of both, and no start code of either."""
    for name in ("Ada Obi", "Bola Ige"):
        operation = changes.agreed(
            changes.invitation(Role.APPROVER, name=name), administrator, second_administrator
        )
        token = setup_links.show_handover(operation.pk, actor=administrator, second_factor_at=timezone.now())
        with pytest.raises(setup_links.NothingToHandOverError):
            setup_links.show_handover(operation.pk, actor=administrator, second_factor_at=timezone.now())
        address = reverse("accounts:set_up", args=[token])
        chosen = {"new_password": factories.PASSWORD, "repeated": factories.PASSWORD}
        for code in ("", "AAAA-BBBB-CCCC-DDDD"):
            assert Client().post(address, chosen | {"start_code": code}).status_code == 422
    assert not any(user.has_usable_password() for user in User.objects.filter(grants__isnull=False))


def both_halves(preparer: User, approver: User) -> list[str]:
    """The token of the link and the start code of an invitation, as each of the two sees their own."""
    operation = changes.agreed(changes.invitation(Role.APPROVER), preparer, approver)
    return [
        setup_links.show_handover(operation.pk, actor=person, second_factor_at=timezone.now())
        for person in (preparer, approver)
    ]


def test_link_and_start_code_together_open_the_account(
    client: Client, administrator: User, second_administrator: User
) -> None:
    token, code = both_halves(administrator, second_administrator)
    address = reverse("accounts:set_up", args=[token])
    assert "Start code" in text_of(client.get(address))
    chosen = {"new_password": factories.PASSWORD, "repeated": factories.PASSWORD, "start_code": code.lower()}
    differing = text_of(client.post(address, chosen | {"repeated": "another"}))
    assert f'value="{code.lower()}"' in differing  # it is not typed twice for another field's error
    assert client.post(address, chosen).status_code == 302
    assert User.objects.get(email="ada@countersign.example").check_password(factories.PASSWORD)
    assert not SetupLink.objects.exists()


def test_wrong_start_codes_lock_out_whoever_has_the_link(
    client: Client, administrator: User, second_administrator: User
) -> None:
    """Even the correct code is refused then: the code is short, so that it can be dictated."""
    token, code = both_halves(administrator, second_administrator)
    address = reverse("accounts:set_up", args=[token])
    chosen = {"new_password": factories.PASSWORD, "repeated": factories.PASSWORD}
    for _ in range(WRONG_FOR_ACCOUNT_AND_ADDRESS):
        client.post(address, chosen | {"start_code": SetupLink.generate_code()})
    client.post(address, chosen | {"start_code": code})
    assert not User.objects.get(email="ada@countersign.example").has_usable_password()


@pytest.mark.parametrize("between", ["-", "", " ", " - ", "  "])
def test_a_start_code_may_be_typed_as_it_was_dictated(
    client: Client, administrator: User, second_administrator: User, between: str
) -> None:
    token, code = both_halves(administrator, second_administrator)
    typed = between.join(code.lower().split("-"))
    chosen = {"new_password": factories.PASSWORD, "repeated": factories.PASSWORD, "start_code": typed}
    assert client.post(reverse("accounts:set_up", args=[token]), chosen).status_code == 302


def test_the_halves_need_a_fresh_second_factor_and_are_for_the_two_people_only(
    administrator: User, second_administrator: User
) -> None:
    operation = changes.agreed(changes.invitation(Role.APPROVER), administrator, second_administrator)
    stale = timezone.now() - timedelta(minutes=6)
    with pytest.raises(setup_links.HandoverFactorStaleError):
        setup_links.show_handover(operation.pk, actor=administrator, second_factor_at=stale)
    third = factories.person("Third Person", Role.ADMINISTRATOR)
    with pytest.raises(setup_links.NothingToHandOverError):
        setup_links.show_handover(operation.pk, actor=third, second_factor_at=timezone.now())
    SetupLink.objects.update(expires_at=timezone.now())
    with pytest.raises(setup_links.NothingToHandOverError):
        setup_links.show_handover(operation.pk, actor=administrator, second_factor_at=timezone.now())


def test_link_and_start_code_are_in_no_audit_entry(administrator: User, second_administrator: User) -> None:
    operation = changes.agreed(changes.invitation(Role.APPROVER), administrator, second_administrator)
    halves = [
        setup_links.show_handover(operation.pk, actor=person, second_factor_at=timezone.now())
        for person in (administrator, second_administrator)
    ]
    logged = str(list(Entry.objects.values_list("detail", "target_label")))
    assert all(half not in logged for half in halves)


def test_changed_roles_end_the_sessions_and_take_effect(
    administrator: User, second_administrator: User, preparer: User, sign_in: SignIn
) -> None:
    sign_in(Client(), preparer)
    treasury = groups.create_group("Treasury")
    payload = changes.rights(preparer, Role.AUDITOR, groups=(treasury,))
    changes.agreed(payload, administrator, second_administrator)
    assert staff.role_names(preparer) == [Role.AUDITOR]
    assert groups.groups_of([preparer.pk]) == {preparer.pk: {treasury.pk: "Treasury"}}
    assert not StaffSession.objects.filter(user=preparer).exists()
    grant = RightsGrant.objects.get()
    assert (grant.roles, grant.groups) == ([Role.AUDITOR], [treasury.pk])


def test_taking_rights_away_begins_no_waiting_time(
    administrator: User, second_administrator: User, approver: User, preparer: User
) -> None:
    factories.person("Chidi Nwosu", Role.APPROVER)
    both = factories.person("Both Roles", Role.APPROVER, Role.AUDITOR)
    changes.agreed(changes.rights(both, Role.APPROVER), administrator, second_administrator)
    assert not RightsGrant.objects.exists()
    assert both in users_with_permission(APPROVE)


def test_a_deactivated_person_is_reactivated_by_two_people(
    administrator: User, second_administrator: User, approver: User
) -> None:
    User.objects.filter(pk=approver.pk).update(is_active=False)
    payload = changes.of_person(StaffChange.REACTIVATE, approver)
    changes.agreed(payload, administrator, second_administrator)
    assert User.objects.get(pk=approver.pk).is_active
    assert RightsGrant.objects.get().roles == [Role.APPROVER]
    assert approver not in users_with_permission(APPROVE)


def test_a_reset_deletes_the_second_factor_and_gives_a_link_of_two_halves(
    administrator: User, second_administrator: User, approver: User
) -> None:
    payload = changes.of_person(StaffChange.SECOND_FACTOR, approver)
    operation = changes.agreed(payload, administrator, second_administrator)
    assert not AuthenticatorDevice.objects.filter(user=approver).exists()
    assert not User.objects.get(pk=approver.pk).has_usable_password()
    link = SetupLink.objects.get(operation=operation.pk)
    assert (link.user, link.link_for, link.code_for) == (approver, administrator, second_administrator)
    assert approver not in users_with_permission(APPROVE)


def test_groups_are_created_renamed_and_retired_by_two_people(
    administrator: User, second_administrator: User
) -> None:
    def agree(change: StaffChange, name: str = "", group: Any = None) -> None:
        payload = changes.of_group(change, name, group)
        changes.agreed(payload, administrator, second_administrator)

    agree(StaffChange.CREATE_GROUP, "Tresury")
    [group] = groups.active_groups()
    agree(StaffChange.RENAME_GROUP, "Treasury", group)
    [group] = groups.active_groups()
    assert group.name == "Treasury"
    agree(StaffChange.RETIRE_GROUP, "", group)
    assert not groups.active_groups().exists()
    made = Entry.objects.filter(action__startswith="group.").order_by("position")
    assert [entry.action for entry in made] == ["group.created", "group.renamed", "group.retired"]


def test_a_change_that_leaves_one_administrator_is_refused(
    administrator: User, second_administrator: User
) -> None:
    """When it is applied, preparer and approver are two administrators who remain."""
    payload = changes.rights(second_administrator, Role.AUDITOR)
    refused_with(Refusal.TOO_FEW_ADMINISTRATORS, changes.proposed, payload, administrator)
    factories.person("Third Person", Role.ADMINISTRATOR)
    assert changes.proposed(payload, administrator).status == Status.PENDING


def test_the_audit_log_has_the_rights_after_every_change(
    administrator: User, second_administrator: User, approver: User
) -> None:
    factories.record_rights()
    both = (administrator, second_administrator)
    treasury, directors = groups.create_group("Treasury"), groups.create_group("Directors")
    ada_s = changes.invitation(Role.APPROVER, Role.AUDITOR, groups=(treasury, directors))
    changes.agreed(ada_s, *both)
    assert unrecorded_rights() == []
    ada = User.objects.get(email="ada@countersign.example")
    changes.agreed(changes.rights(ada, Role.APPROVER, groups=(directors,)), *both)
    assert unrecorded_rights() == []
    changes.agreed(changes.of_group(StaffChange.RENAME_GROUP, "Board", directors), *both)
    changes.agreed(changes.of_group(StaffChange.RETIRE_GROUP, group=treasury), *both)
    assert unrecorded_rights() == []
    directors.refresh_from_db()
    changes.agreed(changes.of_group(StaffChange.RETIRE_GROUP, group=directors), *both)
    assert unrecorded_rights() == []
    staff.deactivate_staff(ada.pk, actor=administrator)
    changes.agreed(changes.of_person(StaffChange.REACTIVATE, ada), *both)
    assert unrecorded_rights() == []
    ada.groups.clear()
    assert unrecorded_rights() == [f"Ada Obi ({ada.pk})"]


def test_the_last_approver_is_not_taken_from_those_who_prepare(
    administrator: User, second_administrator: User, preparer: User, approver: User
) -> None:
    payload = changes.rights(approver, Role.AUDITOR)
    refused_with(Refusal.NOBODY_TO_APPROVE, changes.proposed, payload, administrator)
    second = factories.person("Chidi Nwosu", Role.APPROVER)
    operation = changes.proposed(payload, administrator)
    User.objects.filter(pk=second.pk).update(is_active=False)
    refused_with(Refusal.NOBODY_TO_APPROVE, factories.approve, operation, second_administrator)
    assert (status_of(operation), staff.role_names(approver)) == (Status.PENDING, [Role.APPROVER])


def test_an_approver_who_would_prepare_alone_is_refused(
    administrator: User, preparer: User, approver: User
) -> None:
    payload = changes.rights(approver, Role.APPROVER, Role.PREPARER)
    refused_with(Refusal.NOBODY_TO_APPROVE, changes.proposed, payload, administrator)


def test_a_preparer_may_be_invited_before_the_first_approver(administrator: User) -> None:
    operation = changes.proposed(changes.invitation(Role.PREPARER), administrator)
    assert operation.status == Status.PENDING


def test_a_change_of_what_has_changed_meanwhile_is_not_applied(
    administrator: User, second_administrator: User, preparer: User, approver: User
) -> None:
    operation = changes.proposed(changes.rights(preparer, Role.AUDITOR), administrator)
    groups.set_groups(preparer, [groups.create_group("Treasury").pk], operation=operation.pk)
    refused_with(Refusal.PERSON_CHANGED, factories.approve, operation, second_administrator)
    assert staff.role_names(preparer) == [Role.PREPARER]


@pytest.mark.parametrize("is_invited", [True, False])
def test_a_change_names_its_groups_as_they_are_called_now(
    administrator: User, second_administrator: User, preparer: User, approver: User, is_invited: bool
) -> None:
    treasury, directors = groups.create_group("Treasury"), groups.create_group("Directors")
    change = (
        changes.invitation(groups=(treasury,)) if is_invited else changes.rights(preparer, groups=(treasury,))
    )
    operation = changes.proposed(change, administrator)
    groups.rename_group(treasury.pk, name="Old desk")
    groups.rename_group(directors.pk, name="Treasury")
    refused_with(Refusal.PERSON_CHANGED, factories.approve, operation, second_administrator)
    assert not treasury.memberships.exists()


def test_a_group_that_the_policy_needs_is_named_as_it_is_called_now(
    administrator: User, second_administrator: User, approver: User
) -> None:
    treasury = group("Treasury", approver)
    put_in_effect(levels((1, of_group(treasury))))
    groups.rename_group(treasury.pk, name="Old desk")
    treasury.refresh_from_db()
    with pytest.raises(errors.OperationError, match="1 of Old desk"):
        changes.proposed(changes.of_group(StaffChange.RETIRE_GROUP, group=treasury), administrator)


def test_an_address_is_invited_once(administrator: User, second_administrator: User) -> None:
    operation = changes.proposed(changes.invitation(Role.AUDITOR), administrator)
    staff.create_staff("ada@countersign.example", full_name="Ada Obi", roles=[], actor=None)
    refused_with(Refusal.EMAIL_TAKEN, factories.approve, operation, second_administrator)


def test_one_change_of_a_person_is_pending_at_a_time(
    administrator: User, preparer: User, approver: User
) -> None:
    changes.proposed(changes.rights(preparer, Role.AUDITOR), administrator)
    with pytest.raises(errors.DuplicatePendingError, match="is about the same and already waiting"):
        changes.proposed(changes.of_person(StaffChange.SECOND_FACTOR, preparer), administrator)
    with pytest.raises(errors.DuplicatePendingError, match="with exactly this content is already waiting"):
        changes.proposed(changes.rights(preparer, Role.AUDITOR), administrator)


@pytest.fixture
def newcomer(administrator: User, second_administrator: User, preparer: User) -> User:
    """An approver by an approved invitation, just now, who has signed in."""
    changes.agreed(changes.invitation(Role.APPROVER), administrator, second_administrator)
    return User.objects.get(email="ada@countersign.example")


def test_who_was_invited_cannot_approve_release_or_resolve_for_24_hours(
    newcomer: User, operation: Operation, approver: User
) -> None:
    refused_with(Refusal.NEW_RIGHTS_WAIT, factories.approve, operation, newcomer)
    factories.approve(operation, approver)
    refused_with(Refusal.NEW_RIGHTS_WAIT, factories.release, operation, newcomer)
    for permission in ("approve_operation", "release_operation", "resolve_operation"):
        assert newcomer not in users_with_permission(f"operations.{permission}")


def granted(*, hours_ago: float) -> None:
    """Backdate all rights granted so far, past the triggers that refuse it."""
    with triggers.lifted(connection, ["accounts_rightsgrant"]):
        RightsGrant.objects.update(at=timezone.now() - timedelta(hours=hours_ago))


@pytest.mark.parametrize(("hours", "may"), [(23.99, False), (24.01, True)])
def test_the_waiting_time_ends(newcomer: User, operation: Operation, hours: float, may: bool) -> None:
    granted(hours_ago=hours)
    if may:
        assert factories.approve(operation, newcomer).status == Status.APPROVED
    else:
        refused_with(Refusal.NEW_RIGHTS_WAIT, factories.approve, operation, newcomer)


@pytest.mark.parametrize(
    "write",
    [
        lambda grants: grants.update(at=timezone.now() - timedelta(days=2)),
        lambda grants: grants._raw_delete("default"),
    ],
    ids=["backdate", "delete"],
)
def test_the_database_refuses_to_end_the_waiting_time(
    newcomer: User, operation: Operation, write: Callable[[QuerySet[RightsGrant]], object]
) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        write(RightsGrant.objects.all())
    refused_with(Refusal.NEW_RIGHTS_WAIT, factories.approve, operation, newcomer)


def test_the_waiting_time_is_a_setting(newcomer: User, operation: Operation, settings: Settings) -> None:
    settings.NEW_RIGHTS_WAIT_HOURS = 0
    assert factories.approve(operation, newcomer).status == Status.APPROVED


def test_nobody_new_approves_several(newcomer: User, preparer: User) -> None:
    operation = factories.prepared_to_another_account(preparer)
    chosen = approvals.SelectedOperation(operation, operation.digest)
    [result] = approvals.approve_operations([chosen], actor=newcomer, second_factor_at=timezone.now())
    assert (result.result, status_of(operation)) == (approvals.BulkOutcome.REFUSED, Status.PENDING)


def test_nobody_new_approves_a_batch(newcomer: User, preparer: User) -> None:
    batch = payouts.prepared(preparer, payouts.transfers(2))
    refused_with(Refusal.NEW_RIGHTS_WAIT, payouts.approve, batch, newcomer)
    assert status_of(batch) == Status.PENDING


def test_a_change_of_rights_is_not_approved_in_bulk(
    administrator: User, second_administrator: User, approver: User, preparer: User
) -> None:
    """Neither by an administrator nor by an approver of payments, who approves no invitation either."""
    invitation = changes.proposed(changes.invitation(Role.APPROVER), administrator)
    rights = changes.proposed(changes.rights(preparer, Role.AUDITOR), administrator)
    for operation, person in ((rights, second_administrator), (rights, approver), (invitation, approver)):
        chosen = approvals.SelectedOperation(operation, operation.digest)
        [result] = approvals.approve_operations([chosen], actor=person, second_factor_at=timezone.now())
        assert result.result == approvals.BulkOutcome.REFUSED
        assert status_of(operation) == Status.PENDING
    chosen = approvals.SelectedOperation(invitation, invitation.digest)
    [rejected] = approvals.reject_operations(
        [chosen], actor=approver, second_factor_at=timezone.now(), reason="No"
    )
    assert (rejected.result, status_of(invitation)) == (approvals.BulkOutcome.REFUSED, Status.PENDING)


def test_a_new_administrator_approves_changes_of_staff_at_once(
    administrator: User, second_administrator: User
) -> None:
    changes.agreed(changes.invitation(Role.ADMINISTRATOR), administrator, second_administrator)
    ada = User.objects.get(email="ada@countersign.example")
    payload = changes.invitation(Role.AUDITOR, name="Bola Ige")
    assert changes.agreed(payload, administrator, ada).status == Status.SUCCEEDED


def recovered(change: StaffChange, person: User, preparer: User, approver: User) -> User:
    if change == StaffChange.REACTIVATE:
        User.objects.filter(pk=person.pk).update(is_active=False)
    changes.agreed(changes.of_person(change, User.objects.get(pk=person.pk)), preparer, approver)
    User.objects.filter(pk=person.pk).update(last_login=timezone.now())
    return User.objects.get(pk=person.pk)


@pytest.mark.parametrize("change", [StaffChange.SECOND_FACTOR, StaffChange.REACTIVATE])
def test_a_recovered_account_approves_no_changes_of_staff_for_24_hours(
    administrator: User, second_administrator: User, change: StaffChange
) -> None:
    third = recovered(
        change, factories.person("Third Person", Role.ADMINISTRATOR), administrator, second_administrator
    )
    operation = changes.proposed(changes.invitation(Role.AUDITOR), administrator)
    refused_with(Refusal.RECOVERY_WAIT, factories.approve, operation, third)
    granted(hours_ago=24.01)
    assert factories.approve(operation, User.objects.get(pk=third.pk)).status == Status.SUCCEEDED


@pytest.mark.parametrize("missing", ["deactivated", "no authenticator", "break-glass", "recovered"])
def test_a_recovered_account_is_not_locked_out_if_others_cannot_act(
    administrator: User, second_administrator: User, missing: str
) -> None:
    third = factories.person("Third Person", Role.ADMINISTRATOR)
    third = recovered(StaffChange.SECOND_FACTOR, third, administrator, second_administrator)
    operation = changes.proposed(changes.invitation(Role.AUDITOR), administrator)
    if missing == "deactivated":
        User.objects.filter(pk=second_administrator.pk).update(is_active=False)
    elif missing == "no authenticator":
        AuthenticatorDevice.objects.filter(user=second_administrator).delete()
    elif missing == "break-glass":
        factories.break_glass(second_administrator)
    else:
        RightsGrant.objects.create(
            user=second_administrator,
            change=AccountChange.SECOND_FACTOR_RESET,
            at=timezone.now(),
            operation=operation.pk,
            prepared_by=administrator,
            approved_by=third,
        )
    assert factories.approve(operation, third).status == Status.SUCCEEDED


@pytest.mark.parametrize("change", [StaffChange.SECOND_FACTOR, StaffChange.REACTIVATE])
def test_a_founder_is_helped_by_those_whom_both_founders_invited(
    administrator: User, second_administrator: User, change: StaffChange
) -> None:
    invited = []
    for name in ("Ada Obi", "Bola Ige"):
        changes.agreed(changes.invitation(Role.ADMINISTRATOR, name=name), administrator, second_administrator)
        invited.append(User.objects.get(full_name=name))
    User.objects.filter(pk=second_administrator.pk).update(is_active=False)
    assert recovered(change, administrator, *invited).is_active


def test_break_glass_withholds_the_approval_of_changes_of_staff(
    administrator: User, second_administrator: User
) -> None:
    operation = changes.proposed(changes.invitation(Role.APPROVER), administrator)
    factories.break_glass(second_administrator)
    with pytest.raises(errors.AccountRestrictedError):
        factories.approve(operation, second_administrator)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("who", ["approver", "second_approver"])
def test_a_group_change_in_between_withholds_the_approval_and_the_release(
    operation: Operation,
    administrator: User,
    second_administrator: User,
    approver: User,
    second_approver: User,
    provider: StubProvider,
    who: str,
) -> None:
    """One approved, the other released; then one of them got into a group before a worker claimed it."""
    factories.release(factories.approve(operation, approver), second_approver)
    changed = {"approver": approver, "second_approver": second_approver}[who]
    payload = changes.rights(changed, Role.APPROVER, groups=(groups.create_group("Directors"),))
    changes.agreed(payload, administrator, second_administrator)
    send.send_operation(operation.pk)
    assert (status_of(operation), Attempt.objects.count(), provider.posts) == (Status.APPROVED, 0, [])
    assert not Release.objects.exists()
    refusal = (
        Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED).latest("position").detail["refusal"]
    )
    expected = {"approver": Refusal.APPROVER_RIGHTS_NEW, "second_approver": Refusal.NEW_RIGHTS_WAIT}
    assert refusal["code"] == expected[who]


def test_the_form_offers_what_is_so_now(administrator: User, preparer: User, approver: User) -> None:
    treasury = groups.create_group("Treasury")
    groups.set_groups(preparer, [treasury.pk], operation=preparer_operation())
    form = StaffChangeForm(initial={"change": "rights", "person": str(preparer.pk)})
    assert form["role_preparer"].value() is True
    assert form["role_approver"].value() is False
    assert form[f"in_group_{treasury.pk}"].value() is True
    assert "email" not in form.fields


def preparer_operation() -> Any:
    return factories.prepared(User.objects.get(full_name="Tunde Bello")).pk


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"change": "rights", "role_preparer": "on"}, "There is no change to submit"),
        ({"change": "rights", "person": "0"}, "Choose the person on the Team page"),
        ({"change": "invite", "full_name": "Ada", "email": "nonsense"}, "Enter an email address."),
        ({"change": "invite", "full_name": "T", "email": "tunde@countersign.example"}, "already exists"),
        (
            {"change": "invite", "full_name": "A\u200bda", "email": "a@b.example"},
            "Remove invisible characters.",
        ),
        ({"change": "create_group", "group_name": "Trea\u200bsury"}, "Remove invisible characters."),
        ({"change": "create_group", "group_name": "treasury"}, "A group with this name already exists"),
        ({"change": "rename_group", "group_name": "Finance"}, "Choose the group on the Groups page"),
        ({"change": "reactivate"}, "This account is active already. Nothing was prepared."),
    ],
)
def test_the_form_says_what_is_wrong(
    preparer: User, approver: User, values: dict[str, str], problem: str
) -> None:
    groups.create_group("Treasury")
    form = StaffChangeForm({"person": str(preparer.pk), "reason": "Because", "typed": "1", **values})
    assert not form.is_valid()
    assert problem in str(form.errors)


def test_the_form_refuses_a_group_with_the_same_name_and_a_reset_of_a_deactivated_account(
    preparer: User, approver: User
) -> None:
    treasury = groups.create_group("Treasury")
    User.objects.filter(pk=preparer.pk).update(is_active=False)
    values = {"reason": "Because", "typed": "1", "person": str(preparer.pk), "group": str(treasury.pk)}
    renamed = StaffChangeForm({**values, "change": "rename_group", "group_name": "Treasury"})
    assert "There is no change to submit" in str(renamed.errors)
    reset = StaffChangeForm({**values, "change": "second_factor"})
    assert "This account is deactivated. Nothing was prepared. Reactivate it first." in str(reset.errors)


def test_an_invitation_with_the_name_of_another_person_is_warned_of(
    administrator: User, second_administrator: User, approver: User
) -> None:
    operation = changes.agreed(
        changes.invitation(Role.APPROVER, name="Ada Obi"), administrator, second_administrator
    )
    kind, payload = StaffChangeKind(), changes.invitation(Role.APPROVER, name="ada obi")
    assert kind.cautions(StaffChangePayload.model_validate(operation.payload)) == []
    [caution] = kind.cautions(payload.model_copy(update={"email": "other@countersign.example"}))
    assert "Another account has the same name: ada@countersign.example." in caution
    User.objects.filter(full_name="Ada Obi").update(is_active=False)
    assert kind.cautions(payload.model_copy(update={"email": "other@countersign.example"})) == []


def test_who_loses_the_role_of_a_preparer_with_open_operations_is_warned_of(
    administrator: User, preparer: User, approver: User
) -> None:
    kind, open_one = StaffChangeKind(), factories.prepared(preparer)
    [caution] = kind.cautions(changes.rights(preparer, Role.AUDITOR))
    assert caution.startswith("1 operation that this person prepared is not sent yet")
    assert kind.cautions(changes.rights(preparer, Role.PREPARER, Role.AUDITOR)) == []
    approvals.cancel_operation(open_one.pk, actor=preparer)
    assert kind.cautions(changes.rights(preparer, Role.AUDITOR)) == []


INVITATION_FORM = {
    "change": "invite",
    "typed": "1",
    "full_name": "Ada Obi",
    "email": "Ada@countersign.example",
    "role_preparer": "on",
    "reason": "Joins on Monday",
    "submission": "6a1d3b52-4c1e-4f0b-9a53-7d0f8c2e9b11",
}


def test_editing_after_the_review_ticks_what_was_ticked(administrator: User, sign_in: SignIn) -> None:
    client = sign_in(Client(), administrator)
    address = reverse("operations:prepare", args=["staff_change"]) + "?change=invite"
    review = text_of(client.post(address, INVITATION_FORM | {"step": "review"}))
    reviewed = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', review))
    assert reviewed["role_approver"] == "False"
    edited = text_of(client.post(address, reviewed | {"step": "change"}))
    boxes = re.findall(r'<input type="checkbox" name="(\w+)"([^>]*)', edited)
    assert [name for name, rest in boxes if "checked" in rest] == ["role_preparer"]
    assert len(boxes) >= len(Role)


def test_two_administrators_invite_somebody_on_the_pages(
    administrator: User, second_administrator: User, sign_in: SignIn
) -> None:
    client = sign_in(Client(), administrator)
    address = reverse("operations:prepare", args=["staff_change"]) + "?change=invite"
    review = text_of(client.post(address, INVITATION_FORM | {"step": "review"}))
    assert "Invite Ada Obi, ada@countersign.example" in review
    found = re.search(r'name="digest" value="([0-9a-f]+)"', review)
    assert found is not None
    answer = client.post(address, INVITATION_FORM | {"step": "prepare", "digest": found[1]})
    assert answer.status_code == 302
    operation = Operation.objects.get()
    approving = sign_in(Client(), second_administrator)
    assert "Approve or reject" in text_of(show(approving, operation))
    approving.post(reverse("operations:approve", args=[operation.pk]), {"digest": operation.digest})
    assert status_of(operation) == Status.SUCCEEDED
    assert User.objects.filter(email="ada@countersign.example").exists()


def test_the_form_says_what_each_role_may_do(
    client: Client, administrator: User, approver: User, sign_in: SignIn
) -> None:
    query = {"change": "rights", "person": str(approver.pk)}
    address = reverse("operations:prepare", args=["staff_change"])
    page = sign_in(client, administrator).get(address, query).content.decode()
    for name in ("preparer", "approver", "auditor", "administrator"):
        assert f'aria-describedby="id_role_{name}_helptext"' in page
        assert f'id="id_role_{name}_helptext">' in page
    assert "Approves and sends payments that others prepared." in page


def test_an_invitation_without_a_role_is_warned_about() -> None:
    warning = "Without a role this person can do nothing."
    assert warning in StaffChangeKind().cautions(changes.invitation())
    assert warning not in StaffChangeKind().cautions(changes.invitation(Role.AUDITOR))
