"""`manage.py prepare_demo`: migrate, collect static files, and create the demo's people, operations and balances.

Safe to repeat: a database that has operations is kept, and only its balances are refreshed.
"""

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from backoffice.demo.people import NotDemoDatabaseError, ensure_people, sandbox_totp
from backoffice.demo.sample_data import (
    begin_reconciliation,
    make_sample_balances,
    make_sample_operations,
    make_sample_unknown_outcomes,
    make_sample_withdrawals,
    new_sample_operations,
)
from backoffice.demo.sample_governance import make_sample_governance
from backoffice.ledger.balances import refresh_balances
from backoffice.operations.delivery import journal
from backoffice.operations.models.operations import Operation


class Command(BaseCommand):
    """Available in the demo only, because its app is installed there only."""

    help = "Prepare the demo: database, static files, people and sample operations."

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0, interactive=False)
        call_command("collectstatic", verbosity=0, interactive=False)
        try:
            people = ensure_people()
        except NotDemoDatabaseError as exc:
            raise CommandError(str(exc)) from exc
        if Operation.objects.exists():
            refresh_balances()
        else:
            _make_sample_data()
        self.stdout.write(f"{len(people)} people, {Operation.objects.count()} operations")


def _make_sample_data() -> None:
    journal.write_database(journal.database_line())  # as before every claim: without a journal payments pause
    begin_reconciliation()
    history = new_sample_operations(sandbox_totp)
    make_sample_governance(history)
    make_sample_unknown_outcomes(history)
    make_sample_withdrawals(history)
    make_sample_operations(history)
    make_sample_balances(refresh_balances())
