"""The text of a cell as `cells` writes it, in SQL: so a database can write the whole file.

Each function gets the name of a column and returns an expression over it. Nothing in them takes a parameter.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.db import models

from backoffice.core.fields import ExactDecimalField, MagnitudeField
from backoffice.reports.cells import CELL_BREAKS, FORMULA_BEGINS, FORMULA_SIGNS, SKIPPED_BEFORE_A_FORMULA

# Functions of Python that `snapshot` gives to SQLite, which knows neither time zones nor jsonb nor lookahead.
SQLITE_MOMENT, SQLITE_JSON, SQLITE_TEXT = "cell_moment", "cell_json", "cell_text"

_SUSPICIOUS = ", ".join(str(ord(one)) for one in f"{FORMULA_SIGNS}{CELL_BREAKS}{SKIPPED_BEFORE_A_FORMULA}")

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


def _is_suspicious(text: str, *, first: str, place: str) -> str:
    """Whether there may be a formula in it: nearly every text has none of this."""
    breaks = " OR ".join(f"{place}({text}, '{one}') > 0" for one in CELL_BREAKS)
    return f"{first}({text}) IN ({_SUSPICIOUS}) OR {breaks}"


def _signed(number: str, text: str) -> str:
    return f"CASE WHEN {number} < 0 THEN '''' || {text} ELSE {text} END"


def _flag(column: str) -> str:
    return f"CASE WHEN {column} THEN 'true' WHEN NOT {column} THEN 'false' END"


def _postgresql_text(column: str) -> str:
    suspicious = _is_suspicious(column, first="ascii", place="strpos")
    guarded = f"regexp_replace({column}, '{FORMULA_BEGINS}', '''', 'g')"
    return f"CASE WHEN {suspicious} THEN {guarded} ELSE NULLIF({column}, '') END"


def _postgresql_json(column: str) -> str:
    return _postgresql_text(f"({column}::text)")


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
    suspicious = _is_suspicious(column, first="unicode", place="instr")
    return f"CASE WHEN {suspicious} THEN {SQLITE_TEXT}({column}) ELSE {column} END"


def _sqlite_moment(column: str) -> str:
    return f"{SQLITE_MOMENT}({column})"


def _sqlite_json(column: str) -> str:
    return f"{SQLITE_JSON}({column})"


def _sqlite_day(column: str) -> str:
    """Kept as this text already; as a bare column the driver would make a date of it."""
    return f"CAST({column} AS TEXT)"


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
