"""manage.py sandbox: replace this process with the simulated provider."""

import os
import sys
from pathlib import Path
from typing import NoReturn

from django.core.management.base import BaseCommand, CommandParser

import payments_gateway
from payments_gateway.sandbox.server import add_options

_ROOT = Path(payments_gateway.__file__).resolve().parent.parent
_OPTIONS = ("port", "host", "database", "profile", "seed", "transactions", "settle_after")
_PREFIXES_OF_OTHERS = ("COUNTERSIGN_", "SANDBOX_", "DJANGO_")


class Command(BaseCommand):
    """Replaces this process with `python -m payments_gateway.sandbox`, so that one process id is stopped.

    The settings, database and secrets of the application are removed from its environment.
    """

    help = "Simulate the Business Payments API on a local port. No real money moves."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_options(parser)

    def handle(self, *args: object, **options: object) -> NoReturn:
        """Never returns: the process image is replaced."""
        arguments = [f"--{name.replace('_', '-')}={options[name]}" for name in _OPTIONS]
        command = [sys.executable, "-m", "payments_gateway.sandbox", *arguments]
        os.execve(sys.executable, command, _environment())  # noqa: S606 - our own interpreter and our own module


def _environment() -> dict[str, str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(_PREFIXES_OF_OTHERS)
    }
    path = os.pathsep.join(part for part in (str(_ROOT), environment.get("PYTHONPATH", "")) if part)
    return {**environment, "PYTHONPATH": path}
