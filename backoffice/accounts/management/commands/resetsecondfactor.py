"""`manage.py resetsecondfactor`: for somebody who lost the phone and the recovery codes."""

from typing import Any

from backoffice.accounts.management.staff_command import StaffCommand
from backoffice.accounts.models import User
from backoffice.accounts.staff import reset_second_factor


class Command(StaffCommand):
    """Whoever runs it must be sure that the person is the one who asks: the password alone opens the enrolment."""

    help = "Throw away a person's authenticator and recovery codes; the next sign-in sets up new ones."

    def change(self, user: User, reason: str, options: dict[str, Any]) -> str:
        reset_second_factor(user.pk, actor=None, reason=reason)
        return f"{user} sets up a new authenticator at the next sign-in. Every session has ended."
