"""What the product knows about its own state: the last inspection and the open incidents. Reads only."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from backoffice.operations.oversight import Incident, Inspection
from backoffice.operations.services.invariants import RULES
from backoffice.operations.tempo import Tempo

LATE_AFTER = timedelta(minutes=5)


@dataclass(frozen=True)
class Violation:
    """A rule that is broken, how often, and the first references of what breaks it."""

    rule: str
    sentence: str
    count: int
    references: list[str]


@dataclass(frozen=True)
class Health:
    """The last inspection of what must always hold; `at` is None where there never was one.

    `tempo` is how long countersigning took in the thirty days before it, None where nothing was countersigned.
    """

    at: datetime | None
    took: float
    violations: list[Violation]
    open_incidents: int
    now: datetime
    tempo: Tempo | None = None

    @property
    def is_late(self) -> bool:
        """Whether nobody has looked for so long that nothing can be said."""
        return self.at is None or self.at < self.now - LATE_AFTER

    @property
    def seconds_since(self) -> float:
        """The age of the last inspection; endless if there never was one."""
        return (self.now - self.at).total_seconds() if self.at else float("inf")


def health() -> Health:
    """As the last inspection left it, in one query once there was one."""
    number = open_incidents().order_by().values(one=Value(1)).annotate(number=Count("pk")).values("number")
    last = Inspection.objects.filter(pk=1).annotate(open_incidents=Coalesce(Subquery(number), 0)).first()
    if last is None:
        return Health(None, 0.0, [], open_incidents().count(), timezone.now())
    sentences = {rule.name: rule.sentence for rule in RULES}
    violations = [
        Violation(rule, sentences.get(rule, rule), found["count"], found["references"])
        for rule, found in last.violations.items()
    ]
    return Health(last.at, last.took, violations, last.open_incidents, timezone.now(), _tempo(last))


def _tempo(last: Inspection) -> Tempo | None:
    within = last.countersigned_within
    return None if within is None else Tempo(last.countersigned, within)


def incidents() -> QuerySet[Incident]:
    """Every incident with what it is about, the one before it and who took note of them, the newest first."""
    about = ("operation", "transaction")
    return Incident.objects.select_related(*about, "seen_by", "further_to__seen_by", "followed_by")


def open_incidents() -> QuerySet[Incident]:
    """Those of which nobody has taken note."""
    return incidents().filter(seen_at__isnull=True)
