"""The forms of new operations: where one begins, amounts with commas, the full balance, and corrected fields."""

import re

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.browser import steps
from tests.browser.people import APPROVER, PREPARER, People, give_password, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.stack]
MOST_KEYS = 12  # from the overview to the field of the amount


@pytest.mark.parametrize("entry", ["Withdraw", "Convert", "Send crypto"])
def test_the_amount_is_few_keys_away_from_the_overview(people: People, entry: str) -> None:
    page = people.page_of(PREPARER)
    page.goto("/")
    keys = ["n"]
    page.keyboard.press("n")
    link = page.locator(".bar .new").get_by_role("link", name=entry, exact=True)
    expect(link).to_be_visible()
    while not is_focused(link):
        keys.append("Tab")
        assert len(keys) < MOST_KEYS
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("[name=amount]")).to_be_focused()


@pytest.mark.parametrize("scripts", [True, False])
def test_the_focus_begins_in_the_first_field_to_fill_in(people: People, scripts: bool) -> None:
    page = people.page_of(PREPARER, scripts=scripts)
    page.goto("/operations/prepare/transfer/")
    expect(page.get_by_label("Recipient's username")).to_be_focused()
    page.get_by_label("Recipient's username").fill("ngozi.eze")
    page.get_by_label("Amount").fill("1,5")
    steps.press(page, "Review details")
    expect(page.get_by_label("Amount")).to_be_focused()
    expect(page.get_by_label("Amount")).to_have_value("1,5")
    expect(page.get_by_label("Amount")).to_have_accessible_description(re.compile("such as 5,000.50"))


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("5000.50", "5,000.50"),
        ("5 000.50", "5,000.50"),
        ("1\u202f234\u202f567", "1,234,567"),
        ("1234567.891", "1,234,567.891"),
        ("12", "12"),
        ("5.000,50", "5.000,50"),
        ("1,5", "1,5"),
        ("0 005", "0 005"),
        ("0005", "0005"),
    ],
)
def test_an_amount_gets_its_commas_as_one_leaves_the_field(people: People, typed: str, shown: str) -> None:
    page = people.page_of(PREPARER)
    page.goto("/operations/prepare/withdrawal/")
    page.get_by_label("Amount").fill(typed)
    page.keyboard.press("Tab")
    expect(page.get_by_label("Amount")).to_have_value(shown)


@pytest.mark.parametrize("scripts", [True, False])
def test_the_review_is_the_same_with_and_without_separators(people: People, scripts: bool) -> None:
    page = people.page_of(PREPARER, scripts=scripts)
    for typed in ("5000.50", "5,000.50", "5 000.50"):
        page.goto("/operations/prepare/transfer/")
        page.get_by_label("Recipient's username").fill("ngozi.eze")
        page.get_by_label("Amount").fill(typed)
        steps.press(page, "Review details")
        expect(page.get_by_role("heading", level=1)).to_have_text("Transfer NGN 5,000.50 to user ngozi.eze")


def test_the_full_balance_leaves_the_fee(people: People) -> None:
    page = people.page_of(PREPARER)
    page.goto("/operations/prepare/withdrawal/")
    steps.press(page, "Use full balance")
    amount = page.get_by_label("Amount")
    expect(amount).to_be_focused()
    expect(page.locator("#full-balance")).to_have_text("NGN 50.00 is kept for the fee, as charged last time.")
    reported = page.locator(".money", has_text="NGN").first.inner_text().removeprefix("NGN ")
    assert cents(reported) - cents(amount.input_value()) == 50_00

    page.get_by_label("Currency").select_option("USD")
    expect(page.locator("#full-balance")).to_be_empty()
    steps.press(page, "Use full balance")
    expect(amount).not_to_have_value(re.compile(f"^{re.escape(reported[:6])}"))


def test_the_fee_of_crypto_depends_on_the_network(people: People) -> None:
    page = people.page_of(PREPARER)
    page.goto("/operations/prepare/wallet_transfer/")
    page.get_by_label("Network").select_option("ERC20")
    steps.press(page, "Use full balance")
    expect(page.locator("#full-balance")).to_have_text("Fees are charged on top: leave enough for them.")


def test_without_scripts_the_balance_is_shown_and_no_button_is_dead(people: People) -> None:
    page = people.page_of(PREPARER, scripts=False)
    page.goto("/operations/prepare/withdrawal/")
    expect(page.get_by_text("Balance before fees:")).to_be_visible()
    expect(steps.button(page, "Use full balance")).to_have_count(0)


def test_a_corrected_field_loses_its_error(people: People) -> None:
    page = people.page_of(PREPARER)
    page.goto("/operations/prepare/wallet_transfer/")
    page.get_by_label("Amount").fill("1,5")
    steps.press(page, "Review details")
    amount, network = page.get_by_label("Amount"), page.get_by_label("Network")
    expect(network).to_have_attribute("aria-invalid", "true")
    amount.fill("1.5")
    expect(amount).not_to_have_attribute("aria-invalid", "true")
    expect(page.locator("#id_amount_error")).to_have_count(0)
    network.select_option("TRC20")
    expect(page.locator("#id_network_error")).to_have_count(0)
    expect(network).to_have_accessible_description(re.compile("^Must be the recipient's network"))
    expect(page.get_by_label("Address")).to_have_attribute("aria-invalid", "true")


def test_nothing_is_submitted_before_a_chosen_recipient_is_filled_in(people: People) -> None:
    paid = steps.new_payment()
    steps.prepared(people, PREPARER, paid)
    page = people.page_of(PREPARER)
    page.goto("/operations/prepare/withdrawal/")
    page.get_by_label("Amount").fill("5")
    held: list[Route] = []
    page.route(re.compile(r"/withdrawal/(\?|$)"), lambda route: held.append(route))
    recipients = page.get_by_label("Registered and recent recipients")
    recipients.select_option(index=1)
    expect(steps.button(page, "Review details")).to_be_disabled()
    wait_until(lambda: held)
    held[0].continue_()
    expect(steps.button(page, "Review details")).to_be_enabled()
    number = page.get_by_label("Account number")
    expect(number).not_to_have_value("")

    number.fill("0123456780")
    expect(recipients).to_have_value("")


def test_what_is_rarely_used_is_folded_away_until_it_is_used(people: People) -> None:
    page = people.page_of(PREPARER)
    page.goto("/operations/prepare/payment/")
    expect(page.get_by_label("Rate key")).to_be_hidden()
    page.get_by_text("Advanced", exact=True).click()
    page.get_by_label("Rate key").fill("a b")
    steps.press(page, "Review details")
    expect(page.get_by_label("Rate key")).to_be_visible()
    expect(page.get_by_label("Rate key")).to_have_value("a b")


def test_three_clicks_prepare_and_three_approve_and_send_with_the_codes_shown(people: People) -> None:
    payment = steps.new_payment()
    preparer = people.page_of(PREPARER)
    steps.fill_in(preparer, payment)
    steps.review(preparer, payment)
    steps.press(preparer, "Submit for approval")
    expect(steps.badge(preparer)).to_have_text("Pending")

    approver = people.page_of(APPROVER)
    approver.goto(steps.path_of(preparer))
    fill_in = approver.get_by_role("button", name="Fill in Provider's one-time code")
    wait_until(
        lambda: fill_in.count() or not approver.reload()
    )  # a code that was used is followed by the next
    fill_in.click()
    expect(approver.get_by_label("Provider's one-time code")).to_have_value(re.compile(r"^\d{6}$"))
    steps.press(approver, "Approve and send")
    expect(steps.badge(approver)).to_have_text("Succeeded")


def test_the_step_up_page_shows_the_code_of_this_person(people: People) -> None:
    page = people.browser()
    give_password(page, APPROVER)
    fill_in = page.get_by_role("button", name="Fill in")
    wait_until(
        lambda: page.locator("[data-demo] [data-code]:not([data-code=''])").count() or not page.reload()
    )
    fill_in.click()
    expect(page.get_by_label("Code", exact=True)).to_have_value(re.compile(r"^\d{6}$"))


def is_focused(element: Locator) -> bool:
    focused: bool = element.evaluate("element => element === document.activeElement")
    return focused


def cents(text: str) -> int:
    return int(re.sub(r"[^0-9]", "", text))
