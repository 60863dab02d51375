"""Passwords, authenticators, sessions and one-time links that someone writes who has the database alone."""

import importlib
import uuid
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings as django_settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher, make_password
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts import second_factor, setup_links, staff
from backoffice.accounts.models import AuthenticatorDevice, SetupLink, StaffSession, User
from backoffice.accounts.roles import Role
from backoffice.accounts.sessions import SessionStore
from backoffice.accounts.setup_links import NothingToHandOverError, handover_of, show_handover
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.encryption import SealState
from tests.accounts import steps
from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db
SignIn = Callable[[Client, User], Client]
ME = "/account/"
FORGED = "seven lanterns over the lagoon"
NEWEST = "new:" + "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="


@pytest.fixture
def invited(db: None) -> User:
    return staff.create_staff("ada@countersign.example", full_name="Ada Obi", roles=[Role.APPROVER])


# Passwords


@pytest.mark.parametrize("seal", ["kept", "none", "of another"])
def test_a_password_written_into_the_database_is_not_accepted(
    client: Client, approver: User, preparer: User, seal: str
) -> None:
    seals = {"kept": approver.seal, "none": None, "of another": preparer.seal}
    hashed = preparer.password if seal == "of another" else make_password(FORGED)
    User.objects.filter(pk=approver.pk).update(password=hashed, seal=seals[seal])

    answer = steps.give_password(client, approver, PASSWORD if seal == "of another" else FORGED)

    assert answer.status_code == 422
    assert not StaffSession.objects.exists()


def test_an_account_reactivated_in_the_database_alone_signs_nobody_in(client: Client, approver: User) -> None:
    staff.deactivate_staff(approver.pk, actor=None)
    User.objects.filter(pk=approver.pk).update(is_active=True)

    assert steps.give_password(client, approver, PASSWORD).status_code == 422

    staff.reactivate_staff(approver.pk, actor=None)
    assert steps.give_password(client, approver, PASSWORD).status_code == 302


def test_a_match_with_a_password_of_the_database_does_not_seal_it(client: Client, approver: User) -> None:
    """A match with a hash of fewer rounds is stored anew with more of them."""
    weak = PBKDF2PasswordHasher().encode(FORGED, "salt" * 6, iterations=1)
    User.objects.filter(pk=approver.pk).update(password=weak)
    for _ in range(2):
        assert steps.give_password(client, approver, FORGED).status_code == 422
    assert User.objects.get(pk=approver.pk).password == weak


def test_a_password_remains_valid_when_it_is_hashed_anew(
    client: Client, approver: User, settings: Settings
) -> None:
    before = approver.password
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.ScryptPasswordHasher",
        *settings.PASSWORD_HASHERS,
    ]
    for _ in range(2):
        assert steps.give_password(client, approver).status_code == 302
    stored = User.objects.get(pk=approver.pk)
    assert stored.password != before
    assert stored.seal_state() == SealState.VALID


def test_every_way_to_store_a_password_seals_it(invited: User) -> None:
    changes: list[Callable[[], object]] = [
        lambda: staff.reset_password(invited.pk, actor=None),
        lambda: steps.open_link(Client(), invited),
        lambda: staff.reset_second_factor(invited.pk, actor=None),
    ]
    for change in changes:
        assert User.objects.get(pk=invited.pk).seal_state() == SealState.VALID
        change()
    stored = User.objects.get(pk=invited.pk)
    assert stored.seal_state() == SealState.VALID


def test_storing_something_else_leaves_a_new_password_to_be_sealed(approver: User) -> None:
    approver.set_password(FORGED)
    approver.save(update_fields=["full_name"])
    assert User.objects.get(pk=approver.pk).check_password(PASSWORD)
    approver.save(update_fields=["password"])
    assert User.objects.get(pk=approver.pk).check_password(FORGED)


# Authenticators


def test_an_authenticator_given_to_another_person_is_refused(
    client: Client, preparer: User, approver: User
) -> None:
    own = steps.authenticator(preparer)
    steps.authenticator(approver).delete()
    AuthenticatorDevice.objects.filter(pk=own.pk).update(user=approver)
    steps.give_password(client, approver)

    assert steps.give_code(client, steps.code_of(own)).status_code == 422

    assert client.get(ME).status_code == 302
    entry = Entry.objects.get(action=Action.SECOND_FACTOR_REFUSED)
    assert entry.detail["reason"] == "authenticator altered outside Countersign"


def test_an_authenticator_without_a_seal_is_refused(client: Client, approver: User) -> None:
    AuthenticatorDevice.objects.filter(user=approver).update(seal=None)
    steps.give_password(client, approver)
    assert steps.give_code(client, steps.code_of(steps.authenticator(approver))).status_code == 422


def test_a_seed_moved_to_another_authenticator_is_not_decrypted(preparer: User, approver: User) -> None:
    own = steps.authenticator(preparer)
    AuthenticatorDevice.objects.filter(user=approver).update(encrypted_seed=own.encrypted_seed)
    with pytest.raises(Exception, match="not encrypted for this row"):
        steps.authenticator(approver).verify_token(steps.code_of(own))


def test_a_deleted_authenticator_is_not_replaced_by_password(client: Client, approver: User) -> None:
    steps.authenticator(approver).delete()
    steps.give_password(client, approver)
    assert client.get("/account/authenticator/").status_code == 403


# Sessions


def test_session_data_copied_to_another_row_is_no_session(
    signed_in: Client, approver: User, sign_in: SignIn
) -> None:
    """The data of the approver's session, with a code given just now, in the row of one's own cookie."""
    key = sign_in(Client(), approver).session.session_key
    row = StaffSession.objects.get(pk=SessionStore(key).row_key)
    own = StaffSession.objects.filter(pk=steps.row_key(signed_in))
    own.update(session_data=row.session_data, user=approver, device=row.device)

    session = SessionStore(signed_in.cookies[django_settings.SESSION_COOKIE_NAME].value)
    assert (session.person, session.authenticator) == (None, None)
    assert signed_in.get(ME).status_code == 302
    assert SessionStore(key).person == approver


# One-time links


def test_a_link_given_to_another_person_is_not_valid(client: Client, invited: User, approver: User) -> None:
    token = staff.issue_setup_link(invited.pk, actor=None)
    SetupLink.objects.update(user=approver)
    answer = client.post(f"/account/set-up/{token}/", {"new_password": FORGED, "repeated": FORGED})
    assert answer.status_code == 404
    assert User.objects.get(pk=approver.pk).check_password(PASSWORD)


def test_a_link_without_a_seal_is_not_valid(client: Client, invited: User) -> None:
    token = staff.issue_setup_link(invited.pk, actor=None)
    SetupLink.objects.update(seal=None)
    assert client.get(f"/account/set-up/{token}/").status_code == 404


@pytest.mark.parametrize(
    "change",
    [
        {"operation": None, "code_digest": ""},
        {"expires_at": timezone.now() + timedelta(days=30)},
        {"code_digest": "of another link"},
    ],
    ids=["no_start_code", "longer", "another_start_code"],
)
def test_an_altered_link_of_two_people_is_not_valid(
    client: Client, invited: User, administrator: User, second_administrator: User, change: dict[str, Any]
) -> None:
    """Who was shown the link alone still needs the start code, and in time."""
    operation = handed_over(invited, administrator, second_administrator)
    token = show_handover(operation, actor=administrator, second_factor_at=timezone.now())
    assert client.get(f"/account/set-up/{token}/").status_code == 200
    SetupLink.objects.update(**change)
    assert client.get(f"/account/set-up/{token}/").status_code == 404


@pytest.mark.parametrize("is_new", [True, False], ids=["inserted", "both_halves"])
def test_nothing_is_shown_of_a_link_that_was_written_into_the_database(
    invited: User, administrator: User, second_administrator: User, *, is_new: bool
) -> None:
    """Otherwise the program itself would make a valid link and start code for whoever the row names."""
    operation = handed_over(invited, administrator, second_administrator)
    if is_new:
        SetupLink.objects.update(operation=(operation := uuid.uuid4()))
    else:
        SetupLink.objects.update(link_for=second_administrator, code_for=administrator)
    assert handover_of(operation, administrator) is None
    with pytest.raises(NothingToHandOverError):
        show_handover(operation, actor=administrator, second_factor_at=timezone.now())


def handed_over(invited: User, first: User, second: User) -> uuid.UUID:
    operation = uuid.uuid4()
    setup_links.prepare_handover(invited, operation=operation, link_for=first, code_for=second)
    return operation


# Keys, and what was stored before


def test_seals_are_renewed_with_a_new_key(
    client: Client, approver: User, invited: User, settings: Settings
) -> None:
    token = staff.issue_setup_link(invited.pk, actor=None)
    settings.ENCRYPTION_KEYS = [NEWEST, *settings.ENCRYPTION_KEYS]
    call_command("reencrypt_secrets", stdout=StringIO())
    settings.ENCRYPTION_KEYS = [NEWEST]
    assert client.get(f"/account/set-up/{token}/").status_code == 200
    steps.give_password(client, approver)
    assert steps.give_code(client, steps.code_of(steps.authenticator(approver))).status_code == 302


def test_what_is_stored_is_sealed_once_when_the_columns_are_added(
    client: Client, preparer: User, invited: User
) -> None:
    token = staff.issue_setup_link(invited.pk, actor=None)
    for model in (User, AuthenticatorDevice, SetupLink):
        model._default_manager.update(seal=None)
    migration = importlib.import_module("backoffice.accounts.migrations.0008_sealed_accounts")
    migration.seal_stored(apps, None)
    assert client.get(f"/account/set-up/{token}/").status_code == 200
    steps.give_password(client, preparer)
    assert steps.give_code(client, steps.code_of(steps.authenticator(preparer))).status_code == 302
    assert second_factor.authenticator_of(preparer) is not None
