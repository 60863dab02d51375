"""The columns of a file of rows: its template, and which column of a file has which field."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import xlsxwriter
from django.utils.translation import gettext

from backoffice.ledger.accounts import banks
from backoffice.operations.models.batches import MAX_CELL

BANK_CODE = "bank_code"
EXAMPLES = {
    "type": "bank",
    "name": "ADA OBI",
    "account": "0123456789",
    "currency": "NGN",
    "amount": "25000.00",
    BANK_CODE: "058",
    "account_number": "0123456789",
    "typed_name": "ADA OBI",
    "receiver_username": "ada.obi",
    "address": "0x52908400098527886E0F7030069857D2E4169EE7",
    "memo": "Invoice 1042",
    "alias": "Rent",
    "notes": "Landlord of the office",
}
"""An example for each column, except those that usually stay empty."""

ERRORS = "errors"
"""The column that `file_with_errors` adds."""

_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
_MARK = b"\xef\xbb\xbf"  # by which spreadsheets recognise UTF-8


@dataclass(frozen=True)
class FileColumns:
    """The fields that a file may have: their labels by name, in the order of the template; and those it must have.

    `sheet` is the name of the sheet of a workbook, `notes` what to enter where the label says too little.
    """

    labels: dict[str, str]
    needed: tuple[str, ...]
    sheet: str
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def has_banks(self) -> bool:
        """Whether a row names a bank by its code."""
        return BANK_CODE in self.labels

    def help_rows(self) -> list[tuple[str, str, str, str, str]]:
        """Name, label, whether a row must have it, what to enter, and an example, of each column."""
        yes, no = gettext("yes"), gettext("no")
        return [
            (name, label, yes if name in self.needed else no, self._note(name), EXAMPLES.get(name, ""))
            for name, label in self.labels.items()
        ]

    def _note(self, name: str) -> str:
        if name == BANK_CODE:
            return gettext("The code or the whole name of the bank, as in the list of bank codes.")
        return self.notes.get(name, "")


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


def has_template_columns(columns: FileColumns, headers: Sequence[str]) -> bool:
    """Whether these are exactly the columns of the template, also with the column of errors."""
    return list(headers) in ([*columns.labels], [*columns.labels, ERRORS])


def _simplified(text: str) -> str:
    return "".join(text.casefold().replace("_", " ").split())


def csv_template(columns: FileColumns) -> bytes:
    """The header of a file. No help is in it: every further line would be read as a row."""
    return _csv([list(columns.labels)])


def format_of(file_name: str) -> str:
    """Which of `csv` and `xlsx` an uploaded file of this name is."""
    return "xlsx" if file_name.lower().endswith(".xlsx") else "csv"


def file_with_errors(
    columns: FileColumns, rows: Iterable[tuple[Mapping[str, str], str]], suffix: str
) -> bytes:
    """Rows as in a file with these columns, each with what is wrong with it in one more column, in this format.

    It can be uploaded again: a workbook has text cells, so that account numbers keep their leading zeros.
    """
    names = tuple(columns.labels)
    with_errors = ((*(cells.get(name, "") for name in names), _shortened(errors)) for cells, errors in rows)
    written = [(*names, ERRORS), *with_errors]
    return _workbook({columns.sheet: written}) if suffix == "xlsx" else _csv(written)


def _shortened(text: str) -> str:
    """The text, or its beginning if a file with it could not be read again."""
    return text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1]}…"


def xlsx_template(columns: FileColumns) -> bytes:
    """The same as a workbook whose cells are text, so that account numbers keep their leading zeros.

    Further sheets explain the columns and list the banks. Only the first one is read when the file is uploaded.
    """
    sheets: dict[str, Sequence[Sequence[str]]] = {
        columns.sheet: [list(columns.labels)],
        gettext("Help"): [_help_header(), *columns.help_rows()],
    }
    if columns.has_banks:
        sheets[gettext("Banks")] = _bank_rows()
    return _workbook(sheets)


def csv_of_banks() -> bytes:
    """Code and name of each bank, as a file names it."""
    return _csv(_bank_rows())


def xlsx_of_banks() -> bytes:
    return _workbook({gettext("Banks"): _bank_rows()})


def _help_header() -> Sequence[str]:
    return (
        gettext("Column"),
        gettext("Field"),
        gettext("Required"),
        gettext("What to enter"),
        gettext("Example"),
    )


def _bank_rows() -> list[Sequence[str]]:
    by_name = sorted(banks().items(), key=lambda bank: bank[1].casefold())
    return [(gettext("Bank code"), gettext("Bank")), *by_name]


def _csv(rows: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows([_without_formula(cell) for cell in row] for row in rows)
    return _MARK + text.getvalue().encode()


def _without_formula(text: str) -> str:
    """The text with an apostrophe where a spreadsheet would run it. It is removed when the file is read again."""
    return f"'{text}" if text.startswith(_FORMULA_SIGNS) else text


def _workbook(sheets: Mapping[str, Sequence[Sequence[str]]]) -> bytes:
    """Each sheet with its rows as text below a bold header."""
    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {"in_memory": True, "strings_to_formulas": False}) as workbook:
        as_text, bold = workbook.add_format({"num_format": "@"}), workbook.add_format({"bold": True})
        for name, (header, *rows) in sheets.items():
            sheet = workbook.add_worksheet(name)
            sheet.set_column(0, len(header) - 1, 22, as_text)
            sheet.write_row(0, 0, header, bold)
            for number, row in enumerate(rows, start=1):
                for place, cell in enumerate(row):
                    sheet.write_string(number, place, cell, as_text)
            sheet.freeze_panes(1, 0)
    return content.getvalue()
