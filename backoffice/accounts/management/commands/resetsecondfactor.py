"""`manage.py resetsecondfactor`: for a person who has lost the phone and the recovery codes."""

from typing import Any

from backoffice.accounts.management.staff_command import StaffCommand
from backoffice.accounts.models import User
from backoffice.accounts.staff import reset_second_factor


class Command(StaffCommand):
    """The operator must verify the person's identity first: afterwards the password alone allows enrolment."""

    help = "Throw away a person's authenticator and recovery codes; the next sign-in sets up new ones."

    def change(self, user: User, reason: str, options: dict[str, Any]) -> str:
        reset_second_factor(user.pk, actor=None, reason=reason)
        return f"{user} sets up a new authenticator at the next sign-in. Every session has ended."
