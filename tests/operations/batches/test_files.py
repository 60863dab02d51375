"""Reading a file of payments: as a spreadsheet shows it, within limits."""

import csv
import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from openpyxl.reader.excel import load_workbook
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import User
from backoffice.ledger import accounts
from backoffice.operations.batches import checking, columns, files, reading
from backoffice.operations.batches.checking import rules_of
from backoffice.operations.batches.payout_rows import PayoutRows
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.kinds.wallet_transfer import WalletTransferForm
from backoffice.operations.models.batches import (
    MAX_ROWS,
    RECIPIENT,
    ColumnMapping,
    FileProblem,
    FileState,
    PayoutFile,
)
from backoffice.policies.models import PolicyVersion
from tests.append_only.triggers import lifted
from tests.operations.batches import payouts
from tests.operations.batches.payouts import workbook
from tests.policies.versions import levels, put_in_effect
from tests.stub_provider import StubProvider

SignIn = Callable[[Client, User], Client]


def problem_of(content: bytes) -> str:
    with pytest.raises(reading.UnreadableFileError) as refused:
        list(reading.read_rows(content))
    return str(refused.value.problem["code"])


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_csv_file_is_read_whatever_separates_its_cells(delimiter: str) -> None:
    text = f"\ufeffcurrency{delimiter}amount\r\nNGN{delimiter}5.00\r\n\r\nUSD{delimiter}7\r\n"
    rows = list(reading.read_rows(text.encode()))
    assert [(row.number, row.cells) for row in rows] == [
        (1, ("currency", "amount")),
        (2, ("NGN", "5.00")),
        (4, ("USD", "7")),
    ]


def test_a_workbook_is_read_as_it_is_shown() -> None:
    rows = list(reading.read_rows(workbook(("account", "amount"), ("0123456789", 1234.5), (44, 0.1))))
    assert [row.cells for row in rows[1:]] == [("0123456789", "1234.5"), ("44", "0.1")]


def test_our_apostrophe_before_a_formula_is_removed() -> None:
    assert list(reading.read_rows(b"memo\n'=1+1\n'quoted\n'\n"))[1:] == [
        reading.FileRow(2, ("=1+1",)),
        reading.FileRow(3, ("'quoted",)),
        reading.FileRow(4, ("'",)),
    ]


def test_what_is_no_table_or_too_large_is_refused() -> None:
    assert problem_of(b"\xff\xfe\x00a") == FileProblem.NOT_A_TABLE
    assert problem_of(b"PK\x03\x04 no archive") == FileProblem.NOT_A_TABLE
    assert problem_of(b"a\n" + b"x\n" * (MAX_ROWS + 1)) == FileProblem.TOO_MANY_ROWS
    assert problem_of(b"a," * 100) == FileProblem.TOO_MANY_COLUMNS
    assert problem_of(b"a\n" + b"x" * 501) == FileProblem.CELL_TOO_LONG
    assert problem_of(b"x" * 4_000_001) == FileProblem.TOO_LARGE


@pytest.mark.django_db
def test_a_file_whose_name_ends_like_another_kind_of_file_is_refused(sign_in: SignIn, preparer: User) -> None:
    text = "\n".join([payouts.HEADER, *payouts.transfers(1)]).encode()
    book = workbook(tuple(payouts.HEADER.split(",")), tuple(payouts.transfers(1)[0].split(",")))
    client = sign_in(Client(), preparer)
    for name, content, status in (
        ("a.CSV", text, 302),
        ("a.xlsx", book, 302),
        ("a.xlsx", text, 422),
        ("a.csv", book, 422),
        ("a.csv.exe", text, 422),
        ("a", text, 422),
    ):
        file = io.BytesIO(content)
        file.name = name
        answer = client.post("/operations/batches/files/", {"kind": "transfer", "file": file})
        assert (name, answer.status_code) == (name, status)
    assert "must end in .csv" in answer.content.decode()
    assert PayoutFile.objects.count() == 2


def test_a_workbook_that_unpacks_to_too_much_is_not_unpacked() -> None:
    content = io.BytesIO(workbook(("a",), ("b",)))
    with zipfile.ZipFile(content, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/media/bomb.xml", b"0" * (reading.MAX_UNPACKED + 1))
    assert problem_of(content.getvalue()) == FileProblem.TOO_LARGE


def test_a_workbook_with_entities_is_refused() -> None:
    content = io.BytesIO(workbook(("a",), ("b",)))
    with zipfile.ZipFile(content, "a") as archive:
        archive.writestr("xl/other.xml", b'<!DOCTYPE x [<!ENTITY a "aaaa">]>')
    assert problem_of(content.getvalue()) == FileProblem.NOT_A_TABLE


@pytest.mark.parametrize("kind", ["withdrawal", "transfer", "wallet_transfer"])
def test_the_templates_name_the_fields_in_both_formats(kind: str) -> None:
    found = PayoutRows(KINDS[kind]).columns
    for content in (columns.csv_template(found), columns.xlsx_template(found)):
        header = next(reading.read_rows(content)).cells
        assert header == KINDS[kind].file_fields
        assert columns.guess_mapping(found, header, {}) == {name: name for name in header}


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["withdrawal", "transfer", "wallet_transfer", RECIPIENT])
def test_no_row_can_be_imported_from_a_template(kind: str) -> None:
    found = rules_of(kind).columns
    for content in (columns.csv_template(found), columns.xlsx_template(found)):
        assert len(list(reading.read_rows(content))) == 1
        with pytest.raises(reading.UnreadableFileError) as refused:
            reading.read_header(content)
        assert refused.value.problem["code"] == FileProblem.NO_ROWS


def sheets_of(content: bytes) -> dict[str, list[tuple[Any, ...]]]:
    workbook = load_workbook(io.BytesIO(content))
    return {sheet.title: list(sheet.values) for sheet in workbook.worksheets}


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["withdrawal", RECIPIENT])
def test_a_workbook_explains_each_column_and_lists_the_banks(kind: str) -> None:
    found = rules_of(kind).columns
    first, helping, listed = sheets_of(columns.xlsx_template(found)).values()
    assert [row[0] for row in helping[1:]] == list(first[0])
    assert {row[0] for row in helping[1:] if row[2] == "yes"} == set(found.needed)
    assert all(row[4] for row in helping[1:] if row[2] == "yes")
    assert dict(listed[1:]) == dict(accounts.banks())


@pytest.mark.django_db
def test_the_form_accepts_the_examples_of_a_template() -> None:
    found = PayoutRows(KINDS["wallet_transfer"]).columns
    examples = {row[0]: row[4] for row in found.help_rows()}
    form = WalletTransferForm({**examples, "network": "ERC20"})
    assert "address" not in form.errors
    assert columns.EXAMPLES["bank_code"] in accounts.banks()


@pytest.mark.django_db
def test_the_bank_codes_are_a_file_beside_the_templates(sign_in: SignIn, preparer: User) -> None:
    client = sign_in(Client(), preparer)
    for page in ("operations:payout_files", "governance:recipient_files"):
        shown = client.get(reverse(page)).content.decode()
        assert reverse("operations:bank_codes", args=["csv"]) in shown
    answer = client.get(reverse("operations:bank_codes", args=["csv"]))
    rows = [row.cells for row in reading.read_rows(answer.content)]
    assert rows[0] == ("Bank code", "Bank")
    assert sorted(rows[1:]) == sorted(accounts.banks().items())
    assert client.get(reverse("operations:bank_codes", args=["pdf"])).status_code == 404


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@now", "\tx", "\rx"])
def test_a_text_that_a_spreadsheet_would_run_stays_text(text: str) -> None:
    written = columns.file_with_errors("Payments", ["memo"], [([text], ""), (["First Bank"], "")], "csv")
    (_, (first, _), (second, _)) = csv.reader(io.StringIO(written.decode("utf-8-sig"), newline=""))
    assert (first, second) == (f"'{text}", "First Bank")


@pytest.mark.django_db
def test_the_columns_of_the_last_file_are_remembered(preparer: User) -> None:
    header = "Currency,Betrag,receiver_username,Note,Why"
    mapping = {"currency": "Currency", "amount": "Betrag", "receiver_username": "receiver_username"}
    file = payouts.uploaded(preparer, payouts.transfers(1), header=header)
    assert "amount" not in file.mapping
    files.check_columns(file.pk, actor=preparer, mapping=mapping)
    assert payouts.uploaded(preparer, payouts.transfers(1), header=header).mapping == mapping


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["transfer", RECIPIENT])
def test_a_file_with_exactly_the_columns_of_the_template_is_checked_at_once(
    sign_in: SignIn, preparer: User, kind: str
) -> None:
    client, names = sign_in(Client(), preparer), list(rules_of(kind).columns.labels)
    url = "/settings/recipients/import/" if kind == RECIPIENT else "/operations/batches/files/"
    mapping = {names[-1]: "Note"}
    ColumnMapping.objects.create(person=preparer, kind=kind, mapping=mapping)
    for header, state in (
        (names, FileState.CHECKING),
        ([*names, "errors"], FileState.CHECKING),
        ([*names, "Note"], FileState.UPLOADED),
        (names[:-1], FileState.UPLOADED),
    ):
        content = io.BytesIO(f"{','.join(header)}\nx\n".encode())
        content.name = "file.csv"
        answer = client.post(url, {"kind": kind, "file": content})
        file = PayoutFile.objects.get(pk=answer["Location"].rstrip("/").rpartition("/")[2])
        assert file.state == state, header
        assert state == FileState.UPLOADED or file.mapping == {name: name for name in names}
    assert ColumnMapping.objects.get().mapping == mapping, "what was chosen for other files stays remembered"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "mapping"),
    [
        (
            "withdrawal",
            {
                "currency": "Curency",
                "amount": "Ammount",
                "bank_code": "Bank name",
                "account_number": "acount number",
                "typed_name": "beneficiary name",
                "memo": "Narration",
            },
        ),
        ("withdrawal", {"account_number": "Account", "typed_name": "Account name", "amount": "NET PAY"}),
        ("withdrawal", {"account_number": "Beneficiary account", "typed_name": "Beneficiary"}),
        ("transfer", {"receiver_username": "User name", "amount": "amout", "currency": "CCY"}),
        ("wallet_transfer", {"address": "Wallet adress", "network": "Blockchain"}),
        (RECIPIENT, {"name": "Payee", "account": "Account number", "notes": "Comments"}),
    ],
)
def test_misspelt_headings_and_those_that_people_use_are_recognised(
    kind: str, mapping: dict[str, str]
) -> None:
    headers = ["Period", *mapping.values(), "Approved by"]
    assert columns.guess_mapping(rules_of(kind).columns, headers, {}) == mapping


@pytest.mark.django_db
def test_no_column_is_guessed_for_two_fields() -> None:
    found = columns.guess_mapping(
        rules_of("withdrawal").columns, ["amount", "Ammount", "name", "account name", "---"], {"memo": "name"}
    )
    assert found == {"amount": "amount", "typed_name": "account name", "memo": "name"}


@pytest.mark.django_db(transaction=True)
def test_a_corrected_file_of_errors_keeps_headings_order_and_remembered_columns(
    sign_in: SignIn, preparer: User
) -> None:
    lines = [
        "Run;Who;How much;Money;ERRORS",
        "7;person.1;much;NGN;old",
        "",
        "7;person.2;20;NGN;",
        "7;person.3;x",
    ]
    mapping = {"currency": "Money", "amount": "How much", "receiver_username": "Who"}
    file = upload(preparer, "payroll.csv", "\n".join(lines).encode(), kind="transfer")
    assert "ERRORS" not in file.headers
    files.check_columns(file.pk, actor=preparer, mapping=mapping)
    checking.check_file(file.pk, seconds=60)
    content = sign_in(Client(), preparer).get(f"{file.get_absolute_url()}errors/").content
    header, first, empty, second, third = content.decode("utf-8-sig").splitlines()
    assert (header, empty, second) == ("Run;Who;How much;Money;errors", "", "7;person.2;20;NGN;")
    assert first.startswith("7;person.1;much;NGN;Amount: ")
    assert third.startswith("7;person.3;x;;")
    corrected = content.replace(b"much;NGN", b"10;NGN").replace(b"x;;", b"30;NGN;")
    again = upload(preparer, "payroll-errors.csv", corrected, kind="transfer")
    assert (again.headers, again.mapping) == (["Run", "Who", "How much", "Money"], mapping)
    assert payouts.check(again, preparer).error_count == 0
    assert list(again.rows.values_list("number", flat=True)) == [2, 4, 5]
    assert ColumnMapping.objects.get().mapping == mapping


@pytest.mark.django_db
def test_a_heading_with_a_line_break_can_be_selected(sign_in: SignIn, preparer: User) -> None:
    """As spreadsheets wrap them. Browsers submit every line break as CR LF."""
    content = workbook(("Net\nPay", "Currency", "User"), ("10", "NGN", "person.1"))
    file = upload(preparer, "payroll.xlsx", content, kind="transfer")
    assert file.headers[0] == "Net\nPay"
    client = sign_in(Client(), preparer)
    typed = {"amount": "Net\r\nPay", "currency": "Currency", "receiver_username": "User"}
    answer = client.post(f"{file.get_absolute_url()}check/", typed)
    assert answer.status_code == 302
    while checking.check_due():
        pass
    assert PayoutFile.objects.get().error_count == 0
    assert file.rows.get().cells == {"amount": "10", "currency": "NGN", "receiver_username": "person.1"}


@pytest.mark.django_db
def test_a_payment_in_the_first_row_is_not_taken_for_the_names_of_the_columns(
    sign_in: SignIn, preparer: User
) -> None:
    """It would be left out, and its recipient not be paid."""
    file = payouts.uploaded(preparer, ["NGN,20.00,person.2"], header="NGN,10.00,person.1")
    path, typed = file.get_absolute_url(), {"amount": "10.00", "receiver_username": "person.1"}
    answer = sign_in(Client(), preparer).post(f"{path}check/", {**typed, "currency": "NGN"})
    assert answer.status_code == 422
    assert "NGN is a currency, not the name of a column." in answer.content.decode()
    assert PayoutFile.objects.get().state == FileState.UPLOADED


@pytest.mark.django_db
def test_a_currency_in_small_letters_is_the_same(preparer: User) -> None:
    file = payouts.checked(preparer, ["ngn,20.00,person.2,,", "Usd,20.00,person.2,,"])
    assert file.error_count == 0
    assert [row.currency for row in file.rows.order_by("number")] == ["NGN", "USD"]


@pytest.mark.django_db
def test_columns_submitted_again_while_rows_are_checked_do_not_disturb_the_check(
    sign_in: SignIn, preparer: User
) -> None:
    """By a double click, or with Back: the check that runs would end with rows of both choices, or with none."""
    file = payouts.uploaded(preparer, payouts.transfers(60))
    client, path = sign_in(Client(), preparer), file.get_absolute_url()
    assert client.post(f"{path}check/", file.mapping).status_code == 302
    checking.check_file(file.pk, seconds=0.0)
    checking.check_file(file.pk, seconds=0.001)
    begun = PayoutFile.objects.get()
    assert (begun.state, begun.row_count) == (FileState.CHECKING, 60)
    again = client.post(f"{path}check/", {**file.mapping, "memo": ""}, follow=True)
    assert "The rows are already being checked." in again.content.decode()
    kept = PayoutFile.objects.get()
    assert (kept.row_count, kept.mapping) == (60, file.mapping)
    assert client.post(f"{path}check/", file.mapping, follow=True).status_code == 200
    while checking.check_due():
        pass
    assert (PayoutFile.objects.get().state, file.rows.count()) == (FileState.CHECKED, 60)


@pytest.mark.django_db
def test_the_page_of_a_file_says_that_the_policies_were_altered(sign_in: SignIn, preparer: User) -> None:
    file = payouts.checked(preparer, payouts.transfers(2))
    version = put_in_effect(levels((1, {})))
    with lifted(connection):
        PolicyVersion.objects.filter(pk=version.pk).update(digest="0" * 64)
    page = sign_in(Client(), preparer).get(file.get_absolute_url())
    assert page.status_code == 200
    assert "The approval policies were altered outside Countersign" in page.content.decode()


@pytest.mark.django_db(transaction=True)
def test_an_empty_or_wrong_cell_says_what_to_enter(preparer: User) -> None:
    rows = [",-5.00,,,", "EUR,0,person.1," + "m" * 44 + ","]
    first, second = payouts.checked(preparer, rows).rows.all()
    assert dict(first.errors) == {
        "currency": "The cell is empty. Enter one of these: NGN, USD.",
        "amount": "The amount must be greater than zero.",
        "receiver_username": "Enter a value.",
    }
    assert dict(second.errors)["currency"] == "Enter one of these: NGN, USD."
    assert dict(second.errors)["memo"] == "Enter at most 28 characters. You entered 44."
    withdrawal = payouts.checked(
        preparer, ["NGN,5,,"], kind="withdrawal", header="currency,amount,bank_code,memo"
    )
    assert dict(withdrawal.rows.get().errors)["bank_code"] == (
        "Enter the code or the whole name of the bank, as in the list of bank codes."
    )


@pytest.mark.django_db
def test_the_way_of_a_file_through_its_pages(
    sign_in: SignIn, preparer: User, approver: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    client = sign_in(Client(), preparer)
    content = io.BytesIO("\n".join([payouts.HEADER, *payouts.transfers(2), "NGN,much,x,=1,"]).encode())
    content.name = "payroll.csv"
    page = client.post("/operations/batches/files/", {"kind": "transfer", "file": content})
    assert page.status_code == 302
    assert "The file is being read." in client.get(f"{page['Location']}live/").content.decode()
    while checking.check_due():  # a chunk each time, so that no file holds up the sweeper
        pass
    checked = client.get(page["Location"]).content.decode()
    assert "1 row has errors" in checked
    assert "Download file with error column" in checked, "it has the rows without errors, too"
    # Beside the row's number, too: the cell itself may be outside the screen.
    assert '<small class="error brief">Amount</small></td>' in checked
    assert "'=1" in client.get(f"{page['Location']}errors/").content.decode()
    assert sign_in(Client(), approver).get(page["Location"]).status_code == 403

    batch = payouts.prepared(preparer, payouts.transfers(2))
    reader = sign_in(Client(), approver)
    reader.get(f"/operations/{batch.pk}/rows/")
    with django_assert_max_num_queries(6):
        assert "person.2" in reader.get(f"/operations/{batch.pk}/rows/").content.decode()


def test_the_name_of_an_uploaded_file_stays_one_value_of_its_header(sign_in: SignIn, preparer: User) -> None:
    client = sign_in(Client(), preparer)
    content = io.BytesIO("\n".join([payouts.HEADER, *payouts.transfers(1)]).encode())
    content.name = "a.csv"
    page = client.post("/operations/batches/files/", {"kind": "transfer", "file": content})
    PayoutFile.objects.update(name='a"; filename="evil.html')  # as a browser may encode it
    answer = client.get(f"{page['Location']}errors/")
    assert "Content-Disposition" in answer.headers
    assert '"; filename=' not in answer["Content-Disposition"].replace('\\"', "")


ACCOUNTS = ("currency", "amount", "bank_code", "account_number", "typed_name", "memo")
ROWS = (
    ("NGN", "1000.00", "044", "0123456789", "Ada Obi", "=1+1"),
    ("NGN", "many", "044", "0000000042", "Ada Obi", "week 46"),
)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_file_of_errors_has_the_format_that_was_uploaded_and_can_be_corrected(
    sign_in: SignIn, preparer: User, provider: StubProvider, suffix: str
) -> None:
    provider.answer_resolve = lambda: (200, '{"data": {"accountName": "Ada Obi", "bankName": "Access Bank"}}')
    text = "\n".join(",".join(row) for row in (ACCOUNTS, *ROWS)).encode()
    content = workbook(ACCOUNTS, *ROWS) if suffix == "xlsx" else text
    file = payouts.check(upload(preparer, f"payroll.{suffix}", content), preparer)
    assert file.error_count == 1
    answer = sign_in(Client(), preparer).get(f"{file.get_absolute_url()}errors/")
    assert answer["Content-Disposition"] == f'attachment; filename="payroll-errors.{suffix}"'
    rows = [row.cells for row in reading.read_rows(answer.content)]
    assert "Amount: " in rows[2][-1]
    corrected = corrected_by_hand(answer.content, suffix)
    again = payouts.check(upload(preparer, f"payroll-errors.{suffix}", corrected), preparer)
    assert again.error_count == 0
    assert [row.cells["account_number"] for row in again.rows.all()] == ["0123456789", "0000000042"]
    assert [row.cells["memo"] for row in again.rows.all()] == ["=1+1", "week 46"]


def upload(person: User, name: str, content: bytes, kind: str = "withdrawal") -> PayoutFile:
    return files.upload_file(actor=person, kind=kind, name=name, content=content, language="en")


def corrected_by_hand(content: bytes, suffix: str) -> bytes:
    """The file with an amount in place of the text, saved by a spreadsheet."""
    if suffix == "csv":
        return content.replace(b"many", b"2000")
    book = load_workbook(io.BytesIO(content))
    (found,) = [cell for row in book.worksheets[0].iter_rows() for cell in row if cell.value == "many"]
    found.value = 2000
    assert {cell.number_format for row in book.worksheets[0].iter_rows(min_row=2) for cell in row} == {"@"}
    saved = io.BytesIO()
    book.save(saved)
    return saved.getvalue()


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_file_of_errors_can_be_read_again_however_long_they_are(suffix: str) -> None:
    written = columns.file_with_errors("Payments", ["memo"], [(["x"], "wrong " * 200)], suffix)
    (_header, row) = reading.read_rows(written)
    assert row.cells[1].endswith("…")
