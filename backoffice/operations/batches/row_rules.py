"""What the rows of a file become: its columns, and how a row is checked on its own and beside the others."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext

from backoffice.operations.batches.columns import BANK_CODE, FileColumns
from backoffice.operations.models.batches import PayoutFileRow, RowFlag
from backoffice.recipients.comparison import SimilarAccount

_LISTED = 8  # choices at most that an error names


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
