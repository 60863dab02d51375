"""One migrated database for all processes of a run: the first makes it, and the others copy it.

The migrations take twelve seconds of a processor, and each process of pytest-xdist would run them for itself. So would
each run of `tests.sabotage`, which names a folder in which the copy is kept from one run to the next.
"""

import fcntl
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.db import connection

KEPT_IN = "MIGRATED_DATABASE_FOLDER"
"""The variable of the environment with a folder in which the copy stays when a run ends. Only for SQLite."""


@dataclass
class SharedDatabase:
    """The copy in a folder that all processes of the run share. Without a folder the process is alone."""

    folder: Path | None
    is_kept: bool = False
    is_copied: bool = False
    _lock: IO[bytes] | None = None

    @property
    def _name(self) -> Path:
        """The file that says what the copy is called, once there is one."""
        assert self.folder is not None
        return self.folder / "migrated-database"

    def begin(self) -> None:
        """Have the test database of this process begin as the copy. If there is none yet, others wait for `offer`."""
        if self.folder is not None:
            self._lock = (self.folder / "migrated-database.lock").open("ab")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            self._use()

    def offer(self) -> None:
        """Let the other processes copy the test database that this one has just migrated."""
        if self._lock is not None:
            if not self.is_copied:
                self._publish()
            self._lock.close()

    def take_back(self) -> None:
        """At the end: whoever comes later migrates a database of its own."""
        if self.folder is None:
            return
        connection.close()
        if self.is_copied:
            if connection.vendor == "sqlite":  # Django keeps it, as it was there
                Path(connection.settings_dict["NAME"]).unlink()
            return
        if self.is_kept:
            return
        with (self.folder / "migrated-database.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            name = self._name.read_text()
            self._name.unlink()
            if connection.vendor == "postgresql":
                _on_postgresql(f'DROP DATABASE "{name}"')

    def _use(self) -> None:
        if not self._name.exists():
            return
        test, name = connection.settings_dict["TEST"], self._name.read_text()
        if connection.vendor == "postgresql":
            test["TEMPLATE"] = name
        else:
            _copy(name, test["NAME"])
        self.is_copied = True

    def _publish(self) -> None:
        own = connection.settings_dict["NAME"]
        assert self.folder is not None
        if connection.vendor == "postgresql":
            name = f"{own}_copy"
            connection.close()  # PostgreSQL copies only a database without connections
            _on_postgresql(f'DROP DATABASE IF EXISTS "{name}"', f'CREATE DATABASE "{name}" TEMPLATE "{own}"')
        else:
            name = str(self.folder / "migrated.sqlite3")
            _copy(own, name)
        self._name.write_text(name)


def _on_postgresql(*statements: str) -> None:
    with connection._nodb_cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _copy(source: str, target: str) -> None:
    """Copy a database of SQLite, with what its journal holds."""
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)
