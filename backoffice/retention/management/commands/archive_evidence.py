from argparse import ArgumentParser
from datetime import UTC, date, datetime, time
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from backoffice.retention.archives import NothingToArchiveError, archive_evidence


class Command(BaseCommand):
    """Copies the evidence of some days into a signed file in the store of archives."""

    help = "Archive operations, approvals, attempts, the audit log and other evidence. Nothing is deleted."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "since", type=date.fromisoformat, help="the first day, in UTC, such as 2026-01-01"
        )
        parser.add_argument(
            "until", type=date.fromisoformat, help="the first day that is not archived any more"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        since, until = (datetime.combine(options[name], time(), UTC) for name in ("since", "until"))
        try:
            made = archive_evidence(since, until)
        except NothingToArchiveError as exc:
            raise CommandError("The audit log has no entry in these days, or they are not over") from exc
        except (ImproperlyConfigured, OSError) as exc:
            raise CommandError(f"Nothing was archived: {exc}") from exc
        self.stdout.write(f"{made.name}: {made.rows:,} rows, entries {made.first:,} to {made.last:,}")
        self.stdout.write(f"SHA-256 of its lines: {made.sha256}")
