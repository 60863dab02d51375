"""Whoever becomes able to decide an operation after it was prepared hears of it, once."""

import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.groups import set_groups
from backoffice.accounts.models import AuthenticatorDevice, User
from backoffice.accounts.restrictions import AccountChange, RightsGrant
from backoffice.accounts.roles import Role
from backoffice.core import clock
from backoffice.core.models import LeaseRow
from backoffice.notifications.models import Message
from backoffice.notifications.recording import audit_feed, later_deciders
from backoffice.notifications.recording.occurrences import find_occurrences_due
from tests import factories
from tests.append_only.triggers import lifted
from tests.notifications.steps import notices_of
from tests.operations.batches import payouts
from tests.operations.delegations import delegated
from tests.policies.versions import group, levels, of_group, of_people, put_in_effect

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("mailbox")]


@pytest.fixture(autouse=True)
def nothing_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later_deciders, "_evaluated", later_deciders._Evaluated())


def find(after: timedelta = timedelta(minutes=5)) -> None:
    """A round of both jobs, so long from now."""
    later = timezone.now() + after
    LeaseRow.objects.filter(name="notifications").delete()
    with clock.use_clock(lambda: later):
        audit_feed.record_events_due()
        find_occurrences_due()


def asked(*people: User) -> list[int]:
    return [notices_of(one.pk).count("waits") for one in people]


def test_whoever_could_decide_from_the_start_is_asked_once(
    preparer: User, approver: User, second_approver: User
) -> None:
    factories.prepared(preparer)
    for _ in range(3):
        find()
    assert asked(approver, second_approver, preparer) == [1, 1, 0]


def test_whoever_joins_the_group_is_asked(preparer: User, approver: User, second_approver: User) -> None:
    directors = group("Directors", approver)
    put_in_effect(levels((1, of_group(directors))))
    factories.prepared(preparer)
    find()
    assert asked(approver, second_approver) == [1, 0]
    set_groups(second_approver, [directors.pk], operation=uuid.uuid4())
    find()
    find()
    assert asked(approver, second_approver) == [1, 1]


def test_whoever_sets_up_the_account_later_is_asked_then(
    preparer: User, approver: User, second_approver: User
) -> None:
    device = AuthenticatorDevice.objects.filter(user=second_approver)
    device.update(confirmed=False)
    factories.prepared(preparer)
    find()
    assert asked(approver, second_approver) == [1, 0]
    device.update(confirmed=True)
    find()
    find()
    assert asked(approver, second_approver) == [1, 1]


def test_the_stand_in_is_asked_when_the_leave_begins(
    preparer: User, approver: User, second_approver: User
) -> None:
    directors = group("Directors", approver, second_approver)
    put_in_effect(levels((1, of_people(approver))))
    factories.prepared(preparer)
    find()
    assert asked(approver, second_approver) == [1, 0]
    delegated(approver, second_approver, directors)
    find()
    assert asked(approver, second_approver) == [1, 1]


def test_a_new_approver_is_asked_when_the_waiting_time_ends(preparer: User, approver: User) -> None:
    person = factories.person("New Approver", Role.APPROVER)
    grant = RightsGrant.objects.create(
        user=person,
        change=AccountChange.ROLES_CHANGED,
        at=timezone.now(),
        operation=uuid.uuid4(),
        prepared_by=preparer,
        approved_by=approver,
    )
    waits, approved = factories.prepared(preparer), factories.approved(preparer, approver)
    find()
    assert asked(person) == [0]
    with lifted(connection):
        RightsGrant.objects.filter(pk=grant.pk).update(at=timezone.now() - timedelta(hours=25))
    find()
    find()
    found = Message.objects.filter(person=person, notice="waits").values_list("operation", flat=True)
    assert (set(found), len(found)) == ({waits.pk, approved.pk}, 2)


def test_what_the_log_has_not_reported_yet_is_left_to_it(preparer: User, approver: User) -> None:
    factories.prepared(preparer)
    assert later_deciders.notify_later_deciders(timezone.now() + timedelta(minutes=5)) == 0
    audit_feed.record_events_due()
    Message.objects.all().delete()
    assert later_deciders.notify_later_deciders(timezone.now()) == 0
    assert later_deciders.notify_later_deciders(timezone.now() + timedelta(minutes=5)) == 1


def test_a_shared_channel_is_not_asked_again(
    preparer: User, approver: User, second_approver: User, settings: Settings
) -> None:
    settings.NOTIFY_EMAILS, settings.NOTIFY_SHARED_GROUPS = ["ops@company.example"], ["waiting"]
    directors = group("Directors", approver)
    put_in_effect(levels((1, of_group(directors))))
    factories.prepared(preparer)
    find()
    set_groups(second_approver, [directors.pk], operation=uuid.uuid4())
    find()
    assert asked(second_approver) == [1]
    assert Message.objects.filter(person=None, notice="waits").count() == 1


def test_nothing_changed_takes_a_few_queries(
    preparer: User,
    approver: User,
    second_approver: User,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    payouts.applied(preparer, approver, payouts.transfers(20))
    for _ in range(20):
        factories.prepared_to_another_account(preparer)
    later = timezone.now() + timedelta(minutes=5)
    audit_feed.record_events_due()
    with clock.use_clock(lambda: later):
        with django_assert_max_num_queries(25):
            assert later_deciders.notify_later_deciders(later) == 0
        with django_assert_max_num_queries(12):
            assert later_deciders.notify_later_deciders(later) == 0
