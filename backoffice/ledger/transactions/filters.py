"""Which transactions a list, count or report shows, in which order, and the facets (currency, type, status, direction)
that exist.
"""

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Q, QuerySet

from backoffice.core.web.pagination import Order
from backoffice.ledger.models import Facet, Transaction

FACETS_KEPT_SECONDS = 30.0
"""A process that reads no rows, like one that makes files, meets new ones that late at most."""

_known_facets: tuple[Facet, ...] = ()
_facets_read_at = 0.0


def known_facets() -> tuple[Facet, ...]:
    """All of them, as read lately."""
    global _known_facets, _facets_read_at
    if not _known_facets or time.monotonic() - _facets_read_at > FACETS_KEPT_SECONDS:
        _known_facets, _facets_read_at = tuple(Facet.objects.all()), time.monotonic()
    return _known_facets


def forget_facets() -> None:
    """Read them again when they are next asked for."""
    global _known_facets
    _known_facets = ()


NEWEST_FIRST: Order = ("-occurred_at", "-id")
ORDERS: dict[str, tuple[str, Order]] = {
    "": ("Newest first", NEWEST_FIRST),
    "oldest": ("Oldest first", ("occurred_at", "id")),
    "largest": ("Largest amount first", ("-amount", "-id")),
    "smallest": ("Smallest amount first", ("amount", "id")),
}
MIN_TEXT_LENGTH = 3
"""Fewer characters are in too many names to be looked for, and no index knows them."""
_INDEXED = re.compile(r"[^\W_]{3}|[\W_][^\W_]|[^\W_]{2}[\W_]")
"""The index of names has three letters or digits in a row, the beginnings of words, and their last two."""


def is_searchable(text: str) -> bool:
    """Whether an index knows anything of this part of a name: of `---` none does."""
    return len(text) >= MIN_TEXT_LENGTH and _INDEXED.search(text) is not None


@dataclass(frozen=True)
class TransactionFilter:
    """Which transactions; what is empty or None narrows nothing. `until` is excluded, `most` included.

    `text` is a part of a name or of the business id, or the whole id of a transaction; `counterparty` is a part of the
    name at the other end. Both are of `SHORTEST_TEXT` characters at least.
    """

    since: datetime | None = None
    until: datetime | None = None
    currency: str = ""
    type: str = ""
    status: str = ""
    direction: str = ""
    least: Decimal | None = None
    most: Decimal | None = None
    counterparty: str = ""
    transaction_id: str = ""
    text: str = ""

    @property
    def words(self) -> dict[str, str]:
        """The columns of a facet that are chosen."""
        words = {
            "currency": self.currency,
            "type": self.type,
            "status": self.status,
            "direction": self.direction,
        }
        return {name: word for name, word in words.items() if word}

    @property
    def names_somebody(self) -> bool:
        """Whether it asks for a text in names."""
        return bool(self.counterparty or self.text)

    def facets_of(self, facets: Iterable[Facet]) -> list[int]:
        """The ids of those facets that have all the chosen words."""
        words = self.words.items()
        return [facet.pk for facet in facets if all(getattr(facet, name) == word for name, word in words)]

    def apply(self, transactions: QuerySet[Transaction]) -> QuerySet[Transaction]:
        """The transactions that match all of it: what every other way of finding them must agree with."""
        ranges = {
            "occurred_at__gte": self.since,
            "occurred_at__lt": self.until,
            "amount__gte": self.least,
            "amount__lte": self.most,
            "counterparty__icontains": self.counterparty or None,
            "transaction_id": self.transaction_id or None,
        }
        found = transactions.filter(**{name: value for name, value in ranges.items() if value is not None})
        if self.words:
            found = found.filter(facet__in=Facet.objects.filter(**self.words))
        return found.filter(_text_condition(self.text)) if self.text else found


def _text_condition(text: str) -> Q:
    named = Q(sender__icontains=text) | Q(username__icontains=text) | Q(business_id__icontains=text)
    return named | Q(counterparty__icontains=text) | Q(transaction_id=text)
