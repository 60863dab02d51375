"""Setting up an authenticator and receiving recovery codes."""

import base64
import math
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from django.test import Client
from django.urls import reverse
from django_otp.oath import TOTP
from pytest_django import Settings

from backoffice.accounts.models import AuthenticatorDevice, RecoveryCode, SetupLink, StaffSession, User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from tests.accounts import steps
from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db
ENROL = "/account/authenticator/"
CODES = "/account/recovery-codes/"
STORED = "/account/recovery-codes/stored/"


@pytest.fixture
def at_enrolment(client: Client, newcomer: User) -> Client:
    """Somebody new, with a password chosen by the one-time link and the QR code on the screen."""
    steps.open_link(client, newcomer)
    client.get(ENROL)
    return client


def test_a_new_user_passes_all_steps_and_reaches_the_page_requested(client: Client, newcomer: User) -> None:
    page = client.get(steps.open_link(client, newcomer)["Location"], follow=True)
    assert page.redirect_chain[-1][0].startswith(ENROL)
    page = client.get("/account/", follow=True)
    assert page.redirect_chain[-1][0].startswith(ENROL)
    shown = _confirm(client, newcomer, next=page.context["next"])
    assert len(shown.context["codes"]) == 10
    assert client.post(STORED, {"next": shown.context["next"]})["Location"] == "/account/"
    assert client.get("/account/").status_code == 200


def test_the_secret_shown_generates_the_accepted_codes(at_enrolment: Client, newcomer: User) -> None:
    typed = at_enrolment.get(ENROL).context["secret"]
    totp = TOTP(base64.b32decode(typed.replace(" ", "")))
    answer = at_enrolment.post(ENROL, {"code": f"{totp.token():06d}"})
    assert len(answer.context["codes"]) == 10


def test_the_qr_code_holds_secret_issuer_and_account(newcomer: User, at_enrolment: Client) -> None:
    device = steps.authenticator(newcomer, confirmed=False)
    uri = urlsplit(device.provisioning_uri())
    assert (uri.scheme, uri.netloc) == ("otpauth", "totp")
    assert unquote(uri.path) == "/Countersign:new@countersign.example"
    assert parse_qs(uri.query) == {
        "secret": [device.secret_text()],
        "issuer": ["Countersign"],
        "digits": ["6"],
        "period": ["30"],
    }


def test_the_qr_code_is_allowed_by_the_content_security_policy(at_enrolment: Client) -> None:
    page = at_enrolment.get(ENROL)
    assert page.context["qr_code"].startswith("data:image/svg+xml")
    assert "img-src 'self' data:" in page["Content-Security-Policy"]


def test_the_page_does_not_offer_to_leave_a_session_that_no_link_opens_again(at_enrolment: Client) -> None:
    assert reverse("accounts:sign_out") not in at_enrolment.get(ENROL).content.decode()


def test_reloading_the_page_shows_the_same_secret(at_enrolment: Client) -> None:
    assert at_enrolment.get(ENROL).context["secret"] == at_enrolment.get(ENROL).context["secret"]


def test_a_secret_shown_in_another_session_is_not_accepted(at_enrolment: Client, newcomer: User) -> None:
    seen_by_the_first = steps.code_of(steps.authenticator(newcomer, confirmed=False))
    second = Client()
    steps.open_link(second, newcomer)
    second.get(ENROL)
    assert second.post(ENROL, {"code": seen_by_the_first}).status_code == 422
    assert not AuthenticatorDevice.objects.filter(user=newcomer, confirmed=True).exists()


def test_a_wrong_code_does_not_enrol_and_is_audited(at_enrolment: Client, newcomer: User) -> None:
    answer = at_enrolment.post(
        ENROL, {"code": steps.wrong_code(steps.authenticator(newcomer, confirmed=False))}
    )
    assert answer.status_code == 422
    assert not AuthenticatorDevice.objects.filter(user=newcomer, confirmed=True).exists()
    assert Entry.objects.latest("position").action == Action.SECOND_FACTOR_REFUSED


def test_wrong_codes_throttle_enrolment(at_enrolment: Client, newcomer: User) -> None:
    device = steps.authenticator(newcomer, confirmed=False)
    at_enrolment.post(ENROL, {"code": steps.wrong_code(device)})
    assert at_enrolment.post(ENROL, {"code": steps.code_of(device)}).status_code == 422


def test_the_code_that_confirmed_an_authenticator_cannot_be_reused(
    at_enrolment: Client, newcomer: User
) -> None:
    code = steps.code_of(steps.authenticator(newcomer, confirmed=False))
    at_enrolment.post(ENROL, {"code": code})
    other = Client()
    steps.give_password(other, newcomer)
    assert steps.give_code(other, code).status_code == 422


def test_the_password_alone_sets_up_no_authenticator(client: Client, newcomer: User) -> None:
    """Otherwise who can write a password and delete an authenticator would be that person."""
    steps.give_password(client, newcomer)
    for answer in (client.get(ENROL), client.post(ENROL, {"code": "123456"})):
        assert answer.status_code == 403
        assert "Ask an administrator to reset your second factor" in answer.content.decode()
    assert not AuthenticatorDevice.objects.exists()


def test_the_session_of_the_link_has_no_second_enrolment(at_enrolment: Client, newcomer: User) -> None:
    """The link is worth one authenticator, whatever becomes of it."""
    session: Any = at_enrolment.session
    assert session.allows_enrolment
    _confirm(at_enrolment, newcomer)
    session = at_enrolment.session
    assert not session.allows_enrolment


def test_the_password_alone_does_not_replace_an_authenticator(password_only: Client, preparer: User) -> None:
    before = steps.authenticator(preparer).pk
    answer = password_only.post(ENROL, {"code": "123456"})
    assert answer["Location"].startswith(reverse("accounts:second_factor"))
    assert steps.authenticator(preparer).pk == before


def test_replacing_the_authenticator_needs_a_fresh_second_factor(signed_in: Client) -> None:
    steps.age_second_factor(signed_in, minutes=6)
    assert signed_in.get(ENROL)["Location"].startswith(reverse("accounts:second_factor"))


def test_enrolment_ends_when_another_session_has_completed_it(client: Client, newcomer: User) -> None:
    slow = Client()
    steps.open_link(slow, newcomer)
    slow.get(ENROL)
    steps.open_link(client, newcomer)
    client.get(ENROL)
    _confirm(client, newcomer)
    mine = steps.authenticator(newcomer).pk
    assert slow.post(ENROL, {"code": "123456"}).status_code == 302
    assert steps.authenticator(newcomer).pk == mine


def test_replacing_the_authenticator_ends_other_sessions_and_old_recovery_codes(
    signed_in: Client, preparer: User, sign_in: Callable[[Client, User], Client]
) -> None:
    elsewhere = sign_in(Client(), preparer)
    steps.give_password(Client(), preparer)
    old = steps.authenticator(preparer)
    signed_in.get(ENROL)
    _confirm(signed_in, preparer)
    assert not AuthenticatorDevice.objects.filter(pk=old.pk).exists()
    assert StaffSession.objects.filter(user=preparer).count() == 1
    assert elsewhere.get("/account/").status_code == 302
    signed_in.post(STORED)
    assert signed_in.get("/account/").status_code == 200


def test_recovery_codes_are_shown_once_and_stored_as_hashes(at_enrolment: Client, newcomer: User) -> None:
    codes = _confirm(at_enrolment, newcomer).context["codes"]
    assert not any(code in at_enrolment.get(CODES).content.decode() for code in codes)
    stored = set(RecoveryCode.objects.values_list("digest", flat=True))
    assert len(stored) == len(set(codes)) == 10
    assert {len(code.replace("-", "")) for code in codes} == {28}
    assert not any(code.replace("-", "") in digest.upper() for code in codes for digest in stored)


def test_codes_and_links_cannot_be_guessed() -> None:
    """128 random bits: a hash that is not slow suffices for them."""
    for generate in (RecoveryCode.generate, SetupLink.generate):
        found = [generate().replace("-", "") for _ in range(400)]
        assert min(map(len, found)) * math.log2(len(set("".join(found)))) >= 128


def test_a_start_code_cannot_be_guessed_with_the_link() -> None:
    """A network is locked out after a few wrong ones (`test_setup_links`): it would need millions of years."""
    found = [SetupLink.generate_code() for _ in range(400)]
    assert {len(code) for code in found} == {len("7KQ2-M4XB-Z9TD")}
    letters = [code.replace("-", "") for code in found]
    assert len(letters[0]) * math.log2(len(set("".join(letters)))) >= 58


def test_no_page_opens_until_the_recovery_codes_are_confirmed(at_enrolment: Client, newcomer: User) -> None:
    _confirm(at_enrolment, newcomer)
    assert at_enrolment.get("/account/")["Location"].startswith(CODES)


def test_recovery_codes_that_do_not_exist_cannot_be_confirmed(signed_in: Client, preparer: User) -> None:
    User.objects.filter(pk=preparer.pk).update(recovery_codes_stored_at=None)
    signed_in.post(STORED)
    assert User.objects.get(pk=preparer.pk).recovery_codes_stored_at is None


def test_a_recovery_code_replaces_the_authenticator_once(client: Client, preparer: User) -> None:
    code = steps.recovery_codes(preparer)[3]
    steps.give_password(client, preparer)
    assert steps.give_code(client, code.lower().replace("-", " ")).status_code == 302
    assert client.get("/account/").status_code == 200
    other = Client()
    steps.give_password(other, preparer)
    assert steps.give_code(other, code).status_code == 422


def test_another_users_recovery_code_is_refused(password_only: Client, approver: User) -> None:
    assert steps.give_code(password_only, steps.recovery_codes(approver)[0]).status_code == 422


def test_a_wrong_recovery_code_throttles_the_next_attempt(password_only: Client, preparer: User) -> None:
    code = steps.recovery_codes(preparer)[0]
    steps.give_code(password_only, RecoveryCode.generate())
    assert steps.give_code(password_only, code).status_code == 422
    assert RecoveryCode.objects.filter(user=preparer, used_at=None).count() == 10


def test_new_recovery_codes_replace_the_old_ones(signed_in: Client, preparer: User) -> None:
    old = steps.recovery_codes(preparer)[0]
    new = signed_in.post(CODES, {"old_password": PASSWORD}).context["codes"]
    assert RecoveryCode.objects.filter(user=preparer).count() == 10
    signed_in.post(reverse("accounts:sign_out"))
    steps.give_password(signed_in, preparer)
    assert steps.give_code(signed_in, old).status_code == 422
    steps.unlock(preparer)
    assert steps.give_code(signed_in, new[0]).status_code == 302


def test_only_codes_that_replace_others_say_that_these_have_stopped_working(
    at_enrolment: Client, newcomer: User, preparer: User, sign_in: Any
) -> None:
    assert "earlier codes" not in _confirm(at_enrolment, newcomer).content.decode()
    steps.recovery_codes(preparer)
    page = sign_in(Client(), preparer).post(CODES, {"old_password": PASSWORD}).content.decode()
    assert "All earlier codes have stopped working." in page


def test_new_recovery_codes_need_a_fresh_second_factor(signed_in: Client, preparer: User) -> None:
    steps.age_second_factor(signed_in, minutes=6)
    answer = signed_in.post(CODES, {"old_password": PASSWORD})
    assert answer["Location"].startswith(reverse("accounts:second_factor"))
    assert not RecoveryCode.objects.exists()


@pytest.mark.parametrize("password", ["", "not the password"])
def test_new_recovery_codes_need_the_password(signed_in: Client, password: str) -> None:
    answer = signed_in.post(CODES, {"old_password": password})

    assert answer.status_code == 422
    assert answer.context["form"].errors.keys() == {"old_password"}
    assert not RecoveryCode.objects.exists()


@pytest.mark.parametrize("password", ["", "not the password"])
def test_another_authenticator_needs_the_password(signed_in: Client, preparer: User, password: str) -> None:
    old = steps.authenticator(preparer)
    signed_in.get(ENROL)

    code = steps.code_of(steps.authenticator(preparer, confirmed=False))
    answer = signed_in.post(ENROL, {"code": code, "old_password": password})

    assert answer.status_code == 422
    assert answer.context["form"].errors.keys() == {"old_password"}
    assert steps.authenticator(preparer) == old


def test_recovery_codes_survive_a_new_secret_key_while_the_old_one_is_listed(
    password_only: Client, preparer: User, settings: Settings
) -> None:
    user_id, code = preparer.pk, steps.recovery_codes(preparer)[0]
    before = RecoveryCode.digests(code, user_id=user_id)[0]
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another-" + "1" * 50, [settings.SECRET_KEY]
    assert before in RecoveryCode.digests(code, user_id=user_id)[1:]


def test_each_step_is_audited_without_codes(at_enrolment: Client, newcomer: User) -> None:
    secret = steps.authenticator(newcomer, confirmed=False).secret_text()
    codes = _confirm(at_enrolment, newcomer).context["codes"]
    at_enrolment.post(STORED)
    at_enrolment.post(reverse("accounts:sign_out"))
    steps.give_password(at_enrolment, newcomer)
    steps.give_code(at_enrolment, codes[0])
    actions = list(Entry.objects.order_by("position").values_list("action", flat=True))
    assert actions == [
        Action.STAFF_CREATED,
        Action.SETUP_LINK_CREATED,
        Action.SETUP_LINK_USED,
        Action.AUTHENTICATOR_ENROLLED,
        Action.RECOVERY_CODES_ISSUED,
        Action.RECOVERY_CODES_STORED,
        Action.SESSION_SIGNED_OUT,
        Action.PASSWORD_ACCEPTED,
        Action.RECOVERY_CODE_USED,
        Action.SIGN_IN_COMPLETED,
    ]
    log = str(list(Entry.objects.values()))
    assert not any(shown in log for shown in (secret, *codes))


def _confirm(client: Client, user: User, **more: Any) -> Any:
    """Type what the phone shows; the page with the recovery codes."""
    code = steps.code_of(steps.authenticator(user, confirmed=False))
    return client.post(ENROL, {"code": code, "old_password": PASSWORD, **more})
