"""`make drill`: restore the database to each moment of a payment, in each way, and count what is sent.

The ways: a copy of SQLite; a dump of PostgreSQL; and, on servers of its own, a base backup with point-in-time
recovery, and a promoted asynchronous standby that lacks the last commits. For each moment a withdrawal is prepared,
approved, released, claimed, sent, answered and confirmed; the database is backed up at the moment and restored at
the end. Then the processes restart, two people resume payments, and they approve and release what can be approved
and released.

Prints one line of JSON; `skipped` has the ways for which this machine lacks programs, and it fails then unless
`--allow-skipped` is given. Fails if a payment was sent twice or did not end as succeeded, if a release was kept, or if
payments were not paused: each backup lacks an attempt or, from the moment `leaving` on, entries of the audit log
that the journal names.
"""

import argparse
import json
import os
import pwd
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import psycopg
import requests
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from django.utils import timezone
from pydantic import SecretStr

from backoffice.accounts.models import AuthenticatorDevice, User
from backoffice.accounts.roles import Role
from backoffice.accounts.staff import create_staff
from backoffice.operations.delivery import journal, restore_check
from backoffice.operations.delivery.release import release_operation
from backoffice.operations.delivery.send import send_operation
from backoffice.operations.errors import OperationError
from backoffice.operations.jobs import JOBS
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.kinds.withdrawal import WithdrawalPayload
from backoffice.operations.lifecycle import pause
from backoffice.operations.models.monitoring import is_paused
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.states import Status
from backoffice.operations.workflow.approvals import approve_operation
from backoffice.operations.workflow.prepare import prepare_operation
from tools.processes import Stack, StackError, free_port, run_python, temporary_sandbox

MOMENTS = ("prepare", "approve", "release", "claim", "leaving", "answer")
COPY, DUMP, BASE_BACKUP, STANDBY = BACKUPS = ("copy", "dump", "base_backup", "standby")
ON_OWN_SERVERS = (BASE_BACKUP, STANDBY)
POINTS = {"claim": "send.claimed", "leaving": "send.begun"}
SERVER = "postgres://postgres@127.0.0.1:5432/postgres"
SERVER_PROGRAMS = ("initdb", "pg_ctl", "pg_basebackup")
SERVER_USER = "postgres"  # whom the drill's own servers run as, if it is run as root
PATIENCE = 30.0  # seconds, until a payment is closed by matching, or a server has caught up
RESULT = "drill: "


def main() -> int:
    """Run the drill with each kind of backup, in a process of its own."""
    parser = argparse.ArgumentParser(prog="make drill", description=__doc__)
    parser.add_argument("--backup", choices=BACKUPS, action="append")
    parser.add_argument("--moment", choices=MOMENTS, action="append")
    parser.add_argument("--server", default=SERVER, help="a PostgreSQL server that may create databases")
    parser.add_argument(
        "--allow-skipped", action="store_true", help="succeed although this machine cannot run every way"
    )
    parser.add_argument("--inside", choices=BACKUPS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    moments = options.moment or list(MOMENTS)
    if options.inside:
        print(RESULT + json.dumps(run_cells(options.inside, moments)))
        return 0
    began = time.monotonic()
    chosen, cells = options.backup or BACKUPS, list[dict[str, Any]]()
    skipped = [] if server_programs() else [backup for backup in chosen if backup in ON_OWN_SERVERS]
    try:
        for backup in chosen:
            if backup not in skipped:
                cells += _run_backup(backup, moments, options.server)
    except (StackError, OSError, psycopg.Error) as exc:
        print(json.dumps({"status": "error", "problem": str(exc)}))
        return 1
    summary = {
        "sent_twice": sum(cell["sent"] > 1 for cell in cells),
        "paused": sum(cell["paused"] for cell in cells),
        "released_dropped": sum(cell["released_dropped"] for cell in cells),
        "closed_by_matching": sum(cell["closed_by_matching"] for cell in cells),
        "cells": cells,
        "skipped": skipped,
        "seconds": round(time.monotonic() - began, 1),
    }
    if skipped:
        summary["problem"] = (
            f"Skipped: {' and '.join(skipped)}. This machine lacks {', '.join(SERVER_PROGRAMS)}."
        )
    print(json.dumps(summary))
    return 0 if is_passed(cells) and (options.allow_skipped or not skipped) else 1


def is_passed(cells: list[dict[str, Any]]) -> bool:
    """Whether in every cell the payment was sent once and ended as succeeded, payments were paused, and no release
    was kept.
    """
    return bool(cells) and all(
        cell["sent"] == 1
        and cell["status"] == Status.SUCCEEDED
        and cell["paused"]
        and (cell["released_dropped"] or cell["moment"] != "release")
        for cell in cells
    )


def _run_backup(backup: str, moments: list[str], server: str) -> list[dict[str, Any]]:
    """The cells of this kind of backup, with a database, a journal and a simulated provider of their own."""
    with tempfile.TemporaryDirectory(prefix="countersign-drill-") as name:
        folder = Path(name)
        for part in ("data", "journal"):
            (folder / part).mkdir()
        with temporary_sandbox(folder, transactions=200) as stack, _database(backup, server) as own:
            stack.set_sandbox(token_reuse=True, settle_after=0)
            return _run_inside(backup, moments, _environment(stack, folder) | own)


@contextmanager
def _database(backup: str, server: str) -> Iterator[dict[str, str]]:
    """A database to be restored from this kind of backup, as variables of the process that uses it."""
    if backup == COPY:
        yield {}
    elif backup == DUMP:
        name = f"countersign_drill_{uuid.uuid4().hex[:8]}"
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(f'CREATE DATABASE "{name}"')
            try:
                yield {"COUNTERSIGN_DATABASE_URL": urlsplit(server)._replace(path=f"/{name}").geturl()}
            finally:
                admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    else:
        with own_servers() as first:
            yield {"COUNTERSIGN_DATABASE_URL": first.address, "DRILL_SERVERS": str(first.folder)}


ISSUED_CODES = """
otp_type = "otp"
otp_single_use = false
"""
"""The provider profile: reusable codes of type otp, because several payments are released within 30 seconds."""


def _environment(stack: Stack, folder: Path) -> dict[str, str]:
    profile = folder / "profile.toml"
    profile.write_text(ISSUED_CODES)
    return {
        "COUNTERSIGN_GATEWAY_PROFILE": str(profile),
        "COUNTERSIGN_DATA_DIR": str(folder / "data"),
        "COUNTERSIGN_JOURNAL_DIR": str(folder / "journal"),
        "COUNTERSIGN_GATEWAY_URL": f"{stack.sandbox}/v2",
        "COUNTERSIGN_GATEWAY_URL_V4": f"{stack.sandbox}/v4",
        "COUNTERSIGN_BROKER_URL": "memory://",
        "COUNTERSIGN_SEND_DEADLINE_SECONDS": "6",
        "DRILL_SANDBOX": stack.sandbox,
    }


def _run_inside(backup: str, moments: list[str], own: dict[str, str]) -> list[dict[str, Any]]:
    chosen = [part for moment in moments for part in ("--moment", moment)]
    done = run_python("-m", "tools.inside_django", "tools.drill", "--inside", backup, *chosen, own=own)
    results = [line for line in done.stdout.splitlines() if line.startswith(RESULT)]
    if done.returncode or not results:
        raise StackError(f"The drill failed:\n{done.stdout}{done.stderr[-4000:]}")
    cells: list[dict[str, Any]] = json.loads(results[-1].removeprefix(RESULT))
    return cells


# PostgreSQL servers of the drill's own


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server in `folder`, which all servers of the drill and their archive share."""

    folder: Path
    port: int

    @property
    def address(self) -> str:
        """Its only database, for the role that owns everything."""
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def data(self) -> Path:
        """Its data directory."""
        return self.folder / str(self.port)

    @property
    def archive(self) -> Path:
        """Where every server archives its WAL."""
        return self.folder / "archive"

    def create(self) -> None:
        """Make it a new, empty primary that archives its WAL."""
        self.command("initdb", "--no-sync", "--auth=trust", "--username=postgres", f"--pgdata={self.data}")
        self.configure(
            listen_addresses="127.0.0.1",
            unix_socket_directories="",
            shared_buffers="16MB",
            fsync="off",  # a crash here ends processes, not the machine
            archive_mode="on",
            archive_command=f"cp %p {self.archive}/%f",
        )

    def copy_of(self, primary: "Server", *options: str) -> None:
        """Make it a base backup of this running server."""
        source = ("--host=127.0.0.1", f"--port={primary.port}", "--username=postgres")
        self.command(
            "pg_basebackup", *source, "--checkpoint=fast", "--no-sync", f"--pgdata={self.data}", *options
        )

    def configure(self, **settings: str) -> None:
        """Set these settings from its next start on."""
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def start(self) -> None:
        """Return once it accepts connections."""
        log, options = f"--log={self.folder}/{self.port}.log", f"--options=-p {self.port}"
        self.command("pg_ctl", "start", "--wait", log, options, f"--pgdata={self.data}")

    def stop(self, mode: str) -> None:
        """Stop it; `fast` archives all WAL, `immediate` is a crash."""
        self.command("pg_ctl", "stop", "--wait", f"--mode={mode}", f"--pgdata={self.data}")

    def ask(self, query: str) -> Any:
        """The one value that this query returns."""
        with psycopg.connect(self.address, autocommit=True) as session:
            row = session.execute(query).fetchone()
        return row[0] if row else None

    def wait_until(self, query: str) -> None:
        """Return once this query is true. Raises StackError."""
        deadline = time.monotonic() + PATIENCE
        while not self.ask(query):
            if time.monotonic() > deadline:
                raise StackError(f"The PostgreSQL server in {self.data} never reached: {query}")
            time.sleep(0.05)

    def command(self, name: str, *arguments: str) -> None:
        """Run this program of PostgreSQL as the user who may own a server. Raises StackError."""
        log = self.folder / f"{name}.log"  # not a pipe, which a server that it starts would keep open
        with log.open("ab") as output:
            done = subprocess.run(  # noqa: S603 - our own arguments
                [server_programs()[0] / name, *arguments],
                cwd=self.folder,
                user=_server_owner(),
                group=_server_owner(),
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        if done.returncode:
            raise StackError(f"{name} failed:\n{log.read_text(errors='replace')[-2000:]}")


@contextmanager
def own_servers() -> Iterator[Server]:
    """A new primary on a free port. It, and every server beside it in its folder, is stopped after the block."""
    with tempfile.TemporaryDirectory(prefix="countersign-drill-servers-") as name:
        first = Server(Path(name), free_port())
        first.archive.mkdir()
        if owner := _server_owner():
            for folder in (first.folder, first.archive):
                shutil.chown(folder, owner, owner)
        try:
            first.create()
            first.start()
            yield first
        finally:
            for running in first.folder.glob("*/postmaster.pid"):
                Server(first.folder, int(running.parent.name)).stop("immediate")


@cache
def server_programs() -> list[Path]:
    """The folders on this machine that have the programs of a PostgreSQL server, the preferred one first."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    if config := shutil.which("pg_config"):
        said = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=True)  # noqa: S603
        folders.insert(0, Path(said.stdout.strip()))
    if os.geteuid() == 0 and not _has_user(SERVER_USER):
        return []
    return [folder for folder in folders if all((folder / name).exists() for name in SERVER_PROGRAMS)]


def _version(folder: Path) -> int:
    return int(folder.parent.name) if folder.parent.name.isdecimal() else 0


def _has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _server_owner() -> str | None:
    """The user that servers run as: PostgreSQL does not run as root. None for the user of this process."""
    return SERVER_USER if os.geteuid() == 0 else None


# Inside a process with the database


class Backup(Protocol):
    """A backup of the database, as an operator makes it: it is made before a payment, and restored after it."""

    def take(self) -> None:
        """Remember this moment."""

    def restore(self) -> None:
        """Connect the application to a database of that moment."""


@dataclass(frozen=True)
class SqliteCopy:
    """A copy by SQLite's backup API."""

    database: Path
    copy: Path

    def take(self) -> None:
        self._copy(self.database, self.copy)

    def restore(self) -> None:
        self._copy(self.copy, self.database)

    @staticmethod
    def _copy(source: Path, target: Path) -> None:
        with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
            one.backup(other)


@dataclass(frozen=True)
class PostgresqlDump:
    """A dump by `pg_dump`, restored into the same database."""

    address: str
    dump: Path

    def take(self) -> None:
        self._run("pg_dump", "--format=custom", f"--file={self.dump}", f"--dbname={self.address}")

    def restore(self) -> None:
        options = ("--clean", "--if-exists", "--single-transaction", "--exit-on-error")
        self._run("pg_restore", *options, f"--dbname={self.address}", str(self.dump))

    @staticmethod
    def _run(*command: str) -> None:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)  # noqa: S603 - our own arguments


class BaseBackup:
    """A base backup, and the WAL that was archived since up to a named restore point."""

    def __init__(self, primary: Server) -> None:
        self._primary, self._restored = primary, Server(primary.folder, free_port())
        self._restored.copy_of(primary)
        self._point = f"before {self._restored.port}"

    def take(self) -> None:
        self._primary.ask(f"SELECT pg_create_restore_point('{self._point}')")

    def restore(self) -> None:
        self._primary.stop("fast")
        self._restored.configure(
            restore_command=f"cp {self._restored.archive}/%f %p",
            recovery_target_name=self._point,
            recovery_target_action="promote",
        )
        (self._restored.data / "recovery.signal").touch()
        self._restored.start()
        self._restored.wait_until("SELECT NOT pg_is_in_recovery()")
        _connect_to(self._restored)


class Standby:
    """An asynchronous streaming standby that receives nothing after the moment, and is promoted after a crash."""

    def __init__(self, primary: Server) -> None:
        self._primary, self._standby = primary, Server(primary.folder, free_port())
        self._standby.copy_of(primary, "--write-recovery-conf")
        self._standby.start()

    def take(self) -> None:
        written = self._primary.ask("SELECT pg_current_wal_lsn()")
        self._standby.wait_until(f"SELECT pg_last_wal_replay_lsn() >= '{written}'")
        self._standby.configure(primary_conninfo="")
        self._standby.ask("SELECT pg_reload_conf()")
        self._standby.wait_until("SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)")

    def restore(self) -> None:
        self._primary.stop("immediate")
        self._standby.ask("SELECT pg_promote()")
        _connect_to(self._standby)


def _connect_to(server: Server) -> None:
    connection.settings_dict["PORT"] = server.port


def _backup_before_payment(backup: str) -> Backup:
    folder = settings.DATA_DIR
    if backup == COPY:
        return SqliteCopy(Path(str(connection.settings_dict["NAME"])), folder / "backup.sqlite3")
    if backup == DUMP:
        return PostgresqlDump(os.environ["COUNTERSIGN_DATABASE_URL"], folder / "backup.dump")
    primary = Server(Path(os.environ["DRILL_SERVERS"]), int(connection.settings_dict["PORT"]))
    return BaseBackup(primary) if backup == BASE_BACKUP else Standby(primary)


class TakeAtFaultPoint(dict[str, str]):
    """In place of the fault points of the settings: takes the backup when the sender reaches one of them."""

    def __init__(self, point: str, take: Callable[[], None]) -> None:
        super().__init__()
        self._point, self._take = point, take

    def get(self, name: str, default: Any = None) -> Any:
        if name == self._point:
            self._take()
        return default


def run_cells(backup: str, moments: list[str]) -> list[dict[str, Any]]:
    """Run these cells on the configured database."""
    call_command("migrate", verbosity=0)
    preparer = create_staff(email="tunde@drill.example", full_name="Tunde Bello", roles=[Role.PREPARER])
    approver = create_staff(email="amara@drill.example", full_name="Amara Okafor", roles=[Role.APPROVER])
    for name in ("Zainab", "Kemi"):  # nothing is sent without two administrators
        person = create_staff(
            email=f"{name.lower()}@drill.example", full_name=name, roles=[Role.ADMINISTRATOR]
        )
        device = AuthenticatorDevice(user=person, confirmed=True)
        device.set_new_seed()
        device.save(force_insert=True)
    return [
        run_cell(backup, moment, Decimal(1000 + place), preparer, approver)
        for place, moment in enumerate(moments)
    ]


def run_cell(backup: str, moment: str, amount: Decimal, preparer: User, approver: User) -> dict[str, Any]:
    """Send a payment of this amount, restore the database to this moment, and go on."""
    before = _backup_before_payment(backup)
    operation = _sent(moment, amount, preparer, approver, before)
    _confirm(operation)
    connections.close_all()
    before.restore()
    _start_anew()
    released, restored_status = Release.objects.exists(), _status(operation)
    _run_rounds(lambda: True)
    found = {"paused": is_paused(), "released_dropped": released and not Release.objects.exists()}
    if found["paused"]:
        _resume(preparer, approver)
    with suppress(OperationError):
        _approve(operation, approver)
    with suppress(OperationError):
        _release(operation, approver)
    _run_rounds(lambda: _status(operation) in {Status.SUCCEEDED, Status.APPROVED, Status.FAILED})
    status = _status(operation)
    return {
        "engine": connection.vendor,
        "backup": backup,
        "moment": moment,
        "sent": _count_sent(amount),
        **found,
        "closed_by_matching": status == Status.SUCCEEDED != restored_status,
        "status": str(status),
    }


def _sent(moment: str, amount: Decimal, preparer: User, approver: User, backup: Backup) -> Operation:
    payload = WithdrawalPayload(
        currency="NGN",
        amount=amount,
        bank_code="044",
        bank="Access Bank",
        account_number="0123456712",
        account_name="ADA CHIDINMA OBI",
        typed_name="ADA CHIDINMA OBI",
        name_reason="",
        memo="",
    )
    operation = prepare_operation(uuid.uuid4(), actor=preparer, kind="withdrawal", payload=payload)
    steps: dict[str, Callable[[], object]] = {
        "prepare": lambda: None,
        "approve": lambda: _approve(operation, approver),
        "release": lambda: _release(operation, approver),
        "answer": lambda: _send(operation, moment, backup),
    }
    for name, step in steps.items():
        step()
        if name == moment:
            backup.take()
    if _count_sent(amount) != 1:
        raise StackError(f"The payment was not sent; its status is {_status(operation)}")
    return operation


def _send(operation: Operation, moment: str, backup: Backup) -> None:
    settings.FAULT_POINTS = TakeAtFaultPoint(POINTS.get(moment, ""), backup.take)
    send_operation(operation.pk)
    settings.FAULT_POINTS = {}


def _confirm(operation: Operation) -> None:
    """Do what the sweeper does before the database is lost: confirm the payment, and write the newest position of the
    audit log to the journal.
    """
    _run_rounds(lambda: _status(operation) == Status.SUCCEEDED)
    journal.write_database(journal.database_line())


def _start_anew() -> None:
    restore_check.forget_positions()
    pause.clear_pause_cache()


def _run_rounds(is_done: Callable[[], bool]) -> None:
    """Rounds of the sweeper, at least two, until the condition is true or patience ends."""
    deadline, rounds = time.monotonic() + PATIENCE, 0
    while rounds < 2 or (not is_done() and time.monotonic() < deadline):
        for name in ("compare_with_journals", "expire_due", "send_due", "check_due"):
            JOBS[name]()
        for operation in Release.objects.values_list("pk", flat=True):
            send_operation(operation)
        rounds += 1
        time.sleep(0.5)


def _approve(operation: Operation, approver: User) -> None:
    approve_operation(operation.pk, actor=approver, digest=operation.digest, second_factor_at=timezone.now())


def _release(operation: Operation, approver: User) -> None:
    code = str(requests.get(f"{os.environ['DRILL_SANDBOX']}/_sandbox/otp", timeout=10).json()["otp"])
    release_operation(
        operation.pk,
        actor=approver,
        digest=operation.digest,
        second_factor_at=timezone.now(),
        otp=SecretStr(code),
    )


def _resume(preparer: User, approver: User) -> None:
    form = KINDS["resume"].form_type({"reason": "The drill compared it with the provider"})
    if not form.is_valid():
        raise StackError(str(form.errors))
    _approve(prepare_operation(uuid.uuid4(), actor=preparer, kind="resume", payload=form.payload()), approver)


def _status(operation: Operation) -> Status | None:
    stored = Operation.objects.filter(pk=operation.pk).first()
    return Status(stored.status) if stored else None


def _count_sent(amount: Decimal) -> int:
    ledger = requests.get(f"{os.environ['DRILL_SANDBOX']}/_sandbox/ledger", timeout=10).json()
    return sum(Decimal(order["amount"]) == amount for order in ledger["orders"])


if __name__ == "__main__":
    sys.exit(main())
