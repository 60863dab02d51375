"""Convert one value to the text of a cell, in Python and as an SQL expression with the same result.

Text that a spreadsheet would run as a formula gets an apostrophe. Each SQL function takes a column name and
returns an expression over it, without parameters.
"""

import json
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db import models
from django.utils import timezone

from backoffice.core.fields import ExactDecimalField, UnsignedDecimalField, normalized_text

FORMULA_SIGNS = "+=@\uff1d\uff0b\uff0d\uff20-"
"""Spreadsheets run a cell that begins with one of these, including their full-width forms."""
CELL_BREAKS = ";\t\r\n"
"""Characters at which a spreadsheet that does not split at commas starts another cell, even inside quotes."""
SKIPPED_BEFORE_A_FORMULA = " \u00a0\u200b\u3000\ufeff"
FORMULA_BEGINS = (
    f"^(?=[{SKIPPED_BEFORE_A_FORMULA}]*[\t\r\n{FORMULA_SIGNS}])"
    f'|(?<=[{CELL_BREAKS}])(?=["{SKIPPED_BEFORE_A_FORMULA}]*[{FORMULA_SIGNS}])'
)
"""Zero-width matches where an apostrophe is inserted.

Python and PostgreSQL interpret the pattern in the same way.
"""
_TO_THE_MINUTE_OF_THE_OFFSET = len("2026-03-01T10:30:00.000250+01:00")


def cell_text(value: object) -> str:
    """The value as text: times in the current time zone, amounts without grouping or exponent.

    A text that a spreadsheet would run as a formula is prefixed with an apostrophe.
    """
    return without_formula(_plain_text(value))


def without_formula(text: str) -> str:
    """The text, with an apostrophe wherever a spreadsheet would start a formula."""
    return re.sub(FORMULA_BEGINS, "'", text)


def time_text(value: datetime, zone: tzinfo) -> str:
    """`2026-03-01T10:30:00.000250+01:00`: ISO 8601 in this time zone, with fixed length."""
    return value.astimezone(zone).isoformat(timespec="microseconds")[:_TO_THE_MINUTE_OF_THE_OFFSET]


def json_text(value: object) -> str:
    """JSON on one line, keys in the order of PostgreSQL's jsonb: by length, then by bytes."""
    return json.dumps(_sorted_members(value), ensure_ascii=False)


def _plain_text(value: object) -> str:
    write = next((write for kind, write in _WRITERS if isinstance(value, kind)), str)
    return write(value)


def _sorted_members(value: Any) -> Any:
    match value:
        case dict():
            names = sorted(value, key=lambda name: (len(name.encode()), name.encode()))
            return {name: _sorted_members(value[name]) for name in names}
        case list():
            return [_sorted_members(member) for member in value]
    return value


_WRITERS: tuple[tuple[type | tuple[type, ...], Callable[[Any], str]], ...] = (
    (str, str),  # first match wins: a bool is also an int, and a datetime a date
    (type(None), lambda _nothing: ""),
    (bool, lambda flag: "true" if flag else "false"),
    (datetime, lambda value: time_text(value, timezone.get_current_timezone())),
    (date, date.isoformat),
    (timedelta, lambda span: str(int(span.total_seconds()))),
    (Decimal, normalized_text),
    ((dict, list), json_text),
)


# Python functions that `database` registers on SQLite, which has no time zones, jsonb or lookahead.
SQLITE_TIME, SQLITE_JSON, SQLITE_TEXT = "cell_moment", "cell_json", "cell_text"

_SUSPICIOUS_CODES = ", ".join(
    str(ord(one)) for one in f"{FORMULA_SIGNS}{CELL_BREAKS}{SKIPPED_BEFORE_A_FORMULA}"
)

if TYPE_CHECKING:
    Field = models.Field[Any, Any]
else:
    Field = models.Field
CellExpression = Callable[[str], str]


def cells_for(vendor: str, fields: list[Field]) -> list[CellExpression]:
    """The cell expression for each of these columns on this engine.

    Raises TypeError for an unsupported field type.
    """
    table = _ON_SQLITE if vendor == "sqlite" else _ON_POSTGRESQL
    return [_cell_for(field, table) for field in fields]


def _cell_for(field: Field, table: dict[type[Field], CellExpression]) -> CellExpression:
    for kind in type(field).__mro__:
        if kind in table:
            return table[kind]
    raise TypeError(f"A report cannot tell a column of {type(field).__name__} in SQL")


def _may_hold_formula(text: str, *, first: str, place: str) -> str:
    """Cheap test whether the text may hold a formula; false for nearly every text."""
    breaks = " OR ".join(f"{place}({text}, '{one}') > 0" for one in CELL_BREAKS)
    return f"{first}({text}) IN ({_SUSPICIOUS_CODES}) OR {breaks}"


def _guarded_number(number: str, text: str) -> str:
    return f"CASE WHEN {number} < 0 THEN '''' || {text} ELSE {text} END"


def _flag(column: str) -> str:
    return f"CASE WHEN {column} THEN 'true' WHEN NOT {column} THEN 'false' END"


def _postgresql_text(column: str) -> str:
    suspicious = _may_hold_formula(column, first="ascii", place="strpos")
    guarded = f"regexp_replace({column}, '{FORMULA_BEGINS}', '''', 'g')"
    return f"CASE WHEN {suspicious} THEN {guarded} ELSE NULLIF({column}, '') END"


def _postgresql_json(column: str) -> str:
    return _postgresql_text(f"({column}::text)")


def _postgresql_time(column: str) -> str:
    """In the session's time zone."""
    return f"to_char({column}, 'YYYY-MM-DD\"T\"HH24:MI:SS.USTZH:TZM')"


def _postgresql_day(column: str) -> str:
    return f"to_char({column}, 'YYYY-MM-DD')"


def _postgresql_decimal(column: str) -> str:
    return _guarded_number(column, f"trim_scale({column})::text")


def _postgresql_integer(column: str) -> str:
    return _guarded_number(column, f"{column}::text")


def _postgresql_seconds(column: str) -> str:
    return f"trunc(EXTRACT(EPOCH FROM {column}))::bigint::text"


def _postgresql_id(column: str) -> str:
    return f"{column}::text"


def _sqlite_text(column: str) -> str:
    suspicious = _may_hold_formula(column, first="unicode", place="instr")
    return f"CASE WHEN {suspicious} THEN {SQLITE_TEXT}({column}) ELSE {column} END"


def _sqlite_time(column: str) -> str:
    return f"{SQLITE_TIME}({column})"


def _sqlite_json(column: str) -> str:
    return f"{SQLITE_JSON}({column})"


def _sqlite_day(column: str) -> str:
    """Stored as this text already; for a bare column the driver would return a date."""
    return f"CAST({column} AS TEXT)"


def _sqlite_decimal(column: str) -> str:
    """Stored as text without redundant zeros."""
    return f"CASE WHEN substr({column}, 1, 1) = '-' THEN '''' || {column} ELSE {column} END"


def _sqlite_magnitude(column: str) -> str:
    """Stored with leading and trailing zeros."""
    short = f"ltrim({column}, '0')"
    return f"CASE WHEN substr({short}, 1, 1) = '.' THEN '0' ELSE '' END || rtrim(rtrim({short}, '0'), '.')"


def _sqlite_integer(column: str) -> str:
    return _guarded_number(column, f"CAST({column} AS TEXT)")


def _sqlite_seconds(column: str) -> str:
    """Stored in microseconds."""
    return f"CAST({column} / 1000000 AS TEXT)"


def _sqlite_id(column: str) -> str:
    """Stored as 32 hexadecimal digits."""
    ends = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    return " || '-' || ".join(f"substr({column}, {start}, {length})" for start, length in ends)


_ON_POSTGRESQL: dict[type[Field], CellExpression] = {
    models.CharField: _postgresql_text,
    models.TextField: _postgresql_text,
    models.DateTimeField: _postgresql_time,
    models.DateField: _postgresql_day,
    models.IntegerField: _postgresql_integer,
    ExactDecimalField: _postgresql_decimal,
    models.BooleanField: _flag,
    models.DurationField: _postgresql_seconds,
    models.UUIDField: _postgresql_id,
    models.JSONField: _postgresql_json,
}
_ON_SQLITE: dict[type[Field], CellExpression] = {
    models.CharField: _sqlite_text,
    models.TextField: _sqlite_text,
    models.DateTimeField: _sqlite_time,
    models.DateField: _sqlite_day,
    models.IntegerField: _sqlite_integer,
    ExactDecimalField: _sqlite_decimal,
    UnsignedDecimalField: _sqlite_magnitude,
    models.BooleanField: _flag,
    models.DurationField: _sqlite_seconds,
    models.UUIDField: _sqlite_id,
    models.JSONField: _sqlite_json,
}


def quotes_every_cell(columns: int) -> bool:
    """Whether every cell is quoted: an empty line would not be read as a row with one empty cell."""
    return columns == 1
