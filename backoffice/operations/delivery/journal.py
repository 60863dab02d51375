"""The journal: what each machine claimed and sent, in files outside the database, one JSON object a line.

Nothing is sent unless its line was written and synced first, so that a database that was restored to an earlier
moment, or a standby that was promoted without the last commits, cannot hide what was sent
(`delivery.restore_check` compares). Most lines also name the database, the newest entry of its audit log and the
first one, by which the journals of this installation are known whatever they are called. A journal holds neither
secrets nor recipients, nor a digest from which a recipient could be guessed.

The journal is the only place outside the database that has the identity of a PostgreSQL database, and SQLite has
none. A second place is not needed: without any journal payments pause (`delivery.acceptance`), and the identity only
shows a restore in which nothing is missing. If the journals were restored together with the database, the
checkpoints of the audit log outside the machine contradict it, which `delivery.restore_check` treats as a restore.
"""

import errno
import json
import logging
import os
import re
import secrets
import socket
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register
from django.db import connection
from django.db.models import Subquery, TextChoices
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from backoffice.audit.destinations import (
    DestinationError,
    FileDestination,
    NotAFileError,
    problem_sentence,
    stored_reason,
)
from backoffice.audit.models import ChainHead, Entry
from backoffice.core import clock
from backoffice.core.fields import normalized_text
from backoffice.operations.models.monitoring import Pause
from backoffice.operations.models.operations import Attempt
from backoffice.operations.models.reason_codes import Blocker
from backoffice.operations.states import Outcome

logger = logging.getLogger(__name__)
Line: TypeAlias = dict[str, Any]
# How much of a file's end a process reads when it starts: 20,000 attempts or more.
NEWEST_BYTES = 16 * 1024 * 1024
HEAD_BYTES = 64 * 1024  # of a file's beginning, which shows whose journal it is
FREE_BYTES = 1024 * 1024  # what the volume must have left, so that a claim is not made in vain
DATABASE, CLAIMED, ANSWERED, REPORTED = "database", "claimed", "answered", "reported"
# What each kind of line must have to be compared: the folder may have other files with this name.
_NEEDED = {
    DATABASE: {"position", "hash"},
    CLAIMED: {"operation", "begun_at", "started_at"},
    ANSWERED: {"operation", "begun_at", "outcome"},
    REPORTED: {"pause", "paused_at", "at", "until", "destinations"},
}


def _check_position(value: Any) -> None:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError


def _check_text(value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError


def _check_ends(value: Any) -> None:
    for journal, end in dict(value).items():
        _check_text(journal)
        _check_position(end)


def _check_texts(value: Any) -> None:
    for text in list(value):
        _check_text(text)


_CHECKS: Mapping[str, Callable[[Any], object]] = {
    "position": _check_position,
    "hash": _check_text,
    "operation": UUID,
    "begun_at": datetime.fromisoformat,
    "started_at": datetime.fromisoformat,
    "at": datetime.fromisoformat,
    "outcome": _check_text,
    "pause": _check_position,
    "paused_at": datetime.fromisoformat,
    "until": _check_ends,
    "destinations": _check_texts,
}

# The system identifier, the timeline and the database. A restored or promoted server begins a new timeline, and
# a database that was created again has another number. The control file names the old timeline for a while.
_IDENTITY = """
    SELECT system_identifier::text || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' ||
           (SELECT oid FROM pg_database WHERE datname = current_database())
    FROM pg_control_system()
"""


class JournalError(Exception):
    """A journal cannot be written, read or found, so nothing may be sent; the blocker and its parameters say why."""

    def __init__(self, blocker: Blocker, **parameters: str) -> None:
        super().__init__(blocker.label.format(**parameters))
        self.blocker = blocker
        self.parameters = parameters


class FileStamp(NamedTuple):
    """Shows whether a file was changed or replaced, without reading it."""

    inode: int
    size: int
    changed_at: int


class FolderProblem(TextChoices):
    """A fault of the journal folder that makes the journal useless. The label is for pages: their readers ask the
    operator.
    """

    MISSING = (
        "missing",
        _("The folder of this journal does not exist, so nothing is sent. Ask the operator to create it."),
    )
    NOT_ACCESSIBLE = (
        "not_accessible",
        _(
            "The folder of this journal cannot be read or cannot be written, so nothing is sent. Ask the operator "
            "to change its permissions."
        ),
    )
    UNREADABLE = (
        "unreadable",
        _(
            "A file in the folder of this journal cannot be read, so nothing is sent. Ask the operator to change its "
            "permissions."
        ),
    )
    BESIDE_DATABASE = (
        "beside_database",
        _(
            "The journal of sent requests is in the database folder: restoring a backup would also reset the journal. "
            "Ask the operator to move the journal."
        ),
    )


_ANOTHER_FOLDER = (
    "set COUNTERSIGN_JOURNAL_DIR to an existing folder on a volume that is not restored with the database"
)
_AT_THE_SHELL = {
    FolderProblem.MISSING: (
        "does not exist, so nothing is sent.",
        "If it is on a volume, mount that. Otherwise create it with mode 700, owned by the user of the processes, or "
        "{another}.",
    ),
    FolderProblem.NOT_ACCESSIBLE: (
        "cannot be read or cannot be written, so nothing is sent.",
        "Give it to the user of the processes with mode 700; with systemd, check ReadWritePaths. Or {another}.",
    ),
    FolderProblem.UNREADABLE: (
        "has a journal that is no file or cannot be read, so nothing is sent.",
        "Give the files *.jsonl in it to the user of the processes, and move away what is no file.",
    ),
    FolderProblem.BESIDE_DATABASE: (
        "is in the database folder: restoring a backup would also reset the journal.",
        "Stop the processes, move the folder with its files, and {another}.",
    ),
}
"""What the operator reads at the shell about the folder, and what to do."""


def folder_problem() -> FolderProblem | None:
    """The fault of the configured folder; None if none is known."""
    folder = settings.JOURNAL_DIR
    if not folder.is_dir():
        return FolderProblem.MISSING
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return FolderProblem.NOT_ACCESSIBLE
    if not all(path.is_file() and os.access(path, os.R_OK) for path in paths()):
        return FolderProblem.UNREADABLE
    if connection.vendor == "sqlite":
        database = Path(str(connection.settings_dict["NAME"])).resolve().parent
        if folder.resolve().is_relative_to(database):
            return FolderProblem.BESIDE_DATABASE
    return None


@register(deploy=True)
def check_folder(**_of_django: Any) -> Iterable[CheckMessage]:
    """Warn of a folder that does not exist, cannot be used, or is restored together with the database."""
    problem = folder_problem()
    if problem is None:
        return []
    fault, remedy = _AT_THE_SHELL[problem]
    hint = remedy.format(another=_ANOTHER_FOLDER)
    return [Warning(f"The journal folder {settings.JOURNAL_DIR} {fault}", hint=hint, id="operations.W001")]


def own_path() -> Path:
    """The journal of this machine for this database."""
    return settings.JOURNAL_DIR / f"{_plain(socket.gethostname())}--{_database_name()}.jsonl"


def is_begun() -> bool:
    """Whether this machine has a journal with at least one line."""
    path = own_path()
    return path.exists() and path.stat().st_size > 0


def paths() -> list[Path]:
    """Every journal in the folder, of any machine and database, in the order of the names. Raises JournalError.

    Without hidden files, which editors leave behind.
    """
    try:
        names = sorted(os.listdir(settings.JOURNAL_DIR))
    except OSError as exc:
        raise unreadable(settings.JOURNAL_DIR, exc) from exc
    return [settings.JOURNAL_DIR / name for name in names if name.endswith(".jsonl") and name[0] != "."]


def stamp_of(path: Path) -> FileStamp:
    """The present state of this file. Raises OSError, also if it is no file: opening a pipe would wait for ever."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise NotAFileError
    return FileStamp(found.st_ino, found.st_size, found.st_mtime_ns)


def unreadable(path: Path, exc: OSError) -> JournalError:
    """The error of a journal, or of its folder, that cannot be read."""
    return JournalError(Blocker.JOURNAL_UNREADABLE, file=path.name, **stored_reason(exc))


def has_our_name(path: Path) -> bool:
    """Whether a machine wrote this journal for a database of this name."""
    return path.name.endswith(f"--{_database_name()}.jsonl")


def machine_of(path: Path) -> str:
    """The host name of the machine that wrote this journal."""
    return path.stem.partition("--")[0]


def identity() -> str:
    """Which database this is: changes when the server is restored, promoted or created anew. SQLite has none."""
    if connection.vendor != "postgresql":
        return connection.vendor
    with connection.cursor() as cursor:
        cursor.execute(_IDENTITY)
        return str(cursor.fetchone()[0])


def database_line() -> Line:
    """Which database this is, and the newest and the first entry of its audit log now."""
    first = Entry.objects.filter(position=1)
    head = ChainHead.objects.filter(pk=1).annotate(origin=Subquery(first.values("hash"))).first()
    return {
        "line": DATABASE,
        "id": secrets.token_hex(8),
        "at": timezone.now().isoformat(),
        "identity": identity(),
        "origin": head.origin if head else None,
        "position": head.position if head else 0,
        "hash": head.hash if head else ChainHead().hash,
    }


def write_database(line: Line) -> None:
    """Append a `database_line`. Raises JournalError."""
    _append(line)


def check_space() -> None:
    """Raises JournalError if the volume is nearly full, so that no claim is made whose line could not be written."""
    try:
        volume = os.statvfs(settings.JOURNAL_DIR)
    except OSError as exc:
        raise unreadable(settings.JOURNAL_DIR, exc) from exc
    if volume.f_bavail * volume.f_frsize < FREE_BYTES:
        raise JournalError(Blocker.JOURNAL_UNWRITABLE, **stored_reason(OSError(errno.ENOSPC, "")))


def write_claimed(attempt: Attempt, database: Line) -> None:
    """Append an attempt whose request begins, with everything needed to recreate it, and the database as it was just
    compared (`database_line`). Raises JournalError.
    """
    operation = attempt.operation
    watermark_time, balance = attempt.watermark_provider_time, attempt.watermark_balance
    content = {
        **_named(attempt),
        "reference": operation.reference,
        "kind": operation.kind,
        "currency": operation.currency,
        "amount": None if operation.amount is None else normalized_text(operation.amount),
        "number": attempt.number,
        "released_by": str(attempt.released_by_id),
        "balance": attempt.balance,
        "started_at": attempt.started_at.isoformat(),
        "deadline_at": attempt.deadline_at.isoformat(),
        "watermark_transaction_id": attempt.watermark_transaction_id,
        "watermark_balance": None if balance is None else str(balance),
        "watermark_provider_time": watermark_time and watermark_time.isoformat(),
        "watermark_seen_ids": attempt.watermark_seen_ids,
    }
    _append({**database, **content, "line": CLAIMED})


def write_answered(attempt: Attempt, outcome: Outcome, transaction_id: str | None) -> None:
    """Append what the response proved. A failure is logged: the response still has to be recorded.

    It begins no file: the first line of a journal names the database.
    """
    if attempt.begun_at is None:
        return  # the journal has no line of it
    try:
        if not is_begun():
            raise JournalError(Blocker.JOURNAL_GONE, file=own_path().name)
        answer = {"outcome": str(outcome), "transaction": transaction_id}
        _append({"line": ANSWERED, "at": timezone.now().isoformat(), **_named(attempt), **answer})
    except JournalError as exc:
        logger.error("The response to attempt %s is missing from the journal: %s", attempt.pk, exc)  # noqa: TRY400


def write_reported(
    pause: Pause, ends: Mapping[str, int], destinations: Iterable[str], database: Line
) -> None:
    """Append what was reported with this pause: up to where in each journal, and the destinations whose checkpoints
    contradict the log. Raises JournalError.

    `database` begins the journal if there is none.
    """
    if not is_begun():
        _append(database)
    _append(
        {
            "line": REPORTED,
            "at": clock.now().isoformat(),
            "pause": pause.pk,
            "paused_at": pause.paused_at.isoformat(),
            "until": dict(ends),
            "destinations": sorted(destinations),
        }
    )


def reports() -> list[Line]:
    """What every journal in the folder reported, however long ago. Raises JournalError.

    A journal that cannot be read counts as having reported nothing.
    """
    mark = f'"line":"{REPORTED}"'.encode()
    found: list[Line] = []
    for path in paths():
        with suppress(OSError):
            stamp_of(path)
            with path.open("rb") as file:
                lines = (_parsed(path, text) for text in file if mark in text)
                found += [line for line in lines if line and line["line"] == REPORTED]
    return found


def _named(attempt: Attempt) -> Line:
    """Identifies an attempt for good: after a restore, its id may be given to another."""
    begun_at = attempt.begun_at or attempt.started_at
    return {
        "attempt": attempt.pk,
        "operation": str(attempt.operation_id),
        "begun_at": begun_at.isoformat(),
    }


def read(path: Path, start: int, limit: int = -1) -> tuple[list[Line], int]:
    """The complete lines from this position on, of at most `limit` bytes, and where they end. Raises OSError.

    A line that cannot be read was cut short while it was written, so nothing was sent for it.
    """
    with path.open("rb") as file:
        file.seek(start)
        data = file.read(limit)
    whole = data[: data.rfind(b"\n") + 1]
    return [line for text in whole.splitlines() if (line := _parsed(path, text))], start + len(whole)


def first_line(path: Path) -> Line:
    """The first line, whose `id` names the journal; empty if there is none. Raises OSError."""
    with path.open("rb") as file:
        return _parsed(path, file.readline(HEAD_BYTES)) or {}


def newest_start(path: Path) -> int:
    """The position from which a newly started process reads this journal. Raises OSError."""
    start = max(0, path.stat().st_size - NEWEST_BYTES)
    if not start:
        return 0
    with path.open("rb") as file:
        file.seek(start)
        return start + len(file.readline())


def _append(line: Line) -> None:
    path = own_path()
    if not path.exists():
        logger.warning("The journal %s is new", path)
    text = json.dumps(line, separators=(",", ":"), ensure_ascii=True)
    try:
        FileDestination(path).append(text.encode())
    except DestinationError as exc:
        logger.error("The journal %s: %s Nothing is sent.", path, problem_sentence(exc.detail))  # noqa: TRY400
        reason = {name: str(exc.detail[name]) for name in ("error", "error_template")}
        raise JournalError(Blocker.JOURNAL_UNWRITABLE, **reason) from exc


def _parsed(path: Path, text: bytes) -> Line | None:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        logger.warning("A line of the journal %s cannot be read: it was cut short", path)
        return None
    if not isinstance(line, dict) or not _NEEDED.get(str(line.get("line")), {""}) <= line.keys():
        return None
    try:
        for name in _CHECKS.keys() & line.keys():
            _CHECKS[name](line[name])
    except (ValueError, TypeError, AttributeError):
        logger.warning("A line of %s is no line of a journal", path)
        return None
    return line


def _database_name() -> str:
    return _plain(Path(str(connection.settings_dict["NAME"])).name)


def _plain(name: str) -> str:
    return re.sub(r"[^\w.]", "_", name, flags=re.ASCII) or "_"
