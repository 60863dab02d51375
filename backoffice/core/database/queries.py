"""Helpers for queries: an aggregate of texts on both engines, batches, and queries that are composed or compiled once.

A query of nearly every page is kept per thread as a QuerySet (`composed_once`) or with its SQL (`CompiledQuery`), since
Django takes longer to write it than the database to run it.
"""

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from copy import copy
from functools import cached_property, wraps
from itertools import islice
from typing import Any, Generic, ParamSpec, TypeVar, cast

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import Aggregate, CharField, Expression, Field, QuerySet

Composed = TypeVar("Composed")
Item = TypeVar("Item")
Row = TypeVar("Row")
Parameters = ParamSpec("Parameters")


class JoinedTexts(Aggregate):
    """The texts of many rows in one, a line each, for `split_texts`; null if there are none. A text must be one line.

    Django has an aggregate for it on both engines from release 6.0 on.
    """

    function = "GROUP_CONCAT"
    template = "%(function)s(%(expressions)s, char(10))"
    output_field = CharField()

    def as_postgresql(self, compiler: Any, connection: Any) -> Any:
        return self.as_sql(
            compiler, connection, function="STRING_AGG", template="%(function)s(%(expressions)s, chr(10))"
        )


def split_texts(joined: str | None) -> frozenset[str]:
    """The texts that `JoinedTexts` joined."""
    return frozenset((joined or "").split("\n")) - {""}


def batched(items: Iterable[Item], size: int) -> Iterator[tuple[Item, ...]]:
    """These items in their order, at most `size` at a time: what one query may name, or one transaction change.

    As `itertools.batched`, which Python has from 3.12 on.
    """
    remaining = iter(items)
    while batch := tuple(islice(remaining, size)):
        yield batch


def composed_once(compose: Callable[Parameters, Composed]) -> Callable[Parameters, Composed]:
    """Keep what this function composes, for each of its positional arguments.

    The arguments are all that it may depend on, settings included, and it must not run the query: callers filter it or
    take `all()`, which copies it. In each thread, since Django changes nested queries while it writes their SQL.
    """
    kept = _Kept()

    @wraps(compose)
    def composed(*arguments: Parameters.args, **named: Parameters.kwargs) -> Composed:
        found = kept.by_arguments
        if arguments not in found:
            found[arguments] = compose(*arguments, **named)
        return cast(Composed, found[arguments])

    return composed


class _Kept(threading.local):
    def __init__(self) -> None:
        self.by_arguments: dict[tuple[Hashable, ...], object] = {}


class Argument(Expression):
    """A value in a `CompiledQuery` that is given by this name when it runs, of the type of this field."""

    output_field: "Field[Any, Any]"

    def __init__(self, name: str, output_field: "Field[Any, Any]") -> None:
        super().__init__(output_field=output_field)
        self.name = name

    def as_sql(self, _compiler: Any, _connection: Any) -> Any:
        return "%s", [self]


class CompiledQuery(Generic[Row]):
    """A query of which Django writes the SQL once: only its `Argument`s change from one run to the next.

    For the few queries of nearly every page. Django takes up to ten milliseconds to write the SQL of one with nested
    queries, and half a millisecond to run it. Keep it with `composed_once`: it belongs to one thread. `rows` is the
    QuerySet, to be filtered further where that is seldom needed.
    """

    def __init__(self, rows: QuerySet[Any, Row]) -> None:
        self.rows = rows

    def first(self, **values: object) -> Row | None:
        """The first row found, or None."""
        return next(iter(self.all(**values)), None)

    def all(self, **values: object) -> list[Row]:
        """All rows. Raises KeyError if an argument has no value."""
        if self._compiled is None:
            return []
        compiler, sql, parameters = self._compiled
        connection = connections[self.rows.db]
        given = tuple(
            parameter.output_field.get_db_prep_value(values[parameter.name], connection)
            if isinstance(parameter, Argument)
            else parameter
            for parameter in parameters
        )
        # A QuerySet asks its query for a compiler, which runs the SQL that it has written and names the columns found.
        ready = copy(compiler)
        ready.connection, ready.as_sql = connection, lambda *_, **__: (sql, given)
        rows: Any = self.rows.all()
        rows.query.get_compiler = lambda *_, **__: ready
        return list(rows)

    @cached_property
    def _compiled(self) -> tuple[Any, str, tuple[Any, ...]] | None:
        """The compiler, what it has written, and the parameters; None if no row can be found, whatever there is."""
        compiler: Any = self.rows.query.get_compiler(using=self.rows.db)
        try:
            sql, parameters = compiler.as_sql()
        except EmptyResultSet:
            return None
        return compiler, sql, tuple(parameters)
