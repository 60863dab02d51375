"""Sessions: one query, two limits, and every way to end them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.contrib.sessions.backends.base import UpdateError
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts import services
from backoffice.accounts.models import StaffSession, User
from backoffice.accounts.roles import PERMISSIONS, Role
from backoffice.accounts.sessions import SessionStore
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from tests.accounts import steps
from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db
ME = "/account/"
SignIn = Callable[[Client, User], Client]


def test_one_query_brings_session_person_authenticator_and_permissions(
    signed_in: Client, maker: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    key = signed_in.session.session_key
    with django_assert_num_queries(1):
        session = SessionStore(key)
        person = session.person
        assert person == maker
        assert session.authenticator is not None
        assert session.second_factor_at is not None
        assert person is not None
        assert person.has_perm("operations.prepare_operation")
        assert not person.has_perm("operations.approve_operation")


def test_a_page_behind_sign_in_costs_one_query_before_its_own(
    signed_in: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        signed_in.get(reverse("accounts:password"))


def test_my_account_stays_within_the_budget_of_a_page(signed_in: Client) -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        page = signed_in.get(ME)
    assert page.status_code == 200
    assert len(queries) <= 6


@pytest.mark.parametrize("role", Role)
def test_the_permissions_that_come_with_the_session_are_those_of_the_role(
    client: Client, outsider: User, sign_in: SignIn, role: Role
) -> None:
    outsider.groups.set(Group.objects.filter(name=role))
    session = SessionStore(sign_in(client, outsider).session.session_key)
    assert session.person is not None
    assert session.person.permission_names == PERMISSIONS[role]
    assert User.objects.get(pk=outsider.pk).permission_names == PERMISSIONS[role]


def test_somebody_without_a_role_may_nothing(client: Client, outsider: User, sign_in: SignIn) -> None:
    session = SessionStore(sign_in(client, outsider).session.session_key)
    assert session.person is not None
    assert session.person.permission_names == frozenset()
    assert session.person.get_all_permissions() == set()


def test_a_permission_given_to_one_person_directly_counts_for_nothing(maker: User) -> None:
    maker.user_permissions.set(Permission.objects.filter(codename="approve_operation"))
    person = User.objects.get(pk=maker.pk)
    assert not person.has_perm("operations.approve_operation")
    assert person.get_user_permissions() == set()


def test_a_deactivated_person_may_nothing(maker: User) -> None:
    maker.is_active = False
    assert not maker.has_perm("operations.prepare_operation")
    assert maker.get_all_permissions() == set()


def test_a_removed_permission_is_gone_at_the_next_request(
    client: Client, checker: User, sign_in: SignIn
) -> None:
    sign_in(client, checker)
    Group.objects.get(name=Role.APPROVER).permissions.clear()
    person = SessionStore(client.session.session_key).person
    assert person is not None
    assert not person.has_perm("operations.approve_operation")


def test_a_deactivated_person_is_out_at_the_next_request(signed_in: Client, maker: User) -> None:
    User.objects.filter(pk=maker.pk).update(is_active=False)
    assert signed_in.get(ME).status_code == 302
    assert not StaffSession.objects.exists()


def test_a_password_changed_behind_the_back_of_a_session_ends_it(signed_in: Client, maker: User) -> None:
    maker.set_password("another horse battery staple")
    maker.save()
    assert signed_in.get(ME).status_code == 302


def test_a_session_of_an_earlier_secret_key_goes_on_while_that_key_is_listed(
    signed_in: Client, maker: User, settings: Settings
) -> None:
    stored = signed_in.session
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-" + "1" * 50
    assert SessionStore(stored.session_key).person == maker


def test_a_session_moved_to_somebody_else_in_the_table_signs_nobody_in(
    signed_in: Client, maker: User, checker: User
) -> None:
    key = signed_in.session.session_key
    User.objects.filter(pk=checker.pk).update(password=maker.password)
    StaffSession.objects.filter(pk=key).update(user=checker)
    assert SessionStore(key).person is None


def test_data_without_our_signature_signs_nobody_in(signed_in: Client) -> None:
    key = signed_in.session.session_key
    StaffSession.objects.filter(pk=key).update(session_data="forged")
    assert SessionStore(key).person is None


def test_an_authenticator_of_somebody_else_vouches_for_nobody(signed_in: Client, checker: User) -> None:
    key = signed_in.session.session_key
    assert SessionStore(key).authenticator is not None
    StaffSession.objects.filter(pk=key).update(device=steps.authenticator(checker))
    assert SessionStore(key).authenticator is None


def test_a_session_ends_after_fifteen_minutes_without_use(signed_in: Client) -> None:
    row = StaffSession.objects.get()
    assert row.expire_date - row.last_seen_at == timedelta(minutes=15)
    StaffSession.objects.update(expire_date=timezone.now())
    assert signed_in.get(ME)["Location"].startswith(reverse("accounts:sign_in"))


def test_use_puts_off_the_end(signed_in: Client) -> None:
    _last_used(minutes=10)
    signed_in.get(ME)
    assert StaffSession.objects.get().expire_date > timezone.now() + timedelta(minutes=14)


def test_use_is_written_at_most_once_a_minute(
    signed_in: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    _last_used(minutes=2)
    with django_assert_num_queries(2):
        signed_in.get(reverse("accounts:password"))
    with django_assert_num_queries(1):
        signed_in.get(reverse("accounts:password"))


@pytest.mark.urls("tests.accounts.marked_urls")
def test_a_page_that_refreshes_itself_does_not_keep_the_session_alive(signed_in: Client) -> None:
    _last_used(minutes=10)
    before = StaffSession.objects.get().expire_date
    assert signed_in.get("/refreshed/").status_code == 200
    assert StaffSession.objects.get().expire_date == before
    signed_in.get("/opened/")
    assert StaffSession.objects.get().expire_date > before


def test_no_use_puts_off_the_end_beyond_twelve_hours(signed_in: Client) -> None:
    began = timezone.now() - timedelta(hours=11, minutes=55)
    StaffSession.objects.update(created_at=began, last_seen_at=timezone.now() - timedelta(minutes=2))
    signed_in.get(ME)
    assert StaffSession.objects.get().expire_date == began + timedelta(hours=12)


def test_neither_a_new_code_nor_a_new_password_begins_the_twelve_hours_again(
    signed_in: Client, maker: User
) -> None:
    began = timezone.now() - timedelta(hours=11, minutes=55)
    StaffSession.objects.update(created_at=began)
    steps.give_code(signed_in, steps.code_of(steps.authenticator(maker)))
    _change_password(signed_in)
    assert StaffSession.objects.get().expire_date == began + timedelta(hours=12)


def test_the_cookie_is_gone_with_the_browser(client: Client, maker: User) -> None:
    cookie = steps.give_password(client, maker).cookies["countersign_session"]
    assert cookie["max-age"] == ""
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"


def test_expired_sessions_are_cleared_away_at_the_next_sign_in(
    client: Client, maker: User, checker: User, sign_in: SignIn
) -> None:
    sign_in(Client(), checker)
    StaffSession.objects.update(expire_date=timezone.now())
    steps.give_password(client, maker)
    assert list(StaffSession.objects.values_list("user", flat=True)) == [maker.pk]


def test_my_sessions_are_listed_without_their_keys(signed_in: Client, maker: User) -> None:
    other = Client(HTTP_USER_AGENT="Mozilla/5.0 (iPhone) Version/17.0 Safari/604.1", REMOTE_ADDR="10.1.2.3")
    steps.give_password(other, maker)
    page = signed_in.get(ME).content.decode()
    assert "Safari on iPhone" in page
    assert "10.1.2.3" in page
    assert page.count("this session") == 1
    assert not any(key in page for key in StaffSession.objects.values_list("pk", flat=True))


def test_each_session_can_be_ended(signed_in: Client, maker: User, sign_in: SignIn) -> None:
    other = sign_in(Client(), maker)
    row = StaffSession.objects.get(pk=other.session.session_key)
    signed_in.post(reverse("accounts:end_session", args=[row.reference]))
    assert other.get(ME).status_code == 302
    assert signed_in.get(ME).status_code == 200
    assert Entry.objects.get().action == Action.SESSION_ENDED


def test_nobody_ends_the_session_of_somebody_else(signed_in: Client, checker: User, sign_in: SignIn) -> None:
    other = sign_in(Client(), checker)
    row = StaffSession.objects.get(pk=other.session.session_key)
    signed_in.post(reverse("accounts:end_session", args=[row.reference]))
    assert other.get(ME).status_code == 200
    assert not Entry.objects.exists()


def test_all_other_sessions_can_be_ended_at_once(signed_in: Client, maker: User, sign_in: SignIn) -> None:
    others = [sign_in(Client(), maker) for _ in range(2)]
    page = signed_in.post(reverse("accounts:end_other_sessions"), follow=True)
    assert "2 other sessions ended" in page.content.decode()
    assert [other.get(ME).status_code for other in others] == [302, 302]


def test_a_session_that_was_ended_does_not_come_back_when_its_last_request_saves_it(
    signed_in: Client,
) -> None:
    session = SessionStore(signed_in.session.session_key)
    assert session.person is not None
    StaffSession.objects.all().delete()
    session["late"] = True
    with pytest.raises(UpdateError):
        session.save()
    assert not StaffSession.objects.exists()


def test_changing_the_password_ends_the_other_sessions_and_changes_the_key(
    signed_in: Client, maker: User, sign_in: SignIn
) -> None:
    other, key = sign_in(Client(), maker), signed_in.session.session_key
    page = _change_password(signed_in)
    assert "Your password is changed" in page.content.decode()
    assert signed_in.session.session_key != key
    assert list(StaffSession.objects.values_list("pk", flat=True)) == [signed_in.session.session_key]
    assert other.get(ME).status_code == 302


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"old_password": "not this one"}, "old_password", "not your present password"),
        ({"repeated": "something else entirely"}, "repeated", "differ"),
        ({"new_password": "short", "repeated": "short"}, "new_password", "at least 12"),
        ({"new_password": "1qaz2wsx3edc", "repeated": "1qaz2wsx3edc"}, "new_password", "too common"),
        ({"new_password": "739201846205", "repeated": "739201846205"}, "new_password", "entirely numeric"),
        ({"new_password": "tunde@countersign", "repeated": "tunde@countersign"}, "new_password", "similar"),
    ],
)
def test_a_password_that_will_not_do_is_refused_beside_its_field(
    signed_in: Client, change: dict[str, str], field: str, reason: str
) -> None:
    answer = _change_password(signed_in, **change)
    assert answer.status_code == 422
    assert reason in " ".join(answer.context["form"].errors[field])
    assert not Entry.objects.exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda user: services.set_roles(user.pk, roles=[Role.AUDITOR], actor=None),
        lambda user: services.deactivate(user.pk, actor=None),
        lambda user: services.reset_second_factor(user.pk, actor=None),
    ],
    ids=["roles", "deactivation", "second factor"],
)
def test_a_change_of_what_a_person_is_ends_every_session(
    signed_in: Client, maker: User, change: Callable[[User], User]
) -> None:
    change(maker)
    assert not StaffSession.objects.filter(user=maker).exists()
    assert signed_in.get(ME).status_code == 302
    assert Entry.objects.get().detail["sessions_ended"] == 1


def _last_used(*, minutes: int) -> None:
    at = timezone.now() - timedelta(minutes=minutes)
    StaffSession.objects.update(created_at=at, last_seen_at=at, expire_date=at + timedelta(minutes=15))


def _change_password(client: Client, **change: str) -> Any:
    new = "another horse battery staple"
    typed = {"old_password": PASSWORD, "new_password": new, "repeated": new, **change}
    return client.post(reverse("accounts:password"), typed, follow=True)
