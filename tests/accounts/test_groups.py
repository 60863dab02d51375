"""Groups of staff: who is in which now, and how they are changed."""

import uuid

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts import groups
from backoffice.accounts.models import GroupMembership, User

pytestmark = pytest.mark.django_db

OPERATION = uuid.UUID(int=7)


def test_the_groups_of_people_are_read_in_one_query(
    approver: User, second_approver: User, preparer: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    treasury, directors = groups.create_group("Treasury"), groups.create_group("Directors")
    groups.set_groups(approver, [treasury.pk, directors.pk], operation=OPERATION)
    groups.set_groups(second_approver, [directors.pk], operation=OPERATION)
    with django_assert_num_queries(1):
        found = groups.groups_of([approver.pk, second_approver.pk, preparer.pk])
    assert found == {
        approver.pk: {directors.pk: "Directors", treasury.pk: "Treasury"},
        second_approver.pk: {directors.pk: "Directors"},
    }


def test_a_membership_that_remains_keeps_its_date_and_operation(approver: User) -> None:
    treasury, directors = groups.create_group("Treasury"), groups.create_group("Directors")
    groups.set_groups(approver, [treasury.pk], operation=OPERATION)
    before = GroupMembership.objects.get()
    groups.set_groups(approver, [treasury.pk, directors.pk], operation=uuid.UUID(int=8))
    kept = GroupMembership.objects.get(group=treasury)
    assert (kept.pk, kept.since, kept.operation) == (before.pk, before.since, OPERATION)
    groups.set_groups(approver, [directors.pk], operation=uuid.UUID(int=9))
    assert GroupMembership.objects.get().operation == uuid.UUID(int=8)


def test_deactivated_people_do_not_count_as_members(approver: User, second_approver: User) -> None:
    treasury = groups.create_group("Treasury")
    for person in (approver, second_approver):
        groups.set_groups(person, [treasury.pk], operation=OPERATION)
    User.objects.filter(pk=second_approver.pk).update(is_active=False)
    assert list(groups.people_in([treasury.pk])) == [approver]


def test_a_retired_group_has_no_members_and_its_name_is_free(approver: User) -> None:
    treasury = groups.create_group("Treasury")
    groups.set_groups(approver, [treasury.pk], operation=OPERATION)
    groups.retire_group(treasury.pk)
    assert (groups.groups_of([approver.pk]), list(groups.active_groups())) == ({}, [])
    groups.set_groups(approver, [treasury.pk], operation=OPERATION)
    assert not GroupMembership.objects.exists()
    assert groups.create_group("treasury").pk != treasury.pk


def test_two_groups_cannot_have_the_same_name_in_other_letters() -> None:
    groups.create_group("Treasury")
    with pytest.raises(IntegrityError), transaction.atomic():
        groups.create_group("TREASURY")


def test_a_group_gives_no_permission(outsider: User) -> None:
    groups.set_groups(outsider, [groups.create_group("Approver").pk], operation=OPERATION)
    assert not Group.objects.filter(user=outsider).exists()
    assert User.objects.get(pk=outsider.pk).roles_held == frozenset()


def test_a_group_is_renamed_without_changing_its_members(approver: User) -> None:
    treasury = groups.create_group("Tresury")
    groups.set_groups(approver, [treasury.pk], operation=OPERATION)
    groups.rename_group(treasury.pk, name="Treasury")
    assert groups.groups_of([approver.pk]) == {approver.pk: {treasury.pk: "Treasury"}}
