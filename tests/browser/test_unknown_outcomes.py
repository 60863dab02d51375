"""Resolving an unknown outcome, pausing and resuming payments. Runs last, because it ends what other pages show."""

import pytest
from playwright.sync_api import Locator, Page, expect

from backoffice.operations.states import Status
from tests.browser import steps
from tests.browser.page_list import case
from tests.browser.people import APPROVER, PREPARER, People

pytestmark = [pytest.mark.browser, pytest.mark.stack]


def test_two_people_resolve_an_unknown_outcome(people: People) -> None:
    preparer, approver = people.page_of(PREPARER), people.page_of(APPROVER)
    case(Status.REVIEW)(people, preparer)
    settled = preparer.url.removesuffix("case/")
    preparer.get_by_role("button", name="Resolve as not executed…").click()
    preparer.get_by_label("Reason").fill("The service says in writing that it has no such payment")
    prepared_and_applied(preparer, approver)
    approver.goto(settled)
    expect(steps.badge(approver)).to_have_text("Failed")
    expect(approver.get_by_text("Resolved by").first).to_be_visible()


def test_one_person_pauses_payments_and_two_resume_them(people: People) -> None:
    preparer, approver = people.page_of(PREPARER), people.page_of(APPROVER, scripts=False)
    approver.goto("/")
    approver.get_by_role("button", name="Pause payments…").click()
    approver.get_by_label("Reason").fill("A key may have leaked")
    steps.press(approver, "Pause payments")
    preparer.goto("/operations/")
    expect(paused(preparer)).to_contain_text(f"Paused by {APPROVER}")
    expect(paused(preparer)).to_contain_text("Reason: A key may have leaked")
    paused(preparer).get_by_role("link").click()
    preparer.get_by_role("button", name="Resume payments…").click()
    preparer.get_by_label("Reason for resuming").fill("It had not leaked")
    prepared_and_applied(preparer, approver)
    preparer.goto("/operations/")
    expect(paused(preparer)).to_have_count(0)


def prepared_and_applied(preparer: Page, approver: Page) -> None:
    """What the one has filled in is approved by the other, and applied with that."""
    steps.press(preparer, "Review details")
    steps.press(preparer, "Submit for approval")
    expect(steps.badge(preparer)).to_have_text("Pending")
    approver.goto(steps.path_of(preparer))
    steps.press(approver, "Approve and apply")
    expect(steps.badge(approver)).to_have_text("Succeeded")


def paused(page: Page) -> Locator:
    """The word at the top of the page that nothing is sent."""
    return page.locator("main .paused")
