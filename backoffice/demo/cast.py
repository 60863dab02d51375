"""The six people of the demo."""

from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from backoffice.accounts.models import AuthenticatorDevice, User
from backoffice.accounts.models.authenticator import STEP_SECONDS
from backoffice.accounts.roles import Role
from backoffice.accounts.services import create_staff, issue_recovery_codes

DOMAIN = "countersign.example"
SIGN_IN_WORDS = "two people sign every payment"
"""The password of all six. It opens nothing outside the demo, which holds no real money."""


@dataclass(frozen=True)
class Member:
    """Somebody in the demo, before and after there is an account."""

    full_name: str
    role: Role

    @property
    def email(self) -> str:
        return f"{self.full_name.split()[0].lower()}@{DOMAIN}"


CAST = (
    Member("Tunde Bello", Role.PREPARER),
    Member("Ngozi Eze", Role.PREPARER),
    Member("Amara Okafor", Role.APPROVER),
    Member("Chidi Nwosu", Role.APPROVER),
    Member("Femi Ade", Role.AUDITOR),
    Member("Zainab Musa", Role.ADMINISTRATOR),
)


@dataclass(frozen=True)
class CurrentCode:
    """What a person's authenticator shows now. A code that was used just now has no text: wait for the next."""

    text: str
    seconds_left: int


@transaction.atomic
def ensure_cast() -> list[User]:
    """All six people, able to sign in at once; those who exist already stay as they are."""
    return [_existing(member) or _enrolled(member) for member in CAST]


def current_code(device: AuthenticatorDevice) -> CurrentCode:
    """The code that will be accepted now, and for how long it is shown."""
    totp = device.totp()
    now = totp.time
    used = device.last_t >= totp.t()
    return CurrentCode("" if used else f"{totp.token():06d}", STEP_SECONDS - int(now) % STEP_SECONDS)


def _existing(member: Member) -> User | None:
    return User.objects.filter(email=member.email).first()


def _enrolled(member: Member) -> User:
    user = create_staff(member.email, full_name=member.full_name, password=SIGN_IN_WORDS, roles=[member.role])
    device = AuthenticatorDevice(user=user, confirmed=True)
    device.set_new_seed()
    device.save(force_insert=True)
    issue_recovery_codes(user)
    user.recovery_codes_kept_at = timezone.now()
    user.save(update_fields=["recovery_codes_kept_at"])
    return user
