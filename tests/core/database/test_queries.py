"""A query that is composed or compiled once is not run once, and depends on nothing but its arguments. Batches."""

from datetime import UTC, datetime, timedelta, timezone
from threading import Thread
from typing import Any

import pytest
from django.db import connection
from django.db.models import BooleanField, CharField, DateTimeField, Exists, OuterRef, QuerySet
from django.db.models.sql.compiler import SQLCompiler
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from backoffice.accounts.models import StaffSession, User
from backoffice.accounts.restrictions import AccountChange, RightsGrant
from backoffice.accounts.roles import users_with_permission
from backoffice.core import clock
from backoffice.core.database.queries import Argument, CompiledQuery, batched, composed_once
from backoffice.operations.permissions import APPROVE


def test_batches_have_all_items_in_their_order() -> None:
    assert list(batched(range(5), 2)) == [(0, 1), (2, 3), (4,)]
    assert list(batched([], 2)) == []


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


def grants_to(person: Argument) -> CompiledQuery[RightsGrant]:
    others = RightsGrant.objects.filter(user=OuterRef("user")).exclude(pk=OuterRef("pk"))
    return CompiledQuery(
        RightsGrant.objects.select_related("user")
        .filter(user__full_name=person, at__lte=Argument("until", DateTimeField()))
        .annotate(is_one_of_many=Exists(others))
    )


@pytest.mark.django_db
def test_a_compiled_query_finds_what_its_arguments_say_now(
    approver: User, preparer: User, administrator: User
) -> None:
    now = clock.now()
    granted = {"change": AccountChange.CREATED, "prepared_by": administrator}
    for user in (approver, approver, preparer):
        RightsGrant.objects.create(user=user, at=now, **granted)
    compiled = grants_to(Argument("person", CharField()))

    found = compiled.all(person=approver.full_name, until=now)
    with CaptureQueriesContext(connection) as queries:
        own = compiled.first(person=preparer.full_name, until=now)
        assert own is not None
        assert (own.user, own.at, vars(own)["is_one_of_many"]) == (preparer, now, False)

    assert [vars(grant)["is_one_of_many"] for grant in found] == [True, True]
    assert len(queries) == 1
    assert compiled.first(person="Nobody", until=now) is None
    assert compiled.all(person=approver.full_name, until=now - timedelta(microseconds=1)) == []
    RightsGrant.objects.create(user=preparer, at=now, **granted)
    assert len(compiled.all(person=preparer.full_name, until=now)) == 2
    with pytest.raises(KeyError, match="person"):
        compiled.all(until=now)


@pytest.mark.django_db
def test_its_sql_is_written_once(approver: User, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    write = SQLCompiler.as_sql

    def count(self: SQLCompiler, *arguments: Any, **named: Any) -> Any:
        written.append(self)
        return write(self, *arguments, **named)

    monkeypatch.setattr(SQLCompiler, "as_sql", count)
    active = CompiledQuery(User.objects.filter(is_active=Argument("active", BooleanField())).values("pk"))

    assert [len(active.all(active=value)) for value in (True, False, True)] == [1, 0, 1]
    assert len(written) == 1


@pytest.mark.django_db
def test_its_values_are_stored_as_the_field_stores_them(approver: User) -> None:
    at_time = CompiledQuery(StaffSession.objects.filter(expire_date=Argument("at", DateTimeField())))
    assert at_time.all(at=datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == []
    StaffSession.objects.create(
        session_key="k",
        expire_date=datetime(2026, 1, 1, tzinfo=UTC),
        created_at=clock.now(),
        last_seen_at=clock.now(),
    )

    assert len(at_time.all(at=datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))))) == 1
