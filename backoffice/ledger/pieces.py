"""Queries put together from pieces: our own texts, with a place for each value that anybody typed."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from django.db import connection

from backoffice.core.pagination import Order


class Sql(NamedTuple):
    """A piece of a query, and the values for its places."""

    text: str
    values: Sequence[Any] = ()


def ordered(order: Order, table: str = "") -> str:
    columns = (f"{table}{name.lstrip('-')} {'DESC' if name.startswith('-') else 'ASC'}" for name in order)
    return f"ORDER BY {', '.join(columns)}"


def select(
    columns: str, source: Sql, where: Iterable[Sql] = (), order: Order = (), limit: int | None = None
) -> Sql:
    """Those rows of the source that meet all conditions, in this order, and no more than so many."""
    condition = all_of(list(where))
    parts = ["SELECT", columns, "FROM", source.text]
    parts += ["WHERE", condition.text] if condition.text else []
    parts += [ordered(order)] if order else []
    parts += [f"LIMIT {limit:d}"] if limit is not None else []
    return Sql(" ".join(parts), [*source.values, *condition.values])


def named(prefix: str, query: Sql, name: str) -> Sql:
    return Sql(f"{prefix} ({query.text}) {name}", query.values)


def cross(left: Sql, right: Sql) -> Sql:
    return Sql(f"{left.text} CROSS JOIN {right.text}", [*left.values, *right.values])


def union(*queries: Sql) -> Sql:
    values = list(chain.from_iterable(query.values for query in queries))
    return Sql(" UNION ALL ".join(f"({query.text})" for query in queries), values)


def all_of(conditions: list[Sql]) -> Sql:
    return Sql(
        " AND ".join(condition.text for condition in conditions),
        list(chain.from_iterable(condition.values for condition in conditions)),
    )


def fetch(query: Sql) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query.text, query.values)
        return list(cursor.fetchall())
