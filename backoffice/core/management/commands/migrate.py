"""Replaces Django's `manage.py migrate`: connects as the owner of the tables, waits for no lock for long, and then
grants the runtime role its rights.
"""

import time
from typing import Any

from django.conf import settings
from django.core.management import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, ProgrammingError
from psycopg.errors import InsufficientPrivilege

from backoffice.core.database.role import connected_as_owner, has_owner, refresh_grants, runtime_role
from backoffice.core.database.time_limits import has_waited_too_long, limited_lock_waits

TRIES = 5
PAUSE = 10.0  # seconds, in which sessions that waited behind the migration continue


class Command(migrate.Command):
    """Without a role that owns the tables (`COUNTERSIGN_MIGRATION_DATABASE_URL`), as the runtime role."""

    def handle(self, *args: Any, **options: Any) -> None:
        if not has_owner():
            self._migrate_as_runtime_role(*args, **options)
            return
        with connected_as_owner():
            self._migrate(*args, **options)
            if not (options["plan"] or options["check_unapplied"]):
                role = runtime_role()
                done = "Refreshed" if refresh_grants(role) else "Nothing to change in"
                if options["verbosity"]:
                    self.stdout.write(f"{done} the rights of the database role {role}.")

    def _migrate_as_runtime_role(self, *args: Any, **options: Any) -> None:
        """Raises CommandError if the tables belong to another role."""
        try:
            self._migrate(*args, **options)
        except ProgrammingError as exc:
            if not isinstance(exc.__cause__, InsufficientPrivilege):
                raise
            raise CommandError(
                f"The database role {runtime_role()} may not migrate: {exc.__cause__.diag.message_primary}. Set "
                "COUNTERSIGN_MIGRATION_DATABASE_URL to the role that owns the tables, or run `systemctl start "
                "countersign-migrate`."
            ) from exc

    def _migrate(self, *args: Any, **options: Any) -> None:
        """Run Django's command, again if a table is in use. Raises CommandError if it remains in use.

        Each migration is one transaction, so nothing remains of one that is cancelled, and those before it are not
        run again.
        """
        for number in range(1, TRIES + 1):
            try:
                with limited_lock_waits(settings.MIGRATION_LOCK_TIMEOUT):
                    super().handle(*args, **options)
                return
            except OperationalError as exc:
                if not has_waited_too_long(exc):
                    raise
                if number == TRIES:
                    raise CommandError(
                        "A table that this migration changes remained in use. Nothing of it was done, and processes "
                        "go on. End what uses the table and run manage.py migrate again: docs/operator/upgrade.md, "
                        "If a table is in use."
                    ) from exc
            self.stdout.write(
                f"A table is in use. Trying again in {PAUSE:.0f} seconds ({number} of {TRIES})."
            )
            time.sleep(PAUSE)
