"""How long it takes until enough people have countersigned. Reads only; the inspection keeps it once a minute."""

import statistics
from dataclasses import dataclass
from datetime import datetime, timedelta

from backoffice.operations.models import Operation
from backoffice.operations.states import Status

LATELY = timedelta(days=30)
_UNIT = timedelta(microseconds=1)  # of the databases: nothing is rounded


@dataclass(frozen=True)
class Tempo:
    """Of so many operations, half took no longer than this from their preparation to the last countersignature."""

    count: int
    median: timedelta

    def __str__(self) -> str:
        """`2 h 5 min`: the two largest units, none below a second."""
        seconds, parts = int(self.median.total_seconds()), []
        for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
            number, seconds = divmod(seconds, size)
            parts += [f"{number} {unit}"] if number else []
        return " ".join(parts[:2]) or "less than a second"


def tempo(now: datetime) -> Tempo | None:
    """Of what was countersigned in the last thirty days, exactly; None where nothing was.

    Reads every one of them, which is too much for a page.
    """
    signed = Operation.objects.filter(decided_at__gte=now - LATELY).exclude(status=Status.REJECTED)
    times = signed.order_by().values_list("prepared_at", "decided_at")
    waits = [(decided - prepared) // _UNIT for prepared, decided in times.iterator() if decided]
    return Tempo(len(waits), statistics.median(waits) * _UNIT) if waits else None
