"""When business happens in Lagos: working days, office hours, and the last working day of a month."""

import calendar
import random
from datetime import date, datetime, timedelta

from payments_gateway.sandbox.clock import LAGOS

_DAYS = 365
_WEEKDAY = (1.0, 1.05, 1.0, 1.0, 1.15, 0.4, 0.15)
_PAYDAY = 2.6
_HOUR = (0.3, 0.1, 0.1, 0.1, 0.1, 0.3, 1, 3, 7, 10, 11, 11, 9, 8, 9, 10, 10, 8, 5, 3, 2, 1.5, 1, 0.6)


def moments(rng: random.Random, count: int, end: datetime) -> list[datetime]:
    """`count` moments of the year before `end`, oldest first."""
    last_day = end.astimezone(LAGOS).date()
    days = [last_day - timedelta(days=back) for back in range(_DAYS, 0, -1)]
    chosen = rng.choices(days, weights=[_weight(day) for day in days], k=count)
    hours = rng.choices(range(24), weights=_HOUR, k=count)
    return sorted(_moment(rng, day, hour) for day, hour in zip(chosen, hours, strict=True))


def is_payday(day: date) -> bool:
    """Whether it is the last working day of its month."""
    last = day.replace(day=calendar.monthrange(day.year, day.month)[1])
    while last.weekday() >= 5:
        last -= timedelta(days=1)
    return day == last


def _weight(day: date) -> float:
    return _PAYDAY if is_payday(day) else _WEEKDAY[day.weekday()]


def _moment(rng: random.Random, day: date, hour: int) -> datetime:
    thousandths = rng.randrange(3_600_000)
    return datetime(day.year, day.month, day.day, hour, tzinfo=LAGOS) + timedelta(milliseconds=thousandths)
