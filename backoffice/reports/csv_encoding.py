"""Rows as CSV: RFC 4180 in UTF-8, and no cell that a spreadsheet would run as a formula."""

import csv
import io
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from django.utils import timezone

CHUNK_CHARACTERS = 32_768
# Spreadsheets run a cell that begins with one of these, in their full width too.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_SKIPPED_BEFORE_A_FORMULA = " \u00a0\u200b\u3000\ufeff"


@dataclass(frozen=True)
class Chunk:
    """Some bytes of the file, and how many rows end in them."""

    content: bytes
    rows: int


def encode(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Generator[Chunk, None, None]:
    """The header and the rows in chunks. Takes a row from `rows` only when it is needed; holds one chunk."""
    buffer, waiting = io.StringIO(newline=""), 0
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([cell(value) for value in row])
        waiting += 1
        if buffer.tell() >= CHUNK_CHARACTERS:
            yield _drained(buffer, waiting)
            waiting = 0
    yield _drained(buffer, waiting)


def cell(value: object) -> str:
    """The value as the text of one cell: times in the current
    time zone, which ISO 8601 names, amounts without grouping or exponent."""
    match value:
        case None:
            text = ""
        case datetime():
            text = timezone.localtime(value).isoformat()
        case date():
            text = value.isoformat()
        case Decimal():
            text = format(value, "f")
        case _:
            text = str(value)
    return without_formula(text)


def without_formula(text: str) -> str:
    """The text, behind an apostrophe where a spreadsheet would otherwise run it as a formula."""
    if text.startswith(_FORMULA_STARTS) or text.lstrip(_SKIPPED_BEFORE_A_FORMULA).startswith(_FORMULA_STARTS):
        return f"'{text}"
    return text


def _drained(buffer: io.StringIO, rows: int) -> Chunk:
    content = buffer.getvalue().encode("utf-8", "replace")
    buffer.seek(0)
    buffer.truncate()
    return Chunk(content, rows)
