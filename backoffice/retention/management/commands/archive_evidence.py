from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, date, datetime, time
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from backoffice.core.storage.files import ARCHIVES, file_store
from backoffice.retention.archives import NothingToArchiveError, archive_evidence


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as exc:
        raise ArgumentTypeError(f"{text!r} is no day: write it as 2026-01-31") from exc


def _place(name: str) -> str:
    """The path of the archive, or its name in the object store."""
    store = file_store(ARCHIVES)
    return name if store.is_shared else store.path(name)


class Command(BaseCommand):
    """Copies the evidence of some days into a signed file in the store of archives."""

    help = "Archive operations, approvals, attempts, the audit log and other evidence. Nothing is deleted."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("since", type=_day, help="the first day, in UTC, such as 2026-01-01")
        parser.add_argument("until", type=_day, help="the first day that is not archived any more")

    def handle(self, *_args: Any, **options: Any) -> None:
        since, until = (datetime.combine(options[name], time(), UTC) for name in ("since", "until"))
        try:
            made = archive_evidence(since, until)
        except NothingToArchiveError as exc:
            raise CommandError(str(exc)) from exc
        except (ImproperlyConfigured, OSError) as exc:
            raise CommandError(f"Nothing was archived: {exc}") from exc
        self.stdout.write(f"{_place(made.name)}: {made.rows:,} rows, entries {made.first:,} to {made.last:,}")
        self.stdout.write(f"SHA-256 of its lines: {made.sha256}")
