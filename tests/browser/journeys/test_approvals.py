"""Saying no, saying it wrong, and saying it too late."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser import steps
from tests.browser.people import APPROVER, OTHER_APPROVER, OTHER_PREPARER, PREPARER, People
from tools.processes import Stack

pytestmark = [pytest.mark.browser, pytest.mark.stack]
REASON = "The invoice says something else."


def test_a_rejected_operation_tells_its_maker_why_and_is_prepared_again_from_a_copy(office: People) -> None:
    maker, checker, payment = office.page_of(PREPARER), office.page_of(APPROVER), steps.new_payment()
    path = steps.prepare(maker, payment)
    checker.goto(path)
    checker.get_by_text("Reject…").click()
    checker.get_by_label("Reason").fill(REASON)
    steps.press(checker, "Reject")
    expect(steps.badge(checker)).to_have_text("Rejected")

    expect(steps.badge(maker)).to_have_text("Rejected")  # the open page of the maker learns it by itself
    expect(steps.decision(maker)).to_contain_text(REASON)
    maker.get_by_role("button", name="Prepare again").click()
    expect(maker.get_by_label("Amount")).to_have_value(payment.amount)
    expect(maker.locator("#check")).to_contain_text(payment.holder)
    steps.review(maker, payment)
    steps.press(maker, "Prepare")
    expect(steps.badge(maker)).to_have_text("Pending")
    expect(maker.locator(f'dd a[href="{path}"]')).to_be_visible()
    assert sorted(row["status"] for row in steps.exported(maker, payment)) == ["pending", "rejected"]


def test_rejecting_wants_a_reason(office: People) -> None:
    path = steps.prepared(office, PREPARER, steps.new_payment())
    checker = office.page_of(APPROVER, scripts=False)
    checker.goto(path)
    checker.get_by_text("Reject…").click()
    checker.get_by_label("Reason").fill("   ")
    steps.press(checker, "Reject")
    reason = checker.get_by_label("Reason")
    expect(reason).to_be_visible()
    expect(reason).to_have_accessible_description(re.compile("Say why"))
    expect(steps.badge(checker)).to_have_text("Pending")


def test_a_wrong_token_leaves_it_approved_and_the_second_try_succeeds(office: People, stack: Stack) -> None:
    checker, payment = office.page_of(OTHER_APPROVER), steps.new_payment()
    checker.goto(steps.prepared(office, OTHER_PREPARER, payment))
    checker.get_by_label("The service's token").fill("000000")
    steps.press(checker, "Approve and send")
    said = steps.decision(checker)
    expect(said).to_contain_text("the service refused the token")
    expect(said).to_contain_text("It can be sent again.")
    expect(steps.badge(checker)).to_have_text("Approved")
    assert steps.debits(stack, payment) == []

    checker.get_by_label("The service's token").fill(stack.service_token())
    steps.press(checker, "Send now")
    expect(steps.badge(checker)).to_have_text("Succeeded")
    assert steps.debits(stack, payment) == [payment.amount]


def test_sending_without_a_token_is_refused_beside_the_field(office: People, stack: Stack) -> None:
    checker, payment = office.page_of(APPROVER), steps.new_payment()
    checker.goto(steps.prepared(office, PREPARER, payment))
    checker.get_by_label("Comment").fill("Checked against the invoice")
    steps.press(checker, "Approve and send")
    expect(steps.decision(checker)).to_contain_text("Enter the service's one-time token")
    expect(checker.get_by_label("Comment")).to_have_value("Checked against the invoice")
    expect(steps.badge(checker)).to_have_text("Pending")
    assert steps.debits(stack, payment) == []


@pytest.mark.parametrize("action", ["Approve", "Approve and send", "Reject"])
def test_a_stale_page_changes_nothing_and_says_so(office: People, action: str, stack: Stack) -> None:
    payment = steps.new_payment()
    path = steps.prepared(office, PREPARER, payment)
    stale = office.page_of(APPROVER, scripts=False)  # with it, the page would have learnt by itself
    stale.goto(path)
    decide_elsewhere(office, path)

    stale.get_by_label("The service's token").fill(stack.service_token())
    stale.get_by_text("Reject…").click()
    stale.get_by_label("Reason").fill("Too late")
    steps.press(stale, action)
    expect(stale.get_by_role("alert")).to_contain_text("is rejected by now, so nothing was changed")
    expect(steps.badge(stale)).to_have_text("Rejected")
    [row] = steps.exported(stale, payment)
    assert (row["status"], row["reason"]) == ("rejected", REASON)
    assert steps.debits(stack, payment) == []


def test_a_page_that_is_open_learns_what_others_decided(office: People) -> None:
    path = steps.prepared(office, PREPARER, steps.new_payment())
    watching = office.page_of(APPROVER)
    watching.goto(path)
    decide_elsewhere(office, path)
    expect(watching.get_by_role("status").filter(has_text="It is now: Rejected.")).to_be_visible()
    expect(steps.button(watching, "Approve")).to_have_count(0)


def decide_elsewhere(office: People, path: str) -> None:
    """Somebody else rejects it in another browser."""
    other = office.page_of(OTHER_APPROVER)
    other.goto(path)
    other.get_by_text("Reject…").click()
    other.get_by_label("Reason").fill(REASON)
    steps.press(other, "Reject")
    expect(steps.badge(other)).to_have_text("Rejected")
