"""Inspects what must always hold, once a minute, whoever asks; the result stands in one row of the database."""

import logging
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F, Q

from backoffice.audit.canonical import GENESIS
from backoffice.audit.verification import ChainVerification, Mark, verify_behind, verify_chain
from backoffice.core import clock
from backoffice.operations.models import Operation
from backoffice.operations.oversight import Inspection
from backoffice.operations.services.invariants import RULES, Rule, Scope
from backoffice.operations.tempo import tempo

logger = logging.getLogger(__name__)

EVERY = timedelta(minutes=1)
LEASE = timedelta(minutes=3)  # so long an inspection may take before another process begins the next
CLOSED_LATELY = timedelta(hours=1)
AT_ONCE = 2000  # operations closed lately, and as many of all, round by round
ENTRIES_AT_ONCE = 20_000
PASSES = 3
KEPT_REFERENCES = 20


@dataclass(frozen=True)
class Finding:
    """One rule, and the references of what breaks it."""

    rule: Rule
    broken: list[str]

    def __str__(self) -> str:
        if not self.broken:
            return f"{self.rule.name}: ok"
        noun = "violation" if len(self.broken) == 1 else "violations"
        more = " …" if len(self.broken) > KEPT_REFERENCES else ""
        return (
            f"{self.rule.name}: {len(self.broken)} {noun}: {', '.join(self.broken[:KEPT_REFERENCES])}{more}"
        )


@dataclass(frozen=True)
class Report:
    """What an inspection found, rule by rule, and how long it took."""

    findings: list[Finding] = field(default_factory=list)
    took: float = 0.0

    @property
    def violations(self) -> dict[str, dict[str, object]]:
        """How many and the first references, for each rule that is broken."""
        return {
            finding.rule.name: {"count": len(finding.broken), "references": finding.broken[:KEPT_REFERENCES]}
            for finding in self.findings
            if finding.broken
        }


def inspect_due() -> int:
    """Inspect if the last inspection began a minute ago and has ended; 1 if this call did it.

    May be called at any time and by several processes: one wins the minute. What takes longer is waited for, so that
    a slow database is not asked by more and more at once; one whose process is gone is followed after the lease.
    """
    now = clock.now()
    turn, is_first = Inspection.objects.get_or_create(pk=1, defaults={"begun_at": now})
    if not is_first:
        is_over = Q(at__gte=F("begun_at")) | Q(begun_at__lte=now - LEASE)
        won = Inspection.objects.filter(is_over, pk=1, begun_at=turn.begun_at, begun_at__lte=now - EVERY)
        if won.update(begun_at=now) != 1:
            return 0
    inspect(full=False)
    return 1


def inspect(*, full: bool) -> Report:
    """Hold the database to every rule, and keep what was found. `full`: all operations and the whole log, however long
    it takes; otherwise what is open, what closed within the hour, the next of all in turn, and the log's new entries.
    """
    began, now = time.monotonic(), clock.now()
    last = Inspection.objects.filter(pk=1).first() or Inspection(pk=1, begun_at=now)
    operations, looked_to = _all(), None
    if not full:
        operations, looked_to = _some(now, last)
    log = verify_chain() if full else verify_behind(_mark(last), at_most=ENTRIES_AT_ONCE)
    scope = Scope(now, operations, log)
    report = Report([_finding(rule, scope) for rule in RULES], time.monotonic() - began)
    _keep(last, report, log, looked_to)
    return report


def _finding(rule: Rule, scope: Scope) -> Finding:
    """What breaks a rule in every one of several passes: what moves between two questions may look broken in one."""
    broken = rule.broken_by(scope)
    for _ in range(PASSES - 1):
        if not broken:
            break
        again = set(rule.broken_by(scope))
        broken = [reference for reference in broken if reference in again]
    return Finding(rule, list(dict.fromkeys(broken)))


def _all() -> list[UUID]:
    return list(Operation.objects.order_by("pk").values_list("pk", flat=True))


def _some(now: datetime, last: Inspection) -> tuple[list[UUID], UUID | None]:
    """The operations of this minute, and where the round through all of them stands afterwards.

    What broke a rule the last time is among them, so that it is told until it is mended.
    """
    pks = Operation.objects.values_list("pk", flat=True)
    suspects = [reference for found in last.violations.values() for reference in found["references"]]
    broken = pks.filter(reference__in=suspects)
    is_open = pks.filter(closed_at__isnull=True)
    lately = pks.filter(closed_at__gte=now - CLOSED_LATELY).order_by("-closed_at")[:AT_ONCE]
    behind = pks.filter(pk__gt=last.looked_to) if last.looked_to else pks
    in_turn = list(behind.order_by("pk")[:AT_ONCE])
    chosen = dict.fromkeys([*broken, *is_open, *lately, *in_turn])
    return list(chosen), in_turn[-1] if len(in_turn) == AT_ONCE else None


def _tempo() -> dict[str, object]:
    found = tempo(clock.now())
    return {
        "countersigned": found.count if found else 0,
        "countersigned_within": found.median if found else None,
    }


def _mark(last: Inspection) -> Mark:
    return Mark(last.log_position, last.log_hash or GENESIS)


def _keep(last: Inspection, report: Report, log: ChainVerification, looked_to: UUID | None) -> None:
    found: dict[str, object] = {
        "at": clock.now(),
        "took": report.took,
        "violations": report.violations,
        "looked_to": looked_to,
        "log_position": log.verified,
        "log_hash": log.newest_hash,
        **_tempo(),
    }
    Inspection.objects.update_or_create(
        pk=1, defaults=found, create_defaults={"begun_at": last.begun_at, **found}
    )
    for finding in report.findings:
        if finding.broken:
            logger.error("What must always hold does not: %s %s", finding.rule.sentence, finding)
