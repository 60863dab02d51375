"""Excel files in which every cell is text, so that no cell is run as a formula or rounded.

Excel stores numbers with 15 digits and would change an amount of 18 decimals. The texts are those of the CSV.
"""

import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import xlsxwriter
from xlsxwriter.exceptions import FileCreateError
from xlsxwriter.worksheet import Worksheet

from backoffice.reports.errors import FailureCode, FileTooLongError
from backoffice.reports.rendering.csv import CHUNK_BYTES, FileChunk

# Prefix of the folder with one file's temporary data; a killed process leaves it behind.
TEMP_FOLDER_PREFIX = "rows-"
MAX_SHEET_ROWS = 1_048_576
MAX_CELL_CHARACTERS = 32_767
_ROWS_AT_ONCE = 1000


def encode_xlsx(
    header: Sequence[str], rows: Iterable[Sequence[str | None]], *, folder: str
) -> Generator[FileChunk, None, None]:
    """The file in chunks. Chunks without content report the rows written before the file can start.

    A full sheet is followed by another one with the same header. Holds one row in memory; the rest is in
    temporary files in `folder`, which are deleted with the generator. Raises FileTooLongError for a cell too
    long for Excel.
    """
    with tempfile.TemporaryDirectory(prefix=TEMP_FOLDER_PREFIX, dir=folder) as room:
        path = Path(room) / "book.xlsx"
        yield from _write_workbook(path, header, rows)
        with path.open("rb") as file:
            while content := file.read(CHUNK_BYTES):
                yield FileChunk(content, 0)


def _write_workbook(
    path: Path, header: Sequence[str], rows: Iterable[Sequence[str | None]]
) -> Generator[FileChunk, None, None]:
    """A full sheet of long texts has more than two gigabytes, so the file may need the extensions of ZIP64."""
    options = {"constant_memory": True, "tmpdir": str(path.parent), "use_zip64": True}
    book = xlsxwriter.Workbook(str(path), options)
    try:
        yield from _count_lines(_write_lines(book, header, rows))
        book.close()
    except FileCreateError as exc:  # hides the error of the system, which says whether the disk is full
        raise OSError(*exc.args[0].args) from exc
    finally:
        _close_workbook(book)


def _write_lines(
    book: xlsxwriter.Workbook, header: Sequence[str], rows: Iterable[Sequence[str | None]]
) -> Iterator[None]:
    """Writes one row per step."""
    sheet, line = _new_sheet(book, header), 1
    for row in rows:
        if line == MAX_SHEET_ROWS:
            sheet, line = _new_sheet(book, header), 1
        _write_row(sheet, line, row)
        line += 1
        yield


def _count_lines(lines: Iterator[None]) -> Iterator[FileChunk]:
    while written := sum(1 for _ in islice(lines, _ROWS_AT_ONCE)):
        yield FileChunk(b"", written)


def _close_workbook(book: xlsxwriter.Workbook) -> None:
    """Close the sheets' temporary files: the library does so only when a workbook is finished."""
    for sheet in book.worksheets():
        if sheet.row_data_fh is not None:
            sheet.row_data_fh.close()


def _new_sheet(book: xlsxwriter.Workbook, header: Sequence[str]) -> Worksheet:
    sheet: Worksheet = book.add_worksheet()
    sheet.freeze_panes(1, 0)
    _write_row(sheet, 0, header)
    return sheet


def _write_row(sheet: Worksheet, line: int, row: Sequence[str | None]) -> None:
    for column, text in enumerate(row):
        if text and len(text) > MAX_CELL_CHARACTERS:
            raise FileTooLongError(FailureCode.CELL_TOO_LONG, limit=MAX_CELL_CHARACTERS)
        if text:
            sheet.write_string(line, column, text)
