"""One visit to a page, and everything that is measured during it."""

from dataclasses import dataclass, field
from typing import Any, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import CDPSession, Page, Request, Response, ViewportSize, expect

from tests.browser.page_list import NOBODY, ListedPage
from tests.browser.people import People

_NARROW, _WIDE = ViewportSize(width=390, height=844), ViewportSize(width=1440, height=900)
_Scheme = Literal["light", "dark"]
APPEARANCES: tuple[tuple[ViewportSize, _Scheme], ...] = ((_NARROW, "dark"), (_WIDE, "light"))
"""A scheme changes colours and no sizes, so each size is checked in one of them."""

# Colours are checked apart from the rest, in both schemes. The rule left out asks for more than WCAG AA.
COLOUR_RULES = {"color-contrast": {"enabled": False}, "link-in-text-block": {"enabled": False}}
ALL_BUT_COLOURS = {"resultTypes": ["violations"], "rules": COLOUR_RULES}
COLOURS = {
    "resultTypes": ["violations"],
    "runOnly": ["cat.color"],
    "rules": {"color-contrast-enhanced": {"enabled": False}},
}
WANT_A_NAME = {
    *("textbox", "searchbox", "combobox", "listbox", "checkbox", "radio", "spinbutton", "Date"),
    *("button", "link", "DisclosureTriangle", "image", "img", "SvgRoot"),
}

TOO_WIDE = """() => {
    const beyond = [...document.querySelectorAll("main *, header *")]
        .filter((element) => element.getBoundingClientRect().right > innerWidth + 1);
    return document.scrollingElement.scrollWidth <= innerWidth ? null
        : `${document.scrollingElement.scrollWidth} px: ` + beyond.slice(-1).map((one) => one.outerHTML.slice(0, 150));
}"""
OPEN_EVERYTHING = "document.querySelectorAll('details').forEach((details) => { details.open = true; })"
CHECK_NEW_COLOURS = """async ({checked, options}) => {
    const ofContent = /^(id|for|href|src|value|content|action|title|style|hx-.*)$|^aria-(label|describedby|controls)/;
    const look = (element) => element.tagName + [...element.attributes]
        .filter((attribute) => !ofContent.test(attribute.name))
        .map((attribute) => `[${attribute.name}=${attribute.value}]`).sort().join("");
    const found = [], elements = [];
    for (const element of document.body.querySelectorAll("*")) {
        const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!hasText && !element.matches("input, textarea, select")) continue;
        const looks = [];
        for (let one = element; one; one = one.parentElement) looks.push(look(one));
        const path = looks.join(" < ");
        if (checked.includes(path)) continue;
        found.push(path);
        elements.push(element);
    }
    const ran = elements.length ? await axe.run({include: elements}, options) : {violations: []};
    return {found, violations: ran.violations};
}"""
"""Checks every text whose element and ancestors look unlike those checked before: styles depend on them alone.
Elements are chosen and given to axe-core in one call, as a page that updates itself may replace them between two.
"""

REPEATED_IDS = """() => {
    const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
    return ids.filter((id, place) => ids.indexOf(id) !== place);
}"""


@dataclass
class PageCheck:
    """What was found on one page."""

    complaints: list[str] = field(default_factory=list)
    too_wide: list[str] = field(default_factory=list)
    html: int = 0
    critical: int = 0
    language: str | None = None
    headings: list[str] = field(default_factory=list)
    nameless: list[str] = field(default_factory=list)
    repeated_ids: list[str] = field(default_factory=list)
    barriers: list[str] = field(default_factory=list)


class PageChecker:
    """A page of one person that goes from place to place, and notes what it consists of each time."""

    def __init__(self, people: People, person: str) -> None:
        self.people = people
        self.page = people.browser() if person == NOBODY else people.page_of(person)
        self.devtools = self.page.context.new_cdp_session(self.page)
        self.devtools.send("Network.enable")
        self.devtools.send("Network.setCacheDisabled", {"cacheDisabled": True})
        self.responses: list[Response] = []
        self.is_loaded = False
        self.checked_looks: list[str] = []
        self.page.on("request", self._begin_anew_with_a_page)
        self.page.on("load", self._end_what_is_critical)
        self.page.on("response", self._note)

    def visit(self, place: ListedPage) -> PageCheck:
        """Open the page and measure it wide and narrow, light and dark, folded and unfolded."""
        self.people.take_complaints()
        place.visit(self.people, self.page)
        expect(self.page.locator(".htmx-request")).to_have_count(0)
        self.page.wait_for_load_state()
        seen = PageCheck(
            html=self._bytes_of("document"),
            critical=self._bytes_of("document", "stylesheet", "script"),
            language=self.page.locator("html").get_attribute("lang"),
            headings=self.page.locator("h1").all_inner_texts(),
            repeated_ids=self.page.evaluate(REPEATED_IDS),
            too_wide=self._too_wide(),
        )
        self.page.evaluate(OPEN_EVERYTHING)
        seen.too_wide += self._too_wide()
        seen.nameless = nameless(self.devtools)
        seen.complaints = self.people.take_complaints()
        seen.barriers = self._barriers()
        self.people.take_complaints()  # axe-core itself tries an inline style
        return seen

    def _too_wide(self) -> list[str]:
        found = []
        for size, scheme in APPEARANCES:
            if self.page.viewport_size != size:
                self.page.set_viewport_size(size)
            self.page.emulate_media(color_scheme=scheme)
            if wide := self.page.evaluate(TOO_WIDE):
                found.append(f"{size['width']} {scheme}: {wide}")
        return found

    def _barriers(self) -> list[str]:
        """What axe-core calls serious or critical, as `scheme: rule at element`. Colours are checked in both schemes,
        of each text whose look no page before has had.
        """
        self.page.emulate_media(color_scheme="light", reduced_motion="reduce")  # colours do not glide then
        found = {"light": Axe().run(self.page, options=ALL_BUT_COLOURS).response["violations"]}
        new_looks: list[str] = []
        found["light"] += self._colours(new_looks)
        if new_looks:
            self.page.emulate_media(color_scheme="dark", reduced_motion="reduce")
            found["dark"] = self._colours(new_looks)
            self.checked_looks += dict.fromkeys(new_looks)
        return [
            f"{scheme}: {one['id']} at {one['nodes'][0]['target']}"
            for scheme, violations in found.items()
            for one in violations
            if one["impact"] in {"serious", "critical"}
        ]

    def _colours(self, new_looks: list[str]) -> list[dict[str, Any]]:
        """Violations in the present scheme. Adds the looks that were checked to the list."""
        ran = self.page.evaluate(CHECK_NEW_COLOURS, {"checked": self.checked_looks, "options": COLOURS})
        new_looks += ran["found"]
        violations: list[dict[str, Any]] = ran["violations"]
        return violations

    def _bytes_of(self, *types: str) -> int:
        return sum(transferred(one) for one in self.responses if one.request.resource_type in types)

    def _begin_anew_with_a_page(self, request: Request) -> None:
        if request.is_navigation_request():
            self.responses.clear()
            self.is_loaded = False

    def _end_what_is_critical(self, _page: Page) -> None:
        """What a script fetches behind the load event, such as the library of the charts, keeps nobody waiting."""
        self.is_loaded = True

    def _note(self, response: Response) -> None:
        if not self.is_loaded:
            self.responses.append(response)


def transferred(response: Response) -> int:
    """Bytes of the body on the wire."""
    response.finished()
    return response.request.sizes()["responseBodySize"]


def nameless(devtools: CDPSession) -> list[str]:
    """What a screen reader would call by its role alone."""
    nodes: list[dict[str, Any]] = devtools.send("Accessibility.getFullAXTree")["nodes"]
    return [
        node["role"]["value"]
        for node in nodes
        if not node["ignored"]
        and node["role"]["value"] in WANT_A_NAME
        and not node.get("name", {}).get("value", "").strip()
    ]
