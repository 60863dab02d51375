"""Run the integrity checks once a minute, in whichever process is first, and report the resulting health.

The result is one row of the database. The inspection also stores the median time to approval, which takes too
long to count on a page.
"""

import logging
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import Error, connection
from django.db.models import Count, Exists, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext

from backoffice.accounts.access_report import review_due_after
from backoffice.accounts.models import AccessReview, User
from backoffice.accounts.restrictions import AccountChange, BreakGlassChange
from backoffice.accounts.roles import enrolled_administrators
from backoffice.accounts.setup_links import links_to_pass_on
from backoffice.audit.canonical import GENESIS
from backoffice.audit.checkpoints import overdue_destinations
from backoffice.audit.models import ChainHead
from backoffice.audit.verification import ChainVerification, VerifiedPosition, verify_chain, verify_since
from backoffice.core import clock
from backoffice.core.database.queries import CompiledQuery, composed_once
from backoffice.core.isolation import ignore, is_database_unavailable, run_each_isolated
from backoffice.core.leases import acquire_lease
from backoffice.operations.delivery.release import stop_if_altered
from backoffice.operations.lifecycle.incidents import open_incidents, raise_for_destination
from backoffice.operations.lifecycle.pause import pause_if_altered
from backoffice.operations.models.monitoring import Inspection
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.monitoring.integrity_checks import (
    INTEGRITY_CHECKS,
    InspectionScope,
    IntegrityCheck,
)
from backoffice.operations.states import Status
from backoffice.operations.workflow.bulk_release import items_to_send

MEASURED_PERIOD = timedelta(days=30)
_UNIT = timedelta(microseconds=1)  # the resolution of timestamps in the databases: nothing is rounded


@dataclass(frozen=True)
class ApprovalTime:
    """The median time from preparation to the last approval, over `count` operations."""

    count: int
    median: timedelta

    def __str__(self) -> str:
        """`2 h 5 min`: the two largest units, none below a second."""
        seconds, parts = int(self.median.total_seconds()), []
        for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
            number, seconds = divmod(seconds, size)
            parts += [f"{number} {unit}"] if number else []
        return " ".join(parts[:2]) or gettext("less than a second")


def approval_time(now: datetime) -> ApprovalTime | None:
    """The exact median over `MEASURED_PERIOD`; None if nothing was approved in it.

    Reads every such operation, which takes too long for a page.
    """
    approved = Operation.objects.filter(decided_at__gte=now - MEASURED_PERIOD).exclude(status=Status.REJECTED)
    times = approved.order_by().values_list("prepared_at", "decided_at")
    waits = [(decided - prepared) // _UNIT for prepared, decided in times.iterator() if decided]
    return ApprovalTime(len(waits), statistics.median(waits) * _UNIT) if waits else None


logger = logging.getLogger(__name__)

INSPECTION_INTERVAL = timedelta(minutes=1)
# How long an inspection may take before another process begins the next.
LEASE_DURATION = timedelta(minutes=3)
RECENTLY_CLOSED = timedelta(hours=1)
OPERATIONS_PER_INSPECTION = 2000  # this many recently closed ones, and this many of all in rotation
LOG_ENTRIES_PER_INSPECTION = 20_000
CONFIRMING_PASSES = 3
STORED_REFERENCES = 20


@dataclass(frozen=True)
class IntegrityCheckResult:
    """One rule, and what breaks it: references of operations, or sentences. `error` is the name of the exception by
    which the check failed, which counts as a violation; empty if it was completed.
    """

    check: IntegrityCheck
    broken: list[str]
    error: str = ""

    def __str__(self) -> str:
        if not self.count:
            return f"{self.check.name}: ok"
        noun = "violation" if self.count == 1 else "violations"
        more = " …" if self.count > STORED_REFERENCES else ""
        return f"{self.check.name}: {self.count} {noun}: {', '.join(self.texts[:STORED_REFERENCES])}{more}"

    @property
    def count(self) -> int:
        return len(self.broken) or int(bool(self.error))

    @property
    def texts(self) -> list[str]:
        """All that breaks the rule, for the log and the command."""
        return [*([f"could not be checked ({self.error})"] if self.error else []), *self.broken]

    def stored(self) -> dict[str, object]:
        """Count and first references, and the error if there was one."""
        error = {"error": self.error} if self.error else {}
        return {"count": self.count, "references": self.broken[:STORED_REFERENCES], **error}


@dataclass(frozen=True)
class InspectionReport:
    """What an inspection found, rule by rule, and how long it took in seconds."""

    findings: list[IntegrityCheckResult] = field(default_factory=list)
    took: float = 0.0

    @property
    def violations(self) -> dict[str, dict[str, object]]:
        """Count and first references, for each rule that is broken or could not be checked."""
        return {finding.check.name: finding.stored() for finding in self.findings if finding.count}


def inspect_due() -> int:
    """Inspect if the last inspection began at least a minute ago and has ended; 1 if this call did it.

    May be called at any time by several processes: one gets the lease. While an inspection takes longer, no other
    begins, so that a slow database gets no further load; if its process died, another starts after the lease.
    """
    began = clock.now()
    lease = acquire_lease("inspection", LEASE_DURATION)
    if lease is None:
        return 0
    try:
        inspect(full=False)
    finally:
        lease.release(free_at=began + INSPECTION_INTERVAL)
    return 1


def inspect(*, full: bool) -> InspectionReport:
    """Check every rule and store the result.

    `full` checks all operations and the whole log, however long it takes; otherwise the open ones, those
    closed within the hour, the next ones of all in rotation, and the log's new entries.
    """
    began, now = time.monotonic(), clock.now()
    last = Inspection.objects.filter(pk=1).first() or Inspection(pk=1)
    operations, inspected_to = _all_operations(), None
    if not full:
        operations, inspected_to = _next_operations(now, last)
    log = verify_chain() if full else verify_since(_log_position(last), at_most=LOG_ENTRIES_PER_INSPECTION)
    scope = InspectionScope(now, operations, log)
    report = InspectionReport([_finding(rule, scope) for rule in INTEGRITY_CHECKS], time.monotonic() - began)
    _store(report, log, inspected_to)
    _stop_altered(report)
    _raise_overdue_checkpoints(last.at, now)
    return report


def _stop_altered(report: InspectionReport) -> None:
    """Raise an incident for each operation whose rows were altered, and withdraw its release; the same for a
    pause, which begins again.
    """
    pause_if_altered()
    found = [
        reference for one in report.findings if one.check.name == "altered_record" for reference in one.broken
    ]
    altered = Operation.objects.filter(reference__in=found).values_list("pk", "reference")
    run_each_isolated(stop_if_altered, dict(altered), failed=ignore)


def _raise_overdue_checkpoints(last_inspection: datetime | None, now: datetime) -> None:
    """Raise an incident for each destination that has lacked checkpoints of the audit log for an hour.

    Not in the first inspection after everything was stopped: what was recorded before is only delivered now.
    """
    if last_inspection is None or last_inspection < now - INSPECTION_LATE_AFTER:
        return
    overdue = {destination: destination.address for destination in overdue_destinations(now)}
    run_each_isolated(raise_for_destination, overdue, failed=ignore)


def _finding(rule: IntegrityCheck, scope: InspectionScope) -> IntegrityCheckResult:
    """What breaks a rule in each of several passes, since a concurrent change can look like a violation.

    A pass that fails breaks the rule too: a row that cannot be read must not end the checks of all others.
    """
    broken: list[str] | None = None
    error = ""
    for _ in range(CONFIRMING_PASSES):
        try:
            found = rule.broken_by(scope)
        except Exception as exc:
            # Any exception: the other rules must be checked, and the result be stored.
            if _ends_inspection(exc):
                raise
            logger.exception("The integrity check %s failed", rule.name)
            error = type(exc).__name__
            continue
        if not found:
            return IntegrityCheckResult(rule, [])
        again = set(found)
        broken = found if broken is None else [reference for reference in broken if reference in again]
        if not broken and not error:
            break
    return IntegrityCheckResult(rule, list(dict.fromkeys(broken or [])), error)


def _ends_inspection(exc: Exception) -> bool:
    """Whether the inspection must end: an unavailable database is no violation of a rule, and after an error within a
    transaction nothing more can be read.
    """
    return isinstance(exc, Error) and (connection.in_atomic_block or is_database_unavailable(exc))


def _all_operations() -> list[UUID]:
    return list(Operation.objects.order_by("pk").values_list("pk", flat=True))


def _next_operations(now: datetime, last: Inspection) -> tuple[list[UUID], UUID | None]:
    """The operations to check this minute, and where the rotation through all of them continues.

    Those that broke a rule the last time are included, so that a violation is reported until it is gone.
    """
    pks = Operation.objects.values_list("pk", flat=True)
    suspects = [reference for found in _violations(last) for reference in found.references]
    broken = pks.filter(reference__in=suspects)
    is_open = pks.filter(closed_at__isnull=True)
    recently_closed = pks.filter(closed_at__gte=now - RECENTLY_CLOSED).order_by("-closed_at")[
        :OPERATIONS_PER_INSPECTION
    ]
    remaining = pks.filter(pk__gt=last.inspected_to) if last.inspected_to else pks
    in_turn = list(remaining.order_by("pk")[:OPERATIONS_PER_INSPECTION])
    chosen = dict.fromkeys([*broken, *is_open, *recently_closed, *in_turn])
    return list(chosen), in_turn[-1] if len(in_turn) == OPERATIONS_PER_INSPECTION else None


def _measured_approval_time() -> dict[str, object]:
    try:
        found = approval_time(clock.now())
    except Exception as exc:
        # Any exception: a row that cannot be read must not keep what the checks found from being stored.
        if _ends_inspection(exc):
            raise
        logger.exception("The time to approval could not be measured")
        found = None
    return {
        "approved_count": found.count if found else 0,
        "median_approval_time": found.median if found else None,
    }


def _log_position(last: Inspection) -> VerifiedPosition:
    return VerifiedPosition(last.log_position, last.log_hash or GENESIS)


def _store(report: InspectionReport, log: ChainVerification, inspected_to: UUID | None) -> None:
    found: dict[str, object] = {
        "at": clock.now(),
        "took": report.took,
        "violations": report.violations,
        "inspected_to": inspected_to,
        "log_position": log.verified,
        "log_hash": log.newest_hash,
        **_measured_approval_time(),
    }
    Inspection.objects.update_or_create(pk=1, defaults=found)
    for finding in report.findings:
        if finding.count:
            logger.error(
                "Integrity check failed: %s. Rule: %s Pause payments and follow the runbook.",
                finding,
                finding.check.sentence,
            )


INSPECTION_LATE_AFTER = timedelta(minutes=5)


@dataclass(frozen=True)
class Violation:
    """A rule that is broken, how often, and the first references of the operations, or sentences, that break it.

    `error` is the name of the exception by which its check failed; empty if it was completed.
    """

    rule: str
    sentence: str
    count: int
    references: list[str]
    names_operations: bool
    error: str = ""


@dataclass(frozen=True)
class SystemHealth:
    """The last run of the integrity checks; `at` is None if there was none.

    `approval_time` is the time to approval in the thirty days before it; None if nothing was approved.
    `open_break_glass` counts unacknowledged account changes by one person alone, `open_first_invitations` those of them
    by which the first administrator invited the second, `links_to_pass_on` the one-time links of which a half was not
    passed on. `is_bulk_send_open` is whether operations of a bulk send are still to be sent. `was_anything_sent` is
    False in a new installation, until its first attempt.
    """

    at: datetime | None
    seconds: float
    violations: list[Violation]
    open_incidents: int
    now: datetime
    approval_time: ApprovalTime | None = None
    open_break_glass: int = 0
    open_first_invitations: int = 0
    access_review_due_at: datetime | None = None
    active_administrators: int = 0
    links_to_pass_on: int = 0
    is_bulk_send_open: bool = False
    was_anything_sent: bool = False

    @property
    def is_access_review_overdue(self) -> bool:
        return self.access_review_due_at is not None and self.access_review_due_at < self.now

    @property
    def are_administrators_missing(self) -> bool:
        """Whether nothing is sent because too few administrators are active."""
        return self.active_administrators < settings.ADMINISTRATORS_TO_SEND

    @property
    def is_late(self) -> bool:
        """Whether the last inspection is too old to rely on."""
        return self.at is None or self.at < self.now - INSPECTION_LATE_AFTER

    @property
    def seconds_since(self) -> float:
        """The age of the last inspection in seconds; infinite if there was none."""
        return (self.now - self.at).total_seconds() if self.at else float("inf")


def system_health() -> SystemHealth:
    """The result of the last inspection, in one query if there was one, otherwise in two."""
    last = _last_with_counts().first()
    if last is None:
        # The head of the audit log is a row that always exists.
        counts = _counts()
        found = ChainHead.objects.annotate(**counts).values(*counts).first() or {}
        return SystemHealth(None, 0.0, [], now=timezone.now(), **_counted(found))
    return SystemHealth(
        last.at,
        last.took,
        _violations(last),
        now=timezone.now(),
        approval_time=_stored_approval_time(last),
        **_counted(vars(last)),
    )


@composed_once
def _last_with_counts() -> CompiledQuery[Inspection]:
    return CompiledQuery(Inspection.objects.filter(pk=1).annotate(**_counts()))


def _violations(last: Inspection) -> list[Violation]:
    """The stored violations. What this program did not store is left out: the next inspection replaces it."""
    rules = {rule.name: rule for rule in INTEGRITY_CHECKS}
    found = []
    for name, stored in last.violations.items() if isinstance(last.violations, dict) else ():
        match stored:
            case {"count": int(count), "references": [*references]}:
                found.append(
                    Violation(
                        name,
                        str(rules[name].sentence) if name in rules else name,
                        count,
                        [reference for reference in references if isinstance(reference, str)],
                        name not in rules or rules[name].names_operations,
                        str(stored.get("error", "")),
                    )
                )
    return found


def _counts() -> dict[str, Any]:
    """What the overview counts besides, as columns of another query."""
    return {
        "open_incidents": _count_of(open_incidents()),
        "open_break_glass": _count_of(BreakGlassChange.objects.unacknowledged()),
        "open_first_invitations": _count_of(
            BreakGlassChange.objects.unacknowledged().filter(change=AccountChange.INVITED_ALONE)
        ),
        "active_administrators": _count_of(enrolled_administrators()),
        "links_to_pass_on": _count_of(links_to_pass_on()),
        "is_bulk_send_open": Exists(items_to_send()),
        "was_anything_sent": Exists(Attempt.objects.all()),
        "last_review": Subquery(AccessReview.objects.values("signed_at")[:1]),
        "first_account": Subquery(User.objects.order_by("created_at").values("created_at")[:1]),
    }


def _counted(found: Mapping[str, Any]) -> dict[str, Any]:
    """The members of `SystemHealth` in a row with `_counts`."""
    names = (
        *("open_incidents", "open_break_glass", "open_first_invitations", "active_administrators"),
        *("links_to_pass_on", "is_bulk_send_open", "was_anything_sent"),
    )
    due = review_due_after(found.get("last_review") or found.get("first_account"))
    return {name: found.get(name, 0) for name in names} | {"access_review_due_at": due}


def _count_of(rows: QuerySet[Any]) -> Coalesce:
    """The number of rows, as a column of another query."""
    number = rows.order_by().values(one=Value(1)).annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(number), 0)


def _stored_approval_time(last: Inspection) -> ApprovalTime | None:
    within = last.median_approval_time
    return None if within is None else ApprovalTime(last.approved_count, within)
