"""The address of the database is checked before anything is stored, since nothing that is stored is overwritten."""

import os
from pathlib import Path

import pytest

from backoffice.installation import preparation
from backoffice.installation.database import fault_of_address
from tests.installation.test_questions import GIVEN
from tests.installation.test_setup import setup

GOOD = "postgres://postgres:secret@127.0.0.1:1/h_e_wrong"
SETUP, RUNS = "COUNTERSIGN_SETUP_DATABASE_URL", "COUNTERSIGN_DATABASE_URL"


@pytest.mark.parametrize(
    "address",
    [
        GOOD,
        "postgresql://postgres@db.example/countersign?sslmode=verify-full",
        "postgres://postgres:pa%23ss%2Fword@[::1]:5432/counter-sign",
        "postgres://postgres@/countersign?host=/run/postgresql",
    ],
)
def test_an_address_with_all_its_parts_is_accepted(address: str) -> None:
    assert fault_of_address(address) == ""


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        ("hello", "does not begin with postgres://"),
        ("postgres@127.0.0.1:5432/h_b_two", "does not begin with postgres://"),
        ("mysql://postgres:secret@127.0.0.1/name", "does not begin with postgres://"),
        ("postgres://127.0.0.1:5432/name", "no user"),
        ("postgres://postgres:1/secret@127.0.0.1:5432/name", "no user"),
        ("postgres://postgres:secret@/name", "no host"),
        ("postgres://postgres:secret@127.0.0.1:5432", "name of a database"),
        ("postgres://postgres:secret@127.0.0.1:5432/", "name of a database"),
        ("postgres://postgres:secret@127.0.0.1:5432/one/two", "name of a database"),
        ("postgres://postgres:secret@127.0.0.1:0/name", "port"),
        ("postgres://postgres:secret@127.0.0.1:port/name", "cannot be read"),
        ("postgres://postgres:secret#1@127.0.0.1:5432/name", "cannot be read"),
        ("postgres://postgres:secret/1@127.0.0.1:5432/name", "cannot be read"),
        ("postgres://postgres:secret%zz@127.0.0.1:5432/name", "cannot be read"),
        ("postgres://postgres:secret[@127.0.0.1:5432/name", "cannot be read"),
        ("postgres://postgres:secret@127.0.0.1:5432/name?nothing=1", "cannot be read"),
        ("postgres://postgres:secret@1@127.0.0.1:5432/name", "not encoded"),
        ("postgres://postgres:secret@127.0.0.1:5432/name#1", "not encoded"),
    ],
)
def test_what_is_wrong_with_an_address_is_said_without_a_part_of_it(address: str, fault: str) -> None:
    said = fault_of_address(address)
    assert fault in said
    assert "secret" not in said


@pytest.mark.parametrize("name", [SETUP, RUNS, "COUNTERSIGN_MIGRATION_DATABASE_URL"])
def test_a_malformed_address_is_refused_before_anything_is_stored(tmp_path: Path, name: str) -> None:
    done = setup(tmp_path, **{"server": "", name: "postgres@127.0.0.1:5432/h_e_two"})
    assert done.returncode == 1
    assert (
        f"{name} is no address of a PostgreSQL database: it does not begin with postgres://." in done.stderr
    )
    assert "postgres://USER:PASSWORD@HOST:PORT/NAME" in done.stderr
    assert "%23 for #" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_malformed_address_that_an_earlier_release_stored_is_changed_in_its_file(tmp_path: Path) -> None:
    stored = "postgres://a:b@127.0.0.1:5432/postgres@127.0.0.1:5432/h_e_two"
    preparation.add_variables(tmp_path / "env", {RUNS: stored})
    done = setup(tmp_path, GOOD)
    assert done.returncode == 1
    assert f"{RUNS} (stored in {tmp_path / 'env'}: change it there)" in done.stderr
    assert preparation.read_variables(tmp_path / "env") == {RUNS: stored}


def test_at_a_terminal_a_malformed_address_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.startswith("COUNTERSIGN_")]:
        monkeypatch.delenv(name)
    for name, value in {**GIVEN, SETUP: "hello", RUNS: "", "COUNTERSIGN_MIGRATION_DATABASE_URL": ""}.items():
        monkeypatch.setenv(name, value)
    typed = iter(["postgres://postgres:se#cret@127.0.0.1:1/h_e_wrong", GOOD])
    monkeypatch.setattr("backoffice.installation.preparation.getpass", lambda _prompt: next(typed))
    monkeypatch.setattr("builtins.input", lambda _prompt: "")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    with pytest.raises(SystemExit, match="postgres cannot connect to"):
        preparation.main(["--env-file", str(tmp_path / "env")])
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().out.count(f"{SETUP} is no address of a PostgreSQL database") == 2
