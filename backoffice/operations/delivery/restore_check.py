"""Detect a database that was restored to an earlier moment, and close what was sent before by matching.

The journals outside the database are compared with it when a process starts, every round of the sweeper and before
each request, in two ways: the database must still have every attempt in them, and it must be the same database
with the same audit log. A finding pauses all payments, deletes every release and raises an incident, in one
commit. Two people resume: only lines written since the incident are compared from then on. If the database is
restored to before the incident, everything is found again.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.destinations import DestinationError
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.core.isolation import ignore, run_each_isolated
from backoffice.operations.delivery import journal
from backoffice.operations.delivery.journal import ANSWERED, CLAIMED, Line
from backoffice.operations.delivery.record import record_from_journal
from backoffice.operations.delivery.release import withdraw_release
from backoffice.operations.errors import DatabaseRestoredError, Refusal
from backoffice.operations.lifecycle import incidents
from backoffice.operations.lifecycle.pause import pause_because_of
from backoffice.operations.lifecycle.transitions import transition
from backoffice.operations.models.monitoring import Incident, LostAttempt
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import IncidentKind, PauseCause
from backoffice.operations.states import Outcome, Status

logger = logging.getLogger(__name__)
Item = TypeVar("Item")
CHUNK = 500
BATCH_SIZE = 100
LISTED = 50  # lost attempts that an incident names; all of them are kept beside it
DATABASE_LINE_EVERY = timedelta(
    minutes=5
)  # how often the newest entry of the audit log is written, if it is new
_NOT_EXECUTED = (Outcome.NOT_SENT, Outcome.OTP_REJECTED)


@dataclass(frozen=True)
class JournalPosition:
    """How far this process has compared one journal, and the newest lines that it compares every time."""

    key: str = ""
    end: int = 0
    newest: Line | None = None  # names the database and its newest audit entry
    claimed: Line | None = None


@dataclass(frozen=True)
class RestoreFinding:
    """What one journal proves and the database does not have."""

    path: Path
    position: JournalPosition
    lost: Sequence[Line]
    missing_entry: int | None
    identities: tuple[str, str]  # as the journal has it, and now


_positions: dict[Path, JournalPosition] = {}


def check_before_send(operation_id: UUID) -> None:
    """Raise DatabaseRestoredError, with payments paused, if the database was restored to an earlier moment; raise it
    also if a journal proves that this operation may have been executed already.
    """
    check_database()
    if LostAttempt.objects.filter(operation=operation_id).exclude(outcome__in=_NOT_EXECUTED).exists():
        raise DatabaseRestoredError(Refusal.SENT_BEFORE_RESTORE)


def check_database() -> None:
    """Raise DatabaseRestoredError, with payments paused, if the database was restored to an earlier moment."""
    if not _is_continuous():
        raise DatabaseRestoredError


def compare_with_journals() -> int:
    """Compare all journals, and recreate lost attempts that could not be recreated before; returns how many were
    found or recreated.
    """
    found = not _is_continuous()
    statuses = (Status.APPROVED, Status.SENDING)
    lost = LostAttempt.objects.filter(attempt=None, operation__status__in=statuses)
    waiting = lost.exclude(outcome__in=_NOT_EXECUTED).values_list("pk", "operation__reference")
    return found + sum(run_each_isolated(_recreate_attempt, dict(waiting[:BATCH_SIZE]), failed=ignore))


def forget_positions() -> None:
    """Read every journal again at the next comparison, as a process that has just started."""
    _positions.clear()


def _is_continuous() -> bool:
    """Whether the database has everything that the journals prove. Otherwise payments are paused now."""
    # Read before the comparison: if the database is restored between the two, either this or the next one finds it.
    now = journal.database_line()
    paths = journal.paths()
    for gone in [path for path in list(_positions) if path not in paths]:
        _positions.pop(gone, None)
    found = [path for path in paths if not _compare(path, now["identity"])]
    for path in found:
        _report(path)
    _write_database(now, is_new=bool(found))
    return not found


def _compare(path: Path, identity: str) -> bool:
    """Whether the lines of this journal agree with the database: the new ones, and the newest of those before."""
    before = _positions.get(path)
    if before is None or path.stat().st_size < before.end:
        return _find(path, identity) is None
    lines, end = journal.read(path, before.end)
    after = _advanced(before, lines, end)
    known = [line for line in (before.newest, before.claimed) if line]
    if _lost(known + lines) or _missing_entry(known + lines) or _other_identity(known + lines, identity):
        return _find(path, identity) is None  # another process may have reported it already
    _positions[path] = after
    return True


def _find(path: Path, identity: str) -> RestoreFinding | None:
    """Compare this journal from the last incident on; None if nothing is missing."""
    key = f"{path.stem}:{journal.first_line(path).get('id', '')}"
    reported = _reported_end(key)
    if reported > path.stat().st_size:
        reported = 0  # the file was cut or replaced: what people have seen is not known
    lines, end = journal.read(path, max(reported, journal.newest_start(path)))
    position = _advanced(JournalPosition(key), lines, end)
    lost, entry, other = _lost(lines), _missing_entry(lines), _other_identity(lines, identity)
    if lost or entry or other:
        lost = _lost(journal.read(path, reported)[0])  # all of them, however long ago
        _positions.pop(path, None)
        return RestoreFinding(path, position, lost, entry, (other or identity, identity))
    _positions[path] = position
    return None


def _advanced(before: JournalPosition, lines: Iterable[Line], end: int) -> JournalPosition:
    newest, claimed = before.newest, before.claimed
    for line in lines:
        newest = line if "position" in line else newest
        claimed = line if line["line"] == CLAIMED else claimed
    return replace(before, end=end, newest=newest, claimed=claimed)


def _reported_end(key: str) -> int:
    """Up to where the newest incident has reported this journal: people accept it when they resume."""
    reported = Incident.objects.filter(kind=IncidentKind.DATABASE_RESTORED, evidence__journal=key)
    ends = reported.values_list("evidence__until", flat=True)
    return max((int(end) for end in ends), default=0)


def _lost(lines: Sequence[Line]) -> list[Line]:
    """The claimed lines whose attempt the database does not have as begun, each with the `answer` that followed."""
    claimed: dict[tuple[str, int, str], Line] = {}
    newest: dict[int, Line] = {}
    for line in lines:
        if line["line"] == CLAIMED:
            newest[line["attempt"]] = line
            claimed[line["operation"], line["number"], line["digest"]] = line
        elif line["line"] == ANSWERED and (of := newest.get(line["attempt"])):
            of["answer"] = line
    for chunk in _chunks(list(claimed)):
        operations = [UUID(operation) for operation, _, _ in chunk]
        stored = Attempt.objects.filter(operation__in=operations, begun_at__isnull=False)
        for operation, number, digest in stored.values_list("operation_id", "number", "digest"):
            claimed.pop((str(operation), number, digest), None)
    return list(claimed.values())


def _missing_entry(lines: Sequence[Line]) -> int | None:
    """The first audit entry that the lines name and the log does not have; None if it has them all."""
    named: dict[int, str] = {line["position"]: line["hash"] for line in lines if line.get("position")}
    for chunk in _chunks(sorted(named)):
        stored = dict(Entry.objects.filter(position__in=chunk).values_list("position", "hash"))
        for position in chunk:
            if stored.get(position) != named[position]:
                return position
    return None


def _other_identity(lines: Sequence[Line], identity: str) -> str | None:
    """The database that the lines name, if it is not this one."""
    return next((line["identity"] for line in lines if line.get("identity", identity) != identity), None)


def _write_database(now: Line, *, is_new: bool) -> None:
    """Keep which database this is, and how far its audit log reaches, in this machine's journal."""
    position = _positions.get(journal.own_path())
    known = position.newest if position else None
    is_due = known is None or (
        known["position"] != now["position"]
        and clock.now() - datetime.fromisoformat(known["at"]) >= DATABASE_LINE_EVERY
    )
    if not is_due:
        return
    try:
        journal.append_database(journal.database_line() if is_new else now)
    except DestinationError as exc:
        logger.error("The journal cannot be written, so nothing is sent: %s", exc)  # noqa: TRY400


@transaction.atomic
def _report(path: Path) -> None:
    """Pause payments, delete every release and raise the incident, in one commit."""
    # Operations before the audit log, as in every service that locks both.
    released = Q(pk__in=Release.objects.values("operation"))
    list(Operation.objects.select_for_update().filter(released).order_by("pk"))
    pause = pause_because_of(PauseCause.DATABASE_RESTORED)
    found = _find(path, journal.identity())
    if found is None:
        return  # another process has just reported it
    for release in Release.objects.select_related("operation").order_by("pk"):
        withdraw_release(release, DatabaseRestoredError())
    incident = incidents.raise_for_pause(pause, evidence=_evidence(found))
    lost = [_lost_attempt(incident, line, journal.machine_of(path)) for line in found.lost]
    LostAttempt.objects.bulk_create(lost, ignore_conflicts=True, batch_size=CHUNK)
    logger.critical(
        "The database was restored to an earlier moment: payments are paused, %s attempts are missing. Journal: %s",
        *(len(found.lost), path),
    )


def _evidence(found: RestoreFinding) -> dict[str, object]:
    before, now = found.identities
    named = [
        {
            "reference": line["reference"],
            "attempt": line["number"],
            "started_at": line["started_at"],
            "currency": line["currency"],
            "amount": line["amount"],
        }
        for line in found.lost[:LISTED]
    ]
    evidence: dict[str, object] = {
        "journal": found.position.key,
        "until": found.position.end,
        "machine": journal.machine_of(found.path),
    }
    if named:
        evidence |= {"lost": named, "lost_count": len(found.lost)}
    if found.missing_entry:
        evidence["log_position"] = found.missing_entry
    if before != now:
        evidence["database"] = f"{before} → {now}"
    return evidence


def _lost_attempt(incident: Incident, line: Line, machine: str) -> LostAttempt:
    answer = line.pop("answer", {})
    return LostAttempt(
        incident=incident,
        operation_id=UUID(line["operation"]),
        number=line["number"],
        started_at=datetime.fromisoformat(line["started_at"]),
        machine=machine,
        line=line,
        outcome=answer.get("outcome", Outcome.OPEN),
        transaction_id=answer.get("transaction") or "",
    )


@transaction.atomic
def _recreate_attempt(lost_id: int) -> bool:
    """Recreate the attempt from the journal and set the operation to `unknown`; no request is made.

    An attempt that still exists and seems not to have begun is marked as begun. Nothing is recreated while another
    attempt at its balance has no transaction.
    """
    found = LostAttempt.objects.filter(pk=lost_id, attempt=None).exclude(outcome__in=_NOT_EXECUTED).first()
    operation = None
    if found:
        with suppress(Operation.DoesNotExist):
            operation = Operation.objects.get_locked(found.operation_id)
    if found is None or operation is None:
        return False
    if operation.status == Status.SENDING:
        return _mark_begun(operation, found)
    if not _can_be_recreated(operation, found):
        return False
    Release.objects.filter(operation=operation).delete()
    attempt = _attempt_of(operation, found)
    LostAttempt.objects.filter(pk=found.pk).update(attempt=attempt)
    transition(operation, Status.SENDING)
    audit.record(
        Action.OPERATION_CLAIMED,
        actor=None,
        target=operation,
        digest=operation.digest,
        attempt=attempt.number,
        journal=found.machine,
    )
    record_from_journal(
        operation, attempt, machine=found.machine, transaction_id=found.transaction_id or None
    )
    return True


def _mark_begun(operation: Operation, found: LostAttempt) -> bool:
    """Mark the attempt as begun: the database has its claim but lost the commit that its request began.

    Otherwise it would be closed as not sent.
    """
    attempt = operation.attempts.filter(closed_at=None, begun_at=None, number=found.number).first()
    if attempt is None:
        return False
    Attempt.objects.filter(pk=attempt.pk).update(begun_at=datetime.fromisoformat(found.line["begun_at"]))
    LostAttempt.objects.filter(pk=found.pk).update(attempt=attempt)
    return True


def _can_be_recreated(operation: Operation, found: LostAttempt) -> bool:
    balance = found.line["balance"]
    return (
        operation.status == Status.APPROVED
        and operation.digest == found.line["digest"]
        and not operation.attempts.filter(closed_at=None).exists()
        and (balance is None or not Attempt.objects.unmatched(balance).exists())
    )


def _attempt_of(operation: Operation, found: LostAttempt) -> Attempt:
    line = found.line
    releaser = User.objects.filter(pk=line["released_by"]).first()
    time = line["watermark_provider_time"]
    is_taken = operation.attempts.filter(number=found.number).exists()
    return Attempt.objects.create(
        operation=operation,
        number=operation.attempts.count() + 1 if is_taken else found.number,
        released_by=releaser or operation.approvals.earliest("approved_at").approver,
        digest=line["digest"],
        balance=line["balance"],
        started_at=found.started_at,
        begin_by=found.started_at,
        begun_at=datetime.fromisoformat(line["begun_at"]),
        deadline_at=datetime.fromisoformat(line["deadline_at"]),
        watermark_transaction_id=line["watermark_transaction_id"],
        watermark_balance=None if line["watermark_balance"] is None else Decimal(line["watermark_balance"]),
        watermark_provider_time=time and datetime.fromisoformat(time),
        watermark_seen_ids=line["watermark_seen_ids"],
    )


def _chunks(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), CHUNK):
        yield items[start : start + CHUNK]
