"""The seven people of the demo, the codes that it shows beside their fields, and what it adds to every page."""

import json
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urljoin, urlsplit

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from pydantic import SecretStr

from backoffice.accounts.models import STEP_SECONDS, AuthenticatorDevice, User
from backoffice.accounts.roles import Role
from backoffice.accounts.second_factor import issue_recovery_codes
from backoffice.accounts.staff import create_staff
from backoffice.core.gateway import provider_profile

DOMAIN = "countersign.example"
DEMO_PASSWORD = "two people sign every payment"  # noqa: S105
"""The password of all seven people. It is valid only in the demo, which has no real money."""


@dataclass(frozen=True)
class DemoPerson:
    """A person of the demo, whether or not the account exists yet."""

    full_name: str
    role: Role

    @property
    def email(self) -> str:
        return f"{self.full_name.split()[0].lower()}@{DOMAIN}"


DEMO_PEOPLE = (
    DemoPerson("Tunde Bello", Role.PREPARER),
    DemoPerson("Ngozi Eze", Role.PREPARER),
    DemoPerson("Amara Okafor", Role.APPROVER),
    DemoPerson("Chidi Nwosu", Role.APPROVER),
    DemoPerson("Femi Ade", Role.AUDITOR),
    DemoPerson("Zainab Musa", Role.ADMINISTRATOR),
    DemoPerson("Kemi Balogun", Role.ADMINISTRATOR),
)


@dataclass(frozen=True)
class CurrentCode:
    """A code that is accepted now. `text` is empty while the code has been used: wait for the next.

    `seconds_left` is None for a code that is valid until it is used.
    """

    text: str
    seconds_left: int | None


class NotDemoDatabaseError(Exception):
    """The database has accounts of other people, so the demo's people, whose password is known, must not be in it."""


@transaction.atomic
def ensure_people() -> list[User]:
    """Create the people who do not exist, able to sign in at once, and return all seven.

    Raises NotDemoDatabaseError if some are to be created beside other people.
    """
    present = [_existing(member) for member in DEMO_PEOPLE]
    if None in present and User.objects.exclude(email__in=[member.email for member in DEMO_PEOPLE]).exists():
        raise NotDemoDatabaseError("This database has accounts of other people: it is not the demo's.")
    return [user or _enrolled(member) for user, member in zip(present, DEMO_PEOPLE, strict=True)]


def current_sign_in_code(device: AuthenticatorDevice) -> CurrentCode:
    """The current code of a person's authenticator, and how long it is shown."""
    totp = device.totp()
    now = totp.time
    used = device.last_t >= totp.t()
    return CurrentCode("" if used else f"{totp.token():06d}", STEP_SECONDS - int(now) % STEP_SECONDS)


_CONSOLE_TIMEOUT = 2.0  # seconds


def current_one_time_code() -> CurrentCode | None:
    """The provider's one-time code of the type that is sent, as the sandbox reports it; None if it does not answer."""
    try:
        codes = _sandbox_codes()
        if provider_profile().otp_type == "otp":
            return CurrentCode(codes["otp"], None)
        return CurrentCode("" if codes["used"] else codes["totp"], codes["secondsLeft"])
    except (OSError, HTTPException, ValueError, KeyError):
        return None


def sandbox_totp() -> SecretStr:
    """The merchant's authenticator code that the sandbox accepts now. Raises an error if it does not answer."""
    return SecretStr(_sandbox_codes()["totp"])


def _sandbox_codes() -> Any:
    sandbox = urlsplit(settings.GATEWAY_URL)
    connection = HTTPConnection(sandbox.hostname or "", sandbox.port, timeout=_CONSOLE_TIMEOUT)
    with closing(connection):
        connection.request("GET", "/_sandbox/otp")
        return json.load(connection.getresponse())


def _existing(member: DemoPerson) -> User | None:
    return User.objects.filter(email=member.email).first()


def _enrolled(member: DemoPerson) -> User:
    user = create_staff(member.email, full_name=member.full_name, roles=[member.role])
    user.set_password(DEMO_PASSWORD)
    device = AuthenticatorDevice(user=user, confirmed=True)
    device.set_new_seed()
    device.save(force_insert=True)
    issue_recovery_codes(user)
    user.recovery_codes_stored_at = timezone.now()
    user.save(update_fields=["password", "recovery_codes_stored_at"])
    return user


def demo_context(_request: HttpRequest) -> dict[str, str]:
    """Context processor of the demo.

    `sign_in_aids`: the template with everyone's current code, empty outside the demo. `code_aid`: the template with
    one current code, for below the field that asks for it. `service_console`: URL of the sandbox console.
    """
    return {
        "sign_in_aids": "demo/_sign_in_codes.html",
        "code_aid": "demo/_code.html",
        "service_console": urljoin(settings.GATEWAY_URL, "/_sandbox/"),
    }
