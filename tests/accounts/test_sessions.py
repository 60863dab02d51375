"""Sessions: one query, no forging, and every way to end them."""

import re
from collections.abc import Callable

import pytest
from django.contrib.sessions.backends.base import UpdateError
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts import staff
from backoffice.accounts.models import StaffSession, User
from backoffice.accounts.roles import Role
from backoffice.accounts.sessions import SessionStore
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from tests.accounts import steps

pytestmark = pytest.mark.django_db
ME = "/account/"
SignIn = Callable[[Client, User], Client]


def test_session_user_authenticator_and_permissions_take_one_query(
    signed_in: Client, preparer: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    key = signed_in.session.session_key
    with django_assert_num_queries(1):
        session = SessionStore(key)
        person = session.person
        assert person == preparer
        assert session.authenticator is not None
        assert session.second_factor_at is not None
        assert person is not None
        assert person.has_perm("operations.prepare_operation")
        assert not person.has_perm("operations.approve_operation")


def test_authentication_takes_one_query_per_page(
    signed_in: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        signed_in.get(reverse("accounts:password"))


def test_my_account_stays_within_the_query_budget(signed_in: Client, warm_caches: None) -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        page = signed_in.get(ME)
    assert page.status_code == 200
    assert len(queries) <= 6


def test_a_deactivated_user_is_signed_out_at_the_next_request(signed_in: Client, preparer: User) -> None:
    User.objects.filter(pk=preparer.pk).update(is_active=False)
    assert signed_in.get(ME).status_code == 302
    assert not StaffSession.objects.exists()


def test_a_password_changed_elsewhere_ends_the_session(signed_in: Client, preparer: User) -> None:
    preparer.set_password("another horse battery staple")
    preparer.save()
    assert signed_in.get(ME).status_code == 302


def test_a_session_signed_with_a_fallback_secret_key_stays_valid(
    signed_in: Client, preparer: User, settings: Settings
) -> None:
    stored = signed_in.session
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-" + "1" * 50
    assert SessionStore(stored.session_key).person == preparer


def test_a_session_row_reassigned_to_another_user_is_invalid(
    signed_in: Client, preparer: User, approver: User
) -> None:
    key = signed_in.session.session_key
    User.objects.filter(pk=approver.pk).update(password=preparer.password)
    StaffSession.objects.filter(pk=SessionStore(key).row_key).update(user=approver)
    assert SessionStore(key).person is None


def test_unsigned_session_data_is_invalid(signed_in: Client) -> None:
    key = signed_in.session.session_key
    StaffSession.objects.filter(pk=SessionStore(key).row_key).update(session_data="forged")
    assert SessionStore(key).person is None


def test_a_session_with_another_users_authenticator_is_invalid(signed_in: Client, approver: User) -> None:
    key = signed_in.session.session_key
    assert SessionStore(key).authenticator is not None
    StaffSession.objects.filter(pk=SessionStore(key).row_key).update(device=steps.authenticator(approver))
    assert SessionStore(key).authenticator is None


def test_my_sessions_are_listed_without_their_keys(signed_in: Client, preparer: User) -> None:
    other = Client(HTTP_USER_AGENT="Mozilla/5.0 (iPhone) Version/17.0 Safari/604.1", REMOTE_ADDR="10.1.2.3")
    steps.give_password(other, preparer)
    page = signed_in.get(ME).content.decode()
    assert "Safari on iPhone" in page
    assert "10.1.2.3" in page
    assert page.count("this session") == 1
    assert not any(key in page for key in StaffSession.objects.values_list("pk", flat=True))
    assert str(signed_in.session.session_key) not in page


def test_what_the_database_stores_opens_no_session(signed_in: Client, settings: Settings) -> None:
    cookie = signed_in.cookies[settings.SESSION_COOKIE_NAME].value
    row = StaffSession.objects.get()
    assert cookie not in str(StaffSession.objects.values())
    for stored in (row.pk, row.reference, row.session_data):
        thief = Client()
        thief.cookies[settings.SESSION_COOKIE_NAME] = stored
        assert thief.get(ME).status_code == 302
    assert signed_in.get(ME).status_code == 200


def test_a_key_of_before_it_was_hashed_opens_no_session(signed_in: Client, settings: Settings) -> None:
    """The previous release stored the key itself."""
    key = signed_in.cookies[settings.SESSION_COOKIE_NAME].value
    StaffSession.objects.update(session_key=key)
    assert signed_in.get(ME).status_code == 302


def test_each_session_can_be_ended(signed_in: Client, preparer: User, sign_in: SignIn) -> None:
    other = sign_in(Client(), preparer)
    row = StaffSession.objects.get(pk=steps.row_key(other))
    signed_in.post(reverse("accounts:end_session", args=[row.reference]))
    assert other.get(ME).status_code == 302
    assert signed_in.get(ME).status_code == 200
    assert Entry.objects.get().action == Action.SESSION_ENDED


def test_ending_sessions_needs_a_fresh_second_factor(
    signed_in: Client, preparer: User, sign_in: SignIn
) -> None:
    other = sign_in(Client(), preparer)
    row = StaffSession.objects.get(pk=steps.row_key(other))
    steps.age_second_factor(signed_in, minutes=6)
    for address in (
        reverse("accounts:end_session", args=[row.reference]),
        reverse("accounts:end_other_sessions"),
    ):
        answer = signed_in.post(address)
        assert answer["Location"].startswith(reverse("accounts:second_factor"))
        assert other.get(ME).status_code == 200


def test_a_session_key_is_random_and_long(preparer: User) -> None:
    keys = set()
    for _ in range(10):
        browser = Client()
        steps.give_password(browser, preparer)
        keys.add(browser.session.session_key or "")
    assert len(keys) == 10
    assert [key for key in keys if not re.fullmatch(r"[a-z0-9]{32}", key)] == []  # 165 bits


def test_a_user_cannot_end_another_users_session(signed_in: Client, approver: User, sign_in: SignIn) -> None:
    other = sign_in(Client(), approver)
    row = StaffSession.objects.get(pk=steps.row_key(other))
    signed_in.post(reverse("accounts:end_session", args=[row.reference]))
    assert other.get(ME).status_code == 200
    assert not Entry.objects.exists()


def test_all_other_sessions_can_be_ended_at_once(signed_in: Client, preparer: User, sign_in: SignIn) -> None:
    others = [sign_in(Client(), preparer) for _ in range(2)]
    page = signed_in.post(reverse("accounts:end_other_sessions"), follow=True)
    assert "2 other sessions ended" in page.content.decode()
    assert [other.get(ME).status_code for other in others] == [302, 302]


def test_a_concurrent_request_does_not_restore_an_ended_session(
    signed_in: Client,
) -> None:
    session = SessionStore(signed_in.session.session_key)
    assert session.person is not None
    StaffSession.objects.all().delete()
    session["late"] = True
    with pytest.raises(UpdateError):
        session.save()
    assert not StaffSession.objects.exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda user: staff.set_roles(user.pk, roles=[Role.AUDITOR], actor=None),
        lambda user: staff.deactivate_staff(user.pk, actor=None),
        lambda user: staff.reset_second_factor(user.pk, actor=None),
    ],
    ids=["roles", "deactivation", "second factor"],
)
def test_changing_roles_or_status_ends_every_session(
    signed_in: Client, preparer: User, change: Callable[[User], User]
) -> None:
    change(preparer)
    assert not StaffSession.objects.filter(user=preparer).exists()
    assert signed_in.get(ME).status_code == 302
    assert Entry.objects.get().detail["sessions_ended"] == 1
