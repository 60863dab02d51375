"""Read an uploaded file of payments or recipients, CSV or XLSX, as rows of text.

Within limits of size, rows and columns, which a hostile file cannot exceed.
"""

import csv
import io
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from xml.etree.ElementTree import ParseError, iterparse

from backoffice.operations.models.batches import MAX_CELL, MAX_ROWS, FileProblem

MAX_MEGABYTES = 4
MAX_COLUMNS = 60
LAST_ROW = 1_048_576  # of a sheet in any spreadsheet program
KNOWN_DELIMITERS = ",;\t"  # without a first line that declares another
EXACT_DIGITS = 15  # of a number in a spreadsheet program; it replaces the others by zeros
# Of all parts of a workbook together, unpacked: a file of 5,000 rows has less than a third.
MAX_UNPACKED = 24_000_000
MAX_PARTS = 200
_ZIP_BEGIN = b"PK\x03\x04"
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins with one of them may be run as a formula; our own files put an apostrophe before it."""
_OF_BROKEN_PARTS = (ParseError, KeyError, ValueError, IndexError, TypeError, AttributeError, OSError)
"""What openpyxl raises for the parts of a workbook that are not as they should be."""


class UnreadableFileError(Exception):
    """The file cannot be read. `problem` is a FileProblem with its parameters."""

    def __init__(self, code: FileProblem, **parameters: str | int) -> None:
        super().__init__(code)
        self.problem: dict[str, str | int] = {"code": code.value, **parameters}


class CellDoubt(Enum):
    """Why the text of a cell of a workbook may not be what a person entered."""

    LONG_NUMBER = "long_number"
    DATE = "date"


@dataclass(frozen=True)
class FileRow:
    """One row as texts, and its number as a spreadsheet shows it: the header is row 1. `doubts` are by place."""

    number: int
    cells: tuple[str, ...]
    doubts: Mapping[int, CellDoubt] = field(default_factory=dict)


def read_rows(content: bytes) -> Iterator[FileRow]:
    """The rows of the file, the header first, without empty ones. The header ends with its last name.

    Raises UnreadableFileError; for hidden rows, after the last row.
    """
    if len(content) > MAX_MEGABYTES * 1_000_000:
        raise UnreadableFileError(FileProblem.TOO_LARGE, limit=str(MAX_MEGABYTES))
    rows = _workbook_rows(content) if is_workbook(content) else _csv_rows(content)
    count = 0
    for row in rows:
        if row.number > LAST_ROW:
            raise UnreadableFileError(FileProblem.TOO_MANY_ROWS, limit=MAX_ROWS)
        if not any(row.cells):
            continue
        _check_size(row)
        count += 1
        if count > MAX_ROWS + 1:
            raise UnreadableFileError(FileProblem.TOO_MANY_ROWS, limit=MAX_ROWS)
        yield row if count > 1 else replace(row, cells=_without_empty_end(row.cells))


def is_workbook(content: bytes) -> bool:
    return content.startswith(_ZIP_BEGIN)


def check_name(name: str, content: bytes) -> None:
    """Raises UnreadableFileError if the ending of the name is not that of what the content begins like."""
    if not name.lower().endswith(".xlsx" if is_workbook(content) else ".csv"):
        raise UnreadableFileError(FileProblem.NAME_OF_ANOTHER)


def read_header(content: bytes) -> list[str]:
    """The names of the columns. Raises UnreadableFileError, also if there is no row below them."""
    rows = read_rows(content)
    header = next(rows, None)
    names = [name for name in header.cells if name] if header else []
    if not names or len(set(names)) != len(names):
        raise UnreadableFileError(FileProblem.NO_HEADER)
    if next(rows, None) is None:
        raise UnreadableFileError(FileProblem.NO_ROWS)
    return names


def _check_size(row: FileRow) -> None:
    if len(row.cells) > MAX_COLUMNS:
        raise UnreadableFileError(FileProblem.TOO_MANY_COLUMNS, limit=str(MAX_COLUMNS))
    if any(len(cell) > MAX_CELL for cell in row.cells):
        raise UnreadableFileError(FileProblem.CELL_TOO_LONG, row=str(row.number), limit=str(MAX_CELL))


def delimiter_of(content: bytes) -> str:
    """What separates the cells of a CSV file."""
    return _delimiter_and_table(content.decode("utf-8-sig", errors="replace"))[0]


_DECLARATION = re.compile(r'"?sep=([^"\w\s]|\t)"?[ \t]*(?:\r\n|\r|\n)', re.IGNORECASE)


def _delimiter_and_table(text: str) -> tuple[str, str]:
    """The delimiter, and the text of the table: a first line `sep=;`, as Excel writes it, declares the delimiter and is
    removed; otherwise the delimiter is the one that divides the header into the most cells.
    """
    if declared := _DECLARATION.match(text):
        return declared[1], text[declared.end() :]
    return max(KNOWN_DELIMITERS, key=lambda one: _header_width(text, one)), text


def _header_width(text: str, delimiter: str) -> int:
    """How many cells the header has with this delimiter; 0 if its quotation marks contradict it."""
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return next((len(row) for row in lines if any(row)), 0)
    except csv.Error:
        return 0


def _csv_rows(content: bytes) -> Iterator[FileRow]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise UnreadableFileError(FileProblem.NOT_A_TABLE) from exc
    if "\0" in text:
        raise UnreadableFileError(FileProblem.NOT_A_TABLE)
    delimiter, table = _delimiter_and_table(text)
    lines = csv.reader(io.StringIO(table, newline=""), delimiter=delimiter, strict=True)
    try:
        for number, row in enumerate(lines, start=1):
            yield FileRow(number, tuple(_without_apostrophe(cell.strip()) for cell in row))
    except csv.Error as exc:
        raise UnreadableFileError(FileProblem.NOT_A_TABLE) from exc


def _without_apostrophe(text: str) -> str:
    return text[1:] if text[:1] == "'" and text[1:].startswith(FORMULA_SIGNS) else text


def _workbook_rows(content: bytes) -> Iterator[FileRow]:
    """The rows of the first sheet that is shown, with the last computed values of formulas."""
    # Imported here: few processes read a workbook, and it is a twentieth of the start of each.
    from openpyxl.reader.excel import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        _check_parts(content)
        workbook = load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
        shown = [sheet for sheet in workbook.worksheets if sheet.sheet_state not in _HIDDEN_SHEET]
        yield from _sheet_rows(workbook, shown[0])
    except (InvalidFileException, zipfile.BadZipFile, *_OF_BROKEN_PARTS) as exc:
        raise UnreadableFileError(FileProblem.NOT_A_TABLE) from exc


_HIDDEN_SHEET = ("hidden", "veryHidden")


def _sheet_rows(workbook: Any, sheet: Any) -> Iterator[FileRow]:
    """The rows, each with its own number. Raises UnreadableFileError for what openpyxl's own rows leave out silently:
    rows and cells out of order, formulas without a value and, at the end, hidden rows.
    """
    from openpyxl.worksheet._reader import DATA_TAG, ROW_TAG, WorkSheetParser

    last = hidden = 0
    with sheet._get_source() as source:
        parser = WorkSheetParser(
            source,
            sheet._shared_strings,
            data_only=True,
            epoch=workbook.epoch,
            date_formats=workbook._date_formats,
            timedelta_formats=workbook._timedelta_formats,
        )
        for _event, element in iterparse(source):  # noqa: S314  _check_parts has refused entities
            if element.tag == DATA_TAG:
                break
            if element.tag != ROW_TAG:
                continue
            number, cells = parser.parse_row(element)
            _check_order(number, cells, after=last)
            _check_formulas(number, element)
            last, row = number, _sheet_row(number, cells)
            if element.get("hidden") in _TRUE:
                hidden += any(row.cells)
            else:
                yield row
            element.clear()
    if hidden:
        raise UnreadableFileError(FileProblem.HIDDEN_ROWS, count=hidden)


_TRUE = ("1", "true")


def _check_order(number: int, cells: Sequence[Mapping[str, Any]], *, after: int) -> None:
    """Raises UnreadableFileError unless the row follows the one before, and each cell the one to its left."""
    columns = [cell["column"] for cell in cells]
    is_own = all(cell["row"] == number for cell in cells)
    if number <= after or not is_own or columns != sorted(set(columns)):
        raise UnreadableFileError(FileProblem.ROWS_DISORDERED, row=str(number))


def _check_formulas(number: int, row: Any) -> None:
    """Raises UnreadableFileError for a formula that no spreadsheet program has computed. An empty text is a result."""
    from openpyxl.worksheet._reader import FORMULA_TAG, VALUE_TAG

    for cell in row:
        if cell.find(FORMULA_TAG) is not None:
            value = cell.findtext(VALUE_TAG)
            if value is None or (not value and cell.get("t") != "str"):
                raise UnreadableFileError(FileProblem.FORMULA_NOT_COMPUTED, row=str(number))


def _sheet_row(number: int, cells: Sequence[Mapping[str, Any]]) -> FileRow:
    """The cells up to the last that is not empty, at most one more than a file may have."""
    values = {cell["column"] - 1: cell["value"] for cell in cells}
    texts = {place: text for place, value in values.items() if (text := _cell_text(value))}
    width = min(max(texts, default=-1), MAX_COLUMNS) + 1
    doubts = {place: doubt for place in texts if (doubt := _doubt(values[place], texts[place]))}
    return FileRow(number, tuple(texts.get(place, "") for place in range(width)), doubts)


def _doubt(value: object, text: str) -> CellDoubt | None:
    match value:
        case date() | time() | timedelta():
            return CellDoubt.DATE
        case int() | float() if sum(map(str.isdecimal, text.lstrip("-0."))) > EXACT_DIGITS:
            return CellDoubt.LONG_NUMBER
    return None


def _check_parts(content: bytes) -> None:
    """Refuse a workbook that unpacks to more than any honest one, or that declares entities."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = archive.infolist()
        if len(parts) > MAX_PARTS or sum(part.file_size for part in parts) > MAX_UNPACKED:
            raise UnreadableFileError(FileProblem.TOO_LARGE, limit=str(MAX_MEGABYTES))
        for part in parts:
            with archive.open(part) as opened:
                if b"<!DOCTYPE" in opened.read(1_000):
                    raise UnreadableFileError(FileProblem.NOT_A_TABLE)


def _without_empty_end(cells: tuple[str, ...]) -> tuple[str, ...]:
    return cells[: max(place for place, cell in enumerate(cells, start=1) if cell)]


def _cell_text(value: object) -> str:
    """The text of a cell; a number as it is stored, without grouping or exponent."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).upper()
        case float():
            return format(Decimal(repr(value)).normalize(), "f")
        case datetime() | date():
            return value.isoformat()
    return str(value).strip()
