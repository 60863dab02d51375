"""The six people of the demo, their current sign-in codes, and what the demo adds to every page."""

from dataclasses import dataclass
from urllib.parse import urljoin

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from backoffice.accounts.models import STEP_SECONDS, AuthenticatorDevice, User
from backoffice.accounts.roles import Role
from backoffice.accounts.second_factor import issue_recovery_codes
from backoffice.accounts.staff import create_staff

DOMAIN = "countersign.example"
DEMO_PASSWORD = "two people sign every payment"  # noqa: S105
"""The password of all six people. It is valid only in the demo, which has no real money."""


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
)


@dataclass(frozen=True)
class CurrentSignInCode:
    """The current code of a person's authenticator. `text` is empty while the code has been used: wait for
    the next.
    """

    text: str
    seconds_left: int


class NotDemoDatabaseError(Exception):
    """The database has accounts of other people, so the demo's people, whose password is known, must not be in it."""


@transaction.atomic
def ensure_people() -> list[User]:
    """Create the people who do not exist, able to sign in at once, and return all six.

    Raises NotDemoDatabaseError if some are to be created beside other people.
    """
    present = [_existing(member) for member in DEMO_PEOPLE]
    if None in present and User.objects.exclude(email__in=[member.email for member in DEMO_PEOPLE]).exists():
        raise NotDemoDatabaseError("This database has accounts of other people: it is not the demo's.")
    return [user or _enrolled(member) for user, member in zip(present, DEMO_PEOPLE, strict=True)]


def current_sign_in_code(device: AuthenticatorDevice) -> CurrentSignInCode:
    """The code that is accepted now, and how long it is shown."""
    totp = device.totp()
    now = totp.time
    used = device.last_t >= totp.t()
    return CurrentSignInCode("" if used else f"{totp.token():06d}", STEP_SECONDS - int(now) % STEP_SECONDS)


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

    `sign_in_aids`: the template with everyone's current code, empty outside the demo. `service_console`: URL
    of the sandbox console, which shows the one-time code.
    """
    return {
        "sign_in_aids": "demo/_sign_in_codes.html",
        "service_console": urljoin(settings.GATEWAY_URL, "/_sandbox/"),
    }
