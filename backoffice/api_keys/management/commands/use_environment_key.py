"""`manage.py use_environment_key`: switch back to the API key of COUNTERSIGN_GATEWAY_API_KEY.

For emergencies, when the key in use is lost or was invalidated at the provider. The audit log has the reason, and who
ran it on which machine.
"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from backoffice.accounts.break_glass import ShellCommand
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import credentials


class Command(BaseCommand):
    """For the operator of the installation: an operation can switch only to a stored key that the provider accepts."""

    help = "Use COUNTERSIGN_GATEWAY_API_KEY for calls to the provider again, instead of the key in use."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--reason",
            required=True,
            help="why, and who requested it; recorded in the audit log with your user and host",
        )

    def handle(self, *_args: Any, reason: str, **_options: Any) -> None:
        command = ShellCommand(reason.strip())
        if not command.reason:
            raise CommandError("A reason is required. Nothing was changed.")
        with transaction.atomic():
            is_switched = credentials.switch_to_environment_key()
            if is_switched:
                audit.record(Action.KEY_SWITCHED, actor=None, target="the previous key", **command.origin)
        if is_switched:
            self.stdout.write(
                "Calls to the provider now use the key of the environment. The previous key is kept, encrypted."
            )
        else:
            self.stdout.write("The key of the environment is already in use. Nothing was changed.")
