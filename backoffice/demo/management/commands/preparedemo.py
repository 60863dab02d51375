from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from backoffice.demo.cast import ensure_cast
from backoffice.demo.history import make_history
from backoffice.ledger.services import refresh_balances


class Command(BaseCommand):
    """Exists in the demo only, because its application is installed there only."""

    help = "Bring the demo's database, static files, people and operations to where a newcomer finds them."

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0, interactive=False)
        call_command("collectstatic", verbosity=0, interactive=False)
        people, operations = ensure_cast(), make_history()
        refresh_balances()
        self.stdout.write(f"{len(people)} people, {operations} operations")
