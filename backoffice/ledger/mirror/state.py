"""How the mirror stands: how fresh it is, how far a first load has come, and what it lacks. Reads only."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Subquery, Value
from django.db.models.functions import Coalesce

from backoffice.core import clock
from backoffice.ledger.mirrored import Mirror, Transaction

LATE_AFTER = timedelta(minutes=5)


@dataclass(frozen=True)
class MirrorState:
    """The sync at one moment. `as_of` is None until the newest pages were read for the first time.

    Everything that the service listed at `as_of` is here, once the whole list `is_loaded`. `missing` are transactions
    that are here and left its list; `difference` is how many more it counts than are here, usually none.
    """

    now: datetime
    as_of: datetime | None
    service_time: datetime | None
    is_loaded: bool
    problem: str
    problem_at: datetime | None
    rows: int
    missing: int
    listed: int | None
    depth: str
    page: int
    pages: int

    @property
    def is_late(self) -> bool:
        """Whether what happened in the last five minutes is not here, or nothing is."""
        return self.as_of is None or self.as_of < self.now - LATE_AFTER

    @property
    def seconds_behind(self) -> float:
        """The age of what is here; endless before the first round."""
        return (self.now - self.as_of).total_seconds() if self.as_of else float("inf")

    @property
    def difference(self) -> int:
        """How many more transactions the service counted than are here and in its list."""
        return 0 if self.listed is None else self.listed - (self.rows - self.missing)

    @property
    def is_loading(self) -> bool:
        """Whether the first load is under way."""
        return not self.is_loaded and self.depth != ""

    @property
    def percent(self) -> int:
        """How far the pass that is under way has come, by its pages."""
        return min(100, 100 * (self.page - 1) // self.pages) if self.pages else 0


def mirror_state() -> MirrorState:
    """As the sync left it, in one query, and one for the time on PostgreSQL."""
    gone = Transaction.objects.filter(missing_since__isnull=False).order_by().values(one=Value(1))
    number = gone.annotate(number=Count("pk")).values("number")
    stored = Mirror.objects.filter(pk=1).annotate(missing=Coalesce(Subquery(number), 0)).first()
    mirror = stored or Mirror()
    return MirrorState(
        now=clock.now(),
        as_of=mirror.as_of,
        service_time=mirror.service_time,
        is_loaded=mirror.loaded_at is not None,
        problem=mirror.problem,
        problem_at=mirror.problem_at,
        rows=mirror.rows,
        missing=stored.missing if stored else 0,
        listed=mirror.listed,
        depth=mirror.pass_depth,
        page=mirror.pass_page,
        pages=mirror.pass_pages,
    )
