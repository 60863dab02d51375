"""Everything can be done without a mouse, and one always sees where one is."""

import re

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser import steps
from tests.browser.people import OTHER_APPROVER, PREPARER, People, present_code, wait_until
from tools.browser import demo_person

pytestmark = [pytest.mark.browser, pytest.mark.stack]

# The button inside a date field is marked by the browser itself: the page only sees that the field has no focus then.
FOCUS_IS_SEEN = """() => {
    const focused = document.activeElement, style = getComputedStyle(focused), box = focused.getBoundingClientRect();
    const marked = parseFloat(style.outlineWidth) > 0 && style.outlineStyle !== "none" || style.boxShadow !== "none"
        || focused.type === "date" && !focused.matches(":focus");
    const onScreen = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
    return marked && onScreen;
}"""


def test_sign_in_and_approval_work_by_keyboard(people: People) -> None:
    path = steps.prepared(people, PREPARER, steps.new_payment())
    page = people.browser()
    sign_in(page, OTHER_APPROVER)

    tab_to(page, page.get_by_role("navigation", name="Main").get_by_role("link", name="Operations"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Operations")
    skip_to_the_content(page)
    tab_to(page, page.locator(f"main a[href='{path}']"))
    page.keyboard.press("Enter")
    expect(steps.badge(page)).to_have_text("Pending")
    skip_to_the_content(page)
    tab_to(page, page.get_by_label("Comment"))
    page.keyboard.type("Compared")
    tab_to(page, steps.button(page, "Approve"))
    page.keyboard.press("Enter")
    expect(steps.badge(page)).to_have_text("Approved")
    expect(steps.timeline(page, f"{OTHER_APPROVER} approved")).to_contain_text("Compared")


def test_slash_focuses_the_search_and_escape_closes_the_menu(people: People) -> None:
    page = people.page_of(PREPARER)
    page.goto("/operations/")
    page.keyboard.press("/")
    search = page.locator(".bar").get_by_role("searchbox", name="Search")
    expect(search).to_be_focused()
    expect(search).to_have_value("")
    menu = page.locator(".bar details.person")
    menu.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(menu.get_by_role("link", name="My account")).to_be_visible()
    page.keyboard.press("Escape")
    expect(menu.get_by_role("link", name="My account")).to_be_hidden()
    expect(menu.locator("summary")).to_be_focused()


def test_the_palette_opens_every_page_from_any_page(people: People) -> None:
    page = people.page_of(PREPARER)
    page.goto("/account/")
    page.keyboard.press("Control+k")
    offered = page.locator("#palette").get_by_role("option")
    expect(offered.filter(has_text="Webhooks")).to_have_count(1)
    page.keyboard.type("new operation crypto")
    expect(offered).to_have_text(["Send crypto New operation"])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Send crypto")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Command")).to_be_focused()
    page.keyboard.type("webhooks")
    expect(offered).to_have_text(["Webhooks Settings"])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Webhooks")


def test_words_typed_while_the_palette_reads_its_list_are_kept(people: People) -> None:
    page = people.page_of(PREPARER)
    page.goto("/account/")

    def type_first(route: Route) -> None:
        page.keyboard.type("webhooks")
        route.continue_()

    page.route("**/search/", type_first)
    page.keyboard.press("Control+k")
    offered = page.locator("#palette").get_by_role("option")
    expect(offered).to_have_text(["Webhooks Settings"])


def test_the_palette_searches_for_what_is_no_page(people: People) -> None:
    page = people.page_of(PREPARER)
    page.goto("/account/")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Command")).to_be_focused()
    page.keyboard.type("no page has these words")
    expect(page.locator("#palette").get_by_role("option")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("“no page has these words”")


def test_without_scripts_the_search_page_leads_to_every_page(people: People) -> None:
    page = people.page_of(PREPARER, scripts=False)
    page.goto("/search/")
    page.get_by_role("region", name="Pages").get_by_role("link", name="Webhooks").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Webhooks")


@pytest.mark.parametrize("address", ["/transactions/", "/operations/?tab=all", "/operations/withdrawals/"])
def test_a_filter_is_added_and_removed_by_keyboard(people: People, address: str) -> None:
    page = people.page_of(PREPARER)
    page.goto(address)
    menu = page.locator("details.add > summary")
    menu.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("From", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_label("From", exact=True)).to_be_hidden()
    expect(menu).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_label("From", exact=True).focus()
    page.keyboard.type("10152026", delay=50)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("since=2026-10-15"))
    expect(page.locator(".chip")).to_contain_text("From: 15 Oct 2026")
    page.get_by_role("link", name="Remove filter: From").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".chip")).to_have_count(0)


def test_rows_and_export_follow_the_typed_text(people: People) -> None:
    page = people.page_of(PREPARER)
    page.goto("/operations/?tab=all&status=succeeded")
    page.get_by_role("main").get_by_role("searchbox").fill("Convert")
    expect(page).to_have_url(re.compile("text=Convert"))
    assert re.search("status=succeeded", page.url)
    expect(page.get_by_role("button", name="Export CSV")).to_have_attribute(
        "href", re.compile("text=Convert")
    )


def test_letter_keys_move_through_the_rows_and_select_them(people: People) -> None:
    paths = [steps.prepared(people, PREPARER, steps.new_payment()) for _ in range(2)]
    page = people.page_of(OTHER_APPROVER)
    page.goto("/operations/?tab=waiting")
    page.keyboard.press("j")
    expect(page.locator("a.row").first).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("x")
    second = page.locator(f"tr:has(a[href='{paths[0]}'])")
    expect(second.get_by_role("checkbox")).to_be_checked()
    page.keyboard.press("k")
    expect(page.locator(f"a[href='{paths[1]}']")).to_be_focused()
    everything = page.get_by_label("Select all")
    everything.check()
    expect(page.locator("[name=operation]:not(:checked)")).to_have_count(0)
    everything.uncheck()
    expect(page.locator("[name=operation]:checked")).to_have_count(0)
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("r")
    expect(page.get_by_role("button", name="Reject selected…")).to_be_focused()
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="Approve selected…")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Approve 1 operation")
    steps.press(page, "Approve 1 operation")
    expect(page.get_by_role("heading", level=1)).to_have_text("1 of 1 approved")


def test_a_and_r_open_approve_and_reject_on_an_operation(people: People) -> None:
    path = steps.prepared(people, PREPARER, steps.new_payment())
    page = people.page_of(OTHER_APPROVER)
    page.goto(path)
    page.keyboard.press("r")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("a and r are letters here")
    expect(page.get_by_label("Reason")).to_have_value("a and r are letters here")
    page.locator("body").click(position={"x": 2, "y": 400})
    page.keyboard.press("a")
    expect(page.get_by_label("Provider's one-time code")).to_be_focused()
    expect(steps.badge(page)).to_have_text("Pending")


def test_the_first_invalid_field_of_a_refused_form_has_the_focus(people: People) -> None:
    page, payment = people.page_of(PREPARER), steps.new_payment()
    steps.fill_in(page, payment)
    page.get_by_label("Amount").fill("1e5")
    steps.press(page, "Review details")
    expect(page.get_by_label("Amount")).to_be_focused()


def sign_in(page: Page, name: str) -> None:
    """Type what the demo shows. The first field has the focus already."""
    page.goto("/account/sign-in/")
    shown = demo_person(page.content(), name)
    expect(page.get_by_label("Email address")).to_be_focused()
    page.keyboard.type(shown["email"])
    page.keyboard.press("Tab")
    page.keyboard.type(shown["password"])
    page.keyboard.press("Enter")
    expect(page.get_by_label("Code", exact=True)).to_be_focused()
    code = present_code(page, name)
    page.get_by_label("Code", exact=True).focus()
    page.keyboard.type(code)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text(name.split()[0])


def skip_to_the_content(page: Page) -> None:
    """The first stop of every page leads past the bar and the menu."""
    tab_to(page, page.get_by_role("link", name="Skip to content"), within=1)
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def tab_to(page: Page, wanted: Locator, *, within: int = 80) -> None:
    """Press Tab until it has the focus; at each stop on the way the focus is seen."""
    for _ in range(within):
        page.keyboard.press("Tab")
        wait_until(lambda: page.evaluate(FOCUS_IS_SEEN), within=5)  # the page may still be scrolling
        if wanted.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"{within} times Tab did not lead to {wanted}")
