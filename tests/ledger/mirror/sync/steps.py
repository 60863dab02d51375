"""Steps of a sync, and the mirror's state after it."""

from dataclasses import replace
from datetime import timedelta

from django.utils import timezone

from backoffice.core import clock
from backoffice.ledger.mirror import sync
from backoffice.ledger.mirror.state import MirrorState, mirror_state
from backoffice.ledger.models import Mirror, Transaction

MINUTE = timedelta(minutes=1.01)
HOUR = timedelta(hours=1.01)
DAY = timedelta(days=1.01)


def load() -> list[int]:
    """Read the whole list; the pages that stood in the mirror's own row at each step."""
    steps: list[int] = []
    sync.load_all(lambda mirror: steps.append(mirror.pass_page))
    return steps


def sync_after(after: timedelta) -> None:
    """Somebody comes by so much later, again and again until nothing is due."""
    with clock.use_clock(lambda: timezone.now() + after):
        turns = sum(1 for _ in iter(sync.sync_if_due, 0) if not Mirror.objects.get().error)
    assert turns < 20, "there is always something due"


def state(after: timedelta = timedelta()) -> MirrorState:
    return replace(mirror_state(), now=timezone.now() + after)


def here() -> set[str]:
    return set(Transaction.objects.values_list("transaction_id", flat=True))
