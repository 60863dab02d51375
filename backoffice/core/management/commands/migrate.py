"""Replaces Django's `manage.py migrate`: connects as the owner of the tables, and then
grants the role that runs its rights.
"""

from typing import Any

from django.core.management.commands import migrate

from backoffice.core.database.grants import connected_as_owner, has_owner, refresh_grants, runtime_role


class Command(migrate.Command):
    """Without a role that owns the tables (`COUNTERSIGN_MIGRATION_DATABASE_URL`), as in Django."""

    def handle(self, *args: Any, **options: Any) -> None:
        if not has_owner():
            super().handle(*args, **options)
            return
        with connected_as_owner():
            super().handle(*args, **options)
            if not (options["plan"] or options["check_unapplied"]):
                role = runtime_role()
                done = "Refreshed" if refresh_grants(role) else "Nothing to change in"
                if options["verbosity"]:
                    self.stdout.write(f"{done} the rights of the database role {role}.")
