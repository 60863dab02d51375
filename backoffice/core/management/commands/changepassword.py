"""Replaces Django's `manage.py changepassword`, which would give one person at the shell another's account."""

from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError, CommandParser


class Command(BaseCommand):
    """Refuses whatever it is given."""

    help = "Not available: use `manage.py staff`, which is recorded in the audit log and never handles a password."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("anything", nargs="*")

    def handle(self, *_args: Any, **_options: Any) -> NoReturn:
        raise CommandError("Not available: use `manage.py staff`. Nothing was changed.")
