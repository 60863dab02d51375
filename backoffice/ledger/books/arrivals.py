"""Which of the records that just arrived have to be held against their neighbours.

A run of new records that follow from each other, with no other record between them, is right in itself: no break can
stand in it, and none did. So only its ends are examined, however long it is. Most of what is merged are such runs.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import reduce
from itertools import pairwise
from operator import or_

from django.db.models import Q

from backoffice.ledger.books.chain import Link
from backoffice.ledger.mirrored import Transaction

MOST_BETWEEN = 200
"""Where more records than so many were there before, among the new ones, each of the new ones is examined."""


def touched(arrived: Iterable[tuple[str, Link]], newest_before: int) -> Iterator[tuple[str, datetime]]:
    """Currency and moment of those that have to be examined. One query.

    The links tell the currency, come in the order in which the records were written, and have no ids yet;
    `newest_before` is the highest id that was there before.
    """
    links: dict[str, list[Link]] = defaultdict(list)
    for currency, link in arrived:
        if currency:
            links[currency].append(link)
    for some in links.values():
        some.sort(key=lambda link: link.at)
    others = _among(links, newest_before)
    for currency, some in links.items():
        moments = {link.at for link in some} if others is None else ends_of_runs(some, others[currency])
        for moment in moments:
            yield currency, moment


def ends_of_runs(links: list[Link], others: list[datetime]) -> set[datetime]:
    """The moments at which a run begins or ends, of links in their order; `others` are those of other records."""
    ends = {links[0].at, links[-1].at}
    for one, following in pairwise(links):
        are_apart = bisect_left(others, one.at) < bisect_right(others, following.at)
        if are_apart or one.after is None or one.after != following.before:
            ends |= {one.at, following.at}
    return ends


def _among(links: Mapping[str, list[Link]], newest_before: int) -> Mapping[str, list[datetime]] | None:
    """When the records occurred that were there before, between the first and the last new one; None if too many."""
    places = [
        Q(currency=currency, occurred_at__gte=some[0].at, occurred_at__lte=some[-1].at)
        for currency, some in links.items()
        if len(some) > 1
    ]
    others: dict[str, list[datetime]] = defaultdict(list)
    if places:
        there = Transaction.objects.filter(
            reduce(or_, places), pk__lte=newest_before, missing_since__isnull=True
        )
        found = list(there.order_by().values_list("currency", "occurred_at")[: MOST_BETWEEN + 1])
        if len(found) > MOST_BETWEEN:
            return None
        for currency, at in sorted(found):
            others[currency].append(at)
    return others
