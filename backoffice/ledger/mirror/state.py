"""The state of the mirror: how fresh it is, how far the first load is, what is missing. Read-only."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from backoffice.core.database.queries import CompiledQuery, composed_once
from backoffice.core.web.formatting import with_error_sentence
from backoffice.ledger.models import Mirror, Transaction

LATE_AFTER = timedelta(minutes=5)


@dataclass(frozen=True)
class MirrorState:
    """The state of the sync at one moment. `as_of` is None before the first round.

    Once `is_loaded`, everything that the provider listed at `as_of` is in the mirror. `missing` counts
    mirrored transactions that the provider does not list any more.
    """

    now: datetime
    as_of: datetime | None
    provider_time: datetime | None
    is_loaded: bool
    error: str
    error_at: datetime | None
    rows: int
    missing: int
    provider_count: int | None
    depth: str
    begun_at: datetime | None
    page: int
    pages: int

    @property
    def is_late(self) -> bool:
        """Whether the mirror is more than `LATE_AFTER` behind. A first load has the same time to begin."""
        last_started_at = self.as_of or self.begun_at
        return last_started_at is None or last_started_at < self.now - LATE_AFTER

    @property
    def is_healthy(self) -> bool:
        """Whether there is nothing to report except the time of the last sync."""
        return self.is_loaded and not (self.is_late or self.error or self.difference)

    @property
    def seconds_behind(self) -> float:
        """The age of the mirror's data; infinite before the first round."""
        return (self.now - self.as_of).total_seconds() if self.as_of else float("inf")

    @property
    def difference(self) -> int:
        """The provider's count minus the mirror's rows that are not missing; normally zero."""
        return 0 if self.provider_count is None else self.provider_count - (self.rows - self.missing)

    @property
    def is_loading(self) -> bool:
        """Whether the first load is under way."""
        return not self.is_loaded and self.depth != ""

    @property
    def percent(self) -> int:
        """Progress of the full pass, by pages."""
        return min(100, 100 * (self.page - 1) // self.pages) if self.pages else 0


def synced_until() -> datetime | None:
    """The time up to which the mirror is complete; None before the first load has ended.

    It is the earlier of our clock and the provider's, because record times come from the provider's clock.
    """
    mirror = Mirror.objects.filter(pk=1, loaded_at__isnull=False).first()
    if mirror is None or mirror.as_of is None:
        return None
    return min(mirror.as_of, mirror.provider_time or mirror.as_of)


def mirror_state() -> MirrorState:
    """Read the current state in one query."""
    stored = _mirror_with_missing().first()
    mirror = stored or Mirror()
    return MirrorState(
        now=timezone.now(),
        as_of=mirror.as_of,
        provider_time=mirror.provider_time,
        is_loaded=mirror.loaded_at is not None,
        error=with_error_sentence(mirror.error).get("error", ""),
        error_at=mirror.error_at,
        rows=mirror.rows,
        missing=vars(stored)["missing"] if stored else 0,
        provider_count=mirror.provider_count,
        depth=mirror.pass_depth,
        begun_at=mirror.pass_begun_at,
        page=mirror.pass_page,
        pages=mirror.pass_pages,
    )


@composed_once
def _mirror_with_missing() -> CompiledQuery[Mirror]:
    missing = Transaction.objects.filter(missing_since__isnull=False).order_by().values(one=Value(1))
    number = missing.annotate(number=Count("pk")).values("number")
    return CompiledQuery(Mirror.objects.filter(pk=1).annotate(missing=Coalesce(Subquery(number), 0)))
