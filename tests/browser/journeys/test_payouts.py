"""Payments from a workbook: errors beside their cells, corrected, approved as a whole, sent with one confirmation."""

import io
import re
from decimal import Decimal

import pytest
import requests
import xlsxwriter
from playwright.sync_api import FilePayload, Page, expect

from backoffice.operations.kinds.registry import KINDS
from tests.browser import steps
from tests.browser.people import APPROVER, PREPARER, People
from tools.processes import Stack

pytestmark = [pytest.mark.browser, pytest.mark.stack]

ROWS = 12
FIELDS = KINDS["wallet_transfer"].file_fields
ADDRESS = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
AMOUNTS = [Decimal(f"{1 + number}.73") for number in range(ROWS)]


def workbook(**wrong: str) -> FilePayload:
    """A payment in each row; `wrong` are cells of the third one."""
    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {"in_memory": True}) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, FIELDS)
        for number, amount in enumerate(AMOUNTS, start=1):
            cells = {"currency": "USDT", "amount": str(amount), "network": "TRC20", "address": ADDRESS}
            cells |= {"memo": f"Invoice {number}", "duplicate_reason": f"Invoice {number}"}
            cells |= wrong if number == 3 else {}
            sheet.write_row(number, 0, [cells.get(name, "") for name in FIELDS])
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    return {"name": "invoices.xlsx", "mimeType": kind, "buffer": content.getvalue()}


def upload(page: Page, file: FilePayload) -> None:
    page.goto("/operations/batches/files/")
    page.locator("input[name=kind][value=wallet_transfer]").check()
    page.get_by_label("File", exact=True).set_input_files(file)
    steps.press(page, "Upload file")


def test_payouts_from_a_workbook(people: People, stack: Stack) -> None:
    preparer, approver = people.page_of(PREPARER), people.page_of(APPROVER)
    upload(preparer, workbook(amount="much", network="TRON"))
    expect(preparer.get_by_role("status")).to_contain_text("1 row has errors")
    wrong = preparer.get_by_role("row").filter(has_text="much")
    expect(wrong.locator(".error[lang]")).to_have_count(2)

    upload(preparer, workbook())
    expect(preparer.get_by_role("status")).to_contain_text("All rows are valid")
    steps.press(preparer, "Submit for approval")
    expect(steps.badge(preparer)).to_have_text("Pending")
    batch = steps.path_of(preparer)

    approver.goto(batch)
    total = sum(AMOUNTS, Decimal(0)).quantize(Decimal("0.000001"))
    approver.get_by_label("Total USDT").fill(str(total))
    steps.press(approver, f"Approve {ROWS} payments")
    expect(steps.badge(approver)).to_have_text(re.compile("Approved|Ready to send"))
    approver.goto(f"{batch}rows/")
    approver.get_by_role("button", name=f"Send {ROWS} operations…").click()
    expect(approver.get_by_role("heading", level=1)).to_have_text(re.compile("Send batch M-"))
    steps.press(approver, f"Send {ROWS} operations")
    expect(approver.get_by_text(f"Final outcomes: {ROWS} of {ROWS}")).to_be_visible()

    ledger = requests.get(f"{stack.sandbox}/_sandbox/ledger", timeout=60).json()
    sent = [Decimal(order["amount"]) for order in ledger["orders"] if order["kind"] == "wallet_transfer"]
    assert sorted(amount for amount in sent if amount in AMOUNTS) == AMOUNTS
