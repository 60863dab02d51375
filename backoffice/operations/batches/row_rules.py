"""What the rows of a file become: its columns, and how a row is checked on its own and beside the others."""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext

from backoffice.operations.batches.columns import BANK_CODE, FileColumns
from backoffice.operations.batches.reading import CellDoubt, FileRow
from backoffice.operations.models.batches import PayoutFileRow, RowFlag
from backoffice.recipients.look_alikes import SimilarAccount
from payments_gateway.money import CURRENCIES

_LISTED = 8  # choices at most that an error names
_AMOUNT, _CURRENCY = "amount", "currency"
_IDENTIFIERS = {"account", "account_number", "address", "memo", "receiver_username"}
"""Fields whose text is sent as it is, and in which one wrong digit pays somebody else."""
_RESULTS_OF_ERRORS = {"#N/A", "#REF!", "#VALUE!", "#NAME?", "#DIV/0!", "#NUM!", "#NULL!"}
_EXPONENT = re.compile(r"[+-]?\d([.,]\d+)?E[+-]\d+", re.IGNORECASE)
_BEFORE_COMMA, _AFTER_COMMA = re.compile(r"[+-]?\d{1,3}"), re.compile(r"\d{3}(\.\d+)?")
_ONE_COMMA = re.compile(r"\d{1,3},\d{3}")
_QUOTED_CELLS = 100  # characters of cells that an error quotes


class RowRules(ABC):
    """The rules for one sort of rows. They change the rows given; the check stores them."""

    @property
    @abstractmethod
    def columns(self) -> FileColumns:
        """The columns of a file, with labels in the reader's language."""

    @abstractmethod
    def account(self, cells: dict[str, str]) -> tuple[str, str]:
        """The account number and bank code of the row, whose holder is read before it is checked; empty for none."""

    @abstractmethod
    def read_ahead(self, rows: Sequence[PayoutFileRow]) -> None:
        """Read, with few queries for all, what the check of each of these rows needs."""

    @abstractmethod
    def check(self, row: PayoutFileRow) -> None:
        """Set payload, errors, flags and recipient of a row."""

    @abstractmethod
    def check_together(self, rows: Sequence[PayoutFileRow]) -> None:
        """Add to some checked rows what other records say about them, with few queries for all."""

    @abstractmethod
    def check_whole(self, rows: Sequence[PayoutFileRow]) -> Collection[PayoutFileRow]:
        """Add what all rows of the file say about each other, once all are checked; returns the changed rows.

        `rows` are those that say whom they concern; those with a payload are without their cells.
        """


def cell_errors(names: Sequence[str], row: FileRow, delimiter: str) -> list[list[str]]:
    """What is wrong with the texts of a row, whatever they are for: pairs of a field, or "", and a sentence.

    `names` are the fields of the columns, "" for none. `delimiter` separates the cells of a CSV file, "" is a workbook.
    """
    found = [
        [name, problem]
        for place, (name, text) in enumerate(zip(names, row.cells, strict=False))
        if name and (problem := _cell_problem(name, text, row.doubts.get(place)))
    ]
    if beyond := ", ".join(filter(None, row.cells[len(names) :])):
        problem = gettext(
            "The row has cells beyond the last heading: {cells}. Remove them. In a CSV file, put quotation marks "
            'around a cell that contains a comma: "25,000.00".'
        )
        found.append(["", problem.format(cells=beyond[:_QUOTED_CELLS])])
    elif rest := _rest_of_amount(names, row, delimiter):
        problem = gettext(
            "The next cell is {text}. If it belongs to the amount, enclose the whole amount in quotation marks: "
            '"25,000.00". Otherwise enter the amount with its decimals: 850.00.'
        )
        found.append([_AMOUNT, problem.format(text=rest)])
    elif doubtful := _doubtful_amount(names, row, delimiter):
        problem = gettext(
            "In a file with semicolons, {text} can mean {thousands} or {decimal}. Enter {thousands}.00 or {decimal}."
        )
        written = {"thousands": doubtful.replace(",", ""), "decimal": doubtful.replace(",", ".")}
        found.append([_AMOUNT, problem.format(text=doubtful, **written)])
    if delimiter and any(_has_rows(text, delimiter, len(names)) for text in row.cells):
        problem = gettext("A cell also contains the next rows. Remove the quotation mark at its beginning.")
        found.append(["", problem])
    return found


def _cell_problem(name: str, text: str, doubt: CellDoubt | None) -> str:
    if text.upper() in _RESULTS_OF_ERRORS:
        problem = gettext(
            "The cell contains the formula error {text}. Correct the formula, or enter a value."
        )
        return problem.format(text=text)
    if doubt == CellDoubt.LONG_NUMBER or (name in _IDENTIFIERS and _EXPONENT.fullmatch(text)):
        return gettext(
            "A spreadsheet program does not keep all digits of this number. Format the cell as text, then enter the "
            "digits again. Round the result of a formula."
        )
    if doubt == CellDoubt.DATE and name in _IDENTIFIERS:
        return gettext("The cell contains a date. Format the cell as text, then enter the value again.")
    return ""


def _rest_of_amount(names: Sequence[str], row: FileRow, delimiter: str) -> str:
    """The cell after the amount if it looks like the end of 25,000.00 without quotation marks; "" if not.

    Three digits without decimals may also be a cell of their own, so they count only in a row that is too long. Those
    of a bank code are checked with the account.
    """
    if delimiter != "," or _AMOUNT not in names:
        return ""
    place = names.index(_AMOUNT)
    amount, rest, *_others = (*row.cells[place : place + 2], "", "")
    is_bank = BANK_CODE in names[place + 1 : place + 2]
    if is_bank or not (_BEFORE_COMMA.fullmatch(amount) and _AFTER_COMMA.fullmatch(rest)):
        return ""
    return rest if "." in rest or len(row.cells) > len(names) else ""


def _doubtful_amount(names: Sequence[str], row: FileRow, delimiter: str) -> str:
    """The amount if its only comma may separate thousands or decimals; "" if not.

    Semicolons separate the cells where a comma separates decimals, and only some currencies have three of them.
    """
    cells = dict(zip(names, row.cells, strict=False))
    amount, currency = cells.get(_AMOUNT, ""), CURRENCIES.get(cells.get(_CURRENCY, "").strip().upper())
    is_doubtful = delimiter == ";" and currency is not None and currency.decimals > 2
    return amount if is_doubtful and _ONE_COMMA.fullmatch(amount) else ""


def _has_rows(text: str, delimiter: str, width: int) -> bool:
    """Whether the cell goes on with what looks like another row, because of one quotation mark too many."""
    return width > 2 and any(line.count(delimiter) >= width - 1 for line in text.splitlines()[1:])


def error_text(form: forms.Form, name: str) -> str:
    """The errors of a form's field in one text. Instead of asking to select something, which a file does not offer, it
    names what can be entered.
    """
    errors = form.errors.as_data()[name]
    asked = form.fields.get(name)
    offered = [
        str(value) for value, _label in getattr(asked, "choices", ()) if value and isinstance(value, str)
    ]
    is_listed, values = 0 < len(offered) <= _LISTED, ", ".join(offered)
    match errors[0].code:
        case "invalid_choice" if is_listed:
            return gettext("Enter one of these: {values}.").format(values=values)
        case "required" if is_listed:
            return gettext("The cell is empty. Enter one of these: {values}.").format(values=values)
        case "required" if name == BANK_CODE:
            return gettext("Enter the code or the whole name of the bank, as in the list of bank codes.")
    return " ".join(map(str, form.errors[name]))


def note_of(field: forms.Field) -> str:
    """What a cell of this field may be: the options that the form always has, and its help text."""
    choices = [str(value) for value, _label in getattr(field, "choices", ()) if value]
    return " ".join(filter(None, (", ".join(choices), str(field.help_text))))


def stored_similarity(flag: RowFlag, one: SimilarAccount) -> dict[str, Any]:
    """Another recipient, or row of the file, for which a row can be mistaken, as JSON."""
    return {
        "flag": flag.value,
        "title": one.title,
        "account": one.account,
        "bank": one.bank,
        "row": one.number,
    }


def similar_text(stored: Mapping[str, Any]) -> str:
    """A similarity as `stored_similarity` stored it, in words."""
    account = " · ".join(filter(None, (stored["account"], stored["bank"])))
    named = ", ".join(filter(None, (stored["title"], account)))
    if stored["row"]:
        return gettext("Row {row}: {recipient}").format(row=stored["row"], recipient=named)
    return named
