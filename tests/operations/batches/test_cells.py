"""A file in which a person sees something else than is stored in it: no row is lost, and no cell altered silently."""

import io
import re
import zipfile
from collections.abc import Sequence
from datetime import date

import pytest
import xlsxwriter
from django.test import Client

from backoffice.accounts.models import User
from backoffice.core.leases import acquire_lease
from backoffice.operations.batches import checking, files, reading, submission
from backoffice.operations.models.batches import RECIPIENT, FileProblem, FileState, PayoutFile
from tests.operations.batches import payouts
from tests.operations.batches.payouts import HEADER, workbook
from tests.operations.conftest import SignIn

NAMES = "receiver_username,currency,amount,memo"


def problem_of(content: bytes) -> dict[str, str | int]:
    with pytest.raises(reading.UnreadableFileError) as refused:
        list(reading.read_rows(content))
    return refused.value.problem


def errors_of(person: User, *rows: str, header: str = NAMES, kind: str = "transfer") -> list[dict[str, str]]:
    """The errors of each row by field."""
    file = payouts.checked(person, rows, header=header, kind=kind)
    assert file.state == FileState.CHECKED
    return [dict(row.errors) for row in file.rows.all()]


def uploaded(person: User, name: str, content: bytes, kind: str = "transfer") -> PayoutFile:
    file = files.upload_file(actor=person, kind=kind, name=name, content=content, language="en")
    return payouts.check(file, person)


def sheet(*rows: str) -> bytes:
    """A workbook with these rows as they are written in its sheet."""
    original, changed = zipfile.ZipFile(io.BytesIO(workbook(("a",)))), io.BytesIO()
    with zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as archive:
        for part in original.namelist():
            text = original.read(part).decode()
            if part == "xl/worksheets/sheet1.xml":
                before, _old, after = re.split("(<sheetData>.*</sheetData>)", text)
                text = f"{before}<sheetData>{''.join(rows)}</sheetData>{after}"
            archive.writestr(part, text)
    return changed.getvalue()


def row(number: int, *cells: str, attributes: str = "") -> str:
    """Cells of numbers; one that begins with `<` is written as it is."""
    written = (one if one.startswith("<") else f"<c><v>{one}</v></c>" for one in cells)
    return f'<row r="{number}"{attributes}>{"".join(written)}</row>'


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_row_with_a_cell_beyond_the_headings_has_an_error(preparer: User, suffix: str) -> None:
    """25,000.00 without quotation marks would be an amount of 25, and a cell that nobody reads."""
    cells = [
        ("currency", "receiver_username", "amount", "", ""),
        ("NGN", "person.1", "25", "000.00", ""),
        ("much", "person.2", "30", "", "000.00"),
        ("NGN", "person.3", "25000", "", ""),
    ]
    text = "\n".join(map(",".join, cells)).encode()
    file = uploaded(preparer, f"payroll.{suffix}", workbook(*cells) if suffix == "xlsx" else text)
    first, second, third = file.rows.all()
    assert (file.error_count, first.payload, third.errors) == (2, None, [])
    assert dict(first.errors)[""].startswith("The row has cells beyond the last heading: 000.00. ")
    assert set(dict(second.errors)) == {"", "currency"}, "all errors at once"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_file_of_errors_keeps_the_cells_beyond_the_headings(
    sign_in: SignIn, preparer: User, suffix: str
) -> None:
    cells = [("currency", "receiver_username", "amount", ""), ("NGN", "person.1", "25", "000.00")]
    text = "\n".join(map(",".join, cells)).encode()
    file = uploaded(preparer, f"payroll.{suffix}", workbook(*cells) if suffix == "xlsx" else text)
    content = sign_in(Client(), preparer).get(f"{file.get_absolute_url()}errors/").content
    header, wrong = [one.cells for one in reading.read_rows(content)]
    assert header == ("currency", "receiver_username", "amount", "errors")
    assert (wrong[:3], wrong[4]) == (cells[1][:3], "000.00")
    again = uploaded(preparer, f"payroll-errors.{suffix}", content)
    assert (again.error_count, {field for field, _ in again.rows.get().errors}) == (1, {""}), (
        "nobody has corrected it"
    )


@pytest.mark.django_db(transaction=True)
def test_a_file_of_errors_can_be_read_whatever_separated_the_cells(sign_in: SignIn, preparer: User) -> None:
    text = b"sep=|\ncurrency|receiver_username|amount\nNGN|person.1|much\n"
    file = uploaded(preparer, "payroll.csv", text)
    content = sign_in(Client(), preparer).get(f"{file.get_absolute_url()}errors/").content
    header, wrong = [one.cells for one in reading.read_rows(content)]
    assert header == ("currency", "receiver_username", "amount", "errors")
    assert wrong[:3] == ("NGN", "person.1", "much")


@pytest.mark.django_db(transaction=True)
def test_empty_cells_at_the_end_of_a_row_are_harmless(preparer: User) -> None:
    assert errors_of(preparer, "person.1,NGN,25000,rent,,,", "person.2,NGN,25,rent,,") == [{}, {}]


@pytest.mark.django_db(transaction=True)
def test_a_comma_that_may_separate_decimals_is_not_taken_for_one_of_thousands(preparer: User) -> None:
    """Where semicolons separate the cells, 1,250 USDT is usually one and a quarter: 1,250.00 would pay a thousand times
    as much.
    """

    def problems(separator: str, *amounts: str) -> list[str | None]:
        """What is wrong with each of these amounts of USDT."""
        rows = [separator.join(("USDT", amount, "TRC20", "an address")) for amount in amounts]
        header = separator.join(("currency", "amount", "network", "address"))
        found = errors_of(preparer, *rows, header=header, kind="wallet_transfer")
        return [errors.get("amount") for errors in found]

    doubtful = "In a file with semicolons, 1,250 can mean 1250 or 1.250. Enter 1250.00 or 1.250."
    assert problems(";", "1,250", "1,250.00", "1.250", "1,250,000") == [doubtful, None, None, None]
    assert problems(",", '"1,250"') == [None], "no comma separates decimals here"
    assert errors_of(preparer, "a.person;NGN;1,250;rent", header=NAMES.replace(",", ";")) == [{}], (
        "kobo are two"
    )


@pytest.mark.django_db(transaction=True)
def test_a_recipient_with_a_cell_beyond_the_headings_has_an_error(preparer: User) -> None:
    (errors,) = errors_of(preparer, "user,Ada,ada.obi,x", header="type,name,account", kind=RECIPIENT)
    assert errors.keys() == {""}


@pytest.mark.django_db(transaction=True)
def test_the_end_of_an_amount_is_not_taken_for_the_next_cell(preparer: User) -> None:
    """The columns after the amount are often empty, so that the row is no longer than the headings, or only by empty
    cells.
    """
    found = errors_of(
        preparer,
        *("person.1,NGN,25,000.00", "person.2,NGN,25,000.00,", "person.3,NGN,25,000,"),
        *("person.4,NGN,25,042", 'person.5,NGN,"25,000.00",', "person.6,NGN,25.00,042,"),
    )
    assert [set(one) for one in found] == [{"amount"}] * 3 + [set()] * 3
    assert found[0]["amount"].startswith("The next cell is 000.00.")


@pytest.mark.django_db(transaction=True)
def test_a_row_that_a_quotation_mark_puts_into_a_cell_is_not_lost(preparer: User) -> None:
    rows = ['person.1,NGN,5,"rent', 'person.2,NGN,6,rent"', 'person.3,NGN,7,"for', 'Ada, Lagos"']
    first, second = errors_of(preparer, *rows, header="receiver_username,currency,amount,Note")
    assert first[""].startswith("A cell also contains the next rows.")
    assert second == {}


@pytest.mark.django_db(transaction=True)
def test_a_number_that_a_spreadsheet_shortened_is_an_error(preparer: User) -> None:
    numbers = [1234567890123456789, 1.23456789012345e18, 123456789012345, "1234567890123456789", "0.1"]
    header = HEADER.split(",")
    rows = [("NGN", 5, f"person.{place}", number, "") for place, number in enumerate(numbers)]
    file = uploaded(preparer, "payroll.xlsx", workbook(header, *rows))
    found = [dict(one.errors) for one in file.rows.all()]
    assert [set(one) for one in found] == [{"memo"}, {"memo"}, set(), set(), set()]
    assert found[0]["memo"].startswith("A spreadsheet program does not keep all digits of this number.")
    (amount,) = uploaded(preparer, "a.xlsx", workbook(header, ("NGN", 1.1, "person.9", "", ""))).rows.all()
    assert (amount.errors, amount.cells["amount"]) == ([], "1.1")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("memo", ["1.23E+18", "1,2E+09", "1e-05", "#N/A", "#REF!", "#value!", "#DIV/0!"])
def test_what_a_spreadsheet_shows_instead_of_a_value_is_an_error(preparer: User, memo: str) -> None:
    found = errors_of(
        preparer, f"person.1;NGN;5;{memo}", "person.2;NGN;5;E+18", header=NAMES.replace(",", ";")
    )
    assert [set(one) for one in found] == [{"memo"}, set()]


@pytest.mark.django_db(transaction=True)
def test_a_text_that_a_spreadsheet_changed_to_a_date_is_an_error(preparer: User) -> None:
    """1-2 becomes the second of January, or the first of February."""
    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {"in_memory": True}) as book:
        page = book.add_worksheet()
        page.write_row(0, 0, HEADER.split(","))
        page.write_row(1, 0, ("NGN", 5, "person.1"))
        page.write_datetime(1, 3, date(2026, 1, 2), book.add_format({"num_format": "d-m"}))
    (found,) = uploaded(preparer, "payroll.xlsx", content.getvalue()).rows.all()
    assert found.errors == [
        ["memo", "The cell contains a date. Format the cell as text, then enter the value again."]
    ]


def book_of(*sheets: Sequence[Sequence[str]], hidden: int) -> bytes:
    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {"in_memory": True}) as book:
        made = [book.add_worksheet() for _sheet in sheets]
        for page, rows in zip(made, sheets, strict=True):
            for number, cells in enumerate(rows):
                page.write_row(number, 0, cells)
        made[1 - hidden].activate()
        made[1 - hidden].set_first_sheet()
        made[hidden].hide()
    return content.getvalue()


def test_the_first_sheet_that_is_shown_is_read() -> None:
    for hidden, text in ((0, "shown"), (1, "old")):
        content = book_of([("a",), ("old",)], [("a",), ("shown",)], hidden=hidden)
        assert [one.cells for one in reading.read_rows(content)] == [("a",), (text,)]


def test_a_sheet_with_hidden_rows_is_refused() -> None:
    """A person who sees 1 of 3 rows does not mean to pay all."""
    rows = [row(1, "7"), row(2, "8"), *(row(n, "9", attributes=' hidden="1"') for n in (3, 4))]
    assert problem_of(sheet(*rows)) == {"code": FileProblem.HIDDEN_ROWS, "count": 2}
    shown = sheet(row(1, "7"), row(2, "8", attributes=' hidden="0"'), row(3, attributes=' hidden="1"'))
    assert len(list(reading.read_rows(shown))) == 2, "empty ones do not matter"


@pytest.mark.django_db(transaction=True)
def test_the_page_of_a_file_says_how_many_rows_are_hidden(sign_in: SignIn, preparer: User) -> None:
    book = io.BytesIO()
    with xlsxwriter.Workbook(book, {"in_memory": True}) as made:
        page = made.add_worksheet()
        page.write_row(0, 0, HEADER.split(","))
        for number in range(1, 1_204):
            page.write_row(number, 0, ("NGN", 5, f"person.{number}"))
        for number in range(2, 1_204):
            page.set_row(number, options={"hidden": True})
    client = sign_in(Client(), preparer)
    content = book.getvalue()
    new = files.upload_file(actor=preparer, kind="transfer", name="a.xlsx", content=content, language="en")
    assert client.get(f"{new.get_absolute_url()}errors/").headers["Location"] == new.get_absolute_url()
    file = payouts.check(new, preparer)
    assert (file.state, file.row_count) == (FileState.UNREADABLE, 0)
    shown = client.get(file.get_absolute_url()).content.decode()
    assert "Hidden rows with content in the sheet: 1,202." in shown


@pytest.mark.parametrize("number", [4_000_000, 10**12])
def test_a_row_with_a_number_that_no_sheet_has_is_refused_at_once(number: int) -> None:
    found = problem_of(sheet(row(1, "7"), row(number, "8")))
    assert found == {"code": FileProblem.TOO_MANY_ROWS, "limit": 5_000}
    assert problem_of(b"a\n" + b"\n" * reading.LAST_ROW + b"b\n") == found
    assert problem_of(b"a\n" + b"x\n" * 5_001) == found


def test_rows_far_apart_keep_their_numbers() -> None:
    found = reading.read_rows(sheet(row(1, "7"), row(reading.LAST_ROW, "8")))
    assert [one.number for one in found] == [1, reading.LAST_ROW]


@pytest.mark.parametrize(
    "rows",
    [
        (row(1, "7"), row(2, "8"), row(2, "9")),
        (row(1, "7"), row(3, "8"), row(2, "9")),
        (row(1, "7"), row(0, "8")),
        (row(1, "7"), row(2, '<c r="B2"><v>1</v></c>', '<c r="A2"><v>2</v></c>')),
        (row(1, "7"), row(2, '<c r="A2"><v>1</v></c>', '<c r="A2"><v>2</v></c>')),
        (row(1, "7"), row(2, '<c r="A3"><v>1</v></c>')),
    ],
)
def test_rows_and_cells_that_are_not_in_order_are_refused(rows: Sequence[str]) -> None:
    assert problem_of(sheet(*rows))["code"] == FileProblem.ROWS_DISORDERED


@pytest.mark.parametrize("value", ["", "<v/>", "<v></v>"])
def test_a_formula_without_a_stored_value_is_refused(value: str) -> None:
    found = problem_of(sheet(row(1, "7"), row(2, f"<c><f>A1+1</f>{value}</c>")))
    assert found == {"code": FileProblem.FORMULA_NOT_COMPUTED, "row": "2"}


def test_the_stored_value_of_a_formula_is_read() -> None:
    empty = '<c t="str"><f>IF(1,"","x")</f><v></v></c>'
    found = reading.read_rows(sheet(row(1, "7", "8"), row(2, "<c><f>A1+1</f><v>8</v></c>", empty)))
    assert [one.cells for one in found] == [("7", "8"), ("8",)]


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ('"Name, full";"Acc, no"\nAda;1', ";"),
        ('"Name; full","Acc; no"\nAda,1', ","),
        ('Size 5";a, b;c\nx;y;z', ";"),
        ('"Net\nPay, total";Name\n5;Ada', ";"),
        ("\n\na;b\n1;2", ";"),
        ("Only one\nx", ","),
    ],
)
def test_the_delimiter_is_found_outside_of_quotation_marks(text: str, delimiter: str) -> None:
    assert reading.delimiter_of(text.encode()) == delimiter


@pytest.mark.parametrize("first", ["sep=;", "\ufeffsep=;", '"sep=;"', "SEP=;"])
def test_the_delimiter_that_a_first_line_declares_is_used(first: str) -> None:
    content = f"{first}\r\na,b;c\r\n1;2\r\n".encode()
    assert reading.delimiter_of(content) == ";"
    found = [(one.number, one.cells) for one in reading.read_rows(content)]
    assert found == [(1, ("a,b", "c")), (2, ("1", "2"))], "as a spreadsheet numbers them"


def restarted(file: PayoutFile, person: User, mapping: dict[str, str]) -> None:
    files.check_columns(file.pk, actor=person, mapping=mapping)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_stored", [False, True])
def test_a_process_stores_nothing_of_a_check_that_was_restarted(preparer: User, *, is_stored: bool) -> None:
    """While it stores the rows, and while it checks them."""
    file = payouts.uploaded(preparer, ["NGN,5.00,person.1,7.00,"])
    first, second = file.mapping, {**file.mapping, "amount": "memo", "memo": "amount"}
    restarted(file, preparer, first)
    if is_stored:
        checking.check_file(file.pk, seconds=0)
    stale = PayoutFile.objects.get(pk=file.pk)
    restarted(file, preparer, second)
    lease = acquire_lease(f"file:{file.pk.hex}", checking._LEASE)
    assert lease is not None
    with lease, pytest.raises(checking.FileChangedError):
        checking._check(stale, lease, until=float("inf"))
    file.refresh_from_db()
    assert (file.state, file.row_count, file.checked_count) == (FileState.CHECKING, 0, 0)
    checking.check_file(file.pk, seconds=60)
    file.refresh_from_db()
    assert (file.state, file.rows.get().cells["amount"]) == (FileState.CHECKED, "7.00")


@pytest.mark.django_db(transaction=True)
def test_the_result_of_a_check_that_was_restarted_is_not_stored(preparer: User) -> None:
    """At its end, and where the file cannot be read."""
    file = payouts.uploaded(preparer, payouts.transfers(2))
    restarted(file, preparer, file.mapping)
    checking.check_file(file.pk, seconds=0)
    stale = PayoutFile.objects.get(pk=file.pk)
    stale.checked_count = stale.row_count
    PayoutFile.objects.update(checked_count=2)
    restarted(file, preparer, file.mapping)
    unreadable = PayoutFile.objects.get(pk=file.pk)
    unreadable.content, unreadable.mapping = b"\xff", {}
    for one in (stale, unreadable):
        lease = acquire_lease(f"file:{file.pk.hex}", checking._LEASE)
        assert lease is not None
        with lease, pytest.raises(checking.FileChangedError):
            checking._check(one, lease, until=float("inf"))
        file.refresh_from_db()
        assert (file.state, file.problem) == (FileState.CHECKING, {})


@pytest.mark.django_db(transaction=True)
def test_a_file_that_was_submitted_meanwhile_is_not_checked_again(preparer: User) -> None:
    """Of two submissions at once, one finds a repeated payment that is gone when the other looks."""
    file = payouts.checked(preparer, payouts.transfers(2))
    submission.submit_file(file.pk, actor=preparer)
    files.recheck_outdated(file.pk, actor=preparer)
    assert PayoutFile.objects.get().state == FileState.SUBMITTED
