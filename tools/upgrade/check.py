"""`make upgrade-check`: check that the last release works on the schema of this working tree.

Old processes still run on the migrated database during an upgrade, and run on it again after a rollback. A PostgreSQL
database is migrated by the last release, then by this working tree; then the last release, with the packages of its
own locks, prepares, approves, sends and confirms a payment on it.

A second database has rows that the last release made (`rows`). After the migrations of this working tree each table
must have as many rows, the audit log and all integrity checks must hold, and all open work must be finished. Prints
one line of JSON.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg.sql import SQL, Identifier

from tools.processes import ROOT, run_python
from tools.upgrade.releases import Release, ReleaseUnknownError, last_release

DATABASE = os.environ.get("UPGRADE_DATABASE", "postgres://postgres@127.0.0.1:5432/countersign_upgrade")
WITH_ROWS = f"{DATABASE}_rows"
ROWS = Path(__file__).with_name("rows.py")
ENDED = {"succeeded", "failed", "rejected", "cancelled", "expired"}
OF_DJANGO = ("django_", "auth_")  # tables of permissions and migrations, which migrating fills
# Run by the last release, with its own tools and in its own folder.
WORK = """
import json, os, sys
from pathlib import Path
from tools import smoke
from tools.processes import temporary_stack
extra = {"COUNTERSIGN_DATABASE_URL": os.environ["UPGRADED_DATABASE"]}
with temporary_stack(Path(sys.argv[1]), extra=extra) as stack:
    found = smoke.run(stack)
print(json.dumps({**found, "passed": smoke.is_passed(found)}))
"""

# Run by the last release and by this state, each in its own folder.
RUN = """
import runpy, sys, django
django.setup()
runpy.run_path(sys.argv[1], run_name="__main__")
"""


class UpgradeError(Exception):
    """A step failed; the message has what it printed."""


def main() -> int:
    """0 only if the last release's payment was made once, on the new schema, and its rows were kept and finished."""
    began = time.monotonic()
    try:
        release = last_release()
        with tempfile.TemporaryDirectory(prefix="countersign-upgrade-") as folder:
            found = check(release, Path(folder))
    except (ReleaseUnknownError, UpgradeError, psycopg.OperationalError) as exc:
        print(json.dumps({"status": "error", "problem": str(exc)}))
        return 1
    print(json.dumps({"release": release.version, **found, "seconds": round(time.monotonic() - began, 1)}))
    return 0 if found["passed"] else 1


def check(release: Release, folder: Path) -> dict[str, Any]:
    """Migrate with both versions, then run the old code on the result. Raises UpgradeError."""
    old = folder / "release"
    old.mkdir()
    release.extract(old)
    _run(old, "make", ".venv/ready")
    data = folder / "data"
    data.mkdir()
    drop_databases()
    try:
        own = {"COUNTERSIGN_DATABASE_URL": DATABASE, "COUNTERSIGN_DATA_DIR": str(data)}
        _create(DATABASE)
        _python(old, "manage.py", "migrate", "--verbosity", "0", **own)
        _create(WITH_ROWS, like=DATABASE)
        _python(ROOT, "manage.py", "migrate", "--verbosity", "0", **own)
        result = _last_line(_python(old, "-c", WORK, str(folder / "stack"), UPGRADED_DATABASE=DATABASE))
        rows = check_rows(old, folder / "rows")
    finally:
        drop_databases()
    return result | {"rows": rows, "passed": result["passed"] and rows["passed"]}


def check_rows(old: Path, data: Path) -> dict[str, Any]:
    """Migrate the rows that the last release makes, and finish them. Raises UpgradeError if a check finds a fault."""
    data.mkdir()
    own = {
        "COUNTERSIGN_DATABASE_URL": WITH_ROWS,
        "COUNTERSIGN_DATA_DIR": str(data),
        "DJANGO_SETTINGS_MODULE": "backoffice.settings",
    }
    made = _last_line(_python(old, "-c", RUN, str(ROWS), "make", **own))
    before = _rows_of_tables()
    _python(ROOT, "manage.py", "migrate", "--verbosity", "0", **own)
    after = _rows_of_tables()
    lost = {name: [count, after.get(name)] for name, count in before.items() if after.get(name) != count}
    for checked in ("verify_audit", "check_integrity --full"):
        _python(ROOT, "manage.py", *checked.split(), **own)
    finished = _last_line(_python(ROOT, "-c", RUN, str(ROWS), "finish", **own))
    _python(ROOT, "manage.py", "check_integrity", "--full", **own)
    return {
        "made": made["statuses"],
        "rows": sum(before.values()),
        "changed_counts": lost,
        "finished": finished["statuses"],
        "exports": finished["exports"],
        "passed": not lost and set(finished["statuses"]) <= ENDED and set(finished["exports"]) == {"done"},
    }


def _rows_of_tables() -> dict[str, int]:
    """How many rows each table of the database with rows has, except those of Django itself."""
    found = {}
    with psycopg.connect(WITH_ROWS) as session:
        tables = session.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        for (name,) in tables:
            if not name.startswith(OF_DJANGO):
                counted = session.execute(SQL("SELECT count(*) FROM {}").format(Identifier(name))).fetchone()
                found[name] = counted[0] if counted else 0
    return found


def _last_line(printed: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed.strip().splitlines()[-1])
    return found


def _create(url: str, *, like: str = "") -> None:
    """An empty database, or a copy of another one."""
    copied = SQL(" TEMPLATE {}").format(_name(like)) if like else SQL("")
    with _server() as server:
        server.execute(SQL("CREATE DATABASE {}").format(_name(url)) + copied)


def drop_databases() -> None:
    """Drop what this or an earlier check left."""
    with _server() as server:
        for url in (DATABASE, WITH_ROWS):
            server.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(_name(url)))


def _server() -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(urlsplit(DATABASE)._replace(path="/postgres").geturl(), autocommit=True)


def _name(url: str) -> Identifier:
    return Identifier(urlsplit(url).path.strip("/"))


def _python(project: Path, *arguments: str, **own: str) -> str:
    return _run(project, str(project / ".venv" / "bin" / "python"), *arguments, **own)


def _run(project: Path, program: str, *arguments: str, **own: str) -> str:
    done = run_python(*arguments, own=own, folder=project, program=shutil.which(program) or program)
    if done.returncode:
        raise UpgradeError(
            f"{project.name}: {' '.join(arguments)[:80]} failed:\n{(done.stdout + done.stderr)[-2000:]}"
        )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
