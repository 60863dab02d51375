"""Excel files: every cell is a text, whatever it says, and nothing is cut off."""

import re
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from backoffice.reports.errors import FileTooLongError
from backoffice.reports.rendering import xlsx
from backoffice.reports.rendering.xlsx import MAX_CELL_CHARACTERS, encode_xlsx
from tests.reports.odd_values import TEXTS


def written(rows: list[list[str | None]], folder: Path) -> tuple[zipfile.ZipFile, int]:
    chunks = list(encode_xlsx(["text", "amount"], rows, folder=str(folder)))
    return zipfile.ZipFile(BytesIO(b"".join(chunk.content for chunk in chunks))), sum(
        one.rows for one in chunks
    )


def sheets(book: zipfile.ZipFile) -> list[str]:
    names = sorted(name for name in book.namelist() if name.startswith("xl/worksheets/sheet"))
    return [book.read(name).decode() for name in names]


def test_every_cell_is_text(tmp_path: Path) -> None:
    amount = "9999999999999999999999.999999999999999999"
    book, rows = written([[text, amount] for text in TEXTS], tmp_path)

    (sheet,) = sheets(book)
    cells = re.findall(r"<c [^>]*>", sheet)
    assert rows == len(TEXTS)
    assert cells
    assert all('t="inlineStr"' in cell or 't="s"' in cell for cell in cells)
    assert "<f>" not in sheet
    assert sheet.count(amount) == len(TEXTS)


def test_empty_cells_are_omitted(tmp_path: Path) -> None:
    book, _ = written([[None, ""]], tmp_path)

    (sheet,) = sheets(book)
    assert sheet.count("<c ") == 2  # the headings


def test_a_full_sheet_continues_on_another_with_the_same_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xlsx, "MAX_SHEET_ROWS", 3)

    book, rows = written([[str(number), "1"] for number in range(5)], tmp_path)

    counted = [sheet.count("<row ") for sheet in sheets(book)]
    assert (rows, counted) == (5, [3, 3, 2])
    assert all(sheet.count(">amount<") == 1 for sheet in sheets(book))


def test_an_oversized_cell_is_not_truncated_silently(tmp_path: Path) -> None:
    with pytest.raises(FileTooLongError, match="Export as CSV"):
        written([["x" * (MAX_CELL_CHARACTERS + 1), ""]], tmp_path)


def test_a_sheet_may_be_larger_than_the_format_of_the_file_was_made_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)  # instead of two gigabytes

    book, _ = written([[str(number), "1"] for number in range(500)], tmp_path)

    (sheet,) = sheets(book)
    assert sheet.count("<row ") == 501


def test_no_temporary_files_are_left(tmp_path: Path) -> None:
    written([["a", "1"]], tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_rows_are_counted_while_it_is_written(tmp_path: Path) -> None:
    chunks = encode_xlsx(["a", "b"], ([str(number), ""] for number in range(2500)), folder=str(tmp_path))

    assert [next(chunks).rows for _ in range(3)] == [1000, 1000, 500]
    chunks.close()
