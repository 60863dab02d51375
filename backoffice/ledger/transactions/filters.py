"""Filters and sort orders of the transaction list, and the facets that exist.

A facet is a combination of currency, type, status and direction.
"""

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from backoffice.core.web.formatting import searched_amount
from backoffice.core.web.pagination import Order
from backoffice.ledger.models import Facet, Transaction

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

FACETS_KEPT_SECONDS = 30.0
"""A process that never reads rows, such as an export worker, learns of new facets after this time at most."""

_known_facets: tuple[Facet, ...] = ()
_facets_read_at = 0.0


def known_facets() -> tuple[Facet, ...]:
    """All facets, cached in the process for `FACETS_KEPT_SECONDS`."""
    global _known_facets, _facets_read_at
    if not _known_facets or time.monotonic() - _facets_read_at > FACETS_KEPT_SECONDS:
        _known_facets, _facets_read_at = tuple(Facet.objects.all()), time.monotonic()
    return _known_facets


def forget_facets() -> None:
    """Clear the cache of facets."""
    global _known_facets
    _known_facets = ()


NEWEST_FIRST: Order = ("-occurred_at", "-id")
ORDERS: dict[str, tuple["StrOrPromise", Order]] = {
    "": (_("Newest first"), NEWEST_FIRST),
    "oldest": (_("Oldest first"), ("occurred_at", "id")),
    "largest": (_("Largest amount first"), ("-amount", "-id")),
    "smallest": (_("Smallest amount first"), ("amount", "id")),
}
MIN_TEXT_LENGTH = 3
"""Shorter texts match too many names, and no trigram index covers them."""
_INDEXED = re.compile(r"[^\W_]{3}|[\W_][^\W_]|[^\W_]{2}[\W_]")
"""What the index of names contains: three letters or digits in a row, word starts and word ends."""


def is_searchable(text: str) -> bool:
    """Whether the index of names can find this text: it cannot find `---`, for example."""
    return len(text) >= MIN_TEXT_LENGTH and _INDEXED.search(text) is not None


@dataclass(frozen=True)
class TransactionFilter:
    """The criteria of a transaction list; an empty or None field does not restrict.

    `until` is exclusive, `max_amount` inclusive.

    `text` is part of a name or of the business id, a whole transaction id, or an amount; `counterparty` is part
    of the counterparty's name. Both have at least `MIN_TEXT_LENGTH` characters.
    """

    since: datetime | None = None
    until: datetime | None = None
    currency: str = ""
    type: str = ""
    status: str = ""
    direction: str = ""
    min_amount: Decimal | None = None
    max_amount: Decimal | None = None
    counterparty: str = ""
    transaction_id: str = ""
    text: str = ""

    @property
    def facet_values(self) -> dict[str, str]:
        """The facet columns that are restricted, with their values."""
        values = {
            "currency": self.currency,
            "type": self.type,
            "status": self.status,
            "direction": self.direction,
        }
        return {name: value for name, value in values.items() if value}

    @property
    def text_amount(self) -> Decimal | None:
        """The text as an amount, if it is one that can be stored."""
        return searched_amount(self.text)

    @property
    def searches_names(self) -> bool:
        """Whether it searches for text in names."""
        return bool(self.counterparty or self.text)

    def matching_facets(self, facets: Iterable[Facet]) -> list[int]:
        """The ids of the facets with all the chosen values."""
        required = self.facet_values.items()
        return [
            facet.pk for facet in facets if all(getattr(facet, name) == value for name, value in required)
        ]

    def apply(self, transactions: QuerySet[Transaction]) -> QuerySet[Transaction]:
        """Filter with the ORM.

        This is the reference: every other way to find transactions must return the same rows.
        """
        ranges = {
            "occurred_at__gte": self.since,
            "occurred_at__lt": self.until,
            "amount__gte": self.min_amount,
            "amount__lte": self.max_amount,
            "counterparty__icontains": self.counterparty or None,
            "transaction_id": self.transaction_id or None,
        }
        found = transactions.filter(**{name: value for name, value in ranges.items() if value is not None})
        if self.facet_values:
            found = found.filter(facet__in=Facet.objects.filter(**self.facet_values))
        return found.filter(_text_condition(self.text, self.text_amount)) if self.text else found


def _text_condition(text: str, amount: Decimal | None) -> Q:
    named = Q(sender__icontains=text) | Q(username__icontains=text) | Q(business_id__icontains=text)
    named |= Q(counterparty__icontains=text) | Q(transaction_id=text)
    return named if amount is None else named | Q(amount=amount)
