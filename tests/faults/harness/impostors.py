"""What somebody tries who has a preparer's account and the whole database, and no key, to act as an approver too."""

import uuid
from datetime import timedelta

from django.contrib.auth.hashers import make_password
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pydantic import SecretStr

from backoffice.accounts import setup_links, staff
from backoffice.accounts.models import AuthenticatorDevice, SetupLink, StaffSession, User
from backoffice.accounts.setup_links import HandoverError
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.models.operations import Operation
from tests.accounts import steps
from tests.factories import PASSWORD, sign_in

CHOSEN = "seven lanterns over the lagoon"


def with_a_password_of_his_own(preparer: User, approver: User) -> Client:
    """Writes a password, deletes the authenticator, and enrols his own phone."""
    User.objects.filter(pk=approver.pk).update(password=make_password(CHOSEN), seal=None)
    return _enrolled_after_the_password(approver, CHOSEN)


def with_the_password_and_no_authenticator(preparer: User, approver: User) -> Client:
    """Has seen the approver's password, deletes the authenticator, and enrols his own phone."""
    return _enrolled_after_the_password(approver, PASSWORD)


def with_the_password_and_his_own_authenticator(preparer: User, approver: User) -> Client:
    """Has seen the approver's password, and gives his own authenticator to the approver."""
    browser, own = Client(), steps.authenticator(preparer)
    AuthenticatorDevice.objects.filter(user=approver).delete()
    AuthenticatorDevice.objects.filter(pk=own.pk).update(user=approver)
    steps.give_password(browser, approver)
    steps.give_code(browser, steps.code_of(own))
    return browser


def with_the_data_of_a_session(preparer: User, approver: User) -> Client:
    """Copies the approver's session, in which a code was given just now, to the row of his own cookie."""
    row = StaffSession.objects.get(pk=steps.row_key(sign_in(Client(), approver)))
    browser = sign_in(Client(), preparer)
    StaffSession.objects.filter(pk=steps.row_key(browser)).update(
        session_data=row.session_data, user=approver, device=row.device
    )
    return browser


def with_a_link_of_his_own(preparer: User, approver: User) -> Client:
    """Gives a link that was made for himself to the approver, and enrols his own phone."""
    token = staff.issue_setup_link(preparer.pk, actor=None)
    AuthenticatorDevice.objects.filter(user=approver).delete()
    SetupLink.objects.filter(user=preparer).update(user=approver)
    return _enrolled(_opened(token), approver)


def with_a_link_that_is_shown_to_him(preparer: User, approver: User) -> Client:
    """Inserts a link for the approver, of which he may see first the link and then the start code."""
    AuthenticatorDevice.objects.filter(user=approver).delete()
    operation, now = uuid.uuid4(), timezone.now()
    SetupLink.objects.create(
        user=approver,
        digest="0" * 64,
        code_digest="1" * 64,
        created_at=now,
        expires_at=now + timedelta(hours=48),
        operation=operation,
        link_for=preparer,
        code_for=approver,
    )
    shown = []
    for halves in ((preparer, approver), (approver, preparer)):
        SetupLink.objects.update(link_for=halves[0], code_for=halves[1])
        try:
            shown.append(
                setup_links.show_handover(operation, actor=preparer, second_factor_at=timezone.now())
            )
        except HandoverError:
            shown.append("nothing")
    return _enrolled(_opened(shown[0], start_code=shown[1]), approver)


def with_an_account_that_was_deactivated(preparer: User, approver: User) -> Client:
    """Reactivates the account of an approver who has left, with a password and an authenticator that are known."""
    staff.deactivate_staff(approver.pk, actor=None)
    User.objects.filter(pk=approver.pk).update(is_active=True)
    browser = Client()
    steps.give_password(browser, approver)
    steps.give_code(browser, steps.code_of(steps.authenticator(approver)))
    return browser


def with_a_session_from_before_the_deactivation(preparer: User, approver: User) -> Client:
    """Writes back the row of the session that a deactivation deleted, and reactivates the account."""
    browser = sign_in(Client(), approver)
    row = StaffSession.objects.get(pk=steps.row_key(browser))
    staff.deactivate_staff(approver.pk, actor=None)
    row.save(force_insert=True)
    User.objects.filter(pk=approver.pk).update(is_active=True)
    return browser


ATTEMPTS = (
    with_an_account_that_was_deactivated,
    with_a_session_from_before_the_deactivation,
    with_a_password_of_his_own,
    with_the_password_and_no_authenticator,
    with_the_password_and_his_own_authenticator,
    with_the_data_of_a_session,
    with_a_link_of_his_own,
    with_a_link_that_is_shown_to_him,
)


def decide(browser: Client, operation: Operation, otp: SecretStr | None) -> None:
    """Approve and send the operation by the pages, with everything that they ask for."""
    kind, payload = read_content(operation)
    confirmation = kind.confirmation(payload)
    data = {
        "digest": operation.digest,
        "confirmation": confirmation.expected if confirmation else "",
        "acknowledged": "on",
        "otp": otp.get_secret_value() if otp else "",
    }
    for page in ("operations:approve", "operations:release"):
        browser.post(reverse(page, args=[operation.pk]), data)


def _opened(token: str, **more: str) -> Client:
    browser = Client()
    browser.post(
        reverse("accounts:set_up", args=[token]), {"new_password": CHOSEN, "repeated": CHOSEN, **more}
    )
    return browser


def _enrolled_after_the_password(approver: User, password: str) -> Client:
    browser = Client()
    AuthenticatorDevice.objects.filter(user=approver).delete()
    steps.give_password(browser, approver, password)
    return _enrolled(browser, approver)


def _enrolled(browser: Client, approver: User) -> Client:
    """The browser, after it has gone as far as it may towards an authenticator of its own."""
    address = reverse("accounts:enrol")
    browser.get(address)
    shown = AuthenticatorDevice.objects.filter(user=approver, confirmed=False).first()
    if shown is not None:
        browser.post(address, {"code": steps.code_of(shown)})
        browser.post(reverse("accounts:recovery_codes_stored"))
    return browser
