"""Upload a file of payments or recipients, choose its columns, have it checked, and correct it.

A file belongs to the person who uploaded it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from uuid import UUID

from django.db import transaction

from backoffice.accounts.models import User
from backoffice.core import background, clock
from backoffice.operations import policy
from backoffice.operations.batches.checking import CHECK_TASK, columns_of, rules_of
from backoffice.operations.batches.columns import (
    ERRORS,
    RETRIED_ROW,
    file_with_errors,
    format_of,
    guess_mapping,
    has_template_columns,
    with_retried_row,
    without_errors,
)
from backoffice.operations.batches.reading import (
    KNOWN_DELIMITERS,
    FileRow,
    UnreadableFileError,
    check_name,
    delimiter_of,
    read_header,
    read_rows,
)
from backoffice.operations.errors import FileNotReadyError
from backoffice.operations.models.batches import (
    MAX_ROWS,
    ColumnMapping,
    FileProblem,
    FileState,
    PayoutFile,
    PayoutFileRow,
)
from backoffice.operations.models.operations import Operation

_LONGEST_NAME = 120


def upload_file(
    *, actor: User, kind: str, name: str, content: bytes, language: str, retry_of: Operation | None = None
) -> PayoutFile:
    """Store a file, with its columns as this person's last file of the kind had them, or as the batch that it retries.

    Raises PermissionMissingError, and UnreadableFileError if its name has another ending than such a file has, its
    header cannot be read, no row follows, or its rows retry those of a batch that is not given.
    """
    policy.check_may_prepare(actor, kind)
    check_name(name, content)
    headers = without_errors(read_header(content))
    columns = rules_of(kind).columns
    last: PayoutFile | ColumnMapping | None
    if retry_of is None and RETRIED_ROW in headers:
        raise UnreadableFileError(FileProblem.ROWS_TO_RETRY)
    if retry_of:
        columns = with_retried_row(columns)
        last = PayoutFile.objects.filter(pk=retry_of.pk).first()
    else:
        last = ColumnMapping.objects.filter(person=actor, kind=kind).first()
    return PayoutFile.objects.create(
        uploader=actor,
        kind=kind,
        name=name[-_LONGEST_NAME:],
        content=content,
        headers=headers,
        mapping=guess_mapping(columns, headers, last.mapping if last else {}),
        language=language,
        retry_of=retry_of,
        uploaded_at=clock.now(),
    )


@transaction.atomic
def check_columns(file_id: UUID, *, actor: User, mapping: Mapping[str, str]) -> PayoutFile:
    """Have the rows checked from the beginning, and remember which column has which field.

    A file of rows to retry has the columns of its batch, which another person may have chosen: they are not remembered.
    Raises FileNotReadyError if the file was submitted.
    """
    file = own_file(file_id, actor)
    if file.state == FileState.SUBMITTED:
        raise FileNotReadyError
    file.mapping = dict(mapping)
    if file.retry_of_id is None:
        ColumnMapping.objects.update_or_create(
            person=actor, kind=file.kind, defaults={"mapping": file.mapping}
        )
    restart_check(file)
    return file


@transaction.atomic
def check_template_columns(file_id: UUID, *, actor: User) -> bool:
    """Have the rows checked if the file has exactly the columns of the template, so that there is nothing to choose.

    What this person chose for other files stays remembered.
    """
    file = own_file(file_id, actor)
    columns = columns_of(file)
    if not has_template_columns(columns, file.headers):
        return False
    file.mapping = {name: name for name in columns.labels}
    restart_check(file)
    return True


def restart_check(file: PayoutFile) -> None:
    """Check all rows anew, inside the caller's transaction."""
    file.state, file.problem, file.next_check_at = FileState.CHECKING, {}, None
    file.row_count = file.checked_count = file.error_count = 0
    file.save(
        update_fields=[
            *("mapping", "state", "problem", "next_check_at"),
            *("row_count", "checked_count", "error_count"),
        ]
    )
    background.enqueue_on_commit(CHECK_TASK, file.pk)


@transaction.atomic
def recheck_outdated(file_id: UUID, *, actor: User) -> None:
    """Check the rows of a checked file anew. Does nothing if it was submitted or restarted meanwhile."""
    file = own_file(file_id, actor)
    if file.state == FileState.CHECKED:
        restart_check(file)


def file_of_errors(file: PayoutFile) -> bytes:
    """The uploaded file, with the headings and the columns as they are, and the errors of each row at the end.

    Uploaded again once it is corrected, its columns are those that were chosen for this one.
    """
    content, suffix = bytes(file.content), format_of(file.name)
    delimiter = delimiter_of(content) if suffix == "csv" else ","
    labels = columns_of(file).labels
    errors = {row.number: _errors_text(row, labels) for row in file.rows.filter(has_errors=True)}
    header, *rows = _with_empty_rows(read_rows(content))
    dropped = [place for place, title in enumerate(header.cells) if title.casefold() == ERRORS]
    return file_with_errors(
        rules_of(file.kind).columns.sheet,
        _without(dropped, header.cells),
        ((_without(dropped, row.cells), errors.get(row.number, "")) for row in rows),
        suffix,
        delimiter=delimiter if delimiter in KNOWN_DELIMITERS else ",",
    )


def _without(dropped: Collection[int], cells: Iterable[str]) -> list[str]:
    return [cell for place, cell in enumerate(cells) if place not in dropped]


def _with_empty_rows(rows: Iterable[FileRow]) -> Iterator[FileRow]:
    """The rows with the empty ones between them, of which there may be MAX_ROWS: so each keeps its number."""
    following, left = 0, MAX_ROWS
    for row in rows:
        missing = min(row.number - following, left) if following else 0
        left -= missing
        yield from [FileRow(0, ())] * missing
        yield row
        following = row.number + 1


def _errors_text(row: PayoutFileRow, labels: Mapping[str, str]) -> str:
    return "; ".join(f"{labels[name]}: {problem}" if name else problem for name, problem in row.errors)


@transaction.atomic
def delete_file(file_id: UUID, *, actor: User) -> None:
    """Delete a file that was not submitted, with its rows. Raises FileNotReadyError if it was."""
    file = own_file(file_id, actor)
    if file.state == FileState.SUBMITTED:
        raise FileNotReadyError
    file.delete()


def own_file(file_id: UUID, person: User) -> PayoutFile:
    """The file, locked until the end of the transaction. Raises PayoutFile.DoesNotExist for another person's."""
    return PayoutFile.objects.select_for_update(of=("self",)).get(pk=file_id, uploader=person)
