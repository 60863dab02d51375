"""A stored report as one SELECT of texts, on this engine."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from backoffice.reports.csv_encoding import quotes_everything
from backoffice.reports.report import StoredReport
from backoffice.reports.sql_cells import cells_for
from backoffice.reports.wanted import Wanted

_ROWS_AT_ONCE = 500


@dataclass(frozen=True)
class Select:
    """A statement whose every column is text, and its parameters."""

    sql: str
    parameters: tuple[Any, ...]


def select_of(wanted: Wanted, report: StoredReport[Any], connection: BaseDatabaseWrapper) -> Select | None:
    """The rows that are wanted, each cell as it stands in the file; None where no row can match.

    The query of the report stands inside, told by Django; around it each of its columns becomes text.
    """
    query = _narrowed(wanted, report)
    names = list(query.query.annotation_select)
    fields = [query.query.annotations[name].output_field for name in names]
    try:
        inner, parameters = query.query.get_compiler(connection=connection).as_sql()
    except EmptyResultSet:
        return None
    quoted = [connection.ops.quote_name(name) for name in names]
    cells = [cell(name) for cell, name in zip(cells_for(connection.vendor, fields), quoted, strict=True)]
    if quotes_everything(len(cells)):
        cells = [f"COALESCE({cells[0]}, '')"]
    told = f"SELECT {', '.join(cells)} FROM ({inner}) AS told"  # noqa: S608 - Django's own SQL, its values parameters
    return Select(told, tuple(parameters))


def texts(select: Select | None, connection: BaseDatabaseWrapper) -> Iterator[tuple[str | None, ...]]:
    """The rows of the statement, some at a time: PostgreSQL keeps the rest, SQLite has not looked for it yet."""
    if select is None:
        return
    cursor = connection.chunked_cursor() if connection.vendor == "postgresql" else connection.cursor()
    with cursor:
        cursor.execute(select.sql, select.parameters)
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            yield from rows


def _narrowed(wanted: Wanted, report: StoredReport[Any]) -> QuerySet[Any]:
    """The query with the chosen columns and nothing else, under names of our own."""
    values = {f"cell_{number}": column.expression for number, column in enumerate(wanted.columns)}
    query = report.query(wanted.user, wanted.form).order_by(*report.order)
    told: QuerySet[Any] = query.annotate(**values).values_list(*values)
    return told
