"""What two people accepted: a restored database that was reported, or a machine without a journal.

Everything that is reported is also written to the journal, with the pause. It counts as accepted once this pause was
ended by a resumption with its seals. Rows of incidents are not trusted: whoever has the database can insert them, and
could hide lines of the journal by them.

On a machine without a journal, nothing shows what the database lacks. If requests were ever sent, payments pause, and
only their resumption lets this machine begin a journal, once.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction

from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations.delivery import journal
from backoffice.operations.delivery.journal import Line
from backoffice.operations.lifecycle import incidents
from backoffice.operations.lifecycle.pause import pause_because_of, pauses_with_logged_id, was_resumed
from backoffice.operations.models.monitoring import Pause
from backoffice.operations.models.operations import Attempt
from backoffice.operations.models.reason_codes import IncidentKind, PauseCause

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reported:
    """Up to where each journal was reported, and the destinations whose checkpoints were."""

    ends: Mapping[str, int] = field(default_factory=dict)
    destinations: frozenset[str] = frozenset()

    def __or__(self, other: "Reported") -> "Reported":
        ends = {key: max(self.ends.get(key, 0), other.ends.get(key, 0)) for key in {*self.ends, *other.ends}}
        return Reported(ends, self.destinations | other.destinations)


def accepted_reports() -> Reported:
    """What the journals reported with a pause that two people ended, or that is in effect. Raises JournalError."""
    lines = journal.reports()
    named = Pause.objects.select_related("ended_by").in_bulk({line["pause"] for line in lines})
    accepted = Reported()
    for line in lines:
        pause = named.get(line["pause"])
        if pause and _covers(pause, line):
            accepted |= Reported(line["until"], frozenset(line["destinations"]))
    return accepted


def _covers(pause: Pause, line: Line) -> bool:
    """Whether this pause is that of the line, whose number may be given to another one after a restore; and if it was
    ended, by a resumption that was proposed after the report.
    """
    is_same = pause.paused_at == datetime.fromisoformat(line["paused_at"])
    return is_same and (pause.ended_at is None or is_accepted_since(pause, line["at"]))


def is_accepted_since(pause: Pause, moment: str) -> bool:
    """Whether two people ended this pause with a resumption that was proposed after this moment."""
    resumption = pause.ended_by
    return bool(resumption and resumption.prepared_at > datetime.fromisoformat(moment) and was_resumed(pause))


def reported_during(pause: Pause) -> Reported:
    """What the incidents of the pause in effect name, which is not reported a second time during this pause."""
    found = Reported()
    for evidence in pause.incidents.filter(kind=IncidentKind.DATABASE_RESTORED).values_list(
        "evidence", flat=True
    ):
        try:
            ends = {one["journal"]: int(one["until"]) for one in evidence.get("journals", [])}
            found |= Reported(ends, frozenset(evidence.get("destinations", [])))
        except (AttributeError, LookupError, TypeError, ValueError):
            logger.warning("An incident of the pause %s cannot be read; it counts as no report", pause.pk)
    return found


# A machine without a journal


def is_journal_missing() -> bool:
    """Whether this machine, which has no journal, may not begin one: requests were sent, and no two people
    have accepted that their journal is lost.
    """
    return _requests_were_sent() and not _may_begin()


def _requests_were_sent() -> bool:
    claimed = Entry.objects.filter(action=Action.OPERATION_CLAIMED)
    return claimed.exists() or Attempt.objects.filter(begun_at__isnull=False).exists()


def _may_begin() -> bool:
    """Whether two people resumed payments after the last report that this journal is missing, and it was not used
    since.

    The audit log says so, and the resumption has its seals.
    """
    reported = _open_report()
    if reported is None:
        return False
    pause = pauses_with_logged_id(reported.target_id).filter(ended_at__isnull=False).first()
    return pause is not None and is_accepted_since(pause, reported.at.isoformat())


def _open_report() -> Entry | None:
    """The last report that this machine's journal is missing, if it was not used since."""
    reported = _last(
        Action.INCIDENT_RAISED, incident=IncidentKind.JOURNAL_LOST.value, evidence__machine=_machine()
    )
    used = _last(Action.JOURNAL_IN_USE, machine=_machine())
    return None if reported and used and used.position > reported.position else reported


def _last(action: Action, **detail: str) -> Entry | None:
    named = {f"detail__{name}": value for name, value in detail.items()}
    return Entry.objects.filter(action=action, **named).order_by("-position").first()


def _machine() -> str:
    return journal.own_path().stem


@transaction.atomic
def report_missing_journal() -> bool:
    """Pause payments with an incident, once in each pause; False if it was reported, or the journal is there now."""
    pause = pause_because_of(PauseCause.JOURNAL_LOST)
    reported = pause.incidents.filter(kind=IncidentKind.JOURNAL_LOST, evidence__machine=_machine())
    if reported.exists() or journal.is_begun():
        transaction.set_rollback(True)
        return False
    incidents.raise_for_pause(pause, evidence={"machine": _machine()}, kind=IncidentKind.JOURNAL_LOST)
    logger.critical(
        "There is no journal in %s although requests were sent: payments are paused. Bring the journal back before "
        "payments are resumed.",
        journal.own_path().parent,
    )
    return True


def use_journal(database: Line, *, is_missing: bool) -> None:
    """Begin the journal if it is missing; and if that was reported, log that it is in use, so that its next loss is
    reported again. Raises JournalError.
    """
    if not is_missing and _open_report() is None:
        return
    with transaction.atomic():
        audit.lock()  # another process of this machine may do so at the same moment
        if not journal.is_begun():
            journal.write_database(database)
        if _open_report():
            audit.record(Action.JOURNAL_IN_USE, actor=None, target=_machine(), machine=_machine())
