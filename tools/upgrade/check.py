"""`make upgrade-check`: the code of the last release does its work on the schema of this state.

That is the moment of an upgrade in which the migrations have run and old processes still do; and a rollback. On
PostgreSQL: migrated by the last release, then by this state; then the last release prepares, approves, sends and
confirms a payment on it. It runs with the packages that its own locks name. Prints one line of JSON.
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


class UpgradeError(Exception):
    """A step failed; the message has what it printed."""


def main() -> int:
    """0 only if the last release's payment was made once, on the new schema."""
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
    """Migrate twice, then let the old code work. Raises UpgradeError."""
    old = folder / "release"
    old.mkdir()
    release.extract(old)
    _run(old, "make", ".venv/ready")
    data = folder / "data"
    data.mkdir()
    create_database()
    try:
        own = {"COUNTERSIGN_DATABASE_URL": DATABASE, "COUNTERSIGN_DATA_DIR": str(data)}
        _python(old, "manage.py", "migrate", "--verbosity", "0", **own)
        _python(ROOT, "manage.py", "migrate", "--verbosity", "0", **own)
        printed = _python(old, "-c", WORK, str(folder / "stack"), UPGRADED_DATABASE=DATABASE)
    finally:
        drop_database()
    result: dict[str, Any] = json.loads(printed.strip().splitlines()[-1])
    return result


def create_database() -> None:
    """An empty one."""
    drop_database()
    with _server() as server:
        server.execute(SQL("CREATE DATABASE {}").format(_name()))


def drop_database() -> None:
    """Drop what an earlier check left."""
    with _server() as server:
        server.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(_name()))


def _server() -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(urlsplit(DATABASE)._replace(path="/postgres").geturl(), autocommit=True)


def _name() -> Identifier:
    return Identifier(urlsplit(DATABASE).path.strip("/"))


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
