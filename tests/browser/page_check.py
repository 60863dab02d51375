"""One visit to a page, and everything that is measured during it."""

import re
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import axe_playwright_python
from babel.messages.pofile import read_po
from playwright.sync_api import Page, Request, Response, expect

from tests.browser.page_list import NOBODY, ListedPage
from tests.browser.people import People
from tests.pseudo_language import CODE
from tools.processes import ROOT

WIDTHS = (360, 390, 720, 768, 960, 1024, 1160, 1440, 1920, 2560)
"""720 and 960 px are 1440 and 1920 px at a zoom of 200 %. Above 1152 px, Settings has a second side bar. A scheme
changes colours and no sizes.
"""

WIDTHS_IN_FRENCH = (390, 768, 960, 1024, 1160, 1440)
"""With the narrowest that has a side bar, since labels are longer in French."""

PSEUDO_WIDTHS = (390, 1440)
"""Of the language in which every text is a third longer."""

_HEIGHT = 900
_AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
_TOO_BAD = {"moderate", "serious", "critical"}

# Colours are checked apart from the rest, in both schemes. The rule left out asks for more than WCAG AA.
COLOUR_RULES = {"color-contrast": {"enabled": False}, "link-in-text-block": {"enabled": False}}
ALL_BUT_COLOURS = {"resultTypes": ["violations"], "rules": COLOUR_RULES}
COLOURS = {
    "resultTypes": ["violations"],
    "runOnly": ["cat.color"],
    "rules": {"color-contrast-enhanced": {"enabled": False}},
}

OVERFLOW = """() => {
    const { scrollWidth } = document.scrollingElement;
    const beyond = scrollWidth > innerWidth && [...document.querySelectorAll("main *, header *, footer *")]
        .filter((element) => element.getBoundingClientRect().right > innerWidth + 1);
    const panels = [...document.querySelectorAll("main .panel")].filter(
        (panel) => panel.scrollWidth > panel.clientWidth && getComputedStyle(panel).overflowX !== "visible");
    return {
        page: beyond ? [`${scrollWidth} px: ` + beyond.slice(-1).map((one) => one.outerHTML.slice(0, 150))] : [],
        panels: panels.map((panel) =>
            `${panel.scrollWidth} px in ${panel.clientWidth} px: ${panel.outerHTML.slice(0, 150)}`),
    };
}"""
"""What is wider than its space: the page, and its panels."""

OPEN_EVERYTHING = "document.querySelectorAll('details').forEach((details) => { details.open = true; })"
VIOLATIONS = "async (options) => (await axe.run(document, options)).violations"
CHECK_NEW_COLOURS = """async ({checked, options}) => {
    const ofContent = /^(id|for|href|src|value|content|action|title|style|hx-.*)$|^aria-(label|describedby|controls)/;
    const looks = new Map(), known = new Set(checked), found = [], elements = [];
    const hash = (text) => {
        let sum = 0;
        for (let at = 0; at < text.length; at += 1) sum = (sum * 31 + text.charCodeAt(at)) % 9007199254740;
        return sum;
    };
    const look = (element) => {
        if (!element) return 0;
        if (!looks.has(element)) {
            const attributes = [...element.attributes].filter((attribute) => !ofContent.test(attribute.name))
                .map((attribute) => `[${attribute.name}=${attribute.value}]`).sort().join("");
            looks.set(element, hash(`${element.tagName}${attributes} < ${look(element.parentElement)}`));
        }
        return looks.get(element);
    };
    for (const element of document.body.querySelectorAll("*")) {
        const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!hasText && !element.matches("input, textarea, select")) continue;
        if (known.has(look(element))) continue;
        found.push(look(element));
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
TEXTS = """() => {
    const found = new Set(), data = "script, style, template, code, time, .mono, [translate=no], [lang]:not(html)";
    const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode())
        if (!node.parentElement.closest(data)) found.add(node.data);
    for (const element of document.querySelectorAll("[aria-label], [title], [placeholder], [alt], [data-label]"))
        if (!element.closest("[translate=no]"))
            for (const name of ["aria-label", "title", "placeholder", "alt", "data-label"])
                found.add(element.getAttribute(name) ?? "");
    return [...found].map((text) => text.trim().replace(/\\s+/g, " ")).filter((text) => /[a-z]{2}/i.test(text));
}"""
"""Every text that a person reads or a screen reader says, but for data and code."""

SUBMIT_AGAIN = """({address, fields}) => {
    const form = Object.assign(document.createElement("form"), { method: "post", action: address });
    for (const [name, value] of new URLSearchParams(fields))
        form.append(Object.assign(document.createElement("input"), { type: "hidden", name, value }));
    document.body.append(form);
    form.submit();
}"""


@dataclass
class PageCheck:
    """What was found on one page."""

    complaints: list[str] = field(default_factory=list)
    too_wide: list[str] = field(default_factory=list)
    scrolling_panels: list[str] = field(default_factory=list)
    html: int = 0
    critical: int = 0
    language: str | None = None
    headings: list[str] = field(default_factory=list)
    repeated_ids: list[str] = field(default_factory=list)
    barriers: list[str] = field(default_factory=list)
    method: str = ""
    language_in_french: str | None = None
    untranslated: list[str] = field(default_factory=list)


class PageChecker:
    """A page of one person that goes from place to place, and notes what it consists of each time.

    `checked_looks` are those that pages have had before, also other people's. It adds its own.
    """

    def __init__(self, people: People, person: str, checked_looks: dict[int, None]) -> None:
        self.people = people
        self.page = people.browser() if person == NOBODY else people.page_of(person)
        # Every page is measured as it arrives first, with all its files.
        devtools = self.page.context.new_cdp_session(self.page)
        devtools.send("Network.enable")
        devtools.send("Network.setCacheDisabled", {"cacheDisabled": True})
        self.responses: list[Response] = []
        self.requests: list[Request] = []
        self.is_loaded = False
        self.checked_looks = checked_looks
        self.page.on("request", self._begin_anew_with_a_page)
        self.page.on("load", self._end_what_is_critical)
        self.page.on("response", self._note)

    def visit(self, place: ListedPage) -> PageCheck:
        """Open the page in English, in French and with longer texts, and measure it in all widths, light and dark, with
        all folds open.
        """
        self.people.take_complaints()
        if place.person == NOBODY:
            self.page.context.clear_cookies()  # somebody half signed in has a session
        self.page.set_extra_http_headers({})
        self.page.set_viewport_size({"width": 1440, "height": _HEIGHT})
        place.visit(self.people, self.page)
        self._settle()
        seen = PageCheck(
            html=self._bytes_of("document"),
            critical=self._bytes_of("document", "stylesheet", "script"),
            language=self.page.locator("html").get_attribute("lang"),
            headings=self.page.locator("h1").all_inner_texts(),
            repeated_ids=self.page.evaluate(REPEATED_IDS),
            method=self.requests[-1].method,
        )
        self.page.evaluate(OPEN_EVERYTHING)
        self._measure_widths(seen, WIDTHS, "en")
        seen.complaints = self.people.take_complaints()
        seen.barriers = self._barriers()
        self.people.take_complaints()  # axe-core itself tries an inline style
        self._open_in("fr")
        seen.language_in_french = self.page.locator("html").get_attribute("lang")
        seen.untranslated = [text for text in self.page.evaluate(TEXTS) if is_english(text)]
        self.page.evaluate(OPEN_EVERYTHING)
        self._measure_widths(seen, WIDTHS_IN_FRENCH, "fr")
        self._open_in(CODE)
        self.page.evaluate(OPEN_EVERYTHING)
        self._measure_widths(seen, PSEUDO_WIDTHS, CODE)
        seen.complaints += self.people.take_complaints()
        return seen

    def _settle(self) -> None:
        expect(self.page.locator(".htmx-request")).to_have_count(0)
        self.page.wait_for_load_state()

    def _open_in(self, language: str) -> None:
        """The same page in another language. The answer to a form is stored as it was, so that form is sent again."""
        sent = next((one for one in reversed(self.requests) if one.method == "POST"), None)
        self.page.set_extra_http_headers({"Accept-Language": language})
        if sent is not None and "answer=" in self.page.url:
            fields = {"address": sent.url, "fields": sent.post_data or ""}
            with self.page.expect_navigation():
                self.page.evaluate(SUBMIT_AGAIN, fields)
        else:
            self.page.goto(self.page.url)
        self._settle()

    def _measure_widths(self, seen: PageCheck, widths: tuple[int, ...], language: str) -> None:
        for width in widths:
            self.page.set_viewport_size({"width": width, "height": _HEIGHT})
            overflow = self.page.evaluate(OVERFLOW)
            seen.too_wide += [f"{width} {language}: {page}" for page in overflow["page"]]
            seen.scrolling_panels += [f"{width} {language}: {panel}" for panel in overflow["panels"]]

    def _barriers(self) -> list[str]:
        """What axe-core calls moderate or worse, as `scheme: rule at element`. Colours are checked in both schemes,
        of each text whose look no page before has had.
        """
        self.page.set_viewport_size({"width": 1440, "height": _HEIGHT})
        self.page.emulate_media(color_scheme="light", reduced_motion="reduce")  # colours do not glide then
        self.page.evaluate(_AXE)
        found = {"light": self.page.evaluate(VIOLATIONS, ALL_BUT_COLOURS)}
        new_looks: list[int] = []
        found["light"] += self._colours(new_looks)
        if new_looks:
            self.page.emulate_media(color_scheme="dark", reduced_motion="reduce")
            found["dark"] = self._colours(new_looks)
            self.checked_looks |= dict.fromkeys(new_looks)
            self.page.emulate_media(color_scheme="light", reduced_motion="reduce")
        return [
            f"{scheme}: {one['id']} at {one['nodes'][0]['target']}"
            for scheme, violations in found.items()
            for one in violations
            if one["impact"] in _TOO_BAD
        ]

    def _colours(self, new_looks: list[int]) -> list[dict[str, Any]]:
        """Violations in the present scheme. Adds the looks that were checked to the list."""
        given = {"checked": list(self.checked_looks), "options": COLOURS}
        ran = self.page.evaluate(CHECK_NEW_COLOURS, given)
        new_looks += ran["found"]
        violations: list[dict[str, Any]] = ran["violations"]
        return violations

    def _bytes_of(self, *types: str) -> int:
        """Bytes of the bodies on the wire."""
        found = [one for one in self.responses if one.request.resource_type in types]
        for response in found:
            response.finished()
        return sum(response.request.sizes()["responseBodySize"] for response in found)

    def _begin_anew_with_a_page(self, request: Request) -> None:
        if request.is_navigation_request():
            self.requests = [*self.requests[-3:], request]
            self.responses.clear()
            self.is_loaded = False

    def _end_what_is_critical(self, _page: Page) -> None:
        """What a script fetches behind the load event, such as the library of the charts, keeps nobody waiting."""
        self.is_loaded = True

    def _note(self, response: Response) -> None:
        if not self.is_loaded:
            self.responses.append(response)


_PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|\{\w*\}")


def _pieces(text: str) -> list[str]:
    """The text as it is on a page: cut at its tags, which make each part a text of its own."""
    parts = re.split(r"<[^>]+>", text.replace("&nbsp;", " "))
    return [" ".join(part.split()) for part in parts if re.search(r"[A-Za-z]{2}", _PLACEHOLDER.sub("", part))]


@lru_cache(maxsize=1)
def _english() -> tuple[frozenset[str], list[re.Pattern[str]]]:
    """The English texts of the catalogue that read otherwise in French: whole ones, and those with placeholders."""
    with (ROOT / "locale" / "fr" / "LC_MESSAGES" / "django.po").open("rb") as file:
        messages = [message for message in read_po(file) if message.id]
    english: set[str] = set()
    french: set[str] = set()
    for message in messages:
        for texts, found in ((message.id, english), (message.string, french)):
            for text in (texts,) if isinstance(texts, str) else texts or ():
                found.update(_pieces(text))
    only_english = english - french
    patterns = [
        re.compile(".+".join(map(re.escape, _PLACEHOLDER.split(text))))
        for text in only_english
        if _PLACEHOLDER.search(text) and re.search(r"[A-Za-z]{4}", _PLACEHOLDER.sub("", text))
    ]
    return frozenset(text for text in only_english if not _PLACEHOLDER.search(text)), patterns


@cache
def is_english(text: str) -> bool:
    """Whether a French page should not have this text."""
    whole, patterns = _english()
    return text in whole or any(pattern.fullmatch(text) for pattern in patterns)
