"""What waits too long goes to the next level, once; what nobody can approve goes to administrators."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.groups import people_in
from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.notifications.events import EVENTS
from backoffice.notifications.recording.audiences import People
from backoffice.operations.approval import escalation
from backoffice.operations.approval.escalation import escalate_due, outdated
from tests import factories
from tests.operations.batches import payouts
from tests.operations.forgeries import forge_entry
from tests.policies.versions import group, levels, of_group, of_people, put_in_effect

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def every_time(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    monkeypatch.setattr(escalation, "acquire_lease", lambda *_: True)
    settings.NOTIFY_ESCALATE_HOURS = 24


def escalate(hours: float) -> int:
    later = clock.now() + timedelta(hours=hours)
    with clock.use_clock(lambda: later):
        return escalate_due()


def recorded(action: Action) -> list[Entry]:
    return list(Entry.objects.filter(action=action))


def notified(entry: Entry) -> set[int]:
    """The people whom the notifications of this entry go to."""
    people = People([UUID(entry.target_id)])
    [event] = EVENTS[Action(entry.action)]
    return set(people.notified(event.audience, people.concerned_by(entry)))


def test_the_next_level_is_notified_once(
    preparer: User, approver: User, second_approver: User, administrator: User
) -> None:
    directors = group("Directors", second_approver)
    put_in_effect(levels((1, of_people(approver)), (1, of_group(directors))))
    operation = factories.prepared(preparer)
    assert [escalate(hours) for hours in (23, 25, 26)] == [0, 1, 0]
    [entry] = recorded(Action.OPERATION_WAITING_ESCALATED)
    assert (entry.detail["to"], entry.detail["notified"]) == ("Directors", [second_approver.pk])
    assert notified(entry) == {second_approver.pk}
    page = factories.sign_in(Client(), second_approver).get(operation.get_absolute_url()).content.decode()
    assert "Escalated to Directors on" in page


@pytest.mark.parametrize("detail", [[], {"place": {}}])
def test_a_forged_entry_that_cannot_be_read_escalates_nothing_and_stops_nothing(
    preparer: User, approver: User, second_approver: User, administrator: User, detail: object
) -> None:
    directors = group("Directors", second_approver)
    put_in_effect(levels((1, of_people(approver)), (1, of_group(directors))))
    operation = factories.prepared(preparer)
    forge_entry(Action.OPERATION_WAITING_ESCALATED, "operations.operation", str(operation.pk), detail)
    about_none = forge_entry(Action.OPERATION_WAITING_ESCALATED, "operations.operation", "x", detail)
    assert escalate(25) == 1
    newest = recorded(Action.OPERATION_WAITING_ESCALATED)[0]
    assert outdated({about_none.position, newest.position}) == {about_none.position}


def test_without_a_next_level_administrators_are_notified(
    preparer: User, approver: User, administrator: User
) -> None:
    factories.prepared(preparer)
    assert escalate(25) == 1
    [entry] = recorded(Action.OPERATION_WAITING_ESCALATED)
    assert (entry.detail["to"], entry.detail["notified"]) == ("administrators", [administrator.pk])


def test_nothing_is_escalated_unless_the_deployment_says_so(
    preparer: User, approver: User, settings: Settings
) -> None:
    settings.NOTIFY_ESCALATE_HOURS = 0
    factories.prepared(preparer)
    assert escalate(100) == 0


def test_administrators_hear_at_once_that_nobody_is_left(
    preparer: User, approver: User, administrator: User
) -> None:
    operation = factories.prepared(preparer)
    assert escalate(0) == 0
    User.objects.filter(pk=approver.pk).update(is_active=False)
    assert [escalate(0), escalate(1)] == [1, 0]
    [entry] = recorded(Action.OPERATION_WITHOUT_APPROVERS)
    assert (entry.target_id, entry.detail["notified"]) == (str(operation.pk), [administrator.pk])
    assert notified(entry) == {administrator.pk}


def test_many_take_as_few_queries_as_one(
    preparer: User, approver: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(20):
        factories.prepared(preparer)
    with django_assert_max_num_queries(8):
        assert escalate_due() == 0


def test_an_approved_operation_that_a_tightened_policy_holds_is_escalated(
    preparer: User, approver: User, second_approver: User, administrator: User
) -> None:
    directors = group("Directors", factories.person("Dire Ctor", Role.APPROVER))
    [director] = people_in([directors.pk])
    operation = factories.approved(preparer, approver)
    assert escalate(25) == 0
    put_in_effect(levels((1, of_people(second_approver)), (1, of_group(directors))))
    assert [escalate(25), escalate(26)] == [1, 0]
    [entry] = recorded(Action.OPERATION_WAITING_ESCALATED)
    assert (entry.target_id, entry.detail["notified"]) == (str(operation.pk), [director.pk])
    assert outdated([entry.position]) == set()
    factories.approve(operation, second_approver)
    factories.approve(operation, director)
    assert outdated([entry.position]) == {entry.position}


def test_administrators_hear_that_nobody_can_approve_an_approved_operation_again(
    preparer: User, approver: User, administrator: User
) -> None:
    operation = factories.approved(preparer, approver)
    assert escalate(0) == 0
    User.objects.filter(pk=approver.pk).update(is_active=False)
    assert [escalate(0), escalate(0)] == [1, 0]
    [entry] = recorded(Action.OPERATION_WITHOUT_APPROVERS)
    assert (entry.target_id, notified(entry)) == (str(operation.pk), {administrator.pk})


def test_an_approver_who_left_the_group_leaves_the_operation_without_an_approval(
    preparer: User, approver: User, second_approver: User, administrator: User
) -> None:
    put_in_effect(levels((1, of_group(group("Directors", approver)))))
    operation = factories.approved(preparer, approver)
    assert escalate(0) == 0
    approver.memberships.all().delete()
    assert escalate(0) == 1
    [entry] = recorded(Action.OPERATION_WITHOUT_APPROVERS)
    assert entry.target_id == str(operation.pk)


def test_approved_operations_take_as_few_queries_and_batch_rows_none(
    preparer: User,
    approver: User,
    second_approver: User,
    administrator: User,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    payouts.applied(preparer, approver, payouts.transfers(20))
    for _ in range(5):
        factories.approved(preparer, approver)
    put_in_effect(levels((1, of_people(second_approver))))
    assert escalation._waiting().count() == 5
    with django_assert_max_num_queries(12):
        assert escalate_due() == 0
