"""Unpaid rows are retried, each once: as they are, or corrected in a file that names why each of them was not paid."""

import csv
import io
from collections.abc import Callable
from decimal import Decimal
from importlib import import_module

import pytest
from django.apps import apps
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone
from openpyxl.reader.excel import load_workbook

from backoffice.accounts.models import User
from backoffice.operations.batches import checking, control, creation, files, reading, submission
from backoffice.operations.batches.retried_rows import retryable_rows
from backoffice.operations.delivery import send
from backoffice.operations.errors import FileOutdatedError, NothingToRetryError, OperationError
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.lifecycle.incidents import raise_incident
from backoffice.operations.models.batches import BatchRow, ColumnMapping, FileState, PayoutFile
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.reason_codes import IncidentKind
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations import steps
from tests.operations.batches import payouts
from tests.operations.conftest import SignIn
from tests.operations.kinds.samples import SAMPLES
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


ROWS = ["NGN,1000.00,person.1,,", "NGN,2000.50,person.2,=1+1,", "NGN,3000.00,person.3,week 46,"]


@pytest.fixture
def batch(preparer: User, approver: User, provider: StubProvider) -> Operation:
    """Its second and third row failed, the third first."""
    batch = payouts.applied(preparer, approver, ROWS)
    return with_failures(batch, approver, provider)


def with_failures(batch: Operation, approver: User, provider: StubProvider) -> Operation:
    _first, second, third = payouts.row_operations(batch)
    messages = iter(["Unknown user", "Account is closed"])
    provider.answer_post = lambda: (400, f'{{"success": false, "message": "{next(messages)}"}}')
    for operation in (third, second):
        send.send_operation(payouts.release(operation, approver).pk)
    return batch


def path(batch: Operation, part: str = "") -> str:
    return f"/operations/{batch.pk}/rows/retry/{part}"


def test_each_failed_row_is_shown_with_the_reason(sign_in: SignIn, preparer: User, batch: Operation) -> None:
    client = sign_in(Client(), preparer)
    assert (
        f'href="{path(batch)}">Retry 2 unpaid rows…'
        in client.get(f"/operations/{batch.pk}/rows/").content.decode()
    )
    for page in (path(batch), f"/operations/{batch.pk}/rows/?show=failed"):
        html = client.get(page).content.decode()
        assert ["Account is closed" in html, "Unknown user" in html] == [True, True]
    html = client.get(path(batch)).content.decode()
    assert html.index("Account is closed") < html.index("Unknown user")
    assert "Retry 2 unpaid rows" in html
    assert "person.1" not in html


def test_the_file_of_unpaid_rows_has_the_columns_of_the_file_their_numbers_and_the_reasons(
    sign_in: SignIn, preparer: User, batch: Operation
) -> None:
    client = sign_in(Client(), preparer)
    answer = client.get(path(batch, "file/"))
    assert answer["Content-Disposition"] == f'attachment; filename="{batch.reference}-unpaid.csv"'
    template = client.get("/operations/batches/templates/transfer.csv").content.decode("utf-8-sig").strip()
    header, second, third = csv.reader(io.StringIO(answer.content.decode("utf-8-sig")))
    assert ",".join(header) == f"{template},retried_row,errors"
    assert second[:-1] == ["NGN", "2000.50", "person.2", "'=1+1", "", "3"]
    assert third[:-1] == ["NGN", "3000.00", "person.3", "week 46", "", "4"]
    assert ["Account is closed" in second[-1], "Unknown user" in third[-1]] == [True, True]


def test_a_corrected_row_is_not_sent_once_the_first_one_turns_out_to_be_paid(
    sign_in: SignIn, preparer: User, approver: User, batch: Operation
) -> None:
    """The corrected one pays another recipient, so that only the rows show that both pay the same."""
    client = sign_in(Client(), preparer)
    content = client.get(path(batch, "file/")).content.replace(b"person.2", b"person.22")
    client.post(path(batch, "upload/"), {"file": SimpleUploadedFile("corrected.csv", content)})
    file = PayoutFile.objects.get(retry_of=batch)
    checking.check_file(file.pk, seconds=60)
    payouts.approve(submission.submit_file(file.pk, actor=preparer), approver)
    creation.create_operations(file.pk)
    first, corrected = (
        payouts.row_operations(batch)[1],
        payouts.row_operations(Operation.objects.get(pk=file.pk))[0],
    )
    raise_incident(first, kind=IncidentKind.EXECUTED_AFTER_ALL, evidence={})
    with pytest.raises(OperationError, match=f"{first.reference} may have been executed"):
        payouts.release(corrected, approver)


def test_a_corrected_file_becomes_a_batch_that_names_the_old_one(
    sign_in: SignIn, preparer: User, batch: Operation
) -> None:
    client = sign_in(Client(), preparer)
    content = client.get(path(batch, "file/")).content.replace(b"person.2", b"person.22")
    upload = SimpleUploadedFile("corrected.csv", content, content_type="text/csv")
    answer = client.post(path(batch, "upload/"), {"file": upload})
    file = PayoutFile.objects.get(retry_of=batch)
    assert answer["Location"] == f"/operations/batches/files/{file.pk}/"
    assert (file.retry_of, file.kind, file.state) == (batch, "transfer", FileState.CHECKING)
    assert "errors" not in file.mapping.values()
    checking.check_file(file.pk, seconds=60)
    again = submission.submit_file(file.pk, actor=preparer)
    assert again.prepared_from == batch
    assert [row.payload["receiver_username"] for row in again.rows.all()] == ["person.22", "person.3"]
    assert again.rows.get(number=2).payload["memo"] == "=1+1"
    assert f'href="/operations/{again.pk}/">{again.reference}</a>' in client.get(path(batch)).content.decode()


def test_failed_rows_of_a_workbook_are_corrected_and_retried_in_a_workbook(
    sign_in: SignIn, preparer: User, approver: User, provider: StubProvider
) -> None:
    content = payouts.workbook(*(row.split(",") for row in (payouts.HEADER, *ROWS)))
    file = files.upload_file(
        actor=preparer, kind="transfer", name="Payroll.XLSX", content=content, language="en"
    )
    pending = submission.submit_file(payouts.check(file, preparer).pk, actor=preparer)
    batch = with_failures(payouts.created(payouts.approve(pending, approver)), approver, provider)
    client = sign_in(Client(), preparer)
    assert "Download unpaid rows (Excel)" in client.get(path(batch)).content.decode()
    answer = client.get(path(batch, "file/"))
    assert answer["Content-Disposition"] == f'attachment; filename="{batch.reference}-unpaid.xlsx"'
    book = load_workbook(io.BytesIO(answer.content))
    (wrong,) = [cell for row in book.worksheets[0].iter_rows() for cell in row if cell.value == "person.2"]
    wrong.value = "person.22"
    corrected = io.BytesIO()
    book.save(corrected)
    client.post(path(batch, "upload/"), {"file": SimpleUploadedFile("c.xlsx", corrected.getvalue())})
    file = payouts.check(PayoutFile.objects.get(name="c.xlsx"), preparer)
    assert (file.error_count, file.retry_of) == (0, batch)
    assert [row.cells["receiver_username"] for row in file.rows.all()] == ["person.22", "person.3"]
    client.post(path(batch))
    as_it_is = PayoutFile.objects.get(name=f"{batch.reference}-retry.xlsx")
    checking.check_file(as_it_is.pk, seconds=60)
    assert [row.cells["memo"] for row in as_it_is.rows.all()] == ["=1+1", "week 46"]
    assert not as_it_is.rows.filter(has_errors=True).exists()


def test_a_file_that_cannot_be_read_is_refused_beside_the_reasons(
    sign_in: SignIn, preparer: User, batch: Operation
) -> None:
    client = sign_in(Client(), preparer)
    for data in ({}, {"file": SimpleUploadedFile("corrected.txt", b"currency\nNGN")}):
        answer = client.post(path(batch, "upload/"), data)
        assert answer.status_code == 422
        assert "Account is closed" in answer.content.decode()
    assert not PayoutFile.objects.filter(retry_of=batch).exists()


def test_rows_that_are_too_many_for_one_file_are_to_be_uploaded_in_several(
    sign_in: SignIn, preparer: User, batch: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_MEGABYTES", 0)
    answer = sign_in(Client(), preparer).post(path(batch), follow=True)
    assert answer.redirect_chain == [(path(batch), 302)]
    shown = answer.content.decode()
    assert "The file is larger than 0 MB. Nothing was prepared. Download the unpaid rows" in shown
    assert not PayoutFile.objects.filter(retry_of=batch).exists()


def test_without_an_unpaid_row_there_is_nothing_to_retry(
    sign_in: SignIn, preparer: User, approver: User
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(1))
    client = sign_in(Client(), preparer)
    assert "No rows to retry" in client.get(path(batch)).content.decode()
    for answer in (client.get(path(batch, "file/")), client.post(path(batch, "upload/"))):
        assert answer["Location"] == f"/operations/{batch.pk}/rows/"
    with pytest.raises(NothingToRetryError):
        control.retry_file(batch)


# Which rows, and that each is retried once


def numbers_to_retry(batch: Operation) -> list[int]:
    return list(retryable_rows(batch.pk).values_list("number", flat=True))


def retried(batch: Operation, person: User) -> Operation:
    """A pending batch of the rows that can be retried, as they are."""
    file = control.retry_rows(batch.pk, actor=person, language="en")
    assert checking.check_file(file.pk, seconds=60)
    return submission.submit_file(file.pk, actor=person)


def test_only_rows_that_were_certainly_not_paid_are_retried(preparer: User, approver: User) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(9))
    ways = (
        *((Status.SENDING, Status.FAILED), (Status.CANCELLED,), (Status.EXPIRED,)),
        *(
            (Status.SENDING, Status.UNKNOWN),
            (Status.SENDING, Status.UNKNOWN, Status.REVIEW),
            (Status.SENDING,),
        ),
        *((Status.SENDING, Status.PROCESSING), (Status.SENDING, Status.SUCCEEDED), ()),
    )
    for operation, statuses in zip(payouts.row_operations(batch), ways, strict=True):
        steps.put(operation, *statuses)
    assert numbers_to_retry(batch) == [2, 3, 4]
    rows = payouts.row_operations(batch)
    raise_incident(rows[0], kind=IncidentKind.EXECUTED_AFTER_ALL, evidence={})
    Incident.objects.update(acknowledged_at=timezone.now(), acknowledged_by=approver, note="compared")
    assert numbers_to_retry(batch) == [3, 4]
    with transaction.atomic():
        factories.lost_attempt(factories.incident_of_restore(), rows[2])
    assert numbers_to_retry(batch) == [3]
    copy = factories.prepared(preparer)
    with lifted(connection):
        Operation.objects.filter(pk=copy.pk).update(prepared_from=rows[1])
    assert numbers_to_retry(batch) == []
    steps.put(copy, Status.CANCELLED)
    assert numbers_to_retry(batch) == [3]
    incident = raise_incident(copy, kind=IncidentKind.EXECUTED_AFTER_ALL, evidence={})
    assert numbers_to_retry(batch) == []
    with lifted(connection):
        Incident.objects.filter(pk=incident.pk).delete()
    assert numbers_to_retry(batch) == [3]
    copy_of_copy = factories.prepared_to_another_account(preparer)
    with lifted(connection):
        Operation.objects.filter(pk=copy_of_copy.pk).update(prepared_from=copy)
    assert numbers_to_retry(batch) == []


@pytest.fixture
def duplicate(preparer: User, approver: User) -> BatchRow:
    """Row 2 of a batch, which became no operation: an equal one waits, prepared outside a batch."""
    batch = payouts.prepared(preparer, [f"{payouts.transfers(1)[0]}Bonus", *payouts.transfers(1, first=2)])
    row = batch.rows.get(number=2)
    content = read_content(Operation(kind=row.kind, payload=row.payload))[1]
    factories.prepared_of_kind(row.kind, content, preparer)
    payouts.created(payouts.approve(batch, approver))
    return batch.rows.get(number=2)


def test_a_row_is_retried_once_the_equal_operation_has_ended_unpaid(duplicate: BatchRow) -> None:
    batch, other = duplicate.batch, duplicate.duplicate_of
    assert other is not None
    steps.put(other, Status.APPROVED, Status.SENDING)
    assert numbers_to_retry(batch) == []
    steps.put(other, Status.FAILED)
    [free] = retryable_rows(batch.pk)
    assert free == duplicate
    assert control.unpaid_reason(free).startswith(f"{other.reference} has the same content")
    assert f"No operation was created. {other.reference} was not paid:" in control.unpaid_reason(free)
    raise_incident(other, kind=IncidentKind.EXECUTED_AFTER_ALL, evidence={})
    assert numbers_to_retry(batch) == []


def test_a_row_whose_equal_operation_was_prepared_again_is_not_retried(
    duplicate: BatchRow, preparer: User
) -> None:
    assert duplicate.duplicate_of is not None
    steps.put(duplicate.duplicate_of, Status.CANCELLED)
    assert numbers_to_retry(duplicate.batch) == [2]
    again = factories.prepared(preparer)
    with lifted(connection):
        Operation.objects.filter(pk=again.pk).update(prepared_from=duplicate.duplicate_of)
    assert numbers_to_retry(duplicate.batch) == []


def test_the_page_of_a_batch_offers_a_row_whose_equal_operation_was_rejected(
    sign_in: SignIn, duplicate: BatchRow, preparer: User
) -> None:
    batch, other = duplicate.batch, duplicate.duplicate_of
    assert other is not None
    client = sign_in(Client(), preparer)
    assert "Retry 1 unpaid row" not in client.get(f"/operations/{batch.pk}/rows/").content.decode()
    steps.put(other, Status.REJECTED)
    assert numbers_to_retry(batch) == [2]
    assert "Retry 1 unpaid row" in client.get(f"/operations/{batch.pk}/rows/").content.decode()


def test_the_duplicate_of_a_copy_of_a_row_is_retried_in_the_batch_of_that_row(
    duplicate: BatchRow, preparer: User, approver: User
) -> None:
    first = payouts.applied(preparer, approver, payouts.transfers(1, first=3))
    [original] = payouts.row_operations(first)
    steps.put(original, Status.SENDING, Status.FAILED)
    assert duplicate.duplicate_of is not None
    with lifted(connection):
        Operation.objects.filter(pk=duplicate.duplicate_of.pk).update(prepared_from=original)
    steps.put(duplicate.duplicate_of, Status.CANCELLED)
    assert (numbers_to_retry(first), numbers_to_retry(duplicate.batch)) == ([2], [])


def test_the_duplicate_of_a_row_of_another_batch_is_retried_there(
    duplicate: BatchRow, preparer: User, approver: User
) -> None:
    first = payouts.applied(preparer, approver, payouts.transfers(1, first=3))
    [other] = payouts.row_operations(first)
    with lifted(connection):
        BatchRow.objects.filter(pk=duplicate.pk).update(duplicate_of=other)
    steps.put(other, Status.SENDING, Status.FAILED)
    assert (numbers_to_retry(first), numbers_to_retry(duplicate.batch)) == ([2], [])


def test_the_rows_of_a_cancelled_batch_are_retried_with_the_reason(
    sign_in: SignIn, preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "CHUNK", 1)
    batch = payouts.approve(payouts.prepared(preparer, payouts.transfers(3)), approver)
    monkeypatch.setattr(
        creation, "raise_if_stop_requested", lambda: control.cancel_batch(batch.pk, actor=preparer)
    )
    creation.create_operations(batch.pk)
    control.cancel_due()
    html = sign_in(Client(), preparer).get(path(batch)).content.decode()
    assert "Retry 3 unpaid rows" in html
    assert "Cancelled. It was not sent." in html
    assert "No operation was created. Status of the batch: Cancelled." in html
    again = retried(batch, preparer)
    assert list(again.rows.values_list("number", "retried_number")) == [(2, 2), (3, 3), (4, 4)]


def test_a_row_is_retried_by_one_batch_only(
    sign_in: SignIn, preparer: User, approver: User, batch: Operation
) -> None:
    client = sign_in(Client(), preparer)
    stale = client.get(path(batch, "file/")).content.replace(b"person.2", b"person.22")
    again = retried(batch, preparer)
    assert numbers_to_retry(batch) == []
    assert "unpaid row" not in client.get(f"/operations/{batch.pk}/rows/").content.decode()
    page = client.get(path(batch)).content.decode()
    assert "No rows to retry" in page
    assert again.reference in page
    # Corrected, so that nothing else shows that the first row is the same payment.
    name = f"{batch.reference}-unpaid.csv"
    file = files.upload_file(
        actor=preparer, kind="transfer", name=name, content=stale, language="en", retry_of=batch
    )
    checked = payouts.check(file, preparer)
    problems = [dict(row.errors).get("retried_row", "") for row in checked.rows.all()]
    assert [text.startswith("Row 3 cannot be retried") for text in problems] == [True, False]
    assert problems[1].startswith("Row 4 cannot be retried")
    payouts.created(payouts.approve(again, approver))
    for operation in payouts.row_operations(again):
        steps.put(operation, Status.SENDING, Status.FAILED)
    assert (numbers_to_retry(batch), numbers_to_retry(again)) == ([], [2, 3])


def test_two_checked_files_do_not_retry_a_row_twice(
    sign_in: SignIn, preparer: User, batch: Operation
) -> None:
    """The second one pays other accounts, so that nothing but the numbers of its rows shows what it repeats."""
    content = sign_in(Client(), preparer).get(path(batch, "file/")).content.replace(b"person.", b"account.")
    file = files.upload_file(
        actor=preparer, kind="transfer", name="c.csv", content=content, language="en", retry_of=batch
    )
    assert payouts.check(file, preparer).error_count == 0
    retried(batch, preparer)
    with pytest.raises(FileOutdatedError):
        submission.submit_file(file.pk, actor=preparer)
    checking.check_file(file.pk, seconds=60)
    file.refresh_from_db()
    assert file.error_count == 2


@pytest.mark.parametrize("end", [approvals.reject_operation, approvals.cancel_operation])
def test_a_retry_that_was_not_approved_gives_its_rows_back(
    preparer: User, approver: User, batch: Operation, end: Callable[..., Operation]
) -> None:
    again = retried(batch, preparer)
    assert numbers_to_retry(batch) == []
    if end is approvals.reject_operation:
        given = {"reason": "Wrong amounts", "digest": again.digest, "second_factor_at": timezone.now()}
        again = end(again.pk, actor=approver, **given)
    else:
        again = end(again.pk, actor=preparer)
    assert (numbers_to_retry(batch), numbers_to_retry(again)) == ([3, 4], [])


def test_a_batch_that_was_not_approved_is_prepared_again_where_its_rows_are_retried(
    sign_in: SignIn, preparer: User, approver: User, batch: Operation
) -> None:
    """From a new file of these rows nothing would show that they are the same payments."""
    retry = retried(batch, preparer)
    other = payouts.prepared(preparer, payouts.transfers(2, first=20))
    steps.put(retry, Status.REJECTED)
    steps.put(other, Status.CANCELLED)
    client = sign_in(Client(), preparer)
    for operation, retried_in in ((retry, batch), (other, other)):
        page = client.get(operation.get_absolute_url()).content.decode()
        address = f"/operations/prepare/batch/?copy={operation.pk}"
        assert address in page
        assert client.get(address)["Location"] == f"/operations/{retried_in.pk}/rows/retry/"
    rejected = payouts.prepared(preparer, payouts.transfers(1, first=30))
    steps.put(rejected, Status.REJECTED)
    again = client.get(f"/operations/prepare/batch/?copy={rejected.pk}")
    assert again["Location"].partition("?")[0] == "/operations/batches/files/"


def test_a_batch_that_expired_before_its_approval_is_retried(preparer: User) -> None:
    batch = payouts.prepared(preparer, payouts.transfers(2))
    assert numbers_to_retry(batch) == []
    steps.put(batch, Status.EXPIRED)
    assert numbers_to_retry(batch) == [2, 3]


def test_each_row_to_retry_names_its_row_once(sign_in: SignIn, preparer: User, batch: Operation) -> None:
    content = sign_in(Client(), preparer).get(path(batch, "file/")).content.decode("utf-8-sig")
    header, first, second = content.splitlines()
    texts = {
        "Another row of this file retries row 3": [first, second.replace(",4,", ",3,")],
        "Enter the number of the row": [first, second.replace(",4,", ",,")],
        "Row 2 cannot be retried": [first, second.replace(",4,", ",2,")],
    }
    for text, rows in texts.items():
        file = files.upload_file(
            actor=preparer,
            kind="transfer",
            name="corrected.csv",
            content="\n".join([header, *rows]).encode(),
            language="en",
            retry_of=batch,
        )
        checked = payouts.check(file, preparer)
        assert checked.error_count == 1
        assert dict(checked.rows.get(has_errors=True).errors)["retried_row"].startswith(text)


def test_a_row_far_below_the_header_is_retried(
    preparer: User, approver: User, provider: StubProvider
) -> None:
    """A spreadsheet may have many empty rows before it."""
    far = payouts.applied(preparer, approver, [ROWS[0], *[""] * 100_000, *ROWS[1:]])
    batch = with_failures(far, approver, provider)
    file = control.retry_rows(batch.pk, actor=preparer, language="en")
    checking.check_file(file.pk, seconds=60)
    file.refresh_from_db()
    assert (file.state, file.row_count, file.error_count) == (FileState.CHECKED, 2, 0)


def test_a_small_amount_is_written_without_an_exponent() -> None:
    payload = SAMPLES["wallet_transfer"].model_copy(update={"amount": Decimal("0.00000025")}).stored()
    row = BatchRow(number=2, kind="wallet_transfer", payload=payload)
    assert control._cells(row, ["amount", "retried_row"]) == ["0.00000025", "2"]


def test_rows_to_retry_are_not_taken_for_new_payouts(
    sign_in: SignIn, preparer: User, batch: Operation
) -> None:
    client = sign_in(Client(), preparer)
    content = client.get(path(batch, "file/")).content
    upload = SimpleUploadedFile("corrected.csv", content, content_type="text/csv")
    answer = client.post("/operations/batches/files/", {"kind": "transfer", "file": upload})
    assert answer.status_code == 422
    assert "These are rows of a batch to retry." in answer.content.decode()


def test_a_retry_keeps_the_headings_of_the_file_and_the_columns_that_are_remembered(
    sign_in: SignIn, preparer: User, approver: User, provider: StubProvider
) -> None:
    rows = ["payroll,person.1,1000.00,NGN", "payroll,person.2,2000.00,NGN", "payroll,person.3,3000.00,NGN"]
    file = payouts.checked(preparer, rows, header="Run,Staff login,Net pay,Curr.")
    mapping = {"currency": "Curr.", "amount": "Net pay", "receiver_username": "Staff login"}
    files.check_columns(file.pk, actor=preparer, mapping=mapping)
    checking.check_file(file.pk, seconds=60)
    pending = submission.submit_file(file.pk, actor=preparer)
    batch = with_failures(payouts.created(payouts.approve(pending, approver)), approver, provider)
    content = sign_in(Client(), preparer).get(path(batch, "file/")).content.decode("utf-8-sig")
    assert content.splitlines()[0] == "Staff login,Net pay,Curr.,memo,duplicate_reason,retried_row,errors"
    assert retried(batch, preparer).rows.count() == 2
    assert ColumnMapping.objects.get().mapping == mapping


def test_the_row_that_is_retried_does_not_change(preparer: User, batch: Operation) -> None:
    again = retried(batch, preparer)
    with pytest.raises(DatabaseError), transaction.atomic():
        again.rows.update(retried_number=None)


def test_the_migration_names_the_rows_that_earlier_retries_took_over(
    sign_in: SignIn, preparer: User, batch: Operation
) -> None:
    """The second row was corrected, so that only its place says which one it was."""
    content = sign_in(Client(), preparer).get(path(batch, "file/")).content.replace(b"person.2", b"person.22")
    file = files.upload_file(
        actor=preparer, kind="transfer", name="c.csv", content=content, language="en", retry_of=batch
    )
    again = submission.submit_file(payouts.check(file, preparer).pk, actor=preparer)
    with lifted(connection):
        again.rows.update(retried_number=None)
        assert numbers_to_retry(batch) == [3, 4]
        import_module("backoffice.operations.migrations.0023_retried_rows").name_retried_rows(apps, None)
    assert list(again.rows.values_list("number", "retried_number")) == [(2, 3), (3, 4)]
    assert numbers_to_retry(batch) == []
