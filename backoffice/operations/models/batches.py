"""Rows from a file: the file while it is checked, and the rows of a batch, which two people approve as a whole.

A file and its rows may change until they are submitted, and prove nothing. The rows of a batch never change: a trigger
protects them, and the digest that its approvers approve covers the digest of each row's operation, in order. The same
holds for the rows of an import of recipients.
"""

import hashlib
import json
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from backoffice.accounts.models import User
from backoffice.core.database.writes import APPEND_ONLY, NEVER_DELETED
from backoffice.core.fields import ExactDecimalField
from backoffice.core.web.formatting import code_sentence
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status

if TYPE_CHECKING:
    from django.db.models.fields.related_descriptors import RelatedManager

MAX_ROWS = 5_000
MAX_CELL = 500  # characters of a cell of a file
RECIPIENT = "recipient"
"""The kind of a file whose rows are recipients."""


def row_operation_id(batch: UUID, number: int) -> UUID:
    """The id of the operation that this row becomes: always the same, so that no row becomes two."""
    return uuid.uuid5(batch, str(number))


def rows_digest(digests: Iterable[str]) -> str:
    """SHA-256, in hexadecimal, over the digests of the rows' operations, in order.

    Each of them covers id, environment, kind and content, and the id follows from the batch and the row's number.
    """
    canonical = json.dumps({"v": 1, "rows": list(digests)}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


class FileState(models.TextChoices):
    UPLOADED = "uploaded", pgettext_lazy("file", "Uploaded")
    CHECKING = "checking", pgettext_lazy("file", "Checking")
    UNREADABLE = "unreadable", pgettext_lazy("file", "Cannot be read")
    CHECKED = "checked", pgettext_lazy("file", "Checked")
    SUBMITTED = "submitted", pgettext_lazy("file", "Submitted")


class FileProblem(models.TextChoices):
    """Why a file cannot be read. The label is the sentence, with its parameters in braces."""

    NOT_A_TABLE = (
        "not_a_table",
        _(
            "This is neither a CSV file in UTF-8 nor an Excel workbook (.xlsx). In your spreadsheet program, save it "
            "as “CSV UTF-8” or as .xlsx."
        ),
    )
    NAME_OF_ANOTHER = (
        "name_of_another",
        _("The name of a CSV file must end in .csv, that of an Excel workbook in .xlsx."),
    )
    TOO_LARGE = "too_large", _("The file is larger than {limit} MB.")
    TOO_MANY_ROWS = "too_many_rows", _("The file has more than {limit} rows. Split it.")
    TOO_MANY_COLUMNS = "too_many_columns", _("The file has more than {limit} columns.")
    CELL_TOO_LONG = "cell_too_long", _("Row {row} has a cell with more than {limit} characters.")
    HIDDEN_ROWS = (
        "hidden_rows",
        _(
            "Hidden rows with content in the sheet: {count}. Show them, for example by clearing the filter, or delete "
            "them. Then upload the file again."
        ),
    )
    FORMULA_NOT_COMPUTED = (
        "formula_not_computed",
        _(
            "Row {row} has a formula without a stored result. Open the file in your spreadsheet program and save it, "
            "or replace formulas with their values."
        ),
    )
    ROWS_DISORDERED = (
        "rows_disordered",
        _(
            "Row {row} of the sheet, or one of its cells, is out of order. Open the file in your spreadsheet program "
            "and save it."
        ),
    )
    NO_ROWS = "no_rows", _("The file has no rows below its header.")
    ROWS_TO_RETRY = (
        "rows_to_retry",
        _(
            "These are rows of a batch to retry. Open that batch, choose “Retry unpaid rows” and upload the file there."
        ),
    )
    NO_HEADER = "no_header", _("The first row must name the columns, each once.")


class RowFlag(models.TextChoices):
    """Why the approver should check a row first."""

    NEW_RECIPIENT = "new_recipient", _("New recipient")
    NAME_CLOSE = "name_close", _("Name similar")
    NAME_DIFFERENT = "name_different", _("Name differs")
    REPEATED = "repeated", _("Repeated payment")
    LARGEST = "largest", _("Largest amount")
    CAUTION = "caution", _("Warning")
    SIMILAR_ACCOUNT = "similar_account", _("Similar account")
    SAME_NAME = "same_name", _("Same name, other account")


ATTENTION = {
    RowFlag.SIMILAR_ACCOUNT: 128,
    RowFlag.SAME_NAME: 64,
    RowFlag.NAME_DIFFERENT: 32,
    RowFlag.CAUTION: 16,
    RowFlag.REPEATED: 8,
    RowFlag.LARGEST: 4,
    RowFlag.NAME_CLOSE: 2,
    RowFlag.NEW_RECIPIENT: 1,
}
"""The weight of each flag: rows with the highest sum are shown first."""


class PayoutFile(models.Model):
    """An uploaded file, until its rows are submitted as a batch or as an import of recipients, which has its id."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    uploader = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=32)  # of the operations that its rows become, or that would store one
    name = models.CharField(max_length=120)
    content = models.BinaryField()  # empty once it is submitted
    headers = models.JSONField(default=list)
    mapping = models.JSONField(default=dict)  # the column of the file for each field
    # The errors of rows are sentences of forms, read by the uploader only, and deleted with the rows.
    language = models.CharField(max_length=8)
    retry_of = models.ForeignKey(Operation, on_delete=models.PROTECT, null=True, related_name="+")
    state = models.CharField(max_length=16, choices=FileState, default=FileState.UPLOADED)
    # A FileProblem with its parameters, of a file that cannot be read.
    problem = models.JSONField(default=dict)
    row_count = models.PositiveIntegerField(default=0)
    checked_count = models.PositiveIntegerField(default=0)
    error_count = models.PositiveIntegerField(default=0)
    uploaded_at = models.DateTimeField()
    next_check_at = models.DateTimeField(null=True, db_index=True)

    if TYPE_CHECKING:
        rows: RelatedManager["PayoutFileRow"]

    class Meta:
        default_permissions = ()
        ordering = ("-uploaded_at",)
        constraints = [
            models.CheckConstraint(condition=Q(state__in=FileState.values), name="payout_file_state_known"),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("operations:payout_file", args=[self.pk])

    @property
    def is_import(self) -> bool:
        """Whether its rows are recipients, which become one operation; otherwise each is a payment."""
        return self.kind == RECIPIENT

    @property
    def problem_sentence(self) -> str:
        """Why it cannot be read, in words."""
        return code_sentence(FileProblem, self.problem) if self.problem else ""


class PayoutFileRow(models.Model):
    """A row of a file, and what its check found. `cells` are the texts by field; `payload` is null with errors."""

    file = models.ForeignKey(PayoutFile, on_delete=models.CASCADE, related_name="rows")
    number = models.PositiveIntegerField()
    cells = models.JSONField()
    payload = models.JSONField(null=True)
    errors = models.JSONField(default=list)  # pairs of a field, or "", and a sentence
    has_errors = models.BooleanField(default=False)
    flags = models.JSONField(default=list)
    similar = models.JSONField(default=list)  # whom a recipient can be mistaken for
    retried_number = models.PositiveIntegerField(null=True)  # of the row of the batch that the file retries
    currency = models.CharField(max_length=12, blank=True)
    amount = ExactDecimalField(null=True)
    recipient_key = models.CharField(max_length=200, blank=True)

    class Meta:
        default_permissions = ()
        ordering = ("number",)
        constraints = [models.UniqueConstraint(fields=["file", "number"], name="payout_file_row_number_once")]
        indexes = [models.Index(fields=["file", "has_errors", "number"], name="payout_file_row_errors")]

    def __str__(self) -> str:
        return f"Row {self.number} of {self.file_id}"


class ColumnMapping(models.Model):
    """Which column of a person's files has which field, as last confirmed."""

    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=32)
    mapping = models.JSONField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["person", "kind"], name="column_mapping_once_per_kind")
        ]

    def __str__(self) -> str:
        return f"{self.kind} columns of {self.person_id}"


class Batch(models.Model):
    """What people did with a batch after its approval: paused or cancelled what is not sent yet."""

    WRITES = NEVER_DELETED

    operation = models.OneToOneField(
        Operation, on_delete=models.PROTECT, primary_key=True, related_name="batch"
    )
    retry_of = models.ForeignKey(Operation, on_delete=models.PROTECT, null=True, related_name="retries")
    paused_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    paused_at = models.DateTimeField(null=True)
    cancelled_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    cancelled_at = models.DateTimeField(null=True)
    is_cancelling = models.BooleanField(default=False)  # operations of its rows are still to be cancelled

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                condition=Q(paused_at__isnull=True, paused_by__isnull=True)
                | Q(paused_at__isnull=False, paused_by__isnull=False),
                name="batch_paused_by_a_person",
            ),
            models.CheckConstraint(
                condition=Q(cancelled_at__isnull=True, cancelled_by__isnull=True)
                | Q(cancelled_at__isnull=False, cancelled_by__isnull=False),
                name="batch_cancelled_by_a_person",
            ),
        ]

    def __str__(self) -> str:
        return f"Batch {self.operation_id}"


class BatchRow(models.Model):
    """A row of a batch, as it was prepared and approved, and the operation that it became."""

    WRITES = NEVER_DELETED

    batch = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="rows")
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=32)
    payload = models.JSONField()
    digest = models.CharField(max_length=64)  # of the operation that it becomes
    flags = models.JSONField(default=list)
    similar = models.JSONField(null=True)  # recipients of the register that its payee can be mistaken for
    # How early the approver should check it; 0 for no flag.
    attention = models.PositiveSmallIntegerField(default=0)
    recipient = models.CharField(max_length=200)
    recipient_detail = models.CharField(max_length=200, blank=True)
    currency = models.CharField(max_length=12)
    amount = ExactDecimalField()
    recipient_key = models.CharField(max_length=200)
    operation = models.OneToOneField(Operation, on_delete=models.PROTECT, null=True, related_name="batch_row")
    retried_number = models.PositiveIntegerField(null=True)  # of the row of the batch that this one retries
    # The operation whose equal content was waiting when this row was to become one, so that it became none.
    duplicate_of = models.ForeignKey(Operation, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        default_permissions = ()
        ordering = ("number",)
        constraints = [
            models.UniqueConstraint(fields=["batch", "number"], name="batch_row_number_once"),
            models.CheckConstraint(
                condition=Q(operation__isnull=True) | Q(duplicate_of__isnull=True),
                name="batch_row_becomes_one_operation_or_none",
            ),
        ]
        indexes = [
            models.Index(fields=["batch", "-attention", "number"], name="batch_row_flagged"),
            models.Index(fields=["recipient_key", "currency", "amount"], name="batch_row_recipient"),
        ]

    def __str__(self) -> str:
        return f"Row {self.number} of {self.batch_id}"

    @property
    def flag_labels(self) -> list[str]:
        return [str(RowFlag(flag).label) for flag in self.flags]

    @property
    def given_reasons(self) -> list[str]:
        """Why the preparer pays a person of another name, or the same amount again; empty for other rows."""
        return [text for name in ("name_reason", "duplicate_reason") if (text := self.payload.get(name))]


class ImportedRow(models.Model):
    """A row of an import of recipients, as it was prepared and approved: the recipient that it adds."""

    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="imported_rows")
    number = models.PositiveIntegerField()
    payload = models.JSONField()
    digest = models.CharField(max_length=64)  # over the payload, the import and the number
    recipient_key = models.CharField(max_length=200)
    flags = models.JSONField(default=list)
    similar = models.JSONField(default=list)
    attention = models.PositiveSmallIntegerField(default=0)

    WRITES = APPEND_ONLY

    class Meta:
        default_permissions = ()
        ordering = ("number",)
        constraints = [
            models.UniqueConstraint(fields=["operation", "number"], name="imported_row_number_once"),
            models.UniqueConstraint(
                fields=["operation", "recipient_key"], name="imported_row_recipient_once"
            ),
        ]
        indexes = [models.Index(fields=["operation", "-attention", "number"], name="imported_row_flagged")]

    def __str__(self) -> str:
        return f"Row {self.number} of {self.operation_id}"

    @property
    def flag_labels(self) -> list[str]:
        return [str(RowFlag(flag).label) for flag in self.flags]


IS_WAITING_ROW = Q(operation__isnull=True, duplicate_of__isnull=True)
"""Rows that are not an operation yet, and may still become one while their batch is open."""
NEVER_APPROVED = Q(batch__status=Status.REJECTED) | Q(
    batch__decided_at__isnull=True, batch__closed_at__isnull=False
)
"""Rows of a batch that ended before its approval: none of them was or becomes an operation."""
