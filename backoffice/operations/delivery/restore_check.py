"""Detect a database that was restored to an earlier moment, pause payments, and record the attempts that it lost.

The journals outside the database are compared with it when a worker starts, every round of the sweeper and before
each request, in two ways: the database must still have every attempt in them, and it must be the same database with
the same audit log. Each process compares the newest audit entry that it saw itself, too. A checkpoint outside the
machine whose entry the log does not have is a finding like those of a journal.

A finding pauses all payments, deletes every release and raises one incident, in one commit. Two people resume: only
lines written since the incident are compared from then on (`delivery.acceptance`). If the database is restored to
before the incident, everything is found again. Without any journal nothing can be compared, so payments pause, too.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeAlias
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from backoffice.audit import checkpoints
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.database.queries import batched
from backoffice.core.isolation import ignore, run_each_isolated
from backoffice.operations.delivery import acceptance, journal
from backoffice.operations.delivery.acceptance import Reported
from backoffice.operations.delivery.journal import ANSWERED, CLAIMED, FileStamp, JournalError, Line
from backoffice.operations.delivery.lost_attempts import lost_attempt, recreate_attempt
from backoffice.operations.delivery.release import delete_unchecked_release, withdraw_release
from backoffice.operations.errors import DatabaseRestoredError, JournalLostError
from backoffice.operations.lifecycle import incidents
from backoffice.operations.lifecycle.pause import pause_because_of
from backoffice.operations.models.bulk_releases import BulkRelease
from backoffice.operations.models.monitoring import Incident, LostAttempt, Pause, current_pause, is_paused
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import Blocker, IncidentKind, PauseCause
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import PROVEN_NOT_EXECUTED, Outcome, Status

logger = logging.getLogger(__name__)
Request: TypeAlias = tuple[UUID, datetime]
"""The operation, and when the request began: an attempt's id may be given to another one after a restore."""
CHUNK = 500
BATCH_SIZE = 100
LISTED = 50  # lost attempts that an incident names; all of them are kept beside it
LISTED_MACHINES = 10
# The newest entry of the audit log is written to the journal at most this often, if it is new.
DATABASE_LINE_EVERY = timedelta(seconds=5)


@dataclass(frozen=True)
class JournalPosition:
    """How far this process has compared one journal, and the newest lines that it compares every time."""

    path: Path
    key: str
    is_ours: bool  # written for this installation, whatever its database was called then
    stamp: FileStamp
    end: int
    newest: Line | None = None  # names the database and its newest audit entry
    claimed: Line | None = None

    @property
    def known(self) -> list[Line]:
        """The lines that are compared every time."""
        return [line for line in (self.newest, self.claimed) if line and self.is_ours]


@dataclass(frozen=True)
class SeenDatabase:
    """The database as the last comparison saw it, and the newest incident of a restored database then."""

    line: Line
    incident: int


@dataclass(frozen=True)
class RestoreFinding:
    """What one journal, or this process itself, proves and the database does not have."""

    machine: str
    lost: Sequence[Line]
    missing_entry: int | None
    identity: str | None  # as the journal has it, if it is another one
    position: JournalPosition | None = None  # None: this process saw it itself


@dataclass(frozen=True)
class Findings:
    """Everything that one comparison found."""

    journals: Sequence[RestoreFinding]
    destinations: frozenset[str]  # whose checkpoints contradict the log
    missing_entry: int | None = None  # the first of theirs

    def __bool__(self) -> bool:
        return bool(self.journals or self.destinations)

    @property
    def reported(self) -> Reported:
        """As the journal keeps it."""
        read = [one.position for one in self.journals if one.position]
        return Reported({position.key: position.end for position in read}, self.destinations)


@dataclass
class ProcessMemory:
    """What this process has compared so far, and what it has logged."""

    positions: dict[Path, JournalPosition] = field(default_factory=dict)
    executed: set[UUID] = field(default_factory=set)  # operations with a successful response in a journal
    destinations: frozenset[str] = frozenset()  # whose checkpoints contradict the log, and people accepted it
    is_journal_in_use: bool = False  # the audit log has it, if it was reported as missing before
    seen: SeenDatabase | None = None
    logged: set[str] = field(default_factory=set)
    last_waiting: int = 0  # the lost attempt up to which the last round tried to recreate them


_memory = ProcessMemory()


def check_before_send(operation_id: UUID) -> None:
    """Raise DatabaseRestoredError, with payments paused, if the database was restored to an earlier moment; raise it
    also if a journal proves that this operation may have been executed already. Raises JournalError unless a line
    can be written now, before the release and its one-time code are used up.
    """
    journal.check_space()
    check_database(must_write=True)
    _check_not_lost(operation_id)
    _check_not_executed(operation_id)


def check_before_first_byte(operation_id: UUID) -> Line:
    """Raise as `check_before_send`, also if another process has found the restore since then and reported it.

    Returns the database as it was compared (`journal.database_line`). Raises JournalError if a journal cannot be read.
    """
    compared = check_database()
    _check_not_lost(operation_id)
    _check_not_executed(operation_id)
    return compared


def _check_not_executed(operation_id: UUID) -> None:
    """Raise DatabaseRestoredError if a journal has a successful response to this operation, whatever the database
    says of it now.
    """
    if operation_id in _memory.executed:
        raise DatabaseRestoredError(Refusal.SENT_BEFORE_RESTORE)


def _check_not_lost(operation_id: UUID) -> None:
    """Raise DatabaseRestoredError if the audit log has a lost attempt of this operation.

    The rows of `LostAttempt` do not decide: they have no seal, while a change of the log is detected.
    """
    lost = Entry.objects.filter(
        action=Action.OPERATION_ATTEMPT_LOST,
        target_type=Operation._meta.label_lower,
        target_id=str(operation_id),
    )
    if lost.exists():
        raise DatabaseRestoredError(Refusal.SENT_BEFORE_RESTORE)


def check_database(*, must_write: bool = False) -> Line:
    """Raise DatabaseRestoredError, with payments paused, if the database was restored to an earlier moment, and
    JournalLostError if this machine has no journal by which that would be known.

    Returns the database as it was compared. Raises JournalError if a journal cannot be read; with `must_write` also
    if none can be written.
    """
    # Read before the comparison: if the database is restored between the two, either this or the next one finds it.
    now, before = _seen_now(), _memory.seen
    positions, lines, problem = _read_journals(now.line)
    is_missing = not problem and not any(one.is_ours and one.stamp.size for one in positions)
    if is_missing and acceptance.is_journal_missing():
        _report_missing_journal()
        return check_database(must_write=must_write)
    if before:
        lines.append(before.line)
    is_known = not (_lost(lines) or _missing_entry(lines) or _other_identity(lines, now.line["identity"]))
    ours = [position for position in positions if position.is_ours]
    found = bool(not is_known or _contradicting_destinations()) and _report(ours, before, now.line)
    kept = positions if is_known else [position for position in positions if not position.is_ours]
    _memory.positions = (_memory.positions if is_known else {}) | {one.path: one for one in kept}
    now = now if is_known else _seen_now()
    if before is None or not is_known or now.line["position"] >= before.line["position"]:
        _memory.seen = now
    if problem and not found:
        raise problem
    _write_database(now.line, is_needed=found or must_write, must_write=must_write, is_missing=is_missing)
    if found:
        raise DatabaseRestoredError
    return now.line


def _report_missing_journal() -> None:
    """Pause payments, delete every release, and raise JournalLostError, unless another process has just begun it."""
    _memory.is_journal_in_use = False
    with transaction.atomic():
        _lock_released()
        if acceptance.report_missing_journal():
            _withdraw_releases()
    if not journal.is_begun():
        raise JournalLostError


def _contradicting_destinations() -> dict[str, int]:
    """The destinations whose checkpoints contradict the log and that nobody accepted, each with its missing entry."""
    found = checkpoints.contradicting_destinations()
    if found.keys() <= _memory.destinations:
        return {}
    paused, accepted = is_paused(), acceptance.accepted_reports().destinations
    if not paused:  # else what is accepted as long as the pause lasts is among them
        _memory.destinations |= accepted
    return {address: position for address, position in found.items() if address not in accepted}


def compare_with_journals() -> int:
    """Compare all journals, and recreate lost attempts that could not be recreated before; returns how many were
    found or recreated.
    """
    found = 0
    try:
        check_database()
        _memory.logged.clear()
    except JournalLostError:
        pass  # stays so until two people resume
    except DatabaseRestoredError:
        found += 1
    except JournalError as exc:
        _log_once(str(exc))
    if (pause := current_pause()) and pause.incidents.exists():
        _withdraw_releases()  # one that was committed together with the finding saw no pause
    statuses = (Status.APPROVED, Status.SENDING)
    lost = LostAttempt.objects.maybe_executed().filter(attempt=None, operation__status__in=statuses)
    # In turn: those that cannot be recreated yet must not keep the others waiting.
    in_turn = lost.filter(pk__gt=_memory.last_waiting).order_by("pk")
    waiting = dict(in_turn.values_list("pk", "operation__reference")[:BATCH_SIZE])
    _memory.last_waiting = max(waiting) if len(waiting) == BATCH_SIZE else 0
    return found + sum(run_each_isolated(recreate_attempt, waiting, failed=ignore))


def forget_positions() -> None:
    """Compare anew, as a process that has just started."""
    vars(_memory).update(vars(ProcessMemory()))


def is_continuous() -> bool:
    """Whether the database has everything that the journals and this process prove. Otherwise payments are paused.

    Raises JournalError if a journal cannot be read.
    """
    try:
        check_database()
    except DatabaseRestoredError:
        return False
    return True


def _seen_now() -> SeenDatabase:
    """The database as it is at this moment."""
    reported = Incident.objects.filter(kind=IncidentKind.DATABASE_RESTORED)
    newest = reported.order_by("-pause", "-pk").values_list("pk", flat=True)
    return SeenDatabase(journal.database_line(), newest.first() or 0)


def _read_journals(now: Line) -> tuple[list[JournalPosition], list[Line], JournalError | None]:
    """All journals as they are now, the lines to compare with the database, and why not all could be read."""
    positions, lines = [], []
    stamps, problem = _stamps()
    is_compared = stamps.keys() <= _memory.positions.keys()
    reported = None if is_compared else acceptance.accepted_reports().ends
    for path, stamp in stamps.items():
        before = _memory.positions.get(path)
        if before and before.stamp == stamp:
            positions.append(before)
            lines += before.known
            continue
        try:
            position, new = _advanced(path, stamp, before, now, reported)
        except OSError as exc:
            problem = journal.unreadable(path, exc)
        except JournalError as exc:
            problem = exc
        else:
            positions.append(position)
            _memory.executed |= _executed(new)
            lines += [*(before.known if before else []), *new] if position.is_ours else []
    return positions, lines, problem


def _executed(lines: Iterable[Line]) -> set[UUID]:
    """The operations to which the provider responded that it executed them."""
    answers = (line for line in lines if line["line"] == ANSWERED)
    return {UUID(line["operation"]) for line in answers if line["outcome"] == Outcome.SUCCEEDED}


def _stamps() -> tuple[dict[Path, FileStamp], JournalError | None]:
    """Every journal that can be read, and the problem of one that cannot, or of this machine's if it is gone."""
    stamps, problem, paths = {}, None, journal.paths()
    for path in paths:
        try:
            stamps[path] = journal.stamp_of(path)
        except OSError as exc:
            problem = journal.unreadable(path, exc)
    for path in _memory.positions.keys() - set(paths):
        gone = JournalError(Blocker.JOURNAL_GONE, file=path.name)
        _log_once(str(gone))
        if path == journal.own_path():
            problem = gone  # until it is back, or this process is started anew
        else:
            _memory.positions.pop(path, None)
    return stamps, problem


def _advanced(
    path: Path,
    stamp: FileStamp,
    before: JournalPosition | None,
    now: Line,
    reported: Mapping[str, int] | None,
) -> tuple[JournalPosition, list[Line]]:
    """The position after the lines that are new to this process, and these lines.

    Raises OSError; JournalError if this machine's own journal was replaced while this process ran.
    """
    if not (before and before.end and before.stamp.inode == stamp.inode and before.end <= stamp.size):
        key = f"{path.stem}:{journal.first_line(path).get('id', '')}"
        if before and before.end and before.key != key and path == journal.own_path():
            raise JournalError(Blocker.JOURNAL_GONE, file=path.name)
        end = (acceptance.accepted_reports().ends if reported is None else reported).get(key, 0)
        if end > stamp.size:
            end = 0  # the file was cut or replaced: what people have seen is not known
        start = journal.newest_start(path)
        _memory.executed |= _executed(journal.read(path, start, max(0, end - start))[0])
        before = JournalPosition(path, key, journal.has_our_name(path), stamp, max(end, start))
        if not before.is_ours:
            before = replace(
                before, is_ours=_names_our_log(journal.read(path, 0, journal.HEAD_BYTES)[0], now)
            )
    lines, end = journal.read(path, before.end)
    is_ours = before.is_ours or _names_our_log(lines, now)
    newest, claimed = before.newest, before.claimed
    for line in lines:
        newest = line if "position" in line else newest
        claimed = line if line["line"] == CLAIMED else claimed
    after = replace(before, is_ours=is_ours, stamp=stamp, end=end, newest=newest, claimed=claimed)
    return after, lines


def _names_our_log(lines: Sequence[Line], now: Line) -> bool:
    """Whether one of these lines was written for this installation: its audit log begins with the same entry.

    Lines of earlier releases do not name the first entry; theirs is one of our entries.
    """
    if now["origin"] and any(line.get("origin") == now["origin"] for line in lines):
        return True
    named = {
        line["position"]: line["hash"] for line in lines if line.get("position") and "origin" not in line
    }
    sample = sorted(named)[:CHUNK]
    stored = Entry.objects.filter(position__in=sample).values_list("position", "hash") if sample else ()
    return any(named[position] == hash_ for position, hash_ in stored)


def _lost(lines: Iterable[Line]) -> list[Line]:
    """The claimed lines whose attempt the database does not have as begun."""
    claimed = {_request(line): line for line in lines if line["line"] == CLAIMED}
    for chunk in batched(list(claimed), CHUNK):
        operations = [operation for operation, _ in chunk]
        stored = Attempt.objects.filter(operation__in=operations)
        for operation, begun_at in stored.values_list("operation_id", "begun_at"):
            if begun_at:
                claimed.pop((operation, begun_at), None)
    return list(claimed.values())


def _request(line: Line) -> Request:
    return UUID(line["operation"]), datetime.fromisoformat(line["begun_at"])


def _missing_entry(lines: Iterable[Line]) -> int | None:
    """The first audit entry that the lines name and the log does not have; None if it has them all."""
    named: set[tuple[int, str]] = {(line["position"], line["hash"]) for line in lines if line.get("position")}
    for chunk in batched(sorted(named), CHUNK):
        stored = Entry.objects.filter(position__in=[position for position, _ in chunk])
        missing = set(chunk) - set(stored.values_list("position", "hash"))
        if missing:
            return min(missing)[0]
    return None


def _other_identity(lines: Iterable[Line], identity: str) -> str | None:
    """The database that the lines name, if it is not this one."""
    return next((line["identity"] for line in lines if line.get("identity", identity) != identity), None)


def _write_database(now: Line, *, is_needed: bool, must_write: bool, is_missing: bool) -> None:
    """Keep which database this is, and how far its audit log reaches, in this machine's journal."""
    if is_missing or not _memory.is_journal_in_use:
        acceptance.use_journal(now, is_missing=is_missing)
        _memory.is_journal_in_use = True
    position = _memory.positions.get(journal.own_path())
    known = position.newest if position else None
    is_due = known is None or (
        known["position"] != now["position"]
        and abs(timezone.now() - datetime.fromisoformat(known["at"])) >= DATABASE_LINE_EVERY
    )
    if is_due or is_needed:
        try:
            journal.write_database(now)
        except JournalError:
            if must_write:
                raise  # otherwise it is only logged: nothing is sent without its own line


def _log_once(sentence: str) -> None:
    """Log it at the first round that sees it, not every second."""
    if sentence not in _memory.logged:
        _memory.logged.add(sentence)
        logger.critical("%s", sentence)


@transaction.atomic
def _report(ours: Sequence[JournalPosition], seen: SeenDatabase | None, database: Line) -> bool:
    """Pause payments, delete every release and raise the incident, in one commit; False if another process did so."""
    _lock_released()
    pause = pause_because_of(PauseCause.DATABASE_RESTORED)
    during_pause = acceptance.reported_during(pause)
    found = _find(ours, seen, during_pause)
    if not found:
        if also_here := during_pause.destinations & _contradicting_destinations().keys():
            _write_reported(pause, Reported(destinations=also_here), database)  # another machine raised it
        transaction.set_rollback(True)
        return False
    _withdraw_releases()
    incident = incidents.raise_for_pause(pause, evidence=_evidence(found))
    lost = [lost_attempt(incident, line, one.machine) for one in found.journals for line in one.lost]
    LostAttempt.objects.bulk_create(lost, ignore_conflicts=True, batch_size=CHUNK)
    _log_lost(lost)
    _write_reported(pause, found.reported, database)
    logger.critical(
        "The database was restored to an earlier moment: payments are paused, %s attempts are missing. Found in: %s",
        *(len(lost), ", ".join([*(one.machine for one in found.journals), *found.destinations])),
    )
    return True


def _lock_released() -> None:
    """Operations and bulk releases are locked before the audit log, as in every service that locks both."""
    released = Q(pk__in=Release.objects.values("operation"))
    list(Operation.objects.locked().filter(released).order_by("pk").only("pk"))
    list(BulkRelease.objects.select_for_update(no_key=True).filter(is_pending=True).order_by("pk").only("pk"))


def _write_reported(pause: Pause, reported: Reported, database: Line) -> None:
    """Before the commit: if that fails, the line names a pause that never was, and accepts nothing."""
    try:
        journal.write_reported(pause, reported.ends, reported.destinations, database)
    except JournalError:
        logger.warning("What was reported is missing from the journal, so it will be reported again")


def _log_lost(lost: Sequence[LostAttempt]) -> None:
    """Write to the audit log what is not to be sent again: every attempt that no response proves as not executed."""
    named = Operation.objects.only("reference", "sentence")
    operations = named.in_bulk({one.operation_id for one in lost})
    for one in lost:
        if one.outcome not in PROVEN_NOT_EXECUTED:
            missing = Operation(pk=one.operation_id, reference=one.line["reference"])
            audit.record(
                Action.OPERATION_ATTEMPT_LOST,
                actor=None,
                target=operations.get(one.operation_id, missing),
                attempt=one.number,
                started_at=one.started_at,
                journal=one.machine,
            )


def _withdraw_releases() -> None:
    """Delete every release, also one whose rows cannot be read: it must neither remain nor roll back what was found."""
    for pk in list(Release.objects.order_by("pk").values_list("pk", flat=True)):
        try:
            with transaction.atomic():
                if release := Release.objects.select_related("operation").filter(pk=pk).first():
                    withdraw_release(release, DatabaseRestoredError())
        except Exception as exc:
            # Any exception: the others must be withdrawn. Without a connection the deletion raises as well.
            logger.exception("The release of %s is deleted: it could not be checked", pk)
            delete_unchecked_release(pk, DatabaseRestoredError(), error=type(exc).__name__)
    BulkRelease.objects.filter(is_pending=True).update(is_pending=False)


def _find(ours: Sequence[JournalPosition], seen: SeenDatabase | None, during_pause: Reported) -> Findings:
    """What each journal proves that was not reported, however long ago it was written, what we saw, and which
    checkpoints contradict the log.

    Raises JournalError.
    """
    now, reported = _seen_now(), acceptance.accepted_reports() | during_pause
    identity = now.line["identity"]
    found = []
    for position in ours:
        start = reported.ends.get(position.key, 0)
        try:
            lines, end = journal.read(position.path, 0 if start > position.stamp.size else start)
        except OSError as exc:
            raise journal.unreadable(position.path, exc) from exc
        lost, entry = _with_answers(_lost(lines), lines), _missing_entry(lines)
        other = _other_identity(lines, identity)
        if lost or entry or other:
            at_end = replace(position, end=end)
            found.append(
                RestoreFinding(journal.machine_of(position.path), lost, entry, other, position=at_end)
            )
    if not found and seen and not _was_reported_since(seen):
        entry, other = _missing_entry([seen.line]), _other_identity([seen.line], identity)
        if entry or other:
            found.append(RestoreFinding(journal.machine_of(journal.own_path()), [], entry, other))
    missing = {
        address: position
        for address, position in _contradicting_destinations().items()
        if address not in reported.destinations
    }
    return Findings(found, frozenset(missing), min(missing.values(), default=None))


def _was_reported_since(seen: SeenDatabase) -> bool:
    """Whether a newer incident than the one that this process saw has reported it, whose pause is in effect or was
    ended by two people.
    """
    newer = Incident.objects.filter(kind=IncidentKind.DATABASE_RESTORED, pk__gt=seen.incident)
    pauses = {one.pause for one in newer.select_related("pause__ended_by") if one.pause}
    return any(
        pause.ended_at is None or acceptance.is_accepted_since(pause, seen.line["at"]) for pause in pauses
    )


def _with_answers(lost: Sequence[Line], lines: Iterable[Line]) -> list[Line]:
    answers = {_request(line): line for line in lines if line["line"] == ANSWERED} if lost else {}
    return [{**line, "answer": answers.get(_request(line), {})} for line in lost]


def _evidence(found: Findings) -> dict[str, object]:
    lost = [line for one in found.journals for line in one.lost]
    named = [
        {
            "reference": line["reference"],
            "attempt": line["number"],
            "started_at": line["started_at"],
            "currency": line["currency"],
            "amount": line["amount"],
        }
        for line in lost[:LISTED]
    ]
    machines = sorted({one.machine for one in found.journals})
    evidence: dict[str, object] = {
        "journals": [{"journal": key, "until": end} for key, end in found.reported.ends.items()],
        "machine": ", ".join(machines[:LISTED_MACHINES] + ["…"] * (len(machines) > LISTED_MACHINES)),
    }
    if found.destinations:
        evidence["destinations"] = sorted(found.destinations)
    if named:
        evidence |= {"lost": named, "lost_count": len(lost)}
    missing = [found.missing_entry, *(one.missing_entry for one in found.journals)]
    if entries := [entry for entry in missing if entry]:
        evidence["log_position"] = min(entries)
    if other := next((one.identity for one in found.journals if one.identity), None):
        evidence["database"] = f"{other} → {journal.identity()}"
    return evidence
