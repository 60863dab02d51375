"""A request that began before its session was ended changes nothing of how the person signs in."""

from collections.abc import Callable
from typing import cast

import pytest
from django.contrib.sessions.exceptions import SessionInterrupted
from django.test import Client, RequestFactory

from backoffice.accounts import second_factor, sign_in, staff
from backoffice.accounts.models import AuthenticatorDevice, StaffSession, User
from backoffice.accounts.sessions import SessionStore, StaffRequest, end_sessions_of
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.governance.bootstrap import bootstrap_state, invite_second_administrator
from tests.accounts import steps

pytestmark = pytest.mark.django_db
NEW_PASSWORD = "walnut kettle orbit gravel"


def begun_request(client: Client) -> StaffRequest:
    """A request of this browser whose session and person are read, and which has changed nothing yet."""
    request = cast(StaffRequest, RequestFactory().post("/"))
    request.session = SessionStore(client.session.session_key)
    person = request.session.person
    assert person is not None
    request.user = person
    return request


@pytest.fixture
def at_enrolment(client: Client, newcomer: User) -> StaffRequest:
    """Somebody new who is about to send the first code."""
    steps.open_link(client, newcomer)
    client.get("/account/authenticator/")
    return begun_request(client)


@pytest.mark.parametrize("ended_by", [staff.reset_password, staff.deactivate_staff])
def test_no_authenticator_is_set_up_in_a_session_that_was_ended(
    at_enrolment: StaffRequest, newcomer: User, ended_by: Callable[..., User]
) -> None:
    code = steps.code_of(steps.authenticator(newcomer, confirmed=False))
    ended_by(newcomer.pk, actor=None)
    with pytest.raises(SessionInterrupted):
        second_factor.finish_enrolment(at_enrolment, code)
    assert not AuthenticatorDevice.objects.filter(user=newcomer, confirmed=True).exists()
    assert not Entry.objects.filter(action=Action.AUTHENTICATOR_ENROLLED, actor=newcomer).exists()
    assert not StaffSession.objects.filter(user=newcomer).exists()


def test_another_second_administrator_is_invited_while_the_earlier_one_sends_the_first_code(
    client: Client, administrator: User
) -> None:
    """Whoever was replaced does not count as set up: the first administrator can still renew the link."""
    earlier, token = invite_second_administrator(
        "i@example.com", full_name="Ibrahim Sani", actor=administrator
    )
    client.post(f"/account/set-up/{token}/", {"new_password": NEW_PASSWORD, "repeated": NEW_PASSWORD})
    client.get("/account/authenticator/")
    late, code = begun_request(client), steps.code_of(steps.authenticator(earlier, confirmed=False))
    invite_second_administrator("z@example.com", full_name="Zainab Musa", actor=administrator)
    with pytest.raises(SessionInterrupted):
        second_factor.finish_enrolment(late, code)
    assert bootstrap_state().is_open


def test_a_password_that_was_reset_is_not_replaced_by_the_session_that_was_ended(
    signed_in: Client, preparer: User
) -> None:
    late = begun_request(signed_in)
    staff.reset_password(preparer.pk, actor=None)
    with pytest.raises(SessionInterrupted):
        sign_in.change_password(late, NEW_PASSWORD)
    assert not User.objects.get(pk=preparer.pk).has_usable_password()
    assert not StaffSession.objects.filter(user=preparer).exists()


def test_a_code_opens_no_session_again_that_was_ended(password_only: Client, preparer: User) -> None:
    late, code = begun_request(password_only), steps.code_of(steps.authenticator(preparer))
    end_sessions_of(preparer)
    with pytest.raises(SessionInterrupted):
        second_factor.confirm_second_factor(late, code)
    assert not StaffSession.objects.filter(user=preparer).exists()
