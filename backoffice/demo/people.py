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
"""The password of all six. It opens nothing outside the demo, which holds no real money."""


@dataclass(frozen=True)
class DemoPerson:
    """Somebody in the demo, before and after there is an account."""

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
    """What a person's authenticator shows now. A code that was used just now has no text: wait for the next."""

    text: str
    seconds_left: int


@transaction.atomic
def ensure_people() -> list[User]:
    """All six people, able to sign in at once; those who exist already stay as they are."""
    return [_existing(member) or _enrolled(member) for member in DEMO_PEOPLE]


def current_sign_in_code(device: AuthenticatorDevice) -> CurrentSignInCode:
    """The code that will be accepted now, and for how long it is shown."""
    totp = device.totp()
    now = totp.time
    used = device.last_t >= totp.t()
    return CurrentSignInCode("" if used else f"{totp.token():06d}", STEP_SECONDS - int(now) % STEP_SECONDS)


def _existing(member: DemoPerson) -> User | None:
    return User.objects.filter(email=member.email).first()


def _enrolled(member: DemoPerson) -> User:
    user = create_staff(member.email, full_name=member.full_name, password=DEMO_PASSWORD, roles=[member.role])
    device = AuthenticatorDevice(user=user, confirmed=True)
    device.set_new_seed()
    device.save(force_insert=True)
    issue_recovery_codes(user)
    user.recovery_codes_kept_at = timezone.now()
    user.save(update_fields=["recovery_codes_kept_at"])
    return user


def demo_context(_request: HttpRequest) -> dict[str, str]:
    """`sign_in_aids`: the template with everybody's current code; without it the sign-in pages include nothing.

    `service_console`: where the simulated service shows the token that it asks for.
    """
    return {
        "sign_in_aids": "demo/_sign_in_codes.html",
        "service_console": urljoin(settings.GATEWAY_URL, "/_sandbox/"),
    }
