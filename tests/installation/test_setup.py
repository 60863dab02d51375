"""`manage.py setup` on a real server: from nothing to two links, and a second time without a change."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import connection
from psycopg.sql import SQL, Identifier

from backoffice.installation.preparation import read_variables
from tests.installation.test_questions import GIVEN
from tools.processes import ROOT, clean_environment

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no roles"),
]
TWO = (
    "--administrator",
    "Ada Obi <ada@example.com>",
    "--administrator",
    "Ibrahim Sani <ibrahim@example.com>",
)


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a database that does not exist yet, for a role that may create it; dropped afterwards."""
    at = connection.settings_dict
    name = f"{at['NAME']}_setup"
    address = f"postgres://{at['USER']}:{at['PASSWORD']}@{at['HOST']}:{at['PORT']}"
    yield f"{address}/{name}"
    with psycopg.connect(f"{address}/postgres", autocommit=True) as cleaning:
        cleaning.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(name)))
        for role in (name, f"{name}_owner"):
            cleaning.execute(SQL("DROP ROLE IF EXISTS {}").format(Identifier(role)))


USES_BOTH = """
from datetime import UTC, datetime, timedelta
from django.core.management import call_command
from django.db import ProgrammingError, connection
from backoffice.core import clock
from backoffice.core.storage.files import ARCHIVES, file_store
from backoffice.retention.archives import archive_evidence

made = archive_evidence(datetime(2000, 1, 1, tzinfo=UTC), clock.now())
call_command("verify_archive", file_store(ARCHIVES).path(made.name))
later = clock.now() + timedelta(days=10_000)
with clock.use_clock(lambda: later):
    call_command("prune")
for refused in ("DELETE FROM audit_entry", "UPDATE audit_entry SET hash = hash", "CREATE TABLE another (id integer)"):
    try:
        with connection.cursor() as cursor:
            cursor.execute(refused)
    except ProgrammingError as exc:
        print(f"{refused}: {exc}")
"""
"""What the role that runs does in an installation with two roles, and what it may not."""


def run_there(folder: Path, script: str) -> "subprocess.CompletedProcess[str]":
    """Run the script in the installation that was set up in this folder."""
    own = {"COUNTERSIGN_ENV_FILE": str(folder / "env")}
    command = [sys.executable, "manage.py", "shell", "-v0", "-c", script]
    return subprocess.run(
        command, cwd=ROOT, env=clean_environment(own), capture_output=True, text=True, check=False
    )


def setup(folder: Path, server: str, *arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
    """Run it in this folder with what cannot be made up."""
    own = {
        **GIVEN,
        "COUNTERSIGN_DATA_DIR": str(folder / "data"),
        "COUNTERSIGN_SETUP_DATABASE_URL": server,
        "PYTHONDONTWRITEBYTECODE": "",
        **more,
    }
    command = [
        sys.executable,
        "manage.py",
        "setup",
        "--env-file",
        str(folder / "env"),
        "--no-input",
        *arguments,
    ]
    return subprocess.run(
        command, cwd=ROOT, env=clean_environment(own), capture_output=True, text=True, check=False
    )


def test_an_empty_server_becomes_an_installation_with_two_links(tmp_path: Path, server: str) -> None:
    first = setup(tmp_path, server, *TWO)
    assert first.returncode == 0, first.stdout + first.stderr
    assert len(set(re.findall(r"https://pay\.example/account/set-up/\S+", first.stdout))) == 2
    assert "core.W001" not in first.stderr  # the role that runs has no right too many
    files = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    folders = dict.fromkeys(("data", "data-journal", "data-checkpoints"), 0o700)
    assert files == {**folders, "env": 0o600, "env.migrate": 0o600}
    assert not [line for line in first.stderr.splitlines() if "operations.W001" in line or "audit.W0" in line]
    assert "MIGRATION" not in (tmp_path / "env").read_text()

    before = {path: path.read_bytes() for path in tmp_path.glob("env*")}
    second = setup(tmp_path, server, *TWO)
    assert second.returncode == 0, second.stdout + second.stderr
    assert {path: path.read_bytes() for path in tmp_path.glob("env*")} == before
    for said in (
        "nothing to add",
        "No migrations to apply",
        "Nothing to change in the rights",
        "2 administrators exist: nothing to create",
        "Not signed in yet: ada@example.com, ibrahim@example.com",
        'staff reset-password EMAIL --reason "REASON"',
    ):
        assert said in second.stdout
    assert "/account/set-up/" not in second.stdout

    used = run_there(tmp_path, USES_BOTH)
    assert used.returncode == 0, used.stdout + used.stderr
    assert "intact" in used.stdout
    assert "accounts_setuplink: 2 rows" in used.stdout
    assert used.stdout.count("permission denied") == 3

    elsewhere = tmp_path / "elsewhere"  # without the keys of this installation
    elsewhere.mkdir()
    third = setup(elsewhere, server, *TWO)
    assert third.returncode == 1
    assert "holds an installation already" in third.stderr
    assert "COUNTERSIGN_ENCRYPTION_KEYS" in third.stderr
    assert list(elsewhere.iterdir()) == []


def test_a_database_that_cannot_be_reached_is_named(tmp_path: Path, server: str) -> None:
    elsewhere = urlsplit(server)._replace(netloc="postgres@127.0.0.1:1").geturl()
    done = setup(tmp_path, elsewhere, *TWO)
    assert done.returncode == 1
    assert "postgres cannot connect to 127.0.0.1/postgres" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_keys_are_not_made_while_an_existing_installation_cannot_be_reached(
    tmp_path: Path, server: str
) -> None:
    assert setup(tmp_path, server, *TWO).returncode == 0
    stored = (read_variables(tmp_path / "env") | read_variables(tmp_path / "env.migrate")).items()
    urls = {name: value for name, value in stored if name.endswith("DATABASE_URL")}
    away = {name: urlsplit(url)._replace(netloc="x@127.0.0.1:1").geturl() for name, url in urls.items()}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = setup(elsewhere, "", *TWO, **away)
    assert done.returncode == 1
    assert "x cannot connect to 127.0.0.1/" in done.stderr
    assert list(elsewhere.iterdir()) == []
    again = setup(elsewhere, "", *TWO, **urls)
    assert again.returncode == 1
    assert "holds an installation already" in again.stderr


def test_without_a_database_it_says_what_to_set(tmp_path: Path) -> None:
    done = setup(tmp_path, "", *TWO)
    assert done.returncode == 1
    assert "COUNTERSIGN_SETUP_DATABASE_URL" in done.stderr
    assert list(tmp_path.iterdir()) == []
