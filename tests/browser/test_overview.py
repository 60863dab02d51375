"""The charts of the overview: drawn from the tables behind them, in the colours of the page, and no need of anybody."""

import re
from functools import partial

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.page_check import OPEN_EVERYTHING
from tests.browser.people import APPROVER, AUDITOR, People, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.stack]

# The colours of what is drawn, by how much of the canvas they cover; the ground of the page is not among them.
INK = """canvas => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height), found = {};
    for (let at = 0; at < data.length; at += 4)
        if (data[at + 3] === 255) {
            const colour = `rgb(${data[at]}, ${data[at + 1]}, ${data[at + 2]})`;
            found[colour] = (found[colour] ?? 0) + 1;
        }
    return found;
}"""
COLOUR = "element => getComputedStyle(element).color"


def panel(page: Page, currency: str = "NGN") -> Locator:
    """The panel of a currency; the mirror of the demo may still be loading when the first test comes."""
    heading = page.get_by_role("heading", level=3, name=re.compile(f"{currency}$"))
    found = page.locator("article", has=heading)
    wait_until(lambda: is_there_by_now(found))
    found.scroll_into_view_if_needed()
    return found


def is_there_by_now(panel: Locator) -> bool:
    if panel.count() == 0:
        panel.page.reload()
    return panel.count() == 1


def is_synced(page: Page) -> bool:
    """Whether the mirror is loaded; otherwise a note above the overview says how far it is."""
    page.reload()
    return page.locator("#mirror").count() == 0


def canvas(panel: Locator) -> Locator:
    found = panel.locator("canvas")
    expect(found).to_be_visible()
    return found


def has_colours_of_its_keys(panel: Locator) -> bool:
    ink = canvas(panel).evaluate(INK)
    return all(ink.get(panel.locator(f".key.{way}").evaluate(COLOUR), 0) > 50 for way in ("in", "out"))


@pytest.mark.parametrize("language", ["en", "fr"])
def test_the_overview_fits_one_screen_but_for_alerts(people: People, language: str) -> None:
    page = people.page_of(APPROVER)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.set_extra_http_headers({"Accept-Language": language})
    page.goto("/")
    wait_until(lambda: is_synced(page))
    canvas(panel(page))
    expect(page.locator(".owned li")).to_have_count(3)
    page.evaluate("document.querySelectorAll('main [role=alert]').forEach((alert) => alert.remove())")
    assert page.evaluate("document.scrollingElement.scrollHeight") <= 900


def test_the_overview_has_the_same_order_on_a_phone(people: People) -> None:
    page = people.page_of(APPROVER)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/")
    panel(page)
    tops = [
        page.get_by_role("heading", name=name, exact=True).evaluate(
            "element => element.getBoundingClientRect().top"
        )
        for name in ("Waiting for me", "Balances", "Needs attention", "Last 30 days")
    ]
    assert tops == sorted(tops)


@pytest.mark.parametrize("width", [390, 1440])
def test_a_chart_is_drawn_for_each_currency_and_follows_the_theme(people: People, width: int) -> None:
    page = people.page_of(AUDITOR)
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="light")
    page.goto("/")
    naira = panel(page)
    wait_until(lambda: has_colours_of_its_keys(naira))
    light = canvas(naira).evaluate(INK)
    page.emulate_media(color_scheme="dark")
    wait_until(lambda: has_colours_of_its_keys(naira) and canvas(naira).evaluate(INK) != light)
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    wait_until(lambda: canvas(naira).evaluate(INK) == light)
    for currency in ("USD", "USDT"):
        wait_until(partial(has_colours_of_its_keys, panel(page, currency)))


def test_the_arrow_keys_show_the_tables_figures_for_each_day(people: People) -> None:
    page = people.page_of(APPROVER)
    page.goto("/")
    naira = panel(page)
    canvas(naira)
    page.evaluate(OPEN_EVERYTHING)
    rows = [
        row.locator("th, td").all_inner_texts()
        for row in naira.locator(".behind table:not(.gauges) tbody tr").all()
    ]
    usual = naira.locator(".readout").inner_text()
    naira.locator(".plot").focus()
    for key, (day, received, sent) in (("End", rows[29]), ("ArrowLeft", rows[28]), ("Home", rows[0])):
        page.keyboard.press(key)
        expect(naira.locator(".readout")).to_have_text(f"{day}: in {received} · out {sent}")
    naira.locator("summary").focus()
    expect(naira.locator(".readout")).to_have_text(usual)


def test_the_chart_library_is_loaded_when_a_chart_nears_the_viewport(people: People) -> None:
    page, asked = people.page_of(AUDITOR), []
    page.on("request", lambda request: asked.append(request.url))
    page.set_viewport_size({"width": 390, "height": 500})
    page.goto("/")
    page.wait_for_load_state("networkidle")
    assert not [url for url in asked if "uPlot" in url]
    canvas(panel(page))
    assert len([url for url in asked if "uPlot" in url]) == 2


def test_tables_replace_charts_without_javascript(people: People) -> None:
    page = people.page_of(AUDITOR, scripts=False)
    page.goto("/")
    naira = panel(page)
    expect(naira.locator(".behind table:not(.gauges)")).to_be_visible()
    expect(naira.locator(".plot")).to_be_hidden()


def test_the_table_opens_if_the_chart_library_fails_to_load(people: People) -> None:
    page = people.page_of(AUDITOR)
    page.route("**/uPlot.iife*", _cut)
    page.goto("/")
    naira = panel(page)
    expect(naira.locator(".behind table:not(.gauges)")).to_be_visible()
    expect(naira.locator("figure")).to_be_hidden()
    people.take_complaints()  # the browser itself says that a file did not arrive


def _cut(route: Route) -> None:
    route.abort()
