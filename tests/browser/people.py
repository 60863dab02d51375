"""The browsers of the people of the demo, and what must never happen in any of them."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeVar

import requests
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, StorageState, WebError, expect

from tools.browser import HttpBrowser as ScreenlessBrowser
from tools.browser import demo_person

PREPARER, OTHER_PREPARER = "Tunde Bello", "Ngozi Eze"
APPROVER, OTHER_APPROVER = "Amara Okafor", "Chidi Nwosu"
AUDITOR, ADMINISTRATOR = "Femi Ade", "Zainab Musa"

TIMEOUT = 120.0  # longer than it takes until a used code is followed by the next
SECOND_FACTOR_KEPT = 200.0  # well within the five minutes for which a second factor counts as fresh

_Seen = TypeVar("_Seen")


@dataclass(frozen=True)
class SignIn:
    """The session of somebody who signed in, and when that was."""

    state: StorageState
    at: float

    @property
    def is_fresh(self) -> bool:
        return time.monotonic() - self.at < SECOND_FACTOR_KEPT


@dataclass
class People:
    """Everybody's browsers. Use it as a context manager.

    A code works once in thirty seconds, so people stay signed in from one test to the next; pages do not stay open.
    """

    chromium: Browser
    address: str
    sign_ins: dict[str, SignIn] = field(default_factory=dict)
    browsers: dict[tuple[str, bool], BrowserContext] = field(default_factory=dict)
    contexts: list[BrowserContext] = field(
        default_factory=list
    )  # of these people: others share this Chromium
    complaints: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for context in self.contexts:
            context.close()

    def browser(self, *, scripts: bool = True) -> Page:
        """A page in a new browser of its own, where nobody is signed in."""
        return self._context(scripts=scripts).new_page()

    def page_of(self, name: str, *, scripts: bool = True) -> Page:
        """A page of somebody who signed in a short while ago."""
        if name not in self.sign_ins or not self.sign_ins[name].is_fresh:
            page = self.browser()
            self.sign_in(page, name)
            page.close()  # what is open goes on polling
        if (name, scripts) not in self.browsers:
            state = self.sign_ins[name].state
            self.browsers[name, scripts] = self._context(scripts=scripts, storage_state=state)
        return self.browsers[name, scripts].new_page()

    def screenless_browser_of(self, name: str) -> ScreenlessBrowser:
        """The same person's session without Chromium, for what a test only needs to be done."""
        session = requests.Session()
        for cookie in self.page_of(name).context.cookies():
            session.cookies.set(cookie["name"], cookie["value"])
        return ScreenlessBrowser(self.address, session)

    def sign_in(self, page: Page, name: str) -> None:
        """Sign in as a person does, with the password and the code that the demo shows."""
        give_password(page, name)
        page.get_by_label("Code", exact=True).fill(present_code(page, name))
        page.get_by_role("button", name="Sign in", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(name.split()[0])
        self.sign_ins[name] = SignIn(page.context.storage_state(), time.monotonic())
        for scripts in (True, False):
            self.browsers.pop((name, scripts), None)

    def close_pages(self) -> None:
        """After a test. Whoever signed in stays signed in."""
        kept = list(self.browsers.values())
        for context in self.contexts:
            for page in context.pages:
                page.close()
            if context not in kept:
                context.close()
        self.contexts = kept

    def take_complaints(self) -> list[str]:
        """What the consoles complained about since this was last asked."""
        complaints, self.complaints = self.complaints, []
        return complaints

    def _context(self, *, scripts: bool, storage_state: StorageState | None = None) -> BrowserContext:
        context = self.chromium.new_context(
            base_url=self.address,
            java_script_enabled=scripts,
            storage_state=storage_state,
            reduced_motion="reduce",  # animations would be drawn all the time, by the processor
        )
        self.contexts.append(context)
        context.on("console", self._note_console)
        context.on("weberror", self._note_error)
        return context

    def _note_console(self, message: ConsoleMessage) -> None:
        """Whatever the console calls an error, but for pages that answer a person with 403, 404 or 422."""
        refused = "responded with a status of 4" in message.text
        if message.type == "error" and not (refused and "/static/" not in message.location["url"]):
            self.complaints.append(f"{message.page and message.page.url}: {message.text}")

    def _note_error(self, error: WebError) -> None:
        self.complaints.append(f"{error.page and error.page.url}: {error.error}")


def give_password(page: Page, name: str) -> None:
    """The first step of signing in."""
    page.goto("/account/sign-in/")
    shown = demo_person(page.content(), name)
    page.get_by_label("Email address").fill(shown["email"])
    page.get_by_label("Password").fill(shown["password"])
    page.get_by_role("button", name="Continue").click()


def present_code(page: Page, name: str) -> str:
    """The code on the person's authenticator, which the open page shows; each works once, so it may be the next."""

    # A page that is still on its way has no content.
    expect(page.get_by_label("Code", exact=True)).to_be_visible()

    def unused() -> str:
        code = demo_person(page.content(), name)["code"]
        if not code:
            page.reload()
        return code

    return wait_until(unused)


def wait_until(condition: Callable[[], _Seen], *, within: float = TIMEOUT) -> _Seen:
    """What the condition gives once that is true; fails after the deadline."""
    deadline, pause = time.monotonic() + within, threading.Event()
    while not (seen := condition()):
        assert time.monotonic() < deadline, "It did not happen in time"
        pause.wait(0.2)
    return seen
