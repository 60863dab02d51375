"""Read an uploaded file of payouts or recipients, CSV or XLSX, as rows of text.

Within limits of size, rows and columns, which a hostile file cannot exceed.
"""

import csv
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from xml.etree.ElementTree import ParseError

from backoffice.operations.models.batches import MAX_CELL, MAX_ROWS, FileProblem
from backoffice.operations.models.reason_codes import coded

MAX_MEGABYTES = 4
MAX_COLUMNS = 60
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

    def __init__(self, code: FileProblem, **parameters: str) -> None:
        super().__init__(code)
        self.problem = coded(code, **parameters)


@dataclass(frozen=True)
class FileRow:
    """One row as texts, and its number as a spreadsheet shows it: the header is row 1."""

    number: int
    cells: tuple[str, ...]


def read_rows(content: bytes) -> Iterator[FileRow]:
    """The rows of the file, the header first, without empty ones. Raises UnreadableFileError."""
    if len(content) > MAX_MEGABYTES * 1_000_000:
        raise UnreadableFileError(FileProblem.TOO_LARGE, limit=str(MAX_MEGABYTES))
    rows = _workbook_rows(content) if content.startswith(_ZIP_BEGIN) else _csv_rows(content)
    count = 0
    for number, cells in enumerate(rows, start=1):
        if not any(cells):
            continue
        _check_size(number, cells)
        count += 1
        if count > MAX_ROWS + 1:
            raise UnreadableFileError(FileProblem.TOO_MANY_ROWS, limit=f"{MAX_ROWS:,}")
        yield FileRow(number, tuple(cells))


def check_name(name: str, content: bytes) -> None:
    """Raises UnreadableFileError if the ending of the name is not that of what the content begins like."""
    if not name.lower().endswith(".xlsx" if content.startswith(_ZIP_BEGIN) else ".csv"):
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


def _check_size(number: int, cells: list[str]) -> None:
    if len(cells) > MAX_COLUMNS:
        raise UnreadableFileError(FileProblem.TOO_MANY_COLUMNS, limit=str(MAX_COLUMNS))
    if any(len(cell) > MAX_CELL for cell in cells):
        raise UnreadableFileError(FileProblem.CELL_TOO_LONG, row=str(number), limit=str(MAX_CELL))


def delimiter_of(content: bytes) -> str:
    """What separates the cells of a CSV file: what its first line has most of."""
    header = content.split(b"\n", 1)[0]
    return max(",;\t", key=lambda one: header.count(one.encode()))


def _csv_rows(content: bytes) -> Iterator[list[str]]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise UnreadableFileError(FileProblem.NOT_A_TABLE) from exc
    if "\0" in text:
        raise UnreadableFileError(FileProblem.NOT_A_TABLE)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(content), strict=True)
    try:
        for row in lines:
            yield [_without_apostrophe(cell.strip()) for cell in row]
    except csv.Error as exc:
        raise UnreadableFileError(FileProblem.NOT_A_TABLE) from exc


def _without_apostrophe(text: str) -> str:
    return text[1:] if text[:1] == "'" and text[1:].startswith(FORMULA_SIGNS) else text


def _workbook_rows(content: bytes) -> Iterator[list[str]]:
    """The rows of the first sheet, with the last computed values of formulas."""
    # Imported here: few processes read a workbook, and it is a twentieth of the start of each.
    from openpyxl.reader.excel import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        _check_parts(content)
        workbook = load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
        sheet = workbook.worksheets[0]
        sheet.reset_dimensions()  # what the file says of its size need not be true
        for row in sheet.iter_rows(values_only=True, max_row=None):
            yield _without_empty_end([_cell_text(value) for value in row[: MAX_COLUMNS + 1]])
    except (InvalidFileException, zipfile.BadZipFile, *_OF_BROKEN_PARTS) as exc:
        raise UnreadableFileError(FileProblem.NOT_A_TABLE) from exc


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


def _without_empty_end(cells: list[str]) -> list[str]:
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _cell_text(value: object) -> str:
    """The text of a cell; a number exactly as a spreadsheet shows it, without grouping or exponent."""
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
