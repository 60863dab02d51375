"""Codes of the authenticator: once each, not too fast, and fresh where it matters."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from backoffice.accounts.models import AuthenticatorDevice, User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.encryption import DecryptionError
from tests.accounts import steps

pytestmark = pytest.mark.django_db
PASSWORD_PAGE = "/account/password/"


@pytest.mark.parametrize("drift", [-1, 0, 1])
def test_a_code_of_an_adjacent_time_step_is_accepted(
    password_only: Client, preparer: User, drift: int
) -> None:
    code = steps.code_of(steps.authenticator(preparer), steps=drift)
    assert steps.give_code(password_only, code).status_code == 302


@pytest.mark.parametrize("drift", [-2, 2])
def test_a_code_two_or_more_time_steps_away_is_refused(
    password_only: Client, preparer: User, drift: int
) -> None:
    code = steps.code_of(steps.authenticator(preparer), steps=drift)
    assert steps.give_code(password_only, code).status_code == 422


def test_a_code_may_be_typed_with_a_space(password_only: Client, preparer: User) -> None:
    code = steps.code_of(steps.authenticator(preparer))
    assert steps.give_code(password_only, f" {code[:3]} {code[3:]} ").status_code == 302


@pytest.mark.parametrize("typed", ["", "12345", "1234567", "١٢٣٤٥٦", "12e456", "-12345", "x" * 65])
def test_malformed_codes_are_reported_at_the_field(password_only: Client, typed: str) -> None:
    answer = steps.give_code(password_only, typed)
    assert answer.status_code == 422
    assert answer.context["form"].errors["code"]
    assert _is_closed(password_only)


def test_a_code_is_accepted_once(client: Client, preparer: User) -> None:
    code = steps.code_of(steps.authenticator(preparer))
    steps.give_password(client, preparer)
    steps.give_code(client, code)
    other = Client()
    steps.give_password(other, preparer)
    assert steps.give_code(other, code).status_code == 422
    assert _is_closed(other)


def test_an_older_code_is_refused_after_a_newer_one(password_only: Client, preparer: User) -> None:
    device = steps.authenticator(preparer)
    steps.give_code(password_only, steps.code_of(device, steps=1))
    other = Client()
    steps.give_password(other, preparer)
    assert steps.give_code(other, steps.code_of(device)).status_code == 422


@pytest.mark.django_db(transaction=True)
def test_one_of_two_concurrent_sign_ins_with_the_same_code_succeeds(preparer: User) -> None:
    code = steps.code_of(steps.authenticator(preparer))
    browsers = [Client() for _ in range(4)]
    for browser in browsers:
        steps.give_password(browser, preparer)
    answers = _at_once(browsers, code)
    assert sorted(answers) == [302, 422, 422, 422]


@pytest.mark.django_db(transaction=True)
def test_using_a_code_is_a_compare_and_set(preparer: User) -> None:
    one, other = steps.authenticator(preparer), steps.authenticator(preparer)
    code = steps.code_of(one)
    assert [one.verify_token(code), other.verify_token(code)] == [True, False]


def test_after_a_wrong_code_a_correct_one_is_refused_until_the_delay_ends(
    password_only: Client, preparer: User
) -> None:
    device = steps.authenticator(preparer)
    steps.give_code(password_only, steps.wrong_code(device))
    answer = steps.give_code(password_only, steps.code_of(device))
    assert answer.status_code == 422
    assert "Enter the next one in 1 second" in answer.content.decode()
    steps.unlock(preparer)
    assert steps.give_code(password_only, steps.code_of(device)).status_code == 302


def test_each_wrong_code_doubles_the_wait(password_only: Client, preparer: User) -> None:
    AuthenticatorDevice.objects.filter(user=preparer).update(
        throttling_failure_count=6, throttling_failure_timestamp=timezone.now() - timedelta(seconds=33)
    )
    steps.give_code(password_only, steps.wrong_code(steps.authenticator(preparer)))
    wait = steps.authenticator(preparer).wait()
    assert wait is not None
    assert timedelta(seconds=60) < wait <= timedelta(seconds=64)


def test_an_attempt_during_the_delay_does_not_prolong_it(password_only: Client, preparer: User) -> None:
    device = steps.authenticator(preparer)
    for _ in range(3):
        steps.give_code(password_only, steps.wrong_code(device))
    assert steps.authenticator(preparer).throttling_failure_count == 1


def test_a_correct_code_resets_the_delay(password_only: Client, preparer: User) -> None:
    AuthenticatorDevice.objects.filter(user=preparer).update(
        throttling_failure_count=3, throttling_failure_timestamp=timezone.now() - timedelta(minutes=1)
    )
    steps.give_code(password_only, steps.code_of(steps.authenticator(preparer)))
    device = steps.authenticator(preparer)
    assert (device.throttling_failure_count, device.throttling_failure_timestamp) == (0, None)
    assert device.last_used_at is not None


def test_refused_codes_are_audited_with_the_reason_and_without_the_code(
    password_only: Client, preparer: User
) -> None:
    wrong = steps.wrong_code(steps.authenticator(preparer))
    steps.give_code(password_only, wrong)
    steps.give_code(password_only, wrong)
    refused = Entry.objects.filter(action=Action.SECOND_FACTOR_REFUSED).order_by("position")
    assert [(entry.actor_label, entry.detail) for entry in refused] == [
        ("Tunde Bello", {"reason": "wrong or used code"}),
        ("Tunde Bello", {"reason": "too soon after a wrong code"}),
    ]


def test_changing_the_password_needs_a_fresh_second_factor(signed_in: Client, preparer: User) -> None:
    steps.age_second_factor(signed_in, minutes=6)
    asked = signed_in.get(PASSWORD_PAGE)
    assert asked["Location"] == f"{reverse('accounts:second_factor')}?next=%2Faccount%2Fpassword%2F"
    back = steps.give_code(signed_in, steps.code_of(steps.authenticator(preparer)), next=PASSWORD_PAGE)
    assert back["Location"] == PASSWORD_PAGE
    assert signed_in.get(PASSWORD_PAGE).status_code == 200


def test_a_second_factor_is_fresh_after_four_minutes(signed_in: Client) -> None:
    steps.age_second_factor(signed_in, minutes=4)
    assert signed_in.get(PASSWORD_PAGE).status_code == 200


def test_renewing_the_second_factor_keeps_the_session_and_is_audited(
    signed_in: Client, preparer: User
) -> None:
    key = signed_in.session.session_key
    steps.give_code(signed_in, steps.code_of(steps.authenticator(preparer)))
    assert signed_in.session.session_key == key
    assert Entry.objects.get().action == Action.SECOND_FACTOR_CONFIRMED


def test_another_users_code_is_refused(password_only: Client, approver: User) -> None:
    assert steps.give_code(password_only, steps.code_of(steps.authenticator(approver))).status_code == 422


def test_the_secret_is_encrypted_for_its_row(preparer: User, approver: User) -> None:
    mine, other = steps.authenticator(preparer), steps.authenticator(approver)
    assert mine.totp().key.hex().encode() not in bytes(mine.encrypted_seed)
    mine.encrypted_seed = other.encrypted_seed
    with pytest.raises(DecryptionError, match="not encrypted for this row"):
        mine.totp()


def _is_closed(client: Client) -> bool:
    return client.get("/account/").status_code == 302


def _at_once(browsers: list[Client], code: str) -> list[int]:
    """Post the code from all browsers in the same moment; the statuses."""
    gate = threading.Barrier(len(browsers))
    answers: list[Any] = []

    def post(browser: Client) -> None:
        gate.wait(timeout=60)
        answers.append(steps.give_code(browser, code).status_code)
        connections.close_all()

    threads = [threading.Thread(target=post, args=(browser,)) for browser in browsers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    return answers


def test_a_refused_code_is_not_rendered_in_the_form(password_only: Client) -> None:
    page = password_only.post(reverse("accounts:second_factor"), {"code": "ABCD-EFGH-JKLM-NPQR"})
    assert page.status_code == 422
    assert "ABCD-EFGH-JKLM-NPQR" not in page.content.decode()
