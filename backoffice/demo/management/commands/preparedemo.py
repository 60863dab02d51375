from argparse import ArgumentParser
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand
from pydantic import SecretStr

from backoffice.demo.cast import ensure_cast
from backoffice.demo.history import make_withdrawals, new_history
from backoffice.demo.other_kinds import make_other_kinds
from backoffice.demo.past_balances import make_past_balances
from backoffice.ledger.services import refresh_balances
from backoffice.operations.models import Operation


class Command(BaseCommand):
    """Exists in the demo only, because its application is installed there only."""

    help = "Bring the demo's database, static files, people and operations to where a newcomer finds them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--token", required=True, help="the simulated service's one-time token")

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0, interactive=False)
        call_command("collectstatic", verbosity=0, interactive=False)
        people = ensure_cast()
        if Operation.objects.exists():
            refresh_balances()
        else:
            _make_everything(SecretStr(options["token"]))
        self.stdout.write(f"{len(people)} people, {Operation.objects.count()} operations")


def _make_everything(token: SecretStr) -> None:
    history = new_history(token)
    make_withdrawals(history)
    make_other_kinds(history)
    make_past_balances(refresh_balances())
