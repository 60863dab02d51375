"""One value as the text of one cell, whichever kind of file it stands in. `sql_cells` says the same in SQL."""

import json
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any

from django.utils import timezone

from backoffice.core.fields import normal_text

FORMULA_SIGNS = "+=@\uff1d\uff0b\uff0d\uff20-"
"""Spreadsheets run a cell that begins with one of these, in their full width too."""
CELL_BREAKS = ";\t\r\n"
"""Where a spreadsheet that takes no comma for an end begins another cell, even between our quotes."""
SKIPPED_BEFORE_A_FORMULA = " \u00a0\u200b\u3000\ufeff"
FORMULA_BEGINS = (
    f"^(?=[{SKIPPED_BEFORE_A_FORMULA}]*[\t\r\n{FORMULA_SIGNS}])"
    f'|(?<=[{CELL_BREAKS}])(?=["{SKIPPED_BEFORE_A_FORMULA}]*[{FORMULA_SIGNS}])'
)
"""The places for an apostrophe, each between two characters. Python and PostgreSQL read it alike."""
_TO_THE_MINUTE_OF_THE_OFFSET = len("2026-03-01T10:30:00.000250+01:00")


def cell(value: object) -> str:
    """The value as text: times in the current time zone, amounts without grouping, exponent or trailing zeros.

    What a spreadsheet would run as a formula stands behind an apostrophe.
    """
    return without_formula(_text(value))


def without_formula(text: str) -> str:
    """The text, with an apostrophe wherever a spreadsheet would otherwise begin to run it as a formula."""
    return re.sub(FORMULA_BEGINS, "'", text)


def moment(value: datetime, zone: tzinfo) -> str:
    """`2026-03-01T10:30:00.000250+01:00`: ISO 8601 in this time zone, always of this length."""
    return value.astimezone(zone).isoformat(timespec="microseconds")[:_TO_THE_MINUTE_OF_THE_OFFSET]


def json_text(value: object) -> str:
    """JSON on one line, members in the order of PostgreSQL's jsonb: short names first, then by the alphabet."""
    return json.dumps(_in_order(value), ensure_ascii=False)


def _text(value: object) -> str:
    write = next((write for kind, write in _WRITTEN if isinstance(value, kind)), str)
    return write(value)


def _in_order(value: Any) -> Any:
    match value:
        case dict():
            names = sorted(value, key=lambda name: (len(name.encode()), name.encode()))
            return {name: _in_order(value[name]) for name in names}
        case list():
            return [_in_order(member) for member in value]
    return value


_WRITTEN: tuple[tuple[type | tuple[type, ...], Callable[[Any], str]], ...] = (
    (str, str),  # the first that fits: a bool is an int as well, and a datetime a date
    (type(None), lambda _nothing: ""),
    (bool, lambda flag: "true" if flag else "false"),
    (datetime, lambda value: moment(value, timezone.get_current_timezone())),
    (date, date.isoformat),
    (timedelta, lambda span: str(int(span.total_seconds()))),
    (Decimal, normal_text),
    ((dict, list), json_text),
)
