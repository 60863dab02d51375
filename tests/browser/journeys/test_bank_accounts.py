"""Choosing a known bank account, with htmx and without any script."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser import steps
from tests.browser.people import PREPARER, People

pytestmark = [pytest.mark.browser, pytest.mark.stack]

WITHDRAWAL = "/operations/prepare/withdrawal/"


@pytest.mark.parametrize("scripts", [True, False], ids=["htmx", "no scripts"])
def test_a_selected_account_is_filled_in_and_keeps_other_input(shared_people: People, scripts: bool) -> None:
    payment = steps.new_payment()
    steps.prepared(shared_people, PREPARER, payment)
    page = shared_people.page_of(PREPARER, scripts=scripts)
    page.goto(WITHDRAWAL)
    page.get_by_label("Amount").fill("12.5")
    known = page.get_by_label("Registered and recent recipients")
    shown = known.locator("option", has_text=f"••{payment.account_number[-4:]} ").first.inner_text()
    known.select_option(label=shown)
    if not scripts:
        steps.press(page, "Use recipient")
    expect(page.get_by_text("The names match.")).to_be_visible()
    expect(page.get_by_label("Account number")).to_have_value(payment.account_number)
    expect(page.get_by_label("Account holder")).to_have_value(re.compile(payment.holder))
    expect(page.get_by_label("Amount")).to_have_value("12.5")
    expect(known).to_have_value(re.compile("^operation-"))
    assert payment.account_number not in page.url


def test_enter_submits_the_form_and_selects_no_account(shared_people: People) -> None:
    steps.prepared(shared_people, PREPARER, steps.new_payment())
    page = shared_people.page_of(PREPARER, scripts=False)
    page.goto(WITHDRAWAL)
    page.get_by_label("Registered and recent recipients").select_option(index=1)
    page.get_by_label("Account holder").fill("Typed by hand")
    page.get_by_label("Account holder").press("Enter")
    expect(page.get_by_label("Account holder")).to_have_value("Typed by hand")
    expect(page.get_by_label("Account number")).to_have_value("")
