"""How long a session lasts: fifteen minutes without use, twelve hours in all."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import StaffSession, User
from tests.accounts import steps

pytestmark = pytest.mark.django_db
ME = "/account/"
SignIn = Callable[[Client, User], Client]


def test_a_session_ends_after_fifteen_minutes_without_use(signed_in: Client) -> None:
    row = StaffSession.objects.get()
    assert row.expire_date - row.last_seen_at == timedelta(minutes=15)
    StaffSession.objects.update(expire_date=timezone.now())
    assert signed_in.get(ME)["Location"].startswith(reverse("accounts:sign_in"))


def test_activity_extends_the_session(signed_in: Client) -> None:
    _last_used(minutes=10)
    signed_in.get(ME)
    assert StaffSession.objects.get().expire_date > timezone.now() + timedelta(minutes=14)


def test_activity_is_stored_at_most_once_a_minute(
    signed_in: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    _last_used(minutes=2)
    with django_assert_num_queries(2):
        signed_in.get(reverse("accounts:password"))
    with django_assert_num_queries(1):
        signed_in.get(reverse("accounts:password"))


@pytest.mark.urls("tests.accounts.idle_urls")
def test_polling_does_not_extend_the_session(signed_in: Client) -> None:
    _last_used(minutes=10)
    before = StaffSession.objects.get().expire_date
    assert signed_in.get("/refreshed/").status_code == 200
    assert StaffSession.objects.get().expire_date == before
    signed_in.get("/opened/")
    assert StaffSession.objects.get().expire_date > before


def test_activity_does_not_extend_the_session_beyond_twelve_hours(signed_in: Client) -> None:
    began = timezone.now() - timedelta(hours=11, minutes=55)
    StaffSession.objects.update(created_at=began, last_seen_at=timezone.now() - timedelta(minutes=2))
    signed_in.get(ME)
    assert StaffSession.objects.get().expire_date == began + timedelta(hours=12)


def test_renewing_the_code_or_password_does_not_restart_the_twelve_hours(
    signed_in: Client, preparer: User
) -> None:
    began = timezone.now() - timedelta(hours=11, minutes=55)
    StaffSession.objects.update(created_at=began)
    steps.give_code(signed_in, steps.code_of(steps.authenticator(preparer)))
    steps.change_password(signed_in)
    assert StaffSession.objects.get().expire_date == began + timedelta(hours=12)


def test_the_session_cookie_ends_with_the_browser(client: Client, preparer: User) -> None:
    cookie = steps.give_password(client, preparer).cookies["countersign_session"]
    assert cookie["max-age"] == ""
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"


def test_expired_sessions_are_deleted_at_the_next_sign_in(
    client: Client, preparer: User, approver: User, sign_in: SignIn
) -> None:
    sign_in(Client(), approver)
    StaffSession.objects.update(expire_date=timezone.now())
    steps.give_password(client, preparer)
    assert list(StaffSession.objects.values_list("user", flat=True)) == [preparer.pk]


def _last_used(*, minutes: int) -> None:
    at = timezone.now() - timedelta(minutes=minutes)
    StaffSession.objects.update(created_at=at, last_seen_at=at, expire_date=at + timedelta(minutes=15))
