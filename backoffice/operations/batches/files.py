"""Upload a file of payouts or recipients, choose its columns, and have it checked.

A file belongs to the person who uploaded it.
"""

from collections.abc import Mapping
from uuid import UUID

from django.db import transaction

from backoffice.accounts.models import User
from backoffice.core import background, clock
from backoffice.operations import policy
from backoffice.operations.batches.checking import CHECK_TASK, rules_of
from backoffice.operations.batches.columns import guess_mapping, has_template_columns
from backoffice.operations.batches.reading import check_name, read_header
from backoffice.operations.errors import FileNotReadyError
from backoffice.operations.models.batches import ColumnMapping, FileState, PayoutFile
from backoffice.operations.models.operations import Operation

_LONGEST_NAME = 120


def upload_file(
    *, actor: User, kind: str, name: str, content: bytes, language: str, retry_of: Operation | None = None
) -> PayoutFile:
    """Store a file, with its columns as this person's last file of the kind had them.

    Raises PermissionMissingError, and UnreadableFileError if its name has another ending than such a file has, its
    header cannot be read, or no row follows.
    """
    policy.check_may_prepare(actor, kind)
    check_name(name, content)
    headers = read_header(content)
    last = ColumnMapping.objects.filter(person=actor, kind=kind).first()
    return PayoutFile.objects.create(
        uploader=actor,
        kind=kind,
        name=name[-_LONGEST_NAME:],
        content=content,
        headers=headers,
        mapping=guess_mapping(rules_of(kind).columns, headers, last.mapping if last else {}),
        language=language,
        retry_of=retry_of,
        uploaded_at=clock.now(),
    )


@transaction.atomic
def check_columns(file_id: UUID, *, actor: User, mapping: Mapping[str, str]) -> PayoutFile:
    """Remember which column has which field, and have the rows checked from the beginning.

    Raises FileNotReadyError if the file was submitted.
    """
    file = own_file(file_id, actor)
    if file.state == FileState.SUBMITTED:
        raise FileNotReadyError
    file.mapping = dict(mapping)
    ColumnMapping.objects.update_or_create(person=actor, kind=file.kind, defaults={"mapping": file.mapping})
    restart_check(file)
    return file


@transaction.atomic
def check_template_columns(file_id: UUID, *, actor: User) -> bool:
    """Have the rows checked if the file has exactly the columns of the template, so that there is nothing to choose.

    What this person chose for other files stays remembered.
    """
    file = own_file(file_id, actor)
    columns = rules_of(file.kind).columns
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
def delete_file(file_id: UUID, *, actor: User) -> None:
    """Delete a file that was not submitted, with its rows. Raises FileNotReadyError if it was."""
    file = own_file(file_id, actor)
    if file.state == FileState.SUBMITTED:
        raise FileNotReadyError
    file.delete()


def own_file(file_id: UUID, person: User) -> PayoutFile:
    """The file, locked until the end of the transaction. Raises PayoutFile.DoesNotExist for another person's."""
    return PayoutFile.objects.select_for_update(of=("self",)).get(pk=file_id, uploader=person)
