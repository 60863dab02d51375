"""However often a person clicks, goes back or sends again, it happens once."""

from decimal import Decimal

import pytest
from playwright.sync_api import Page, Request, expect

from tests.browser import steps
from tests.browser.people import APPROVER, OTHER_APPROVER, OTHER_PREPARER, PREPARER, People
from tools.processes import Stack

pytestmark = [pytest.mark.browser, pytest.mark.stack]

WITH_AND_WITHOUT_SCRIPTS = pytest.mark.parametrize(
    "scripts", [True, False], ids=["with JavaScript", "without JavaScript"]
)


@WITH_AND_WITHOUT_SCRIPTS
def test_a_double_click_on_prepare_makes_one_operation(people: People, scripts: bool) -> None:
    preparer, payment = people.page_of(PREPARER, scripts=scripts), steps.new_payment()
    steps.fill_in(preparer, payment)
    steps.review(preparer, payment)
    steps.button(preparer, "Submit for approval").dblclick()
    expect(steps.badge(preparer)).to_have_text("Pending")
    assert len(steps.exported(preparer, payment)) == 1


@WITH_AND_WITHOUT_SCRIPTS
def test_a_double_click_on_approve_makes_one_approval(people: People, scripts: bool) -> None:
    payment = steps.new_payment()
    path = steps.prepared(people, PREPARER, payment)
    approver = people.page_of(APPROVER, scripts=scripts)
    approver.goto(path)
    steps.button(approver, "Approve").dblclick()
    expect(steps.badge(approver)).to_have_text("Approved")
    approver.goto(path)
    expect(steps.timeline(approver, "approved")).to_have_count(1)
    [row] = steps.exported(approver, payment)
    assert (row["Status"], row["Approved by"]) == ("approved", APPROVER)


def test_a_double_click_on_approve_and_send_makes_one_debit(people: People, stack: Stack) -> None:
    payment = steps.new_payment()
    path = steps.prepared(people, PREPARER, payment)
    approver = people.page_of(OTHER_APPROVER)
    approver.goto(path)
    approver.get_by_label("Provider's one-time code").fill(stack.one_time_code())
    steps.button(approver, "Approve and send").dblclick()
    expect(steps.badge(approver)).to_have_text("Succeeded")
    assert steps.debits(stack, payment) == [payment.amount]


def test_resubmitting_after_going_back_returns_the_same_operation(people: People) -> None:
    preparer, payment = people.page_of(OTHER_PREPARER), steps.new_payment()
    path = steps.prepare(preparer, payment)
    preparer.go_back()
    expect(preparer.get_by_role("heading", level=1)).to_have_text(payment.sentence)
    steps.press(preparer, "Submit for approval")
    expect(steps.badge(preparer)).to_have_text("Pending")
    assert steps.path_of(preparer) == path
    assert len(steps.exported(preparer, payment)) == 1


def test_resubmitting_an_old_form_with_changed_content_is_refused(people: People) -> None:
    preparer, payment, other = people.page_of(OTHER_PREPARER), steps.new_payment(), steps.new_payment()
    steps.prepare(preparer, payment)
    preparer.go_back()
    steps.press(preparer, "Edit details")
    preparer.get_by_label("Amount").fill(other.amount)
    steps.press(preparer, "Review details")
    steps.press(preparer, "Submit for approval")
    expect(preparer.get_by_role("alert")).to_contain_text("already submitted with other content")
    expect(preparer.get_by_label("Amount")).to_have_value(f"{Decimal(other.amount):,}")
    assert len(steps.exported(preparer, payment)) == 1
    assert steps.exported(preparer, other) == []


def test_back_from_the_review_shows_the_form_as_it_was_filled_in(people: People) -> None:
    preparer, payment = people.page_of(OTHER_PREPARER), steps.new_payment()
    steps.fill_in(preparer, payment)
    steps.review(preparer, payment)
    preparer.go_back()
    expect(preparer.get_by_label("Amount")).to_have_value(f"{Decimal(payment.amount):,}")
    expect(preparer.get_by_label("Account number")).to_have_value(payment.account_number)
    steps.review(preparer, payment)


def test_going_back_after_approving_shows_the_current_status(people: People) -> None:
    path = steps.prepared(people, PREPARER, steps.new_payment())
    approver = people.page_of(APPROVER)
    approver.goto("/operations/")
    approver.goto(path)
    steps.press(approver, "Approve")
    expect(steps.badge(approver)).to_have_text("Approved")
    approver.go_back()
    approver.goto(path)
    expect(steps.badge(approver)).to_have_text("Approved")
    expect(steps.button(approver, "Approve")).to_have_count(0)


def test_an_approval_sent_again_changes_nothing(people: People) -> None:
    path = steps.prepared(people, OTHER_PREPARER, steps.new_payment())
    approver = people.page_of(OTHER_APPROVER)
    approver.goto(path)
    with approver.expect_request("**/approve/") as sent:
        steps.press(approver, "Approve")
    expect(steps.badge(approver)).to_have_text("Approved")
    answer = send_again(approver, sent.value)
    assert answer == 422
    approver.reload()
    expect(steps.badge(approver)).to_have_text("Approved")
    expect(steps.timeline(approver, f"{OTHER_APPROVER} approved")).to_have_count(1)


def send_again(page: Page, request: Request) -> int:
    """The same bytes to the same address, as a proxy or an impatient person might."""
    content_type = {"content-type": request.headers["content-type"]}
    return page.request.post(request.url, data=request.post_data, headers=content_type).status
