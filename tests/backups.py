"""Backups of the test database that a test restores, as if the last commits had been lost."""

from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from backoffice.operations.delivery import restore_check
from backoffice.operations.lifecycle import pause
from tests.append_only.management.commands import flush


@dataclass(frozen=True)
class Backup:
    """All rows of the database at one moment."""

    rows: dict[Any, list[Any]]

    def restore(self, *, while_running: bool = False) -> None:
        """The database as it was, read by processes that start anew, or by this one that goes on."""
        with transaction.atomic():
            flush.restore(connection, self.rows)
        if not while_running:
            restore_check.forget_positions()
        pause.clear_pause_cache()


def backup() -> Backup:
    return Backup({model: flush.rows(connection, model) for model in flush.models_with_rows(connection)})
