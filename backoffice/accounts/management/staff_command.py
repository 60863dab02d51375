"""Base of the commands that change an account."""

from abc import abstractmethod
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from backoffice.accounts.models import User


class StaffCommand(BaseCommand):
    """Finds the account by e-mail address and requires a reason for the audit log, since no user is signed
    in.
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", help="the e-mail address that the person signs in with")
        parser.add_argument(
            "--reason", required=True, help="why, and who asked for it; it stands in the audit log"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        reason = options["reason"].strip()
        if not reason:
            raise CommandError("Say why with --reason. Nothing was changed.")
        try:
            user = User.objects.get_by_natural_key(options["email"])
        except User.DoesNotExist as exc:
            raise CommandError(f"Nobody signs in as {options['email']}. Nothing was changed.") from exc
        self.stdout.write(self.style.SUCCESS(self.change(user, reason, options)))

    @abstractmethod
    def change(self, user: User, reason: str, options: dict[str, Any]) -> str:
        """Make the change and return a sentence that describes it."""
