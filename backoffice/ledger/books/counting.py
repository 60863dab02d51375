"""How many there are of something in the books, counted no further than anybody has to know."""

from dataclasses import dataclass
from typing import Any, Self

from django.db.models import QuerySet


@dataclass(frozen=True)
class UpTo:
    """So many; or more, where `is_more`."""

    number: int
    is_more: bool = False

    @classmethod
    def of(cls, number: int, most: int) -> Self:
        """Of `number` that were found among no more than one beyond `most`."""
        return cls(min(number, most), is_more=number > most)

    def __str__(self) -> str:
        """`1,234`, or `more than 1,000`."""
        return f"{'more than ' if self.is_more else ''}{self.number:,}"

    def __bool__(self) -> bool:
        return self.number > 0


def count_up_to(most: int, rows: QuerySet[Any]) -> UpTo:
    """How many rows there are. One query, which reads no more than one row beyond `most`."""
    return UpTo.of(rows.order_by()[: most + 1].count(), most)
