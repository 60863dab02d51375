"""`make drill`: restore the database to each moment of a payment, on SQLite and PostgreSQL, and count what is sent.

For each moment: a withdrawal is prepared, approved, released, claimed and answered; the database is backed up at
the moment and restored at the end. Then processes start anew, two people resume, and they approve and release
whatever they are offered. Prints one line of JSON; fails if anything was sent twice, or if payments were not paused
although an attempt was lost.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import django
import psycopg
import requests

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backoffice.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, connections  # noqa: E402
from django.utils import timezone  # noqa: E402
from pydantic import SecretStr  # noqa: E402

from backoffice.accounts.models import User  # noqa: E402
from backoffice.accounts.roles import Role  # noqa: E402
from backoffice.accounts.staff import create_staff  # noqa: E402
from backoffice.operations.delivery import restore_check  # noqa: E402
from backoffice.operations.delivery.release import release_operation  # noqa: E402
from backoffice.operations.delivery.send import send_operation  # noqa: E402
from backoffice.operations.errors import OperationError  # noqa: E402
from backoffice.operations.jobs import JOBS  # noqa: E402
from backoffice.operations.kinds.registry import KINDS  # noqa: E402
from backoffice.operations.kinds.withdrawal import WithdrawalPayload  # noqa: E402
from backoffice.operations.lifecycle import pause  # noqa: E402
from backoffice.operations.models.monitoring import is_paused  # noqa: E402
from backoffice.operations.models.operations import Operation, Release  # noqa: E402
from backoffice.operations.states import Status  # noqa: E402
from backoffice.operations.workflow.approvals import approve_operation  # noqa: E402
from backoffice.operations.workflow.prepare import prepare_operation  # noqa: E402
from tools.processes import Stack, StackError, run_python, temporary_sandbox  # noqa: E402

MOMENTS = ("prepare", "approve", "release", "claim", "answer")
LOSE_AN_ATTEMPT = ("prepare", "approve", "release", "claim")
SERVER = "postgres://postgres@127.0.0.1:5432/postgres"
PATIENCE = 30.0  # seconds, until a payment is closed by matching
RESULT = "drill: "


def main() -> int:
    """Run the drill on each engine, in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m tools.drill", description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgresql"], action="append")
    parser.add_argument("--moment", choices=MOMENTS, action="append")
    parser.add_argument("--server", default=SERVER, help="a PostgreSQL server that may create databases")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    moments = options.moment or list(MOMENTS)
    if options.inside:
        print(RESULT + json.dumps(run_cells(moments)))
        return 0
    began = time.monotonic()
    cells: list[dict[str, Any]] = []
    try:
        for engine in options.engine or ["sqlite", "postgresql"]:
            cells += _run_engine(engine, moments, options.server)
    except (StackError, OSError, psycopg.Error) as exc:
        print(json.dumps({"status": "error", "problem": str(exc)}))
        return 1
    summary = {
        "sent_twice": sum(cell["sent"] > 1 for cell in cells),
        "paused": sum(cell["paused"] for cell in cells),
        "released_dropped": sum(cell["released_dropped"] for cell in cells),
        "closed_by_matching": sum(cell["closed_by_matching"] for cell in cells),
        "cells": cells,
        "seconds": round(time.monotonic() - began, 1),
    }
    print(json.dumps(summary))
    return 0 if is_passed(cells) else 1


def is_passed(cells: list[dict[str, Any]]) -> bool:
    """Nothing was sent twice, and every cell that lost an attempt paused payments and kept no release."""
    return bool(cells) and all(
        cell["sent"] == 1 and (cell["paused"] or cell["moment"] not in LOSE_AN_ATTEMPT) for cell in cells
    )


def _run_engine(engine: str, moments: list[str], server: str) -> list[dict[str, Any]]:
    """The cells of this engine, on a database, a journal and a simulated provider of their own."""
    with tempfile.TemporaryDirectory(prefix="countersign-drill-") as name:
        folder = Path(name)
        for part in ("data", "journal"):
            (folder / part).mkdir()
        with temporary_sandbox(folder, transactions=200) as stack:
            stack.set_sandbox(token_reuse=True, settle_after=0)
            own = _environment(stack, folder)
            if engine == "sqlite":
                return _run_inside(moments, own)
            database = f"countersign_drill_{uuid.uuid4().hex[:8]}"
            with psycopg.connect(server, autocommit=True) as admin:
                admin.execute(f'CREATE DATABASE "{database}"')
                try:
                    address = urlsplit(server)._replace(path=f"/{database}").geturl()
                    return _run_inside(moments, own | {"COUNTERSIGN_DATABASE_URL": address})
                finally:
                    admin.execute(f'DROP DATABASE "{database}" WITH (FORCE)')


def _environment(stack: Stack, folder: Path) -> dict[str, str]:
    return {
        "COUNTERSIGN_DATA_DIR": str(folder / "data"),
        "COUNTERSIGN_JOURNAL_DIR": str(folder / "journal"),
        "COUNTERSIGN_GATEWAY_URL": f"{stack.sandbox}/v2",
        "COUNTERSIGN_GATEWAY_URL_V4": f"{stack.sandbox}/v4",
        "COUNTERSIGN_BROKER_URL": "memory://",
        "COUNTERSIGN_SEND_DEADLINE_SECONDS": "2",
        "DRILL_SANDBOX": stack.sandbox,
    }


def _run_inside(moments: list[str], own: dict[str, str]) -> list[dict[str, Any]]:
    chosen = [part for moment in moments for part in ("--moment", moment)]
    done = run_python("-m", "tools.drill", "--inside", *chosen, own=own)
    results = [line for line in done.stdout.splitlines() if line.startswith(RESULT)]
    if done.returncode or not results:
        raise StackError(f"The drill failed:\n{done.stdout}{done.stderr[-4000:]}")
    cells: list[dict[str, Any]] = json.loads(results[-1].removeprefix(RESULT))
    return cells


# Inside a process with the database


class DatabaseCopy(Protocol):
    """A backup of the database, as an operator makes it."""

    def take(self) -> None: ...

    def restore(self) -> None: ...


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


class BackupAtClaim(dict[str, str]):
    """In place of the fault points: takes the copy when an attempt is claimed and nothing is sent."""

    def __init__(self, take: Callable[[], None]) -> None:
        super().__init__()
        self._take = take

    def get(self, name: str, default: Any = None) -> Any:
        if name == "send.claimed":
            self._take()
        return default


def run_cells(moments: list[str]) -> list[dict[str, Any]]:
    """Run these cells on the configured database."""
    call_command("migrate", verbosity=0)
    preparer = create_staff(email="tunde@drill.example", full_name="Tunde Bello", roles=[Role.PREPARER])
    approver = create_staff(email="amara@drill.example", full_name="Amara Okafor", roles=[Role.APPROVER])
    return [
        run_cell(moment, Decimal(1000 + place), preparer, approver) for place, moment in enumerate(moments)
    ]


def run_cell(moment: str, amount: Decimal, preparer: User, approver: User) -> dict[str, Any]:
    """Send a payment of this amount, restore the database to this moment, and go on."""
    copy = _copy_of_database()
    operation = _sent(moment, amount, preparer, approver, copy)
    connections.close_all()
    copy.restore()
    _start_anew()
    released = Release.objects.exists()
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
        "moment": moment,
        "sent": _count_sent(amount),
        **found,
        "closed_by_matching": status == Status.SUCCEEDED and moment != "answer",
        "status": str(status),
    }


def _copy_of_database() -> DatabaseCopy:
    folder = settings.DATA_DIR
    if connection.vendor == "sqlite":
        return SqliteCopy(Path(str(connection.settings_dict["NAME"])), folder / "backup.sqlite3")
    return PostgresqlDump(os.environ["COUNTERSIGN_DATABASE_URL"], folder / "backup.dump")


def _sent(moment: str, amount: Decimal, preparer: User, approver: User, copy: DatabaseCopy) -> Operation:
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
        "claim": lambda: _send(operation, copy.take if moment == "claim" else lambda: None),
        "answer": lambda: None,
    }
    for name, step in steps.items():
        step()
        if name == moment != "claim":
            copy.take()
    if _count_sent(amount) != 1:
        raise StackError(f"The payment was not sent; its status is {_status(operation)}")
    return operation


def _send(operation: Operation, take: Callable[[], None]) -> None:
    settings.FAULT_POINTS = BackupAtClaim(take)
    send_operation(operation.pk)
    settings.FAULT_POINTS = {}


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
    code = str(requests.get(f"{os.environ['DRILL_SANDBOX']}/_sandbox/otp", timeout=10).json()["totp"])
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
