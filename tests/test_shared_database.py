"""Processes of a run copy the database that one of them has migrated."""

import fcntl
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import shared_database
from tests.shared_database import SharedDatabase


def works_with(monkeypatch: pytest.MonkeyPatch, database: Path) -> None:
    """Have the process use this file."""
    own = SimpleNamespace(
        vendor="sqlite", settings_dict={"NAME": str(database), "TEST": {"NAME": str(database)}}, close=bool
    )
    monkeypatch.setattr(shared_database, "connection", own)


def migrate(database: Path) -> None:
    with closing(sqlite3.connect(database)) as own:
        own.execute("CREATE TABLE migrated (number)")


def tables(database: Path) -> list[tuple[str]]:
    with closing(sqlite3.connect(database)) as own:
        return own.execute("SELECT name FROM sqlite_master").fetchall()


def test_one_process_migrates_and_the_next_copies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, second, third = (SharedDatabase(tmp_path) for _ in range(3))
    files = [tmp_path / name for name in ("first", "second", "third")]

    works_with(monkeypatch, files[0])
    first.begin()
    assert not first.is_copied
    with (tmp_path / "migrated-database.lock").open("ab") as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    migrate(files[0])
    first.offer()

    works_with(monkeypatch, files[1])
    second.begin()
    second.offer()
    assert second.is_copied
    assert tables(files[1]) == [("migrated",)]
    second.take_back()
    assert not files[1].exists()

    works_with(monkeypatch, files[0])
    first.take_back()
    works_with(monkeypatch, files[2])
    third.begin()
    assert not third.is_copied
    third.offer()


def test_a_kept_copy_serves_later_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, later = (SharedDatabase(tmp_path, is_kept=True) for _ in range(2))
    works_with(monkeypatch, tmp_path / "first")
    first.begin()
    migrate(tmp_path / "first")
    first.offer()
    first.take_back()
    works_with(monkeypatch, tmp_path / "later")
    later.begin()
    later.offer()
    assert later.is_copied
    assert tables(tmp_path / "later") == [("migrated",)]


def test_a_process_alone_migrates_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    works_with(monkeypatch, tmp_path / "own")
    alone = SharedDatabase(None)
    alone.begin()
    alone.offer()
    alone.take_back()
    assert not alone.is_copied
    assert list(tmp_path.iterdir()) == []
