"""Two people, one withdrawal: prepared, countersigned, sent once, confirmed, exported and on record."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser import steps
from tests.browser.people import (
    APPROVER,
    AUDITOR,
    OTHER_APPROVER,
    OTHER_PREPARER,
    PREPARER,
    People,
    wait_until,
)
from tools.processes import Stack

pytestmark = [pytest.mark.browser, pytest.mark.stack]


def test_a_withdrawal_is_prepared_countersigned_sent_once_and_proven(office: People, stack: Stack) -> None:
    maker, checker, payment = office.browser(), office.browser(), steps.new_payment()
    office.sign_in(maker, PREPARER)
    steps.fill_in(maker, payment)
    expect(maker.locator("#check")).to_contain_text(payment.holder)
    expect(maker.locator("#check")).to_contain_text("The names agree.")
    code = prepare_and_note_the_code(maker, payment)

    office.sign_in(checker, APPROVER)
    open_from_waiting(checker, maker)
    expect(checker.get_by_role("heading", level=1)).to_have_text(payment.sentence)
    expect(steps.decision(checker).locator(".digest")).to_have_text(code)
    checker.get_by_label("The service's token").fill(stack.service_token())
    steps.press(checker, "Approve and send")
    checker.evaluate("window.isTheSamePage = true")
    expect(steps.badge(checker)).to_have_text("Succeeded")
    assert checker.evaluate("window.isTheSamePage"), "It was loaded again instead of refreshing itself"

    assert steps.debits(stack, payment) == [payment.amount]
    assert_the_download_holds_it(checker, payment)
    assert_the_auditor_sees_it(office, steps.reference_of(maker))


def test_the_main_job_needs_no_javascript(office: People, stack: Stack) -> None:
    maker = office.browser(scripts=False)
    checker = office.browser(scripts=False)
    payment = steps.new_payment()
    office.sign_in(maker, OTHER_PREPARER)
    steps.fill_in(maker, payment)
    steps.press(maker, "Check account")
    expect(maker.locator("#check")).to_contain_text(payment.holder)
    code = prepare_and_note_the_code(maker, payment)

    office.sign_in(checker, OTHER_APPROVER)
    open_from_waiting(checker, maker)
    expect(steps.decision(checker).locator(".digest")).to_have_text(code)
    checker.get_by_label("The service's token").fill(stack.service_token())
    steps.press(checker, "Approve and send")
    expect(checker.get_by_role("status")).to_contain_text("Handed over for sending")
    wait_until(lambda: checker.reload() and steps.badge(checker).text_content() == "Succeeded")

    assert steps.debits(stack, payment) == [payment.amount]
    assert_the_download_holds_it(checker, payment)


def test_a_name_that_differs_warns_and_wants_a_reason(office: People) -> None:
    maker, payment = office.page_of(PREPARER), steps.new_payment()
    steps.fill_in(maker, payment, typed_name="Somebody Else")
    check = maker.locator("#check")
    expect(check).to_contain_text(f"The names differ: the money would go to {payment.holder}.")
    expect(check).to_contain_text("Somebody Else")
    steps.press(maker, "Review…")
    reason = maker.get_by_label("Why the other name is right")
    expect(reason).to_have_attribute("aria-invalid", "true")
    expect(maker.get_by_label("Amount")).to_have_value(payment.amount)

    reason.fill("The firm trades under this name")
    steps.review(maker, payment)
    expect(maker.get_by_role("main")).to_contain_text("Somebody Else")
    expect(maker.get_by_role("main")).to_contain_text("The firm trades under this name")


def prepare_and_note_the_code(maker: Page, payment: steps.NewPayment) -> str:
    """Review and prepare; the short code that the review showed, which the operation shows too."""
    steps.review(maker, payment)
    code = maker.locator(".digest").inner_text()
    steps.press(maker, "Prepare")
    expect(steps.badge(maker)).to_have_text("Pending")
    expect(maker.get_by_role("main")).to_contain_text(code)
    return code


def open_from_waiting(checker: Page, maker: Page) -> None:
    """Find what the maker has just prepared in the list of what waits, and open it."""
    checker.get_by_role("link", name="waiting for you").first.click()
    row = checker.get_by_role("row").filter(has_text=steps.reference_of(maker))
    row.get_by_role("link").click()
    expect(steps.decision(checker)).to_contain_text("Your decision")


def assert_the_download_holds_it(checker: Page, payment: steps.NewPayment) -> None:
    checker.goto("/operations/?tab=done")
    with checker.expect_download() as download:
        checker.get_by_role("link", name="Export CSV").click()
    [row] = steps.rows_of(Path(download.value.path()).read_bytes(), payment)
    assert (row["status"], row["direction"], row["counterparty"]) == ("succeeded", "out", payment.holder)
    assert download.value.suggested_filename.endswith(".csv")


def assert_the_auditor_sees_it(office: People, reference: str) -> None:
    auditor = office.page_of(AUDITOR)
    auditor.goto("/audit/")
    auditor.get_by_label("Reference or name").fill(reference)
    steps.press(auditor, "Show")
    entries = auditor.locator(".log > li")
    for words in (f"{PREPARER} prepared", f"{APPROVER} countersigned", f"{APPROVER} released for sending"):
        expect(entries.filter(has_text=words)).to_have_count(1)
    expect(entries.filter(has_text="confirmed")).to_have_count(1)
