"""The text of a cell as `cells` writes it, in SQL: so a database can write the whole file.

Each function gets the name of a column and returns an expression over it. Nothing in them takes a parameter.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.db import models

from backoffice.core.fields import ExactDecimalField, MagnitudeField
from backoffice.reports.cells import FORMULA_STARTS, SKIPPED_BEFORE_A_FORMULA

# Functions of Python that `snapshot` gives to SQLite, which knows neither time zones nor jsonb.
SQLITE_MOMENT, SQLITE_JSON = "cell_moment", "cell_json"

_EMPTY = 0  # what PostgreSQL's ascii() says of an empty text
_STARTS = ", ".join(str(ord(character)) for character in FORMULA_STARTS)
_SUSPICIOUS = f"{_EMPTY}, {_STARTS}, {', '.join(str(ord(one)) for one in SKIPPED_BEFORE_A_FORMULA)}"

if TYPE_CHECKING:
    Field = models.Field[Any, Any]
else:
    Field = models.Field
Cell = Callable[[str], str]


def cells_for(vendor: str, fields: list[Field]) -> list[Cell]:
    """How each of these columns becomes a cell on this engine. Raises TypeError for a field that nobody foresaw."""
    table = _ON_SQLITE if vendor == "sqlite" else _ON_POSTGRESQL
    return [_cell_for(field, table) for field in fields]


def _cell_for(field: Field, table: dict[type[Field], Cell]) -> Cell:
    for kind in type(field).__mro__:
        if kind in table:
            return table[kind]
    raise TypeError(f"A report cannot tell a column of {type(field).__name__} in SQL")


def _guarded(text: str, first: str) -> str:
    """The text without formula. Nearly every text begins with a harmless character and is looked at once."""
    return (
        f"CASE WHEN {first}({text}) IN ({_SUSPICIOUS}) THEN"
        f" CASE WHEN {first}(ltrim({text}, '{SKIPPED_BEFORE_A_FORMULA}')) IN ({_STARTS})"
        f" THEN '''' || {text} ELSE NULLIF({text}, '') END ELSE {text} END"
    )


def _signed(number: str, text: str) -> str:
    return f"CASE WHEN {number} < 0 THEN '''' || {text} ELSE {text} END"


def _flag(column: str) -> str:
    return f"CASE WHEN {column} THEN 'true' WHEN NOT {column} THEN 'false' END"


def _postgresql_text(column: str) -> str:
    return _guarded(column, "ascii")


def _postgresql_json(column: str) -> str:
    return _guarded(f"{column}::text", "ascii")


def _postgresql_moment(column: str) -> str:
    """In the time zone of the session."""
    return f"to_char({column}, 'YYYY-MM-DD\"T\"HH24:MI:SS.USTZH:TZM')"


def _postgresql_day(column: str) -> str:
    return f"to_char({column}, 'YYYY-MM-DD')"


def _postgresql_decimal(column: str) -> str:
    return _signed(column, f"trim_scale({column})::text")


def _postgresql_integer(column: str) -> str:
    return _signed(column, f"{column}::text")


def _postgresql_seconds(column: str) -> str:
    return f"trunc(EXTRACT(EPOCH FROM {column}))::bigint::text"


def _postgresql_id(column: str) -> str:
    return f"{column}::text"


def _sqlite_text(column: str) -> str:
    return _guarded(column, "unicode")


def _sqlite_moment(column: str) -> str:
    return f"{SQLITE_MOMENT}({column})"


def _sqlite_json(column: str) -> str:
    return f"{SQLITE_JSON}({column})"


def _sqlite_day(column: str) -> str:
    return column


def _sqlite_decimal(column: str) -> str:
    """Kept as text that is already the shortest."""
    return f"CASE WHEN substr({column}, 1, 1) = '-' THEN '''' || {column} ELSE {column} END"


def _sqlite_magnitude(column: str) -> str:
    """Kept with zeros before and behind."""
    short = f"ltrim({column}, '0')"
    return f"CASE WHEN substr({short}, 1, 1) = '.' THEN '0' ELSE '' END || rtrim(rtrim({short}, '0'), '.')"


def _sqlite_integer(column: str) -> str:
    return _signed(column, f"CAST({column} AS TEXT)")


def _sqlite_seconds(column: str) -> str:
    """Told in microseconds."""
    return f"CAST({column} / 1000000 AS TEXT)"


def _sqlite_id(column: str) -> str:
    """Kept as 32 digits."""
    ends = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    return " || '-' || ".join(f"substr({column}, {start}, {length})" for start, length in ends)


_ON_POSTGRESQL: dict[type[Field], Cell] = {
    models.CharField: _postgresql_text,
    models.TextField: _postgresql_text,
    models.DateTimeField: _postgresql_moment,
    models.DateField: _postgresql_day,
    models.IntegerField: _postgresql_integer,
    ExactDecimalField: _postgresql_decimal,
    models.BooleanField: _flag,
    models.DurationField: _postgresql_seconds,
    models.UUIDField: _postgresql_id,
    models.JSONField: _postgresql_json,
}
_ON_SQLITE: dict[type[Field], Cell] = {
    models.CharField: _sqlite_text,
    models.TextField: _sqlite_text,
    models.DateTimeField: _sqlite_moment,
    models.DateField: _sqlite_day,
    models.IntegerField: _sqlite_integer,
    ExactDecimalField: _sqlite_decimal,
    MagnitudeField: _sqlite_magnitude,
    models.BooleanField: _flag,
    models.DurationField: _sqlite_seconds,
    models.UUIDField: _sqlite_id,
    models.JSONField: _sqlite_json,
}
