"""The rows of a batch that can be prepared again, each by one later batch only.

A batch that retries another names it, and each of its rows the number of the row that it prepares again: so a row is
known as the same payment whatever was corrected in it.
"""

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils.translation import gettext

from backoffice.operations.batches.columns import RETRIED_ROW
from backoffice.operations.batches.reading import LAST_ROW
from backoffice.operations.models.batches import (
    IS_WAITING_ROW,
    NEVER_APPROVED,
    BatchRow,
    PayoutFile,
    PayoutFileRow,
)
from backoffice.operations.models.monitoring import POSSIBLY_PAID, Incident, LostAttempt
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import NOT_EXECUTED, Status

_ENDED_UNSENT = (Status.CANCELLED, Status.EXPIRED)
_UNPAID = (Status.FAILED, *_ENDED_UNSENT)
# Rows of a batch that ended before all of them were operations. Not those of a retry that was never approved: they are
# retried in the batch from which it took them.
_NOT_CREATED = Q(IS_WAITING_ROW, batch__status__in=_ENDED_UNSENT) & ~(
    Q(retried_number__isnull=False) & NEVER_APPROVED
)
# Rows for which no operation was created because an equal one was waiting or being sent, and that one ended unpaid. Not
# if it belongs to a row of another batch, or is a copy of such a one: that payment is retried in the other batch.
_DUPLICATE_UNPAID = Q(
    duplicate_of__status__in=NOT_EXECUTED,
    duplicate_of__batch_row__isnull=True,
    duplicate_of__prepared_from__batch_row__isnull=True,
)


def retryable_rows(batch_id: UUID) -> QuerySet[BatchRow]:
    """The rows of this batch that were not paid and that no other batch prepares again, each with its operation.

    Their operation failed, was cancelled or expired, or the batch was before there was one; or the equal operation
    because of which there is none was not executed. Without rows that may have been paid, and those whose operation was
    prepared again: the copy may still be paid or may have been, or it was copied in turn.
    """
    of_operation = Coalesce(OuterRef("operation"), OuterRef("duplicate_of"))
    copies = Operation.objects.filter(prepared_from=of_operation)
    of_either = Q(operation=of_operation) | Q(operation__prepared_from=of_operation)
    retried = BatchRow.objects.filter(
        batch__batch__retry_of=OuterRef("batch"), retried_number=OuterRef("number")
    )
    taken_over = (
        retried.exclude(NEVER_APPROVED),
        copies.exclude(status__in=NOT_EXECUTED),
        copies.filter(copies__isnull=False),
        Incident.objects.filter(of_either, kind__in=POSSIBLY_PAID),
        LostAttempt.objects.maybe_executed().filter(of_either),
    )
    unpaid = BatchRow.objects.filter(
        Q(operation__status__in=_UNPAID) | _DUPLICATE_UNPAID | _NOT_CREATED, batch=batch_id
    )
    free = unpaid.filter(*(~Exists(found) for found in taken_over))
    return free.select_related("operation", "duplicate_of", "batch").order_by("number")


def are_retryable(batch_id: UUID, numbers: Sequence[int | None]) -> bool:
    """Whether all of these rows of the batch can be prepared again, each once."""
    free = set(retryable_rows(batch_id).values_list("number", flat=True))
    return len(set(numbers)) == len(numbers) and free.issuperset(numbers)


def check_retried(file: PayoutFile, rows: Sequence[PayoutFileRow]) -> None:
    """Set which row of the batch each of these rows prepares again, with an error beside one that names none.

    Changes nothing in a file that retries no batch. `rows` follow those that were checked before.
    """
    if file.retry_of_id is None or not rows:
        return
    free = set(retryable_rows(file.retry_of_id).values_list("number", flat=True))
    earlier = file.rows.filter(number__lt=rows[0].number, retried_number__isnull=False)
    named = set(earlier.values_list("retried_number", flat=True))
    for row in rows:
        number = _number(row.cells.get(RETRIED_ROW, ""))
        row.retried_number = number if number in free - named else None
        if row.retried_number is None:
            row.errors = [*row.errors, [RETRIED_ROW, _problem(number, named)]]
        named.add(row.retried_number)


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= len(str(LAST_ROW)) else None


def _problem(number: int | None, named: set[int | None]) -> str:
    if number is None:
        return gettext("Enter the number of the row that is retried, as in the file that you downloaded.")
    if number in named:
        text = gettext("Another row of this file retries row {row}. Remove one of them.")
    else:
        text = gettext("Row {row} cannot be retried: it was paid, may have been paid, or is retried already.")
    return text.format(row=number)
