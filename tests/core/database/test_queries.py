"""A query that is composed once is not run once, and depends on nothing but its arguments."""

from threading import Thread

import pytest
from django.db.models import QuerySet
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.accounts.rights import AccountChange, RightsGrant
from backoffice.accounts.roles import users_with_permission
from backoffice.core import clock
from backoffice.core.database.queries import composed_once
from backoffice.operations.permissions import APPROVE


def test_it_is_composed_once_for_each_argument_and_in_each_thread() -> None:
    composed: list[str] = []

    @composed_once
    def named(name: str) -> QuerySet[User]:
        composed.append(name)
        return User.objects.filter(full_name=name)

    assert named("Ada") is named("Ada") is not named("Obi")
    other = Thread(target=named, args=("Ada",))
    other.start()
    other.join()

    assert composed == ["Ada", "Obi", "Ada"]


@pytest.mark.django_db
def test_each_call_reads_the_database(approver: User) -> None:
    assert approver in users_with_permission(APPROVE)

    User.objects.filter(pk=approver.pk).update(is_active=False)

    assert approver not in users_with_permission(APPROVE)


@pytest.mark.django_db
def test_a_changed_setting_composes_another_query(approver: User, preparer: User, settings: Settings) -> None:
    settings.NEW_RIGHTS_WAIT_HOURS = 24
    RightsGrant.objects.create(
        user=approver, change=AccountChange.CREATED, at=clock.now(), prepared_by=preparer
    )
    assert approver not in users_with_permission(APPROVE)

    settings.NEW_RIGHTS_WAIT_HOURS = 0

    assert approver in users_with_permission(APPROVE)
