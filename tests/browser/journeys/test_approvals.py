"""Saying no, saying it wrong, and saying it too late."""

import re
from decimal import Decimal

import pytest
from playwright.sync_api import expect

from tests.browser import steps
from tests.browser.people import APPROVER, OTHER_APPROVER, OTHER_PREPARER, PREPARER, People
from tools.processes import Stack

pytestmark = [pytest.mark.browser, pytest.mark.stack]
REASON = "The invoice says something else."


def test_a_rejected_operation_shows_the_reason_and_can_be_copied(
    people: People,
) -> None:
    preparer, approver, payment = people.page_of(PREPARER), people.page_of(APPROVER), steps.new_payment()
    path = steps.prepare(preparer, payment)
    approver.goto(path)
    approver.get_by_text("Reject…").click()
    approver.get_by_label("Reason").fill(REASON)
    steps.press(approver, "Reject")
    expect(steps.badge(approver)).to_have_text("Rejected")

    expect(steps.badge(preparer)).to_have_text(
        "Rejected"
    )  # the open page of the preparer learns it by itself
    expect(steps.decision(preparer)).to_contain_text(REASON)
    preparer.get_by_role("button", name="Prepare again").click()
    expect(preparer.get_by_label("Amount")).to_have_value(f"{Decimal(payment.amount):,}")
    expect(preparer.locator("#check")).to_contain_text(payment.holder)
    steps.review(preparer, payment)
    steps.press(preparer, "Submit for approval")
    expect(steps.badge(preparer)).to_have_text("Pending")
    expect(preparer.locator(f'dd a[href="{path}"]')).to_be_visible()
    assert sorted(row["Status"] for row in steps.exported(preparer, payment)) == ["pending", "rejected"]


@pytest.mark.parametrize("scripts", [True, False])
def test_on_a_telephone_the_decision_and_its_buttons_are_on_one_screen(
    people: People, *, scripts: bool
) -> None:
    """Amount, account, fee, balance and approvers are seen together with every button, without scrolling."""
    page, payment = people.page_of(APPROVER, scripts=scripts), steps.new_payment()
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(steps.prepared(people, PREPARER, payment))
    panel = steps.decision(page)
    shown = [payment.account_number, "Fee", "Total debit", "Balance after", "Can approve"]
    for text in shown:
        expect(panel.get_by_text(text).first).to_be_in_viewport(ratio=1)
    for button in (steps.button(page, "Approve"), steps.button(page, "Approve and send")):
        expect(button).to_be_in_viewport(ratio=1)
    expect(panel.get_by_text("Reject…")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("language", ["en", "fr"])
def test_on_a_telephone_a_decision_of_several_levels_is_on_one_screen(people: People, language: str) -> None:
    """With the levels and the field for the one-time code, the buttons are still seen without scrolling."""
    page = people.page_of(APPROVER)
    page.set_viewport_size({"width": 390, "height": 844})
    page.set_extra_http_headers({"Accept-Language": language})
    page.goto("/operations/?tab=waiting")
    page.get_by_role("row").filter(has_text="12,500,000.00").locator("a.row").click()
    panel = steps.decision(page)
    expect(panel.locator("li")).to_have_count(2)
    expect(panel.locator("form .actions button")).to_have_count(2)
    whole = ["dl .amount", "li >> nth=0", "li >> nth=1", ".digest", "input[name=otp]"]
    for shown in [
        *whole,
        "form .actions button >> nth=0",
        "form .actions button >> nth=1",
        ".danger > summary",
    ]:
        expect(panel.locator(shown)).to_be_in_viewport(ratio=1)


def test_a_receipt_prints_without_what_can_be_clicked(people: People) -> None:
    page, payment = people.page_of(APPROVER), steps.new_payment()
    page.goto(steps.prepared(people, PREPARER, payment))
    page.get_by_role("button", name="Print record").click()
    expect(page.get_by_role("button", name="Print", exact=True)).to_be_visible()
    page.emulate_media(media="print")
    expect(page.get_by_role("button")).to_have_count(0)
    expect(page.get_by_role("navigation")).to_have_count(0)
    for text in (payment.account_number, "prepared this operation", "SANDBOX"):
        expect(page.get_by_text(text).first).to_be_visible()
    assert page.pdf(format="A4").count(b"/Type /Page\n") == 1


def test_rejecting_needs_a_reason(people: People) -> None:
    path = steps.prepared(people, PREPARER, steps.new_payment())
    approver = people.page_of(APPROVER, scripts=False)
    approver.goto(path)
    approver.get_by_text("Reject…").click()
    approver.get_by_label("Reason").fill("   ")
    steps.press(approver, "Reject")
    reason = approver.get_by_label("Reason")
    expect(reason).to_be_visible()
    expect(reason).to_have_accessible_description(re.compile("Enter a reason"))
    expect(steps.badge(approver)).to_have_text("Pending")


def test_a_wrong_one_time_code_leaves_it_approved_and_a_second_attempt_succeeds(
    people: People, stack: Stack
) -> None:
    approver, payment = people.page_of(OTHER_APPROVER), steps.new_payment()
    approver.goto(steps.prepared(people, OTHER_PREPARER, payment))
    approver.get_by_label("Provider's one-time code").fill("000000")
    steps.press(approver, "Approve and send")
    said = steps.decision(approver)
    expect(said).to_contain_text("the provider refused the one-time code")
    expect(said).to_contain_text("It can be sent again with a new one-time code.")
    expect(steps.badge(approver)).to_have_text("Approved")
    assert steps.debits(stack, payment) == []

    approver.get_by_label("Provider's one-time code").fill(stack.one_time_code())
    steps.press(approver, "Send")
    expect(steps.badge(approver)).to_have_text("Succeeded")
    assert steps.debits(stack, payment) == [payment.amount]


def test_sending_without_a_one_time_code_is_reported_at_the_field(people: People, stack: Stack) -> None:
    approver, payment = people.page_of(APPROVER), steps.new_payment()
    approver.goto(steps.prepared(people, PREPARER, payment))
    approver.get_by_label("Comment").fill("Checked against the invoice")
    steps.press(approver, "Approve and send")
    expect(steps.decision(approver)).to_contain_text("Enter the provider's one-time code")
    expect(approver.get_by_label("Comment")).to_have_value("Checked against the invoice")
    expect(steps.badge(approver)).to_have_text("Pending")
    assert steps.debits(stack, payment) == []


@pytest.mark.parametrize("action", ["Approve", "Approve and send", "Reject"])
def test_a_stale_page_changes_nothing_and_reports_it(people: People, action: str, stack: Stack) -> None:
    payment = steps.new_payment()
    path = steps.prepared(people, PREPARER, payment)
    stale = people.page_of(APPROVER, scripts=False)  # with it, the page would have learnt by itself
    stale.goto(path)
    decide_elsewhere(people, path)

    stale.get_by_label("Provider's one-time code").fill(stack.one_time_code())
    stale.get_by_text("Reject…").click()
    stale.get_by_label("Reason").fill("Too late")
    steps.press(stale, action)
    expect(stale.get_by_role("alert")).to_contain_text(re.compile("rejected.*Nothing was changed", re.I))
    expect(steps.badge(stale)).to_have_text("Rejected")
    [row] = steps.exported(stale, payment)
    assert (row["Status"], row["Reason"]) == ("rejected", REASON)
    assert steps.debits(stack, payment) == []


def test_an_open_page_shows_decisions_by_others(people: People) -> None:
    path = steps.prepared(people, PREPARER, steps.new_payment())
    watching = people.page_of(APPROVER)
    watching.goto(path)
    decide_elsewhere(people, path)
    expect(watching.get_by_role("status").filter(has_text="Status: Rejected.")).to_be_visible()
    expect(steps.button(watching, "Approve")).to_have_count(0)


def decide_elsewhere(people: People, path: str) -> None:
    """Somebody else rejects it in another browser."""
    other = people.page_of(OTHER_APPROVER)
    other.goto(path)
    other.get_by_text("Reject…").click()
    other.get_by_label("Reason").fill(REASON)
    steps.press(other, "Reject")
    expect(steps.badge(other)).to_have_text("Rejected")
