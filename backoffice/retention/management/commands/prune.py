from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from backoffice.core import clock
from backoffice.core.storage.retention import Keeping, declared_tables
from backoffice.retention.prune import due_rows, prune


class Command(BaseCommand):
    """Deletes the rows whose time is over, in small commits; it can be stopped and started again at any time."""

    help = "Delete rows older than COUNTERSIGN_KEEP_…_DAYS. The sweeper does it every day; evidence is never deleted."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only count what would be deleted")

    def handle(self, *_args: Any, **options: Any) -> None:
        deleted = {} if options["dry_run"] else prune()
        for table in declared_tables():
            if table.keeping == Keeping.PRUNED:
                kept = table.kept_for
                count = (
                    due_rows(table, clock.now()).count() if options["dry_run"] else deleted.get(table.name, 0)
                )
                days = f"kept for {kept.days} days" if kept else "kept for ever"
                self.stdout.write(f"{table.name}: {count:,} rows ({days})")
