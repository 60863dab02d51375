"""The rules for rows of a file that are payments: the form of their kind, the register, and payments that they repeat.

`creation.py` makes the checked rows operations.
"""

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from functools import cached_property

from django.utils.translation import gettext

from backoffice.operations.allow_list import Paid, network_warning, paid_by, problem_of_row, requirements_for
from backoffice.operations.batches.columns import FileColumns
from backoffice.operations.batches.earlier_payments import (
    RowPayment,
    earlier_payments,
    repeated_in_file,
)
from backoffice.operations.batches.row_rules import RowRules, error_text, note_of, stored_similarity
from backoffice.operations.errors import PolicyAlteredError
from backoffice.operations.kinds.base import KindForm, MoneyKind
from backoffice.operations.kinds.form_fields import NameComparison
from backoffice.operations.kinds.registry import KINDS, AnyKind
from backoffice.operations.models.batches import PayoutFileRow, RowFlag
from backoffice.operations.payee_look_alikes import look_alikes_of_payees
from backoffice.operations.selectors import current_policy
from backoffice.policies.document import RecipientRequirements
from backoffice.recipients.keys import bank_account_key
from backoffice.recipients.models import RecipientVersion
from backoffice.recipients.register import recorded_versions

NAME_FLAGS = {
    NameComparison.CLOSE: RowFlag.NAME_CLOSE,
    NameComparison.DIFFERENT: RowFlag.NAME_DIFFERENT,
}


def payout_kinds() -> list[AnyKind]:
    """The kinds that can be paid from a file, in the order of the registry."""
    return [kind for kind in KINDS.values() if isinstance(kind, MoneyKind) and kind.file_fields]


class PayoutRows(RowRules):
    """The rules for payments of one kind."""

    def __init__(self, kind: AnyKind) -> None:
        self.kind = kind
        self._registered: Mapping[str, RecipientVersion] | None = None

    @cached_property
    def _required(self) -> RecipientRequirements:
        """What is required of recipients, read once for all rows that are checked together."""
        return requirements_for(current_policy())

    @property
    def columns(self) -> FileColumns:
        asked = {name: self.kind.form_type.base_fields[name] for name in self.kind.file_fields}
        return FileColumns(
            labels={name: str(field.label) for name, field in asked.items()},
            needed=tuple(name for name, field in asked.items() if field.required),
            sheet=gettext("Payments"),
            notes={name: note_of(field) for name, field in asked.items()},
        )

    def account(self, cells: dict[str, str]) -> tuple[str, str]:
        return cells.get("account_number", ""), cells.get("bank_code", "")

    def read_ahead(self, rows: Sequence[PayoutFileRow]) -> None:
        """The versions of the accounts that are in the register."""
        accounts = (self.account(row.cells) for row in rows)
        self._registered = recorded_versions({bank_account_key(bank, number) for number, bank in accounts})

    def check(self, row: PayoutFileRow) -> None:
        form, kind = self._form(row.cells), self.kind
        row.payload, row.flags, row.similar = None, [], []
        row.errors = [
            [name if name in kind.file_fields else "", error_text(form, name)] for name in form.errors
        ]
        if row.errors:
            fields = form.cleaned_data
            network = str(fields.get("network") or "")
            username = str(fields.get("receiver_username") or "")
            paid = Paid(kind.recipient_key_of(fields), fields.get("currency", ""), network, username)
            self._set_payment(row, paid, fields.get("amount"))
            return
        payload = form.payload()
        debit = kind.debit(payload)
        if debit is None:
            raise ValueError(f"{kind.name} debits nothing")
        row.payload = payload.stored()
        paid = paid_by(KINDS[kind.name], payload)
        self._set_payment(row, paid, debit.amount)
        match = NAME_FLAGS.get(getattr(form, "match", None) or NameComparison.EXACT)
        if match:
            row.flags.append(match)
        elif kind.cautions(payload) or network_warning(paid):
            row.flags.append(RowFlag.CAUTION)

    def _set_payment(self, row: PayoutFileRow, paid: Paid, amount: Decimal | None) -> None:
        """What the row pays to whom, and whether that is refused. Nothing of a row that does not say all of it."""
        if not paid.key or not paid.currency or amount is None:
            return
        row.recipient_key, row.currency, row.amount = paid.key, paid.currency, amount
        try:
            problem = problem_of_row(self.kind.name, paid, self._required)
        except PolicyAlteredError as exc:
            problem = str(exc)
        row.errors += [[self.kind.recipient_field, problem]] if problem else []

    def check_together(self, rows: Sequence[PayoutFileRow]) -> None:
        earlier = earlier_payments({row.recipient_key for row in rows if row.recipient_key})
        for row in rows:
            if row.recipient_key:
                payment = payment_of(row)
                problem = earlier.problem(payment)
                row.errors += [["duplicate_reason", problem]] if problem else []
                row.flags += earlier.flags(payment)

    def check_whole(self, rows: Sequence[PayoutFileRow]) -> Collection[PayoutFileRow]:
        """Rows that repeat each other, the largest of each currency, and payees like a recipient of the register."""
        by_number = {row.number: row for row in rows}
        problems = repeated_in_file({number: payment_of(row) for number, row in by_number.items()})
        by_amount = sorted((row for row in rows if row.payload), key=lambda row: row.amount or 0)
        largest = {row.currency: row for row in by_amount}
        for number, problem in problems.items():
            by_number[number].errors = [*by_number[number].errors, ["duplicate_reason", problem]]
        for row in largest.values():
            row.flags = [*dict.fromkeys([*row.flags, RowFlag.LARGEST])]
        changed = {row.number: row for row in largest.values()}
        alike = look_alikes_of_payees({row.recipient_key for row in rows})
        for row in rows:
            if found := alike.get(row.recipient_key):
                row.flags = [*row.flags, RowFlag.SIMILAR_ACCOUNT]
                row.similar = [stored_similarity(RowFlag.SIMILAR_ACCOUNT, one) for one in found]
                changed[row.number] = row
        return (changed | {number: by_number[number] for number in problems}).values()

    def _form(self, cells: dict[str, str]) -> KindForm:
        """The form of the kind, filled in as the row says. The balance is compared with the total of the file."""
        confirmed = "on" if cells.get("duplicate_reason") else ""
        form = self.kind.form_type({**cells, "duplicate_confirmed": confirmed})
        if hasattr(form, "reads_balance"):
            form.reads_balance = False
        if hasattr(form, "registered"):
            form.registered = self._registered
        return form


def payment_of(row: PayoutFileRow) -> RowPayment:
    """What a row pays of which that is known, whatever else is wrong with it."""
    reason = str((row.payload or row.cells).get("duplicate_reason", ""))
    return RowPayment(row.recipient_key, row.currency, row.amount or Decimal(0), reason)
