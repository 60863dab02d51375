"""The journal: what each machine claimed and sent, in files outside the database, one JSON object a line.

Nothing is sent unless its line was written and synced first, so that a database that was restored to an earlier
moment, or a standby that was promoted without the last commits, cannot hide what was sent
(`delivery.restore_check` compares). Each line also names the database and the newest entry of its audit log. A
journal holds neither secrets nor recipients.
"""

import json
import logging
import re
import secrets
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register
from django.db import connection
from django.db.models import TextChoices
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from backoffice.audit.destinations import DestinationError, FileDestination
from backoffice.audit.models import ChainHead
from backoffice.core import clock
from backoffice.core.fields import normalized_text
from backoffice.operations.models.operations import Attempt
from backoffice.operations.states import Outcome

logger = logging.getLogger(__name__)
Line: TypeAlias = dict[str, Any]
NEWEST_BYTES = (
    16 * 1024 * 1024
)  # how much of a file's end a process reads when it starts: 20,000 attempts or more
DATABASE, CLAIMED, ANSWERED = "database", "claimed", "answered"

# The system identifier, the timeline and the database. A restored or promoted server begins a new timeline, and
# a database that was created again has another number. The control file names the old timeline for a while.
_IDENTITY = """
    SELECT system_identifier::text || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' ||
           (SELECT oid FROM pg_database WHERE datname = current_database())
    FROM pg_control_system()
"""


class FolderProblem(TextChoices):
    """A fault of the journal folder that makes the journal useless. The label is shown to people."""

    MISSING = (
        "missing",
        _("The folder of this journal does not exist, so nothing is sent. Ask the operator to create it."),
    )
    BESIDE_DATABASE = (
        "beside_database",
        _(
            "This journal is in the folder of the database, so both may be restored together. "
            "Ask the operator to move it."
        ),
    )


def folder_problem() -> FolderProblem | None:
    """The fault of the configured folder; None if none is known."""
    if not settings.JOURNAL_DIR.is_dir():
        return FolderProblem.MISSING
    if connection.vendor == "sqlite":
        database = Path(str(connection.settings_dict["NAME"])).resolve().parent
        if settings.JOURNAL_DIR.resolve().is_relative_to(database):
            return FolderProblem.BESIDE_DATABASE
    return None


@register(deploy=True)
def check_folder(**_of_django: Any) -> Iterable[CheckMessage]:
    """Warn of a folder that does not exist, or that is restored together with the database."""
    problem = folder_problem()
    if problem is None:
        return []
    hint = "Set COUNTERSIGN_JOURNAL_DIR to an existing folder on a volume that is not restored with the database."
    return [Warning(str(problem.label), hint=hint, id="operations.W001")]


def own_path() -> Path:
    """The journal of this machine for this database."""
    return settings.JOURNAL_DIR / f"{_plain(socket.gethostname())}--{_database_name()}.jsonl"


def paths() -> list[Path]:
    """The journals of this database in the folder, those of other machines and former host names included."""
    return sorted(settings.JOURNAL_DIR.glob(f"*--{_database_name()}.jsonl"))


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


def write_database() -> Line:
    """Append which database this is and the newest entry of its audit log. Raises DestinationError."""
    return _append(DATABASE, database_line())


def database_line() -> Line:
    """Which database this is, and the newest entry of its audit log now."""
    head = ChainHead.objects.filter(pk=1).first() or ChainHead()
    return {
        "id": secrets.token_hex(8),
        "at": clock.now().isoformat(),
        "identity": identity(),
        "position": head.position,
        "hash": head.hash,
    }


def append_database(line: Line) -> None:
    """Append a `database_line` that was read before. Raises DestinationError."""
    _append(DATABASE, line)


def write_claimed(attempt_id: int) -> None:
    """Append an attempt whose request begins, with everything needed to recreate it. Raises DestinationError."""
    if not own_path().exists():
        logger.warning("The journal %s is new: what was sent before cannot be compared with it", own_path())
        write_database()
    attempt = Attempt.objects.select_related("operation").get(pk=attempt_id)
    operation = attempt.operation
    watermark_time, balance = attempt.watermark_provider_time, attempt.watermark_balance
    content = {
        "attempt": attempt_id,
        "operation": str(operation.pk),
        "reference": operation.reference,
        "kind": operation.kind,
        "digest": attempt.digest,
        "currency": operation.currency,
        "amount": None if operation.amount is None else normalized_text(operation.amount),
        "number": attempt.number,
        "released_by": str(attempt.released_by_id),
        "balance": attempt.balance,
        "started_at": attempt.started_at.isoformat(),
        "begun_at": (attempt.begun_at or attempt.started_at).isoformat(),
        "deadline_at": attempt.deadline_at.isoformat(),
        "watermark_transaction_id": attempt.watermark_transaction_id,
        "watermark_balance": None if balance is None else str(balance),
        "watermark_provider_time": watermark_time and watermark_time.isoformat(),
        "watermark_seen_ids": attempt.watermark_seen_ids,
    }
    _append(CLAIMED, {**database_line(), **content})


def write_answered(attempt_id: int, outcome: Outcome, transaction_id: str | None) -> None:
    """Append what the response proved. A failure is logged: the response still has to be recorded."""
    answer = {"attempt": attempt_id, "outcome": str(outcome), "transaction": transaction_id}
    try:
        _append(ANSWERED, {"at": timezone.now().isoformat(), **answer})
    except DestinationError as exc:
        logger.error("The response to attempt %s is missing from the journal: %s", attempt_id, exc)  # noqa: TRY400


def read(path: Path, start: int) -> tuple[list[Line], int]:
    """The complete lines from this position on, and where they end. Raises OSError.

    A line that cannot be read was cut short while it was written, so nothing was sent for it.
    """
    with path.open("rb") as file:
        file.seek(start)
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    return [line for text in whole.splitlines() if (line := _parsed(path, text))], start + len(whole)


def first_line(path: Path) -> Line:
    """The first line, whose `id` names the journal; empty if there is none. Raises OSError."""
    with path.open("rb") as file:
        return _parsed(path, file.readline()) or {}


def newest_start(path: Path) -> int:
    """The position from which a newly started process reads this journal. Raises OSError."""
    start = max(0, path.stat().st_size - NEWEST_BYTES)
    if not start:
        return 0
    with path.open("rb") as file:
        file.seek(start)
        return start + len(file.readline())


def _append(kind: str, content: Mapping[str, Any]) -> Line:
    line = {"line": kind, **content}
    text = json.dumps(line, separators=(",", ":"), ensure_ascii=True)
    FileDestination(own_path()).append(text.encode())
    return line


def _parsed(path: Path, text: bytes) -> Line | None:
    try:
        line = json.loads(text)
    except ValueError:
        logger.warning("A line of the journal %s cannot be read: it was cut short", path)
        return None
    return line if isinstance(line, dict) else None


def _database_name() -> str:
    return _plain(Path(str(connection.settings_dict["NAME"])).name)


def _plain(name: str) -> str:
    return re.sub(r"[^\w.]", "_", name, flags=re.ASCII) or "_"
