"""Examine the migrations that the last release lacks: the code of that release must keep working beside them.

`django-migration-linter` reads the SQL that PostgreSQL would get. It refuses what the old code could not live with,
such as a column that is dropped or renamed, or that is new, required and without a default in the database.
"""

import os
import sys
import tempfile

import django
from django.db import OperationalError, connection
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django_migration_linter import MigrationLinter

from tools.processes import clean_environment
from tools.upgrade.releases import ReleaseUnknownError, last_release

SERVER = os.environ.get("COUNTERSIGN_TEST_DATABASE_URL", "postgres://postgres@127.0.0.1:5432/postgres")
EXAMINED = {
    # Its index covers approvals by delegates only. A database that is upgraded has none, so building it takes one scan.
    ("operations", "0016_delegations"),
    # Building its index takes one scan of the incidents, of which there are few.
    ("operations", "0022_checkpoint_overdue"),
    # Its index covers operations that may still be sent. Building it takes one scan of the operations, as before.
    ("operations", "0025_one_content_to_send"),
}
"""Migrations that were reviewed and are safe beside the old code, whatever the linter reports."""
# Rules of style, which do not affect old processes.
ACCEPTED = ("RUNPYTHON_ARGS_NAMING_CONVENTION", "RUNPYTHON_REVERSIBLE", "RUNSQL_REVERSIBLE")


def main() -> int:
    """0 if every new migration is safe beside the old code; what is not is printed."""
    try:
        release = last_release()
        released = release.migrations()
    except ReleaseUnknownError as exc:
        print(exc)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        own = {
            "COUNTERSIGN_DATA_DIR": folder,
            "COUNTERSIGN_DATABASE_URL": SERVER.rpartition("/")[0] + "/postgres",
        }
        os.environ.update(clean_environment(own))
        django.setup()
        try:
            connection.ensure_connection()
        except OperationalError:
            print("Migrations were not examined: PostgreSQL does not run on this machine.")
            return 1 if os.environ.get("COUNTERSIGN_DEMAND_ALL") == "1" else 0
        unsafe, new = examine(released)
    print(f"{new} migrations since {release.version}, {unsafe} of them unsafe beside it.")
    return 1 if unsafe else 0


def examine(released: set[tuple[str, str]]) -> tuple[int, int]:
    """How many migrations of ours are unsafe beside a release that has these, and how many it lacks."""
    linter = MigrationLinter(no_cache=True, exclude_migration_tests=ACCEPTED)
    found = MigrationLoader(connection).disk_migrations
    new = [
        key
        for key in sorted(found)
        if _is_ours(found[key].__module__) and key not in released and not _is_squashed(found[key], released)
    ]
    for key in new:
        if key not in EXAMINED:
            linter.lint_migration(found[key])
    return linter.nb_erroneous, len(new)


def _is_squashed(migration: Migration, released: set[tuple[str, str]]) -> bool:
    """Whether it replaces migrations of the release alone: a database of that release has what it makes."""
    return bool(migration.replaces) and released.issuperset(migration.replaces)


def _is_ours(module: str) -> bool:
    return module.startswith("backoffice.")


if __name__ == "__main__":
    sys.exit(main())
