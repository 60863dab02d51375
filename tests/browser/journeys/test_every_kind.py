"""One operation of every kind, by two people in front of their browsers, against the sandbox."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, expect

from backoffice.operations.kinds.base import LocalKind
from backoffice.operations.kinds.registry import KINDS
from tests.browser import steps
from tests.browser.people import ADMINISTRATOR, APPROVER, PREPARER, People, wait_until
from tools.processes import Stack

pytestmark = [pytest.mark.browser, pytest.mark.stack]
TRON_ADDRESS = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"


def withdrawal(page: Page) -> None:
    steps.fill_in(page, steps.new_payment())


def transfer(page: Page) -> None:
    page.get_by_label("Recipient's username").fill("ngozi.eze")
    page.get_by_label("Amount").fill("1,250.50")
    page.get_by_label("Memo").fill("Market day")


def conversion(page: Page) -> None:
    page.get_by_label("Direction").select_option("NGN-USD")  # dollars wait in the demo
    page.get_by_label("You sell").fill("12500")
    expect(page.locator("#check")).to_contain_text("You receive")


def wallet_transfer(page: Page) -> None:
    page.get_by_label("Network").select_option("TRC20")
    page.get_by_label("Address").fill(TRON_ADDRESS)
    page.get_by_label("Amount").fill("7.25")


def payment(page: Page) -> None:
    page.get_by_label("Pay-in amount").fill("25")
    page.get_by_label("Customer's email address").fill("customer@example.com")
    page.get_by_label("User of the provider").check()
    page.get_by_label("Username").fill("ngozi.eze")


def bank_account(page: Page) -> None:
    page.get_by_label("Account name").fill("Meridian Foods Collections")
    page.get_by_label("Preferred name").fill("Meridian Collections")


def callback_url(page: Page) -> None:
    page.get_by_label("New URL").fill("https://office.meridian.example/hooks/service")


def new_key(name: str) -> Callable[[Page], None]:
    def fill_in(page: Page) -> None:
        page.get_by_label("Name", exact=True).fill(name)
        page.get_by_label("Permissions").select_option("M")
        page.get_by_label("Expires after").fill("30")

    return fill_in


def chosen_key(name: str) -> Callable[[Page], None]:
    def fill_in(page: Page) -> None:
        keys = page.get_by_role("main").get_by_role("combobox").first
        option = keys.locator("option").filter(has_text=name)
        # The form waits one second for the provider's list; on a busy machine it may have to be opened again.
        wait_until(lambda: option.count() or not page.reload())
        keys.select_option(option.first.get_attribute("value"))

    return fill_in


@dataclass(frozen=True)
class Way:
    """Who prepares a kind, and how the form is filled in."""

    kind: str
    person: str
    fill_in: Callable[[Page], None]


# What follows on something else is on one line with it: a key is made before it is taken into use or ended.
WAYS = [
    (Way("withdrawal", PREPARER, withdrawal),),
    (Way("transfer", PREPARER, transfer),),
    (Way("conversion", PREPARER, conversion),),
    (Way("wallet_transfer", PREPARER, wallet_transfer),),
    (Way("payment", PREPARER, payment),),
    (Way("bank_account", ADMINISTRATOR, bank_account),),
    (Way("callback_url", ADMINISTRATOR, callback_url),),
    (
        Way("api_key_create", ADMINISTRATOR, new_key("Browser walk")),
        Way("api_key_create", ADMINISTRATOR, new_key("Short-lived")),
        Way("api_key_switch", ADMINISTRATOR, chosen_key("Browser walk")),
        Way("api_key_invalidate", ADMINISTRATOR, chosen_key("Short-lived")),
        Way("api_key_delete", ADMINISTRATOR, chosen_key("Short-lived")),
    ),
]


@pytest.mark.parametrize("ways", WAYS, ids=lambda ways: ways[-1].kind)
def test_every_kind_is_prepared_approved_sent_and_confirmed(
    people: People, stack: Stack, ways: tuple[Way, ...]
) -> None:
    for way in ways:
        carry_through(people, stack, way)


def carry_through(people: People, stack: Stack, way: Way) -> None:
    preparer = people.page_of(way.person)
    preparer.goto(f"/operations/prepare/{way.kind}/")
    way.fill_in(preparer)
    steps.press(preparer, "Review details")
    sentence, code = heading(preparer).inner_text(), preparer.locator(".digest").inner_text()
    steps.press(preparer, "Submit for approval")
    expect(steps.badge(preparer)).to_have_text("Pending")
    expect(heading(preparer)).to_have_text(sentence)

    approver = people.page_of(APPROVER)
    approver.goto(steps.path_of(preparer))
    expect(steps.decision(approver).locator(".digest")).to_have_text(code)
    fill_in_what_is_asked(approver, stack)
    steps.press(approver, "Approve and send")
    expect(steps.badge(approver)).to_have_text("Created" if way.kind == "payment" else "Succeeded")


def fill_in_what_is_asked(approver: Page, stack: Stack) -> None:
    """The provider's one-time code where the kind needs it, and the end of the address where it has to be typed."""
    panel = steps.decision(approver)
    otp, ending = panel.locator("[name=otp]"), panel.locator("[name=confirmation]")
    if otp.count():
        otp.fill(stack.one_time_code())
    if ending.count():
        ending.fill(TRON_ADDRESS[-6:])


def heading(page: Page) -> Locator:
    return page.get_by_role("heading", level=1)


def test_every_kind_is_covered() -> None:
    sent = {name for name, kind in KINDS.items() if not isinstance(kind, LocalKind)}
    assert {way.kind for ways in WAYS for way in ways} == sent  # the others: test_unknown_outcomes.py


def test_an_address_shown_in_groups_is_copied_without_gaps(people: People) -> None:
    page = people.page_of(PREPARER)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/operations/prepare/wallet_transfer/")
    wallet_transfer(page)
    page.get_by_label("Amount").fill("3.75")  # the same amount as sent above would be a possible duplicate
    steps.press(page, "Review details")
    address = page.locator(f'code.groups[data-copy="{TRON_ADDRESS}"]')
    expect(address.locator("span").nth(1)).to_be_visible()
    copy = address.locator("xpath=following-sibling::button[1]")
    expect(copy).to_have_text("Copy")
    copy.click()
    expect(copy).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == TRON_ADDRESS
    expect(copy).to_have_text("Copy")
