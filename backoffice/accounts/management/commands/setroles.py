"""`manage.py setroles`: replace the roles of an account."""

from typing import Any

from django.core.management.base import CommandParser

from backoffice.accounts.management.staff_command import StaffCommand
from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.accounts.staff import set_roles


class Command(StaffCommand):
    """Without --role the account keeps no permission."""

    help = "Give a member of staff exactly these roles, and end the person's sessions."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--role", action="append", default=[], choices=Role.values, help="may be given several times"
        )

    def change(self, user: User, reason: str, options: dict[str, Any]) -> str:
        set_roles(user.pk, roles=options["role"], actor=None, reason=reason)
        return f"{user} is now: {', '.join(options['role']) or 'without a role'}. Every session has ended."
