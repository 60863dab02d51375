"""The columns of a file of rows: its template, and which column of a file has which field."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import xlsxwriter

_FORMULA_SIGNS = "=+-@\t\r"
_MARK = b"\xef\xbb\xbf"  # by which spreadsheets recognise UTF-8


@dataclass(frozen=True)
class FileColumns:
    """The fields that a file may have: their labels by name, in the order of the template; and those it must have.

    `sheet` is the name of the sheet of a workbook.
    """

    labels: dict[str, str]
    needed: tuple[str, ...]
    sheet: str


def guess_mapping(
    columns: FileColumns, headers: Sequence[str], remembered: Mapping[str, str]
) -> dict[str, str]:
    """The column of each field: as this person chose it last, or by the name or label of the field."""
    by_name = {_simplified(header): header for header in headers}
    found = {}
    for name, label in columns.labels.items():
        wanted = (remembered.get(name, ""), name, label)
        column = next((by_name[_simplified(one)] for one in wanted if _simplified(one) in by_name), None)
        if column is not None:
            found[name] = column
    return found


def _simplified(text: str) -> str:
    return "".join(text.casefold().replace("_", " ").split())


def csv_template(columns: FileColumns) -> bytes:
    """The header of a file."""
    text = io.StringIO()
    csv.writer(text).writerow(columns.labels)
    return _MARK + text.getvalue().encode()


def csv_with_errors(names: Iterable[str], rows: Iterable[tuple[Mapping[str, str], str]]) -> bytes:
    """Rows as in a file with these columns, each with what is wrong with it in one more column."""
    text, names = io.StringIO(), tuple(names)
    writer = csv.writer(text)
    writer.writerow([*names, "errors"])
    for cells, errors in rows:
        writer.writerow(
            [_without_formula(cell) for cell in (*(cells.get(name, "") for name in names), errors)]
        )
    return _MARK + text.getvalue().encode()


def _without_formula(text: str) -> str:
    """The text with an apostrophe where a spreadsheet would run it. It is removed when the file is read again."""
    return f"'{text}" if text[:1] and text[0] in _FORMULA_SIGNS else text


def xlsx_template(columns: FileColumns) -> bytes:
    """The same as a workbook whose cells are text, so that account numbers keep their leading zeros."""
    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {"in_memory": True}) as workbook:
        sheet = workbook.add_worksheet(columns.sheet)
        as_text = workbook.add_format({"num_format": "@"})
        sheet.set_column(0, len(columns.labels) - 1, 22, as_text)
        sheet.write_row(0, 0, list(columns.labels), workbook.add_format({"bold": True}))
        sheet.freeze_panes(1, 0)
    return content.getvalue()
