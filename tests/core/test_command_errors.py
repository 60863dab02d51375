"""A command whose database, file or output cannot be used ends with one line, without traceback and password."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, ProgrammingError, connection

from backoffice.core.management.command_errors import ended_by_closed_output, ended_by_unusable_database
from tools.processes import ROOT, free_port, run_python

COMMANDS = [
    ("verify_audit",),
    ("mirror",),
    ("staff", "deactivate", "ada@example.com", "--reason", "test"),
    ("migrate",),
]


def run(*command: str, database: str) -> "subprocess.CompletedProcess[str]":
    own = {"COUNTERSIGN_DATA_DIR": os.environ["COUNTERSIGN_DATA_DIR"], "COUNTERSIGN_DATABASE_URL": database}
    return run_python("manage.py", *command, own=own, timeout=60)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command[0]))
def test_a_command_says_in_one_line_that_the_database_cannot_be_reached(command: tuple[str, ...]) -> None:
    port = free_port()
    failed = run(*command, database=f"postgres://ada:canary7f3a@127.0.0.1:{port}/books")
    [line] = failed.stderr.splitlines()
    assert line == (
        f"CommandError: The database books at 127.0.0.1:{port} cannot be reached: Connection refused. "
        'See "Database unreachable or read-only" in the runbook (docs/operator/runbook.md).'
    )
    assert failed.returncode == 1


@pytest.mark.parametrize("command", COMMANDS[1:-1], ids=lambda command: str(command[0]))
def test_a_command_says_in_one_line_that_the_database_was_not_migrated(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "books.sqlite3"
    failed = run(*command, database=f"sqlite:///{file}")
    assert failed.stderr == f"CommandError: The database {file} has no tables: run manage.py migrate first.\n"
    assert failed.returncode == 1


def test_a_database_of_an_earlier_release_is_told_from_an_empty_one(tmp_path: Path) -> None:
    file = tmp_path / "books.sqlite3"
    assert run("migrate", "contenttypes", database=f"sqlite:///{file}").returncode == 0
    assert run("prune", database=f"sqlite:///{file}").stderr == (
        f"CommandError: The database {file} lacks migrations of this release: run manage.py migrate first.\n"
    )


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    file = tmp_path / "missing" / "books.sqlite3"
    failed = run("prune", database=f"sqlite:///{file}")
    assert f"The database {file} cannot be reached: unable to open database file." in failed.stderr


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("statement", ["SELECT * FROM no_table_of_ours", "SELECT FROM WHERE"])
def test_an_error_in_a_database_that_works_keeps_its_traceback(statement: str) -> None:
    with (
        pytest.raises((OperationalError, ProgrammingError)),
        ended_by_unusable_database(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)


@pytest.mark.django_db(transaction=True)
def test_a_database_that_does_not_exist_is_not_reached() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite makes the file")
    ours = connection.settings_dict
    address = (
        f"postgres://{ours['USER']}:{ours['PASSWORD']}@{ours['HOST']}:{ours['PORT'] or 5432}/h_d_missing"
    )
    failed = run("prune", database=address)
    assert "h_d_missing" in failed.stderr
    assert 'cannot be reached: FATAL: database "h_d_missing" does not exist.' in failed.stderr


def test_a_command_whose_output_nobody_reads_ends_without_a_traceback(tmp_path: Path) -> None:
    command = f"{sys.executable} manage.py diffsettings --all; echo $? >&2"
    own = {"COUNTERSIGN_DATA_DIR": str(tmp_path), "COUNTERSIGN_ENV_FILE": ""}
    # The reader is gone before the first line is written.
    with subprocess.Popen(
        ["bash", "-c", f"({command}) | true"],
        cwd=ROOT,
        env=os.environ | own,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        _, errors = process.communicate(timeout=60)
    assert errors == "1\n"


def test_a_connection_that_the_other_side_closed_is_no_closed_output() -> None:
    with pytest.raises(BrokenPipeError), ended_by_closed_output():
        raise BrokenPipeError


@pytest.mark.parametrize(
    "command", [("verify_archive", "{file}"), ("verify_archive", "{file}", "--against", "{file}")]
)
def test_a_missing_file_is_named_once_and_without_a_number(command: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "missing.archive"
    with pytest.raises(CommandError) as failed:
        call_command(*(part.format(file=file) for part in command))
    assert str(failed.value) == f"{file}: No such file or directory"


@pytest.mark.django_db
def test_a_missing_file_of_checkpoints_is_named_once_and_without_a_number(tmp_path: Path) -> None:
    file = tmp_path / "missing.checkpoints"
    with pytest.raises(CommandError) as failed:
        call_command("verify_audit", against=file)
    assert str(failed.value) == f"{file} cannot be compared: No such file or directory"
