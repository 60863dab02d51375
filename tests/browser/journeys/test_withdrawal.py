"""Two people, one withdrawal: prepared, approved, sent once, confirmed, exported and on record."""

import re
from decimal import Decimal
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


def test_a_withdrawal_is_prepared_approved_sent_once_and_confirmed(people: People, stack: Stack) -> None:
    preparer, approver, payment = people.browser(), people.browser(), steps.new_payment()
    people.sign_in(preparer, PREPARER)
    steps.fill_in(preparer, payment)
    expect(preparer.locator("#check")).to_contain_text(payment.holder)
    expect(preparer.locator("#check")).to_contain_text("The names match.")
    code = prepare_and_note_the_code(preparer, payment)

    people.sign_in(approver, APPROVER)
    open_from_waiting(approver, preparer)
    expect(approver.get_by_role("heading", level=1)).to_have_text(payment.sentence)
    expect(steps.decision(approver).locator(".digest")).to_have_text(code)
    approver.get_by_label("Provider's one-time code").fill(stack.one_time_code())
    steps.press(approver, "Approve and send")
    approver.evaluate("window.isTheSamePage = true")
    expect(steps.badge(approver)).to_have_text("Succeeded")
    assert approver.evaluate("window.isTheSamePage"), "It was loaded again instead of refreshing itself"

    assert steps.debits(stack, payment) == [payment.amount]
    assert_the_download_holds_it(approver, payment)
    assert_the_auditor_sees_it(people, steps.reference_of(preparer))


def test_a_withdrawal_works_without_javascript(people: People, stack: Stack) -> None:
    preparer = people.browser(scripts=False)
    approver = people.browser(scripts=False)
    payment = steps.new_payment()
    people.sign_in(preparer, OTHER_PREPARER)
    steps.fill_in(preparer, payment)
    steps.press(preparer, "Check account")
    expect(preparer.locator("#check")).to_contain_text(payment.holder)
    code = prepare_and_note_the_code(preparer, payment)

    people.sign_in(approver, OTHER_APPROVER)
    open_from_waiting(approver, preparer)
    expect(steps.decision(approver).locator(".digest")).to_have_text(code)
    approver.get_by_label("Provider's one-time code").fill(stack.one_time_code())
    steps.press(approver, "Approve and send")
    expect(steps.badge(approver)).not_to_have_text("Pending")
    wait_until(lambda: approver.reload() and steps.badge(approver).text_content() == "Succeeded")

    assert steps.debits(stack, payment) == [payment.amount]
    assert_the_download_holds_it(approver, payment)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_name_that_the_bank_cannot_confirm_is_stated_and_seen_by_the_approver(
    people: People, stack: Stack, scripts: bool
) -> None:
    preparer, payment = people.page_of(PREPARER, scripts=scripts), steps.new_payment()
    steps.let_the_bank_fail(stack, payment)
    steps.fill_in(preparer, payment)
    preparer.get_by_label("Memo").fill("week 46")
    if not scripts:
        steps.press(preparer, "Check account")
    check, cause = preparer.locator("#check"), "The provider responded with an error (HTTP 502)."
    expect(check).to_contain_text(f"Account not checked. {cause}")
    statement = check.get_by_label("Use the name as entered, without a check by the bank")
    reason = check.get_by_label("Reason for using the name")
    assert_is_typed(preparer, payment)

    statement.check()
    steps.press(preparer, "Review details")
    expect(reason).to_have_accessible_description(re.compile("Enter how you know who holds the account."))
    expect(statement).to_be_checked()
    assert_is_typed(preparer, payment)
    reason.fill("Contract 118, page 2")
    steps.press(preparer, "Review details")
    expect(preparer.get_by_role("heading", level=1)).to_contain_text("(name not checked)")
    expect(preparer.get_by_role("main")).to_contain_text("Contract 118, page 2")
    steps.press(preparer, "Submit for approval")
    expect(steps.badge(preparer)).to_have_text("Pending")

    approver = people.page_of(APPROVER, scripts=scripts)
    approver.goto(steps.path_of(preparer))
    expect(steps.decision(approver)).to_contain_text(f"Name not checked. {cause}")
    expect(steps.decision(approver)).to_contain_text("Contract 118, page 2")
    assert_only_the_confirmation_approves(approver, payment)


def assert_only_the_confirmation_approves(page: Page, payment: steps.NewPayment) -> None:
    """Without its tick the operation stays pending; with it, the open page becomes that of an approved one."""
    name = payment.holder.title()
    confirmation = page.get_by_label(
        f"I approve this recipient although the bank has not confirmed the name {name}"
    )
    steps.press(page, "Approve")
    expect(confirmation).to_be_focused()  # the browser asks for it, and submits nothing
    expect(steps.badge(page)).to_have_text("Pending")
    confirmation.check()
    steps.press(page, "Approve")
    expect(steps.badge(page)).to_have_text("Approved")


def assert_is_typed(page: Page, payment: steps.NewPayment) -> None:
    """The form still has what `steps.fill_in` typed, and its memo."""
    assert page.get_by_label("Amount").input_value().replace(",", "") == payment.amount
    expect(page.get_by_label("Account number")).to_have_value(payment.account_number)
    expect(page.get_by_label("Account holder")).to_have_value(payment.holder.title())
    expect(page.get_by_label("Memo")).to_have_value("week 46")
    expect(page.get_by_label("Bank", exact=True)).to_have_value(payment.bank_code)


def test_a_name_mismatch_is_warned_of_and_needs_a_reason(people: People) -> None:
    preparer, payment = people.page_of(PREPARER), steps.new_payment()
    steps.fill_in(preparer, payment, typed_name="Somebody Else")
    check = preparer.locator("#check")
    expect(check).to_contain_text(f"The names differ: {payment.holder} would receive the money.")
    expect(check).to_contain_text("Somebody Else")
    steps.press(preparer, "Review details")
    reason = preparer.get_by_label("Reason for the mismatch")
    expect(reason).to_have_attribute("aria-invalid", "true")
    expect(preparer.get_by_label("Amount")).to_have_value(f"{Decimal(payment.amount):,}")

    reason.fill("The firm trades under this name")
    steps.review(preparer, payment)
    expect(preparer.get_by_role("main")).to_contain_text("Somebody Else")
    expect(preparer.get_by_role("main")).to_contain_text("The firm trades under this name")


def prepare_and_note_the_code(preparer: Page, payment: steps.NewPayment) -> str:
    """Review and prepare; the short code that the review showed, which the operation shows too."""
    steps.review(preparer, payment)
    code = preparer.locator(".digest").inner_text()
    steps.press(preparer, "Submit for approval")
    expect(steps.badge(preparer)).to_have_text("Pending")
    expect(preparer.get_by_role("main")).to_contain_text(code)
    return code


def open_from_waiting(approver: Page, preparer: Page) -> None:
    """Find what the preparer has just prepared in the list of what waits, and open it."""
    approver.get_by_role("link", name="waiting for you").first.click()
    row = approver.get_by_role("row").filter(has_text=steps.reference_of(preparer))
    row.get_by_role("link").click()
    expect(steps.decision(approver)).to_contain_text("Approve or reject")


def assert_the_download_holds_it(approver: Page, payment: steps.NewPayment) -> None:
    approver.goto("/operations/?tab=done")
    with approver.expect_download() as download:
        approver.get_by_role("button", name="Export CSV").click()
    [row] = steps.rows_of(Path(download.value.path()).read_bytes(), payment)
    assert (row["Status"], row["Direction"], row["Recipient"]) == ("succeeded", "out", payment.holder)
    assert download.value.suggested_filename.endswith(".csv")


def assert_the_auditor_sees_it(people: People, reference: str) -> None:
    auditor = people.page_of(AUDITOR)
    auditor.goto("/settings/audit/")
    auditor.get_by_label("Reference or name").fill(reference)
    steps.press(auditor, "Apply filters")
    entries = auditor.locator(".log > li")
    for words in (f"{PREPARER} prepared", f"{APPROVER} approved", f"{APPROVER} released"):
        expect(entries.filter(has_text=words)).to_have_count(1)
    expect(entries.filter(has_text="recorded the success of")).to_have_count(1)
