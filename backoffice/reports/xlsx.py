"""Rows of text as an Excel file: every cell a text, so nothing in it is ever run or rounded.

Excel keeps numbers in 15 digits and would show an amount of 18 decimals as another one, so amounts are texts too, and
the same texts as in the CSV: whoever saves the file as CSV again gets no formula out of it.
"""

import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import IO

import xlsxwriter
from xlsxwriter.worksheet import Worksheet

from backoffice.reports.csv_encoding import CHUNK_BYTES, Chunk
from backoffice.reports.errors import TooLongError

ROOM = "rows-"  # how the folder begins in which the rows of one file wait; a killed process leaves it
ROWS_OF_A_SHEET = 1_048_576
CHARACTERS_OF_A_CELL = 32_767
_ROWS_AT_ONCE = 1000


def encode_xlsx(
    header: Sequence[str], rows: Iterable[Sequence[str | None]], *, folder: str
) -> Generator[Chunk, None, None]:
    """The file in chunks. Until it can begin, chunks without content tell how many rows are written.

    A sheet that is full is followed by another one under the same headings. Holds one row; the rest is in files
    in this folder, which go with the generator. Raises TooLongError for a cell that Excel has no room for.
    """
    with (
        tempfile.TemporaryDirectory(prefix=ROOM, dir=folder) as room,
        tempfile.TemporaryFile(dir=room) as file,
    ):
        yield from _written(file, header, rows, room)
        file.seek(0)
        while content := file.read(CHUNK_BYTES):
            yield Chunk(content, 0)


def _written(
    file: IO[bytes], header: Sequence[str], rows: Iterable[Sequence[str | None]], folder: str
) -> Generator[Chunk, None, None]:
    book = xlsxwriter.Workbook(file, {"constant_memory": True, "tmpdir": folder})
    try:
        yield from _counted(_lines(book, header, rows))
        book.close()
    finally:
        _let_go(book)


def _lines(
    book: xlsxwriter.Workbook, header: Sequence[str], rows: Iterable[Sequence[str | None]]
) -> Iterator[None]:
    """Writes one row at each step."""
    sheet, line = _new_sheet(book, header), 1
    for row in rows:
        if line == ROWS_OF_A_SHEET:
            sheet, line = _new_sheet(book, header), 1
        _write(sheet, line, row)
        line += 1
        yield


def _counted(lines: Iterator[None]) -> Iterator[Chunk]:
    while written := sum(1 for _ in islice(lines, _ROWS_AT_ONCE)):
        yield Chunk(b"", written)


def _let_go(book: xlsxwriter.Workbook) -> None:
    """The library closes what it keeps of its sheets when a book is finished, and only then."""
    for sheet in book.worksheets():
        if sheet.row_data_fh is not None:
            sheet.row_data_fh.close()


def _new_sheet(book: xlsxwriter.Workbook, header: Sequence[str]) -> Worksheet:
    sheet: Worksheet = book.add_worksheet()
    sheet.freeze_panes(1, 0)
    _write(sheet, 0, header)
    return sheet


def _write(sheet: Worksheet, line: int, row: Sequence[str | None]) -> None:
    for column, text in enumerate(row):
        if text and len(text) > CHARACTERS_OF_A_CELL:
            raise TooLongError(
                f"A cell has more than {CHARACTERS_OF_A_CELL:,} characters, which Excel has no room for. "
                "Take the CSV."
            )
        if text:
            sheet.write_string(line, column, text)
