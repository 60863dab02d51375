"""Import of recipients: many are added to the register at once, approved as a whole by another person."""

from typing import Any
from uuid import UUID

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from backoffice.accounts.models import User
from backoffice.operations.errors import ImportOutdatedError, RecipientAlteredError
from backoffice.operations.kinds.base import (
    Facts,
    KindForm,
    LocalEffect,
    LocalKind,
    Payload,
    Recipient,
)
from backoffice.operations.kinds.recipient import RecipientKind, RecipientPayload, is_applicable
from backoffice.operations.models.batches import ImportedRow, row_operation_id, rows_digest
from backoffice.operations.models.operations import Operation, content_digest
from backoffice.operations.permissions import PREPARE
from backoffice.recipients.models import AlteredRecipientError
from backoffice.recipients.register import versions_in_effect

IMPORT_DIGEST = "recipients_digest"
"""The member of the payload with the digest over all rows; only imports of recipients have it."""


class RecipientImportPayload(Payload):
    """All rows in one digest, in order, and what the approver sees of them at first."""

    file_name: str
    count: int
    recipients_digest: str
    bank_accounts: int
    addresses: int
    users: int
    similar_accounts: int
    same_names: int
    names_differ: int
    reason: str


class RecipientImportForm(KindForm):
    """An import is prepared from a file, on its own pages."""

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        self.add_error(None, gettext("Upload a file to import recipients. Nothing was prepared."))
        return values


class RecipientImportKind(LocalKind[RecipientImportPayload]):
    """Recipients from a file. The last approval adds all of them to the register, or none."""

    name = "recipient_import"
    ruled_as_well_as = (RecipientKind.name,)
    label = _("Recipient import")
    plural = _("Recipient imports")
    letter = "L"
    verb = _("Import recipients")
    permission = PREPARE
    effect = LocalEffect.IMPORTS_RECIPIENTS
    success_texts = (_("Recipients added"), _("All recipients of the file are approved and in the register."))
    prepared_on = "governance:recipient_files"
    content_page = "operations:imported_rows"
    payload_type = RecipientImportPayload
    form_type = RecipientImportForm

    def sentence(self, payload: RecipientImportPayload) -> str:
        counted = ngettext(
            "Add {count} recipient from {file}", "Add {count} recipients from {file}", payload.count
        )
        return counted.format(count=payload.count, file=payload.file_name)

    def recipient(self, payload: RecipientImportPayload) -> Recipient:
        """Without a key: nobody is paid."""
        counted = ngettext("{count} recipient", "{count} recipients", payload.count)
        return Recipient(counted.format(count=payload.count), payload.file_name)

    def facts(self, payload: RecipientImportPayload) -> Facts:
        return [
            *self.decision_facts(payload),
            (gettext("File"), payload.file_name),
            (gettext("Reason"), payload.reason),
        ]

    def decision_facts(self, payload: RecipientImportPayload) -> Facts:
        counts = (
            (gettext("Bank accounts"), payload.bank_accounts),
            (gettext("Crypto addresses"), payload.addresses),
            (gettext("Users of the provider"), payload.users),
        )
        return [
            (gettext("Recipients"), str(payload.count)),
            *((label, str(count)) for label, count in counts if count),
        ]

    def initial(self, payload: RecipientImportPayload) -> dict[str, Any]:
        return {}

    def cautions(self, payload: RecipientImportPayload) -> list[str]:
        texts = (
            (
                payload.similar_accounts,
                gettext("Rows with an account similar to that of another recipient: {count}."),
            ),
            (payload.same_names, gettext("Rows with the name of another recipient: {count}.")),
            (payload.names_differ, gettext("Rows whose name differs from the name at the bank: {count}.")),
        )
        return [text.format(count=count) for count, text in texts if count]

    def check_proposal(self, payload: RecipientImportPayload, preparer: User) -> None:
        """Nothing more: every row is compared with the register when the file is submitted."""


def imported_rows(operation: Operation) -> list[tuple[ImportedRow, RecipientPayload]]:
    """The rows of an import, in order, with what each adds."""
    rows = operation.imported_rows.order_by("number")
    return [(row, RecipientPayload.model_validate(row.payload)) for row in rows]


def row_digest(import_id: UUID, number: int, payload: dict[str, Any]) -> str:
    """The digest of one row: over its content, the import that it belongs to, and its number."""
    return content_digest(row_operation_id(import_id, number), "recipient", payload)


def is_as_approved(operation: Operation) -> bool:
    """Whether the rows, in their order, have the content that the digest of the import covers."""
    digests = []
    for row in operation.imported_rows.order_by("number").iterator(chunk_size=500):
        if row.digest != row_digest(operation.pk, row.number, row.payload):
            return False
        digests.append(row.digest)
    expected = (operation.payload.get("count"), operation.payload.get(IMPORT_DIGEST))
    return bool(digests) and (len(digests), rows_digest(digests)) == expected


def check_all_applicable(payloads: list[RecipientPayload]) -> None:
    """Raise ImportOutdatedError unless every recipient can still be added as it was prepared; in a few queries.

    RecipientAlteredError if a version in effect is not as two people agreed on it.
    """
    try:
        newest = versions_in_effect({payload.key for payload in payloads})
    except AlteredRecipientError as exc:
        raise RecipientAlteredError from exc
    for payload in payloads:
        if not is_applicable(payload, newest.get(payload.key)):
            raise ImportOutdatedError(payload.title)
