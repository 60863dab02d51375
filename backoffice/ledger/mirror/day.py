"""Once an hour the last day of the list is read again, for what changed in it or turned up late.

It has a place of its own: a pass through the whole list, which may take hours or stand still at a page that cannot be
read, holds it up no more than it holds up that pass.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from backoffice.core import clock
from backoffice.ledger.mirror.lease import Lease
from backoffice.ledger.mirror.merging import merge_rows
from backoffice.ledger.mirror.newest import read_newest
from backoffice.ledger.mirror.steps import Place, steps
from backoffice.ledger.mirrored import Mirror
from payments_gateway import TransactionPage

EVERY = timedelta(hours=1)
BACK = timedelta(hours=25)  # an hour more than a day, for clocks that disagree


def is_due(mirror: Mirror) -> bool:
    """Whether it is under way, or the last one that came to its end began an hour ago.

    The first reading of the whole list begins with the last day, so it stands for one.
    """
    began = mirror.day_at or mirror.pass_begun_at
    return mirror.day_begun_at is not None or (began is not None and began <= clock.now() - EVERY)


def read_on(lease: Lease, *, until: float, tell: Callable[[Mirror], object]) -> None:
    """Read on in it as `steps` does, from its beginning if none is under way. Raises what that raises."""
    mirror = Mirror.objects.get(pk=1)
    place = Place(mirror.day_page, mirror.day_total) if mirror.day_begun_at else Place()
    begun_at = mirror.day_begun_at or clock.now()
    for step in steps(place, lease, until=until, is_enough=_is_older_than(begun_at - BACK)):
        reached: dict[str, Any] = {
            "day_begun_at": begun_at,
            "day_page": step.place.page,
            "day_total": step.place.total,
        }
        if step.is_last:
            reached = {"day_begun_at": None, "day_at": begun_at}
        with transaction.atomic(durable=True):
            lease.prove()
            merge_rows(step.rows)
            Mirror.objects.filter(pk=1).update(**reached)
        tell(Mirror.objects.get(pk=1))
    if place.page == 1:
        read_newest(lease)  # what came before the first page was read is here, so it has to be counted, too


def _is_older_than(moment: datetime) -> Callable[[TransactionPage], bool]:
    """Whether a whole page is: the list is not strictly in order."""

    def is_enough(page: TransactionPage) -> bool:
        times = [record.created_at for record in page.records]
        return bool(times) and all(time is not None and time < moment for time in times)

    return is_enough
