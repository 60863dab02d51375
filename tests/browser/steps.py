"""What people do in front of a page, with and without JavaScript, and what the provider says of it."""

import csv
import io
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from urllib.parse import urlsplit

import requests
from playwright.sync_api import Locator, Page, expect

from backoffice.core.web.formatting import format_amount
from payments_gateway import BANKS
from payments_gateway.sandbox.books.counterparties import account_holder
from tests.browser.people import People
from tools.processes import Stack

_NUMBERS = count(1)


@dataclass(frozen=True)
class NewPayment:
    """A withdrawal in naira that nobody else makes: its amount and its account are its own."""

    amount: str
    account_number: str
    bank_code: str = "044"

    @property
    def holder(self) -> str:
        """The name that the bank will give."""
        return str(account_holder(self.account_number, self.bank_code))

    @property
    def sentence(self) -> str:
        """The headline of the operation."""
        amount = format_amount(Decimal(self.amount), "NGN")
        return f"Withdraw NGN {amount} to {self.holder}, {BANKS[self.bank_code]} ••{self.account_number[-4:]}"


def new_payment() -> NewPayment:
    """The next one. Its amount ends as none of the demo's history does."""
    number = next(_NUMBERS)
    return NewPayment(amount=f"{4100 + number}.37", account_number=f"40{number:06d}12")


def fill_in(page: Page, payment: NewPayment, *, typed_name: str | None = None) -> None:
    """Open the form of a withdrawal and type all of it."""
    page.goto("/operations/prepare/withdrawal/")
    page.get_by_label("Currency").select_option("NGN")
    page.get_by_label("Amount").fill(payment.amount)
    page.get_by_label("Bank", exact=True).select_option(payment.bank_code)
    page.get_by_label("Account number").fill(payment.account_number)
    page.get_by_label("Account holder").fill(typed_name or payment.holder.title())


def review(page: Page, payment: NewPayment) -> None:
    """Go on to the review, which says what will be sent."""
    press(page, "Review details")
    expect(page.get_by_role("heading", level=1)).to_have_text(payment.sentence)


def prepare(page: Page, payment: NewPayment) -> str:
    """The whole way of the preparer; the path of the operation."""
    fill_in(page, payment)
    review(page, payment)
    press(page, "Submit for approval")
    expect(badge(page)).to_have_text("Pending")
    return path_of(page)


def prepared(people: People, name: str, payment: NewPayment) -> str:
    """The path of an operation that this person has just prepared, out of sight."""
    path = "/operations/prepare/withdrawal/"
    values = {
        "currency": "NGN",
        "amount": payment.amount,
        "bank_code": payment.bank_code,
        "account_number": payment.account_number,
        "typed_name": payment.holder,
    }
    with people.screenless_browser_of(name) as browser:
        review = browser.submit(browser.get(path), path, **values, step="review")
        return urlsplit(browser.submit(review, path, step="prepare").url).path


def let_the_bank_fail(stack: Stack, payment: NewPayment) -> None:
    """The check of this account alone is answered with 502 from now on."""
    fault = {
        "operation": "banks.resolve",
        "kind": "status",
        "status": 502,
        "when": "before_execution",
        "containing": payment.account_number,
        "times": None,
    }
    requests.post(f"{stack.sandbox}/_sandbox/faults", json=fault, timeout=60).raise_for_status()


def press(page: Page, name: str) -> None:
    """Press the button of exactly this name in the content of the page."""
    button(page, name).click()


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("main").get_by_role("button", name=name, exact=True)


def badge(page: Page) -> Locator:
    """The status of the operation whose page is open."""
    return page.locator("#operation .head .badge")


def decision(page: Page) -> Locator:
    """The panel that says what the status means and what this person may do."""
    return page.locator("#decision")


def timeline(page: Page, said: str) -> Locator:
    """The entries of the open operation's timeline that say this."""
    return page.locator("#operation .log li").filter(has_text=said)


def reference_of(page: Page) -> str:
    """The reference of the operation whose page is open."""
    return page.locator("#operation .crumbs .mono").inner_text()


def path_of(page: Page) -> str:
    return urlsplit(page.url).path


def exported(page: Page, payment: NewPayment) -> list[dict[str, str]]:
    """The rows of the report of operations that are this payment."""
    return rows_of(page.request.get("/reports/operations.csv").body(), payment)


def rows_of(content: bytes, payment: NewPayment) -> list[dict[str, str]]:
    rows = csv.DictReader(io.StringIO(content.decode("utf-8-sig")))
    return [row for row in rows if row["Amount"] == payment.amount]


def debits(stack: Stack, payment: NewPayment) -> list[str]:
    """What the provider itself says left the balance for this account."""
    ledger = requests.get(f"{stack.sandbox}/_sandbox/ledger", timeout=60).json()
    assert ledger["differences"] == []
    return [row["amount"] for row in ledger["withdrawals"] if row["accountNumber"] == payment.account_number]
