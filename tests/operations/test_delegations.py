"""Stand-ins: agreed on by two people, for a period, checked in one place at approving, releasing and claiming."""

from collections.abc import Callable
from contextlib import ExitStack
from datetime import date, timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone, translation

from backoffice.accounts.groups import set_groups
from backoffice.accounts.models import Language, StaffGroup, User
from backoffice.accounts.restrictions import AccountChange, RightsGrant
from backoffice.accounts.roles import Role
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.core.encryption import SealState
from backoffice.core.web.formatting import format_day
from backoffice.operations import errors, policy, seals
from backoffice.operations.approval.progress import approval_progress, lacks_approvals
from backoffice.operations.approval.waiting import deciders, operations_waiting_for
from backoffice.operations.delivery import send
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.lifecycle.delegation import end_delegation
from backoffice.operations.models.operations import Approval, Operation, Release
from backoffice.operations.monitoring.recorded_rights import altered_delegations
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Status
from backoffice.policies.delegations import Delegation
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.delegations import delegated, leave
from tests.operations.steps import do, status_of, text_of
from tests.policies.versions import group, levels, of_group, of_people, put_in_effect
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def away(db: None) -> User:
    return factories.person("Chidi Eze", Role.APPROVER, email="eze@countersign.example")


@pytest.fixture
def treasury(away: User, approver: User) -> StaffGroup:
    return group("Treasury", away, approver)


@pytest.fixture
def for_away(preparer: User, away: User, approver: User, treasury: StaffGroup) -> Operation:
    """An operation that only the person on leave could approve."""
    put_in_effect(levels((1, of_people(away))))
    return factories.prepared(preparer)


def refused(refusal: Refusal, call: Callable[[], object]) -> None:
    with pytest.raises(errors.OperationError) as caught:
        call()
    assert caught.value.refusal["code"] == refusal


# Acting


def test_a_stand_in_approves_for_the_person_on_leave(
    for_away: Operation, away: User, approver: User, treasury: StaffGroup
) -> None:
    assert for_away not in operations_waiting_for(approver)
    found = delegated(away, approver, treasury)
    assert for_away in operations_waiting_for(approver)
    assert deciders(for_away) == {approver.pk}
    assert factories.approve(for_away, approver).status == Status.APPROVED
    approval = Approval.objects.get()
    assert (approval.on_behalf_of, approval.delegation) == (away, found)
    assert approval.approved_by == "Amara Okafor for Chidi Eze"
    entry = Entry.objects.get(action=Action.OPERATION_APPROVED)
    assert entry.detail["approved_by"] == "Amara Okafor for Chidi Eze"
    seals.check_record(for_away, [approval], None)


def test_the_sheet_to_print_says_for_whom_a_stand_in_approved(
    for_away: Operation,
    away: User,
    approver: User,
    treasury: StaffGroup,
    sign_in: Callable[[Client, User], Client],
) -> None:
    delegated(away, approver, treasury)
    factories.approve(for_away, approver)
    sheet = sign_in(Client(), approver).get(f"/operations/{for_away.pk}/receipt/")
    assert "Amara Okafor for Chidi Eze" in text_of(sheet)


def test_it_is_sent(
    for_away: Operation,
    away: User,
    approver: User,
    second_approver: User,
    treasury: StaffGroup,
    provider: StubProvider,
) -> None:
    delegated(away, approver, treasury)
    factories.release(factories.approve(for_away, approver), second_approver)
    send.send_operation(for_away.pk)
    assert len(provider.posts) == 1


@pytest.mark.parametrize("column", ["on_behalf_of", "delegation"])
def test_the_seal_covers_for_whom_it_was_given(
    for_away: Operation, away: User, approver: User, second_approver: User, treasury: StaffGroup, column: str
) -> None:
    delegated(away, approver, treasury)
    other = delegated(second_approver, approver, treasury)
    factories.approve(for_away, approver)
    changed: dict[str, Any] = {"on_behalf_of": second_approver, "delegation": other}
    with lifted(connection):
        Approval.objects.update(**{column: changed[column]})
    with pytest.raises(errors.AlteredRecordError):
        seals.check_record(for_away, list(Approval.objects.all()), None)


def test_a_person_on_leave_does_not_approve(
    for_away: Operation, away: User, approver: User, treasury: StaffGroup
) -> None:
    delegated(away, approver, treasury)
    assert for_away not in operations_waiting_for(away)
    refused(Refusal.ON_LEAVE, lambda: factories.approve(for_away, away))


def test_a_person_counts_once_even_when_acting_for_another(
    preparer: User, away: User, approver: User, treasury: StaffGroup
) -> None:
    put_in_effect(levels((1, of_people(approver)), (1, of_people(away))))
    operation = factories.prepared(preparer)
    delegated(away, approver, treasury)
    factories.approve(operation, approver)
    assert operation not in operations_waiting_for(approver)
    with pytest.raises(errors.AlreadyApprovedError):
        factories.approve(operation, approver)


def test_a_person_for_whom_somebody_approved_does_not_approve_again(
    preparer: User, away: User, approver: User, second_approver: User, treasury: StaffGroup
) -> None:
    put_in_effect(levels((2, of_people(away, second_approver))))
    operation = factories.prepared(preparer)
    found = delegated(away, approver, treasury)
    factories.approve(operation, approver)
    end_delegation(found.pk, actor=away)
    assert operation not in operations_waiting_for(away)
    with pytest.raises(errors.AlreadyApprovedError):
        factories.approve(operation, away)
    assert factories.approve(operation, second_approver).status == Status.APPROVED


def test_a_stand_in_does_not_approve_what_the_person_on_leave_prepared(
    away: User, approver: User, treasury: StaffGroup
) -> None:
    away.groups.add(Group.objects.get(name=Role.PREPARER))
    put_in_effect(levels((1, of_people(away))))
    operation = factories.prepared(User.objects.get(pk=away.pk))
    delegated(away, approver, treasury)
    assert operation not in operations_waiting_for(approver)
    with pytest.raises(errors.NotInLevelError):
        factories.approve(operation, approver)


def test_a_stand_in_does_not_approve_what_the_stand_in_prepared(
    away: User, approver: User, treasury: StaffGroup
) -> None:
    approver.groups.add(Group.objects.get(name=Role.PREPARER))
    put_in_effect(levels((1, of_people(away))))
    operation = factories.prepared(User.objects.get(pk=approver.pk))
    delegated(away, approver, treasury)
    assert operation not in operations_waiting_for(approver)
    with pytest.raises(errors.SelfApprovalError):
        factories.approve(operation, approver)


def test_there_is_no_chain_of_stand_ins(
    for_away: Operation, away: User, approver: User, second_approver: User, treasury: StaffGroup
) -> None:
    set_groups(second_approver, [treasury.pk], operation=for_away.pk)
    delegated(away, approver, treasury)
    delegated(approver, second_approver, treasury)
    assert deciders(for_away) == frozenset()
    with pytest.raises(errors.NotInLevelError):
        factories.approve(for_away, second_approver)


def in_another_group(away: User, approver: User) -> None:
    approver.memberships.all().delete()


def deactivated(away: User, approver: User) -> None:
    User.objects.filter(pk=away.pk).update(is_active=False)


def without_the_role(away: User, approver: User) -> None:
    away.groups.clear()


@pytest.mark.parametrize("change", [in_another_group, deactivated, without_the_role])
def test_a_stand_in_has_no_more_than_the_person_on_leave(
    for_away: Operation,
    away: User,
    approver: User,
    treasury: StaffGroup,
    change: Callable[[User, User], None],
) -> None:
    delegated(away, approver, treasury)
    change(away, approver)
    assert for_away not in operations_waiting_for(approver)
    with pytest.raises(errors.NotInLevelError):
        factories.approve(for_away, approver)


@pytest.mark.parametrize(
    "changes",
    [
        {"agreed_at": -timedelta(hours=23)},  # the waiting time for new rights
        {"starts_at": timedelta(hours=1)},
        {"ends_at": -timedelta(hours=1)},
    ],
)
def test_a_stand_in_acts_in_the_period_and_after_the_waiting_time_only(
    for_away: Operation, away: User, approver: User, treasury: StaffGroup, changes: dict[str, timedelta]
) -> None:
    delegated(away, approver, treasury, **{name: timezone.now() + by for name, by in changes.items()})
    assert for_away not in operations_waiting_for(approver)
    with pytest.raises(errors.NotInLevelError):
        factories.approve(for_away, approver)


def test_a_stand_in_with_new_rights_waits(
    for_away: Operation, away: User, approver: User, administrator: User, preparer: User, treasury: StaffGroup
) -> None:
    delegated(away, approver, treasury)
    RightsGrant.objects.create(
        user=approver,
        change=AccountChange.ROLES_CHANGED,
        at=timezone.now(),
        operation=for_away.pk,
        prepared_by=administrator,
        approved_by=preparer,
    )
    assert deciders(for_away) == frozenset()
    with pytest.raises(errors.AccountRestrictedError):
        factories.approve(for_away, approver)


def test_a_forged_delegation_gives_nothing(
    for_away: Operation, away: User, approver: User, treasury: StaffGroup
) -> None:
    delegated(away, approver, treasury)
    with lifted(connection):
        Delegation.objects.update(ends_at=timezone.now() + timedelta(days=400))
    assert for_away not in operations_waiting_for(approver)
    with pytest.raises(errors.NotInLevelError):
        factories.approve(for_away, approver)


def ends_by_itself(delegation: Delegation, until: ExitStack) -> None:
    until.enter_context(clock.use_clock(lambda: delegation.ends_at))


def ended_by_the_person_on_leave(delegation: Delegation, until: ExitStack) -> None:
    row = Delegation.objects.get(pk=delegation.pk)
    row.ended_at, row.ended_by = clock.now(), row.person
    row.make_seal()
    row.save(update_fields=["ended_at", "ended_by", "seal"])


@pytest.mark.parametrize("ends", [ends_by_itself, ended_by_the_person_on_leave])
def test_an_approval_is_not_stored_if_the_delegation_ends_while_it_is_given(
    for_away: Operation,
    away: User,
    approver: User,
    treasury: StaffGroup,
    sign_in: Callable[[Client, User], Client],
    ends: Callable[[Delegation, ExitStack], None],
) -> None:
    """It ends after it was checked, within the transaction that would store the approval."""
    client = sign_in(Client(), approver)
    delegation = delegated(away, approver, treasury)
    checked: list[str] = []

    def end_it(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        found = execute(sql, params, many, context)
        if Action.DELEGATION_ENDED in (params or ()) and not checked:
            checked.append(sql)  # first, since ending it makes queries too
            ends(delegation, until)
        return found

    with ExitStack() as until, connection.execute_wrapper(end_it):
        answer = do(client, for_away, "approve")
    assert len(checked) == 1
    assert answer.status_code == 422
    assert "The delegation by which you approve for Chidi Eze has ended" in text_of(answer)
    assert (status_of(for_away), Approval.objects.exists()) == (Status.PENDING, False)
    refusal = Entry.objects.get(action=Action.OPERATION_ACTION_REFUSED).detail["refusal"]
    assert refusal["code"] == Refusal.DELEGATION_ENDED


# After the approval


def claim(operation: Operation) -> send.SendClaim | None:
    release = Release.objects.select_related("operation").get(pk=operation.pk)
    return send.claim_operation(operation.pk, send.preflight_read(release))


def test_an_approval_counts_after_the_leave(
    for_away: Operation,
    away: User,
    approver: User,
    second_approver: User,
    treasury: StaffGroup,
    provider: StubProvider,
) -> None:
    found = delegated(away, approver, treasury)
    factories.approve(for_away, approver)
    end_delegation(found.pk, actor=approver)
    factories.release(for_away, second_approver)
    assert claim(for_away) is not None


@pytest.mark.parametrize("change", [deactivated, without_the_role])
def test_an_approval_does_not_count_once_the_person_on_leave_lost_the_right(
    for_away: Operation,
    away: User,
    approver: User,
    second_approver: User,
    treasury: StaffGroup,
    provider: StubProvider,
    change: Callable[[User, User], None],
) -> None:
    delegated(away, approver, treasury)
    factories.release(factories.approve(for_away, approver), second_approver)
    change(away, approver)
    with pytest.raises(errors.PermissionMissingError):
        claim(for_away)
    Release.objects.all().delete()
    with pytest.raises(errors.ApprovalsMissingError):
        factories.release(Operation.objects.get(pk=for_away.pk), second_approver)
    assert provider.posts == []


# Lost rights


def test_approvals_of_people_who_lost_their_rights_do_not_count(
    preparer: User, approver: User, second_approver: User
) -> None:
    operation = factories.approved(preparer, approver)
    assert operation in operations_waiting_for(second_approver)  # to be sent
    User.objects.filter(pk=approver.pk).update(is_active=False)
    assert lacks_approvals(operation)
    assert deciders(operation) == {second_approver.pk}
    with pytest.raises(errors.ApprovalsMissingError):
        factories.release(operation, second_approver)
    factories.approve(operation, second_approver)
    assert not lacks_approvals(operation)
    assert (status_of(operation), approval_progress(operation).is_complete) == (Status.APPROVED, True)


# Waiting for the people of the open level


def test_an_operation_waits_for_the_people_of_the_open_level(
    preparer: User, approver: User, second_approver: User
) -> None:
    directors = group("Directors", second_approver)
    put_in_effect(levels((1, of_people(approver)), (1, of_group(directors))))
    operation = factories.prepared(preparer)
    people = (approver, second_approver)
    assert [operation in operations_waiting_for(one) for one in people] == [True, False]
    assert deciders(operation) == {approver.pk}
    factories.approve(operation, approver)
    assert [operation in operations_waiting_for(one) for one in people] == [False, True]
    assert deciders(operation) == {second_approver.pk}


def test_a_tightened_policy_changes_for_whom_an_operation_waits(
    preparer: User, approver: User, second_approver: User
) -> None:
    operation = factories.prepared(preparer)
    people = (approver, second_approver)
    assert [operation in operations_waiting_for(one) for one in people] == [True, True]
    put_in_effect(levels((1, of_people(second_approver))))
    assert [operation in operations_waiting_for(one) for one in people] == [False, True]


def test_an_approved_operation_that_lacks_approvals_waits_for_an_approval_and_not_to_be_sent(
    preparer: User, approver: User, second_approver: User
) -> None:
    third = factories.person("Ngozi Eze", Role.APPROVER)
    operation = factories.approved(preparer, approver)
    put_in_effect(levels((1, of_people(approver)), (1, of_people(third))))
    people = (approver, second_approver, third)
    assert [operation in operations_waiting_for(one) for one in people] == [False, False, True]


def test_a_refused_operation_waits_for_nobody(preparer: User, approver: User) -> None:
    operation = factories.prepared(preparer, amount=Decimal(2_000))
    put_in_effect({"when": {"kinds": ["withdrawal"]}, "refuse": "No withdrawals"})
    assert operation not in operations_waiting_for(approver)
    assert deciders(operation) == frozenset()


# Agreeing on it, and ending it


def proposed(person: User, stand_in: User, treasury: StaffGroup, **changes: Any) -> Operation:
    return factories.prepared_of_kind("delegation", leave(person, stand_in, treasury, **changes), person)


def test_a_delegation_of_one_day_names_it_once_and_the_list_shows_the_last_day(
    away: User, approver: User, administrator: User, treasury: StaffGroup
) -> None:
    first = leave(away, approver, treasury).first_day
    one_day = proposed(away, approver, treasury, last_day=first)
    assert one_day.sentence.endswith(f" on {format_day(first)}")
    factories.approve(one_day, administrator)
    page = factories.sign_in(Client(), approver).get("/settings/delegations/").content.decode()
    assert f'data-label="Until">{format_day(first)}</td>' in page


def test_the_list_says_what_waits_in_the_language_of_the_reader(
    away: User, approver: User, treasury: StaffGroup
) -> None:
    waiting = proposed(away, approver, treasury)
    User.objects.filter(pk=away.pk).update(language=Language.FRENCH)
    page = factories.sign_in(Client(), User.objects.get(pk=away.pk)).get("/settings/delegations/")
    kind, payload = read_content(waiting)
    with translation.override("fr"):
        french = kind.sentence(payload)
    assert french != waiting.sentence
    assert f"{french} : en attente" in unescape(page.content.decode()).replace("\u00a0", " ")


def test_an_administrator_approves_a_delegation(
    away: User, approver: User, administrator: User, treasury: StaffGroup
) -> None:
    operation = proposed(away, approver, treasury)
    assert operation in operations_waiting_for(administrator)
    with pytest.raises(errors.PermissionMissingError):
        factories.approve(operation, approver)
    assert factories.approve(operation, administrator).status == Status.SUCCEEDED
    assert operation.payload["first_day"] not in operation.sentence
    assert format_day(date.fromisoformat(operation.payload["first_day"])) in operation.sentence
    found = Delegation.objects.get()
    assert (found.person, found.stand_in, found.operation) == (away, approver, operation.pk)
    assert found.starts_at.isoformat().endswith("T23:00:00+00:00")  # midnight in Lagos
    assert found.acts_from >= found.agreed_at + timedelta(hours=24)


def test_the_stand_in_does_not_approve_it(
    away: User, approver: User, treasury: StaffGroup, administrator: User
) -> None:
    approver.groups.add(Group.objects.get(name=Role.ADMINISTRATOR))
    operation = proposed(away, approver, treasury)
    assert operation not in operations_waiting_for(User.objects.get(pk=approver.pk))
    refused(Refusal.OWN_RIGHTS, lambda: factories.approve(operation, approver))
    # Nor as one of several approvers, whose approval alone starts nothing.
    now = clock.now()
    refused(
        Refusal.OWN_RIGHTS,
        lambda: policy.check_may_approve(approver, operation, digest=operation.digest, second_factor_at=now),
    )


def test_nobody_proposes_for_another_person(away: User, approver: User, treasury: StaffGroup) -> None:
    third = factories.person("Ngozi Eze", Role.APPROVER)
    payload = leave(away, approver, treasury)
    refused(Refusal.DELEGATION_OF_ANOTHER, lambda: factories.prepared_of_kind("delegation", payload, third))


def test_a_delegation_to_oneself_is_refused(away: User, treasury: StaffGroup) -> None:
    refused(Refusal.OWN_RIGHTS, lambda: proposed(away, away, treasury))
    with pytest.raises(DatabaseError), transaction.atomic():
        delegated(away, away, treasury)


def test_a_circle_of_delegations_is_refused(
    away: User, approver: User, administrator: User, treasury: StaffGroup
) -> None:
    factories.approve(proposed(away, approver, treasury), administrator)
    refused(Refusal.DELEGATION_CHAIN, lambda: proposed(approver, away, treasury))


def test_of_two_that_were_prepared_beside_each_other_one_begins(
    away: User, approver: User, administrator: User, treasury: StaffGroup
) -> None:
    first, second = proposed(away, approver, treasury), proposed(approver, away, treasury)
    factories.approve(first, administrator)
    refused(Refusal.DELEGATION_CHAIN, lambda: factories.approve(second, administrator))
    assert Delegation.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"last_day": timezone.now().date()}, Refusal.DELEGATION_PERIOD),
        ({"group": 0}, Refusal.DELEGATION_GROUP),
        ({"stand_in_name": "Somebody Else"}, Refusal.DELEGATION_GROUP),
    ],
)
def test_a_delegation_that_is_none_is_refused(
    away: User, approver: User, treasury: StaffGroup, changes: dict[str, Any], refusal: Refusal
) -> None:
    refused(refusal, lambda: proposed(away, approver, treasury, **changes))


@pytest.mark.parametrize("who", ["away", "approver"])
def test_either_person_ends_it_at_once(
    for_away: Operation,
    away: User,
    approver: User,
    treasury: StaffGroup,
    request: pytest.FixtureRequest,
    who: str,
) -> None:
    found = delegated(away, approver, treasury)
    with pytest.raises(errors.PermissionMissingError):
        end_delegation(found.pk, actor=for_away.preparer)
    end_delegation(found.pk, actor=request.getfixturevalue(who))
    assert Entry.objects.filter(action=Action.DELEGATION_ENDED).count() == 1
    assert for_away in operations_waiting_for(away)
    assert for_away not in operations_waiting_for(approver)
    refused(Refusal.DELEGATION_OVER, lambda: end_delegation(found.pk, actor=away))


def test_ending_does_not_seal_what_nobody_agreed_on(
    away: User, approver: User, second_approver: User, treasury: StaffGroup
) -> None:
    found = delegated(away, approver, treasury)
    with lifted(connection):
        Delegation.objects.update(stand_in=second_approver)
    ended = end_delegation(found.pk, actor=second_approver)
    assert ended.seal_state() != SealState.VALID


def test_a_delegation_does_not_act_again_once_its_end_is_on_record(
    for_away: Operation, away: User, approver: User, treasury: StaffGroup
) -> None:
    found = delegated(away, approver, treasury)
    end_delegation(found.pk, actor=away)
    with lifted(connection):  # the row as it was before, with the seal that it had
        Delegation.objects.update(ended_at=None, ended_by=None, seal=found.seal)
    with pytest.raises(errors.NotInLevelError):
        factories.approve(for_away, approver)
    assert not Approval.objects.exists()


@pytest.mark.parametrize(
    "change", [{"ends_at": timezone.now() + timedelta(days=99)}, {"ended_at": None, "ended_by": None}]
)
def test_the_database_keeps_delegations(
    away: User, approver: User, treasury: StaffGroup, change: dict[str, Any]
) -> None:
    found = delegated(away, approver, treasury)
    end_delegation(found.pk, actor=away)
    with pytest.raises(DatabaseError), transaction.atomic():
        Delegation.objects.update(**change)
    with pytest.raises(DatabaseError), transaction.atomic():
        Delegation.objects.all()._raw_delete("default")


def test_the_database_refuses_an_approval_for_its_own_approver(
    for_away: Operation, away: User, approver: User, treasury: StaffGroup
) -> None:
    found = delegated(away, approver, treasury)
    for on_behalf_of in (approver, for_away.preparer):
        with pytest.raises(DatabaseError), transaction.atomic():
            Approval.objects.create(
                operation=for_away,
                approver=approver,
                preparer=for_away.preparer,
                digest=for_away.digest,
                approved_at=timezone.now(),
                on_behalf_of=on_behalf_of,
                delegation=found,
            )


# Compared with the audit log


def last_longer(_away: User, _approver: User, _treasury: StaffGroup) -> None:
    Delegation.objects.update(ends_at=timezone.now() + timedelta(days=400))


def without_an_operation(away: User, approver: User, treasury: StaffGroup) -> None:
    delegated(approver, away, treasury)


def under_the_operation_of_another(away: User, approver: User, treasury: StaffGroup) -> None:
    found = Delegation.objects.get()
    Delegation.objects.all()._raw_delete("default")
    delegated(approver, away, treasury, pk=found.pk, operation=found.operation)


def gone(_away: User, _approver: User, _treasury: StaffGroup) -> None:
    Delegation.objects.all()._raw_delete("default")


def as_before_its_end(away: User, _approver: User, _treasury: StaffGroup) -> None:
    found = Delegation.objects.get()
    end_delegation(found.pk, actor=away)
    Delegation.objects.update(ended_at=None, ended_by=None, seal=found.seal)


@pytest.mark.parametrize(
    "change", [last_longer, without_an_operation, under_the_operation_of_another, gone, as_before_its_end]
)
def test_a_delegation_unlike_the_audit_log_is_found(
    away: User,
    approver: User,
    administrator: User,
    treasury: StaffGroup,
    change: Callable[[User, User, StaffGroup], None],
) -> None:
    factories.approve(proposed(away, approver, treasury), administrator)
    assert altered_delegations() == []
    with lifted(connection):
        change(away, approver, treasury)
    assert len(altered_delegations()) == 1


def test_an_ended_delegation_is_as_the_audit_log_records(
    away: User, approver: User, administrator: User, treasury: StaffGroup
) -> None:
    factories.approve(proposed(away, approver, treasury), administrator)
    end_delegation(Delegation.objects.get().pk, actor=away)
    assert altered_delegations() == []


# The pages


def test_the_page_shows_and_ends_delegations(
    sign_in: Callable[[Client, User], Client],
    for_away: Operation,
    away: User,
    approver: User,
    treasury: StaffGroup,
    preparer: User,
) -> None:
    found = delegated(away, approver, treasury)
    page = sign_in(Client(), away).get("/settings/delegations/").content.decode()
    assert "Amara Okafor" in page
    assert "End now" in page
    assert "End now" not in sign_in(Client(), preparer).get("/settings/delegations/").content.decode()
    address = f"/settings/delegations/{found.pk}/end/"
    assert sign_in(Client(), preparer).post(address).status_code == 404
    assert sign_in(Client(), approver).post(address).status_code == 302
    found.refresh_from_db()
    assert found.ended_by == approver


def test_why_is_this_waiting_names_the_stand_in(
    sign_in: Callable[[Client, User], Client],
    for_away: Operation,
    away: User,
    approver: User,
    second_approver: User,
    treasury: StaffGroup,
) -> None:
    delegated(away, approver, treasury)
    page = sign_in(Client(), second_approver).get(for_away.get_absolute_url()).content.decode()
    assert "Amara Okafor for Chidi Eze" in page
    assert "stand-in: Amara Okafor" in page
    factories.approve(for_away, approver)
    page = sign_in(Client(), second_approver).get(for_away.get_absolute_url()).content.decode()
    assert "Amara Okafor for Chidi Eze" in page
