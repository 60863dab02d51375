"""The columns of a file of rows: its template, and which column of a file has which field."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

import xlsxwriter
from django.utils.translation import gettext

from backoffice.ledger.accounts import banks
from backoffice.operations.batches.reading import FORMULA_SIGNS
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
"""The heading of the column that our own files add at the end. It is ignored when such a file is uploaded."""
RETRIED_ROW = "retried_row"
"""The field with the number of the row that a row prepares again; only files of rows to retry have it."""
_SYNONYMS = {
    "account": ("account number", "wallet address", "address", "username"),
    "account_number": ("account", "account no", "beneficiary account", "recipient account", "nuban"),
    "address": ("wallet address", "wallet", "recipient address", "crypto address"),
    "alias": ("nickname", "short name"),
    "amount": ("sum", "value", "net pay", "net salary", "total"),
    "bank_code": ("bank", "bank name", "beneficiary bank", "recipient bank", "sort code"),
    "currency": ("ccy", "currency code"),
    "duplicate_reason": ("reason for the additional payment", "reason for duplicate"),
    "memo": ("description", "narration", "reference", "remark", "remarks", "details", "purpose"),
    "name": ("account name", "beneficiary", "beneficiary name", "recipient", "recipient name", "payee"),
    "name_reason": ("reason for the mismatch", "mismatch reason"),
    "network": ("chain", "blockchain"),
    "notes": ("note", "comment", "comments"),
    "receiver_username": ("username", "user name", "user", "recipient", "beneficiary", "receiver"),
    "type": ("recipient type", "kind"),
    "typed_name": (
        *("account name", "account holder", "name", "full name", "beneficiary", "beneficiary name"),
        *("recipient", "recipient name", "payee", "payee name", "employee", "employee name"),
    ),
}
"""What the columns of people's own files are called, besides the name and the label of the field."""
_MISSPELT = 0.84  # how alike two headings are at least, of which one is taken for the other misspelt
_LONGEST_HEADING = 40  # characters, compared with others; many long ones would take seconds
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


def with_retried_row(columns: FileColumns) -> FileColumns:
    """The same columns, and the one that says which row of a batch each row prepares again."""
    return replace(
        columns,
        labels={**columns.labels, RETRIED_ROW: gettext("Retried row")},
        needed=(*columns.needed, RETRIED_ROW),
    )


def without_errors(headers: Iterable[str]) -> list[str]:
    """The headings of a file without that of the errors, which our own files add."""
    return [header for header in headers if header.casefold() != ERRORS]


def guess_mapping(
    columns: FileColumns, headers: Sequence[str], remembered: Mapping[str, str]
) -> dict[str, str]:
    """The column of each field: as this person chose it last, else by the name, label or a synonym of the field, else
    by one of these misspelt. The surest guess is made first, and no column is taken for two fields.
    """
    columns_left = {header: _simplified(header) for header in headers}
    found: dict[str, str] = {}
    for _likeness, name, header in sorted(
        _guesses(columns, columns_left, remembered), key=lambda one: -one[0]
    ):
        if name not in found and header in columns_left:
            found[name] = header
            del columns_left[header]
    return {name: found[name] for name in columns.labels if name in found}


def _guesses(
    columns: FileColumns, headers: Mapping[str, str], remembered: Mapping[str, str]
) -> Iterator[tuple[float, str, str]]:
    """Likeness, field and heading of each possible pair; the higher the likeness, the surer the pair."""
    for name, label in columns.labels.items():
        wanted = [remembered.get(name, ""), name, label, *_SYNONYMS.get(name, ())]
        texts = list(map(_simplified, wanted))
        for header, simplified in headers.items():
            if simplified and simplified in texts:
                yield 2 + 1 / (1 + texts.index(simplified)), name, header
            elif (likeness := max(_likeness(simplified, text) for text in texts)) >= _MISSPELT:
                yield likeness, name, header


def _likeness(first: str, second: str) -> float:
    """Between 0 and 1; 0 for short texts, of which too many are alike, and for long ones, which are no headings."""
    shorter, longer = sorted((len(first), len(second)))
    return SequenceMatcher(None, first, second).ratio() if shorter > 3 and longer <= _LONGEST_HEADING else 0


def has_template_columns(columns: FileColumns, headers: Sequence[str]) -> bool:
    """Whether these are exactly the columns of the template."""
    return list(headers) == list(columns.labels)


def _simplified(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def csv_template(columns: FileColumns) -> bytes:
    """The header of a file. No help is in it: every further line would be read as a row."""
    return _csv([list(columns.labels)])


def format_of(file_name: str) -> str:
    """Which of `csv` and `xlsx` an uploaded file of this name is."""
    return "xlsx" if file_name.lower().endswith(".xlsx") else "csv"


def file_with_errors(
    sheet: str,
    header: Sequence[str],
    rows: Iterable[tuple[Sequence[str], str]],
    suffix: str,
    *,
    delimiter: str = ",",
) -> bytes:
    """A file of these rows below this header, each with its errors in a further column; `suffix` is `csv` or `xlsx`.

    It can be uploaded again: a workbook has text cells, so that account numbers keep their leading zeros. Cells beyond
    the header follow the errors, so that they stay beyond the header.
    """
    width = len(header)
    with_errors = (
        (
            (*cells[:width], *[""] * (width - len(cells)), _shortened(errors), *cells[width:])
            if any(cells)
            else ()
        )
        for cells, errors in rows
    )
    written = [(*header, ERRORS), *with_errors]
    return _workbook({sheet: written}) if suffix == "xlsx" else _csv(written, delimiter)


def _shortened(text: str) -> str:
    """The text, or its beginning if a file with it could not be read again."""
    return text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1]}…"


def xlsx_template(columns: FileColumns) -> bytes:
    """The header as a workbook whose cells are text, so that account numbers keep their leading zeros.

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


def _csv(rows: Iterable[Sequence[str]], delimiter: str = ",") -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerows([_without_formula(cell) for cell in row] for row in rows)
    return _MARK + text.getvalue().encode()


def _without_formula(text: str) -> str:
    """The text with an apostrophe where a spreadsheet would run it. It is removed when the file is read again."""
    return f"'{text}" if text.startswith(FORMULA_SIGNS) else text


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
