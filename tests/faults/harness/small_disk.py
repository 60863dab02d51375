"""A small file system for the product's data, so that a test can really fill the disk.

The kernel refuses the write (ENOSPC), and each database reports that in its own way. Mounting needs root.
"""

import pwd
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.db import connection

from tests.faults.harness.processes import TIMEOUT, wait_until
from tests.tools.test_brokers import database_url
from tools.processes import free_port

SIZE = "256m"
NOBODY = "nobody"  # PostgreSQL refuses to run as root
IS_FULL = {"postgresql": "No space left on device", "sqlite": "database or disk is full"}
# Each database can write into space it already has: a preallocated log, pages that are not full. These statements
# use it up.
USE_UP = {
    "sqlite": ["PRAGMA wal_checkpoint(TRUNCATE)"],
    "postgresql": [
        "ALTER TABLE audit_entry SET (fillfactor = 10)",  # every commit adds to it: one entry per page
        "VACUUM FULL audit_entry",
        # The WAL keeps its space: without it the server stops, which is another fault (an unavailable database).
        "SELECT pg_switch_wal()",
        "CHECKPOINT",
    ],
}


@dataclass
class Disk:
    """The mount point, and the file that fills the disk."""

    folder: Path

    @property
    def ballast(self) -> Path:
        return self.folder / "ballast"

    def fill(self) -> None:
        """Use up all free space."""
        with connection.cursor() as cursor:
            for statement in USE_UP[connection.vendor]:
                cursor.execute(statement)
        with suppress(OSError), self.ballast.open("wb", buffering=0) as ballast:
            while True:
                ballast.write(bytes(4096))

    def free(self) -> None:
        """Release the space."""
        self.ballast.unlink(missing_ok=True)


@contextmanager
def data_on_a_small_disk() -> Iterator[Disk]:
    """Within the block, a copy of the suite's database on a small disk replaces it."""
    copied = {"sqlite": sqlite_copied, "postgresql": postgresql_copied}[connection.vendor]
    with small_disk() as disk, copied(disk):
        yield disk


@contextmanager
def small_disk() -> Iterator[Disk]:
    """A disk that is unmounted after the block. Skips if mounting is not permitted."""
    folder = tempfile.mkdtemp(prefix="small-disk-")
    options = f"size={SIZE},mode=700,uid={pwd.getpwnam(NOBODY).pw_uid}"
    mount = ["mount", "-t", "tmpfs", "-o", options, "countersign", folder]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode:
        Path(folder).rmdir()
        pytest.skip(f"A disk cannot be full where none may be mounted: {mounted.stderr.strip()}")
    try:
        yield Disk(Path(folder))
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        Path(folder).rmdir()


@contextmanager
def sqlite_copied(disk: Disk) -> Iterator[None]:
    moved = disk.folder / "countersign.sqlite3"
    previous = connection.settings_dict["NAME"]
    with closing(sqlite3.connect(previous)) as suite, closing(sqlite3.connect(moved)) as ours:
        suite.backup(ours)
    with connected_to(NAME=str(moved)):
        yield


@contextmanager
def postgresql_copied(disk: Disk) -> Iterator[None]:
    """On a PostgreSQL server of this test's own, since nothing else may depend on a server with a full disk."""
    programs = postgresql_s_programs()
    dump = subprocess.run([f"{programs}/pg_dump", database_url()], check=True, capture_output=True).stdout
    with postgresql(disk, programs) as port, connected_to(PORT=port, NAME="postgres"):
        copy = [f"{programs}/psql", "--quiet", "--set", "ON_ERROR_STOP=1", database_url()]
        subprocess.run(copy, input=dump, check=True, stdout=subprocess.DEVNULL)
        yield


@contextmanager
def postgresql(disk: Disk, programs: Path) -> Iterator[int]:
    """The port of a new server with all its data on this disk; stopped immediately afterwards, without a
    clean shutdown.
    """
    data, port = str(disk.folder / "data"), free_port()
    user = ["-U", connection.settings_dict["USER"], "-A", "trust", "--locale", "C.UTF-8"]
    initdb = [f"{programs}/initdb", "-D", data, "--no-sync", *user]
    subprocess.run(initdb, user=NOBODY, cwd=disk.folder, check=True, stdout=subprocess.DEVNULL)
    where = ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-p", str(port)]
    with (disk.folder / "log").open("wb") as log:
        run = [f"{programs}/postgres", "-D", data, *where]
        server = subprocess.Popen(run, user=NOBODY, cwd=disk.folder, stdout=log, stderr=log)
    try:
        command = [f"{programs}/pg_isready", "--quiet", "--host", "127.0.0.1", "--port", str(port)]
        wait_until(lambda: subprocess.run(command, check=False).returncode == 0, "PostgreSQL on a small disk")
        yield port
    finally:
        server.send_signal(signal.SIGQUIT)
        server.wait(TIMEOUT)


@contextmanager
def connected_to(**elsewhere: object) -> Iterator[None]:
    """Within the block, every new connection of this process goes to the database elsewhere."""
    database = connection.settings_dict
    previous = {name: database[name] for name in elsewhere}
    connection.close()
    database.update(elsewhere)
    try:
        yield
    finally:
        connection.close()
        database.update(previous)


def postgresql_s_programs() -> Path:
    """The folder of PostgreSQL's programs on this machine. Skips if they are not installed."""
    initdb = shutil.which("initdb") or next(Path("/usr/lib/postgresql").glob("*/bin/initdb"), None)
    if initdb is None:
        pytest.skip(
            "A server whose disk is full cannot be started: PostgreSQL's programs are not on this machine"
        )
    return Path(initdb).resolve().parent
