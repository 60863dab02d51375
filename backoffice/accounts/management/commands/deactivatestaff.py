"""`manage.py deactivatestaff`: deactivate an account."""

from typing import Any

from backoffice.accounts.management.staff_command import StaffCommand
from backoffice.accounts.models import User
from backoffice.accounts.staff import deactivate_staff


class Command(StaffCommand):
    """The account is kept, because the audit log and operations refer to it."""

    help = "Keep a member of staff from signing in, and end the person's sessions at once."

    def change(self, user: User, reason: str, options: dict[str, Any]) -> str:
        deactivate_staff(user.pk, actor=None, reason=reason)
        return f"{user} can no longer sign in. Every session has ended."
