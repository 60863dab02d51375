"""Rows of a file that are recipients: each is checked by the recipient's form, then against the whole register."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext

from backoffice.operations.batches.columns import FileColumns
from backoffice.operations.batches.payout_rows import NAME_FLAGS
from backoffice.operations.batches.row_rules import RowRules, error_text, note_of, stored_similarity
from backoffice.operations.kinds.form_fields import NameComparison
from backoffice.operations.kinds.recipient import RecipientChange, RecipientForm, RecipientPayload
from backoffice.operations.models.batches import PayoutFileRow, RowFlag
from backoffice.recipients.look_alikes import (
    ComparedAccount,
    Similarities,
    compare_with_register,
)
from backoffice.recipients.models import RecipientType

_ACCOUNT_FIELDS = {
    RecipientType.BANK: "account_number",
    RecipientType.ADDRESS: "address",
    RecipientType.USER: "receiver_username",
}
_OF_ALL_TYPES = ("bank_code", "network", "name_reason", "alias", "currency", "notes")
_COLUMNS = {
    "account_number": "account",
    "address": "account",
    "receiver_username": "account",
    "typed_name": "name",
}
"""The column of the fields that a form has under another name."""


class RecipientRows(RowRules):
    """The rules for recipients that are added to the register."""

    @property
    def columns(self) -> FileColumns:
        fields = {name: RecipientForm.base_fields[name] for name in _OF_ALL_TYPES}
        asked = {name: str(field.label) for name, field in fields.items()}
        return FileColumns(
            labels={
                "type": gettext("Type"),
                "name": gettext("Name"),
                "account": gettext("Account, address or username"),
                **asked,
            },
            needed=("type", "name", "account"),
            sheet=gettext("Recipients"),
            notes={name: note_of(field) for name, field in fields.items()}
            | {
                "type": ", ".join(RecipientType.values),
                "name": gettext("The account holder's name at the bank, or your own name for the recipient."),
                "account": gettext(
                    "An account number needs the bank code beside it, an address the network."
                ),
            },
        )

    def account(self, cells: dict[str, str]) -> tuple[str, str]:
        is_bank = _type_of(cells) == RecipientType.BANK
        return (cells.get("account", ""), cells.get("bank_code", "")) if is_bank else ("", "")

    def read_ahead(self, rows: Sequence[PayoutFileRow]) -> None:
        """Nothing: the form of each row reads the register."""

    def check(self, row: PayoutFileRow) -> None:
        row.payload, row.recipient_key, row.flags, row.similar = None, "", [], []
        kind = _type_of(row.cells)
        if kind is None:
            row.errors = [["type", _unknown_type_text()], *_errors_of_every_type(row.cells)]
            return
        form = _form(kind, row.cells)
        row.errors = [_column_error(form, name) for name in form.errors]
        if row.errors:
            row.recipient_key = form.known_key
            return
        payload = form.content()
        row.payload, row.recipient_key = payload.stored(), payload.key
        match = NAME_FLAGS.get(form.match or NameComparison.EXACT)
        row.flags = [match] if match else []

    def check_together(self, rows: Sequence[PayoutFileRow]) -> None:
        """Nothing: what other records say is compared once for the whole file."""

    def check_whole(self, rows: Sequence[PayoutFileRow]) -> Collection[PayoutFileRow]:
        """Rows with the same account, and whom each can be mistaken for, in the register and in the file."""
        changed = {}
        for first, *others in _rows_by_key(rows).values():
            for row in others:
                problem = gettext("Row {row} has the same account. Remove one of them.").format(
                    row=first.number
                )
                row.errors = [*row.errors, ["account", problem]]
                changed[row.number] = row
        by_number = {row.number: row for row in rows if row.payload}
        found = compare_with_register({number: _compared(row) for number, row in by_number.items()})
        for number, similarities in found.items():
            row = by_number[number]
            row.flags = [*row.flags, *_flags(similarities)]
            row.similar = _stored(similarities)
            changed[number] = row
        return changed.values()


def _type_of(cells: dict[str, str]) -> RecipientType | None:
    """The type that a cell names, by its code or its label; None for another text."""
    typed = cells.get("type", "").strip().casefold()
    return next((one for one in RecipientType if typed in {one.value, str(one.label).casefold()}), None)


def _unknown_type_text() -> str:
    known = ", ".join(RecipientType.values)
    return gettext("Enter the type of the recipient: {types}.").format(types=known)


def _form(kind: RecipientType, cells: dict[str, str]) -> RecipientForm:
    """The form that adds such a recipient, filled in as the row says. The reason is given once for the whole file."""
    values = {name: cells.get(name, "") for name in _OF_ALL_TYPES}
    values |= {
        "change": RecipientChange.ADD,
        "type": kind,
        _ACCOUNT_FIELDS[kind]: cells.get("account", ""),
        "typed_name" if kind == RecipientType.BANK else "name": cells.get("name", ""),
    }
    form = RecipientForm(values)
    form.fields["reason"].required = False
    return form


def _errors_of_every_type(cells: dict[str, str]) -> list[list[str]]:
    """The errors that the row has whatever its type is."""
    form = _form(RecipientType.USER, cells)
    found = [name for name in ("name", "alias", "currency", "notes") if name in form.errors]
    if not cells.get("account"):
        found.append(_ACCOUNT_FIELDS[RecipientType.USER])
    return [_column_error(form, name) for name in found]


def _column_error(form: forms.Form, name: str) -> list[str]:
    """The error beside its cell; one of the whole form is beside the account."""
    column = _COLUMNS.get(name, name)
    known = {"type", "name", "account", *_OF_ALL_TYPES}
    return [column if column in known else "account", error_text(form, name)]


def _rows_by_key(rows: Sequence[PayoutFileRow]) -> dict[str, list[PayoutFileRow]]:
    found: dict[str, list[PayoutFileRow]] = defaultdict(list)
    for row in rows:
        found[row.recipient_key].append(row)
    return found


def _compared(row: PayoutFileRow) -> ComparedAccount:
    payload = RecipientPayload.model_validate(row.payload)
    names = (payload.details.name, payload.details.alias)
    return ComparedAccount(payload.type, payload.key, payload.account, names)


def _flags(found: Similarities) -> list[RowFlag]:
    flags = {RowFlag.SIMILAR_ACCOUNT: found.accounts, RowFlag.SAME_NAME: found.names}
    return [flag for flag, others in flags.items() if others]


def _stored(found: Similarities) -> list[dict[str, Any]]:
    """Whom the row can be mistaken for."""
    kinds = ((RowFlag.SIMILAR_ACCOUNT, found.accounts), (RowFlag.SAME_NAME, found.names))
    return [stored_similarity(flag, one) for flag, others in kinds for one in others]
