"""Steps of sign-in and enrolment."""

from datetime import timedelta
from typing import Any

from django.test import Client
from django.urls import reverse
from django.utils import timezone

from backoffice.accounts import second_factor, staff
from backoffice.accounts.models import AuthenticatorDevice, User
from backoffice.accounts.roles import Role
from tests.factories import PASSWORD


def newcomer(email: str = "new@countersign.example") -> User:
    """A new person who has chosen a password and has no authenticator."""
    user = staff.create_staff(email, full_name="Nia New", roles=[Role.PREPARER])
    user.set_password(PASSWORD)
    user.save()
    return user


def open_link(client: Client, user: User, password: str = PASSWORD) -> Any:
    """Choose a password by a new one-time link, which opens a session."""
    address = reverse("accounts:set_up", args=[staff.issue_setup_link(user.pk, actor=None)])
    return client.post(address, {"new_password": password, "repeated": password})


def set_up_account(address: str) -> None:
    """Choose a password and an authenticator by the link at this address, in a browser of its own."""
    browser = Client()
    chosen = {"new_password": PASSWORD, "repeated": PASSWORD}
    assert browser.post(address, chosen, follow=True).status_code == 200
    device = AuthenticatorDevice.objects.get(confirmed=False)
    assert browser.post(reverse("accounts:enrol"), {"code": code_of(device)}).status_code == 200


def give_password(client: Client, user: User, password: str = PASSWORD, **more: Any) -> Any:
    return client.post(reverse("accounts:sign_in"), {"email": user.email, "password": password, **more})


def row_key(client: Client) -> str | None:
    """The primary key of the row of this browser's session."""
    session: Any = client.session
    key: str | None = session.row_key
    return key


def give_code(client: Client, code: str, **more: Any) -> Any:
    return client.post(reverse("accounts:second_factor"), {"code": code, **more})


def authenticator(user: User, *, confirmed: bool = True) -> AuthenticatorDevice:
    device: AuthenticatorDevice = AuthenticatorDevice.objects.get(user=user, confirmed=confirmed)
    return device


def code_of(device: AuthenticatorDevice, *, steps: int = 0) -> str:
    """What the phone shows now, or so many steps of 30 seconds later."""
    totp = device.totp()
    totp.drift = steps
    return f"{totp.token():06d}"


def wrong_code(device: AuthenticatorDevice) -> str:
    """Six digits that are no code of the steps around now."""
    right = {code_of(device, steps=steps) for steps in range(-3, 4)}
    return next(code for code in (f"{number:06d}" for number in range(8)) if code not in right)


def unlock(user: User) -> None:
    """Let the time pass that a wrong code makes a person wait."""
    AuthenticatorDevice.objects.filter(user=user).update(
        throttling_failure_count=0, throttling_failure_timestamp=None
    )


def age_second_factor(client: Client, *, minutes: int) -> None:
    """Move the moment of the last code into the past."""
    session = client.session
    session["second_factor_at"] = (timezone.now() - timedelta(minutes=minutes)).isoformat()
    session.save()


def recovery_codes(user: User) -> list[str]:
    """Ten new codes, stored by their owner."""
    codes = second_factor.issue_recovery_codes(user)
    second_factor.confirm_recovery_codes_stored(user)
    return codes


def change_password(client: Client, **change: str) -> Any:
    new = "another horse battery staple"
    typed = {"old_password": PASSWORD, "new_password": new, "repeated": new, **change}
    return client.post(reverse("accounts:password"), typed, follow=True)
