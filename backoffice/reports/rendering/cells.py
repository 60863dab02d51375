"""Convert one value to the text of a cell, in Python and as an SQL expression with the same result.

Text that a spreadsheet would run as a formula gets an apostrophe.
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
_TIME_TEXT_LENGTH = len("2026-03-01T10:30:00.000250+01:00")


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
    return value.astimezone(zone).isoformat(timespec="microseconds")[:_TIME_TEXT_LENGTH]


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
    (type(None), lambda _none: ""),
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


def sql_cell(vendor: str, field: Field, column: str) -> str:
    """The cell of this column, of the type of this field, as an expression on this engine.

    Raises TypeError for an unsupported field type.
    """
    table = _ON_SQLITE if vendor == "sqlite" else _ON_POSTGRESQL
    for kind in type(field).__mro__:
        if kind in table:
            return table[kind].format(column)
    raise TypeError(f"No SQL expression formats a column of type {type(field).__name__}")


def _guarded_text(text: str, guarded: str, plain: str, *, code_function: str, position_function: str) -> str:
    """The guard is expensive, and a cheap test of the text is false for nearly every one."""
    breaks = " OR ".join(f"{position_function}({text}, '{one}') > 0" for one in CELL_BREAKS)
    return f"CASE WHEN {code_function}({text}) IN ({_SUSPICIOUS_CODES}) OR {breaks} THEN {guarded} ELSE {plain} END"


def _postgresql_text(text: str) -> str:
    guarded = f"regexp_replace({text}, '{FORMULA_BEGINS}', '''', 'g')"
    return _guarded_text(
        text, guarded, f"NULLIF({text}, '')", code_function="ascii", position_function="strpos"
    )


def _guarded_number(is_negative: str, text: str) -> str:
    return f"CASE WHEN {is_negative} THEN '''' || {text} ELSE {text} END"


_FLAG = "CASE WHEN {0} THEN 'true' WHEN NOT {0} THEN 'false' END"
# Expressions over a column, whose name replaces {0}.
_ON_POSTGRESQL: dict[type[Field], str] = {
    models.CharField: _postgresql_text("{0}"),
    models.TextField: _postgresql_text("{0}"),
    models.DateTimeField: "to_char({0}, 'YYYY-MM-DD\"T\"HH24:MI:SS.USTZH:TZM')",  # in the session's time zone
    models.DateField: "to_char({0}, 'YYYY-MM-DD')",
    models.IntegerField: _guarded_number("{0} < 0", "{0}::text"),
    ExactDecimalField: _guarded_number("{0} < 0", "trim_scale({0})::text"),
    models.BooleanField: _FLAG,
    models.DurationField: "trunc(EXTRACT(EPOCH FROM {0}))::bigint::text",
    models.UUIDField: "{0}::text",
    models.JSONField: _postgresql_text("({0}::text)"),
}
_SQLITE_TEXT = _guarded_text(
    "{0}", f"{SQLITE_TEXT}({{0}})", "{0}", code_function="unicode", position_function="instr"
)
_ON_SQLITE: dict[type[Field], str] = {
    models.CharField: _SQLITE_TEXT,
    models.TextField: _SQLITE_TEXT,
    models.DateTimeField: f"{SQLITE_TIME}({{0}})",
    models.DateField: "CAST({0} AS TEXT)",  # stored as this text; for a bare column the driver returns a date
    models.IntegerField: _guarded_number("{0} < 0", "CAST({0} AS TEXT)"),
    ExactDecimalField: _guarded_number("substr({0}, 1, 1) = '-'", "{0}"),  # stored without redundant zeros
    UnsignedDecimalField: (  # stored with leading and trailing zeros
        "CASE WHEN substr(ltrim({0}, '0'), 1, 1) = '.' THEN '0' ELSE '' END"
        " || rtrim(rtrim(ltrim({0}, '0'), '0'), '.')"
    ),
    models.BooleanField: _FLAG,
    models.DurationField: "CAST({0} / 1000000 AS TEXT)",  # stored in microseconds
    models.UUIDField: " || '-' || ".join(  # stored as 32 hexadecimal digits
        f"substr({{0}}, {start}, {length})" for start, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    ),
    models.JSONField: f"{SQLITE_JSON}({{0}})",
}


def quotes_every_cell(columns: int) -> bool:
    """Whether every cell is quoted: an empty line would not be read as a row with one empty cell."""
    return columns == 1
