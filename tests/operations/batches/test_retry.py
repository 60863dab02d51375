"""Failed rows are retried: as they are, or corrected in a file that names why each of them failed."""

import csv
import io

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from openpyxl.reader.excel import load_workbook

from backoffice.accounts.models import User
from backoffice.operations.batches import checking, control, files, submission
from backoffice.operations.delivery import send
from backoffice.operations.errors import BatchClosedError
from backoffice.operations.models.batches import FileState, PayoutFile
from backoffice.operations.models.operations import Operation
from tests.operations.batches import payouts
from tests.operations.conftest import SignIn
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
        f'href="{path(batch)}">Retry failed rows…'
        in client.get(f"/operations/{batch.pk}/rows/").content.decode()
    )
    for page in (path(batch), f"/operations/{batch.pk}/rows/?show=failed"):
        html = client.get(page).content.decode()
        assert ["Account is closed" in html, "Unknown user" in html] == [True, True]
    html = client.get(path(batch)).content.decode()
    assert html.index("Account is closed") < html.index("Unknown user")
    assert "Retry 2 failed rows" in html
    assert "person.1" not in html


def test_the_file_of_failed_rows_has_the_columns_of_the_template_and_the_reason(
    sign_in: SignIn, preparer: User, batch: Operation
) -> None:
    client = sign_in(Client(), preparer)
    answer = client.get(path(batch, "file/"))
    assert answer["Content-Disposition"] == f'attachment; filename="{batch.reference}-failed.csv"'
    template = client.get("/operations/batches/templates/transfer.csv").content.decode("utf-8-sig").strip()
    header, second, third = csv.reader(io.StringIO(answer.content.decode("utf-8-sig")))
    assert ",".join(header) == f"{template},errors"
    assert second[:-1] == ["NGN", "2000.50", "person.2", "'=1+1", ""]
    assert third[:-1] == ["NGN", "3000.00", "person.3", "week 46", ""]
    assert ["Account is closed" in second[-1], "Unknown user" in third[-1]] == [True, True]


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
    assert "Download failed rows (Excel)" in client.get(path(batch)).content.decode()
    answer = client.get(path(batch, "file/"))
    assert answer["Content-Disposition"] == f'attachment; filename="{batch.reference}-failed.xlsx"'
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


def test_without_a_failed_row_there_is_nothing_to_retry(
    sign_in: SignIn, preparer: User, approver: User
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(1))
    client = sign_in(Client(), preparer)
    assert "No row has failed" in client.get(path(batch)).content.decode()
    for answer in (client.get(path(batch, "file/")), client.post(path(batch, "upload/"))):
        assert answer["Location"] == f"/operations/{batch.pk}/rows/"
    with pytest.raises(BatchClosedError):
        control.failed_file(batch)
