"""Browsers for the people of the demo, and what must never happen in any of them."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, StorageState, WebError, expect

from stack.browser import shown_person

MAKER, OTHER_MAKER = "Tunde Bello", "Ngozi Eze"
CHECKER, OTHER_CHECKER = "Amara Okafor", "Chidi Nwosu"
AUDITOR, ADMINISTRATOR = "Femi Ade", "Zainab Musa"

WITHIN = 45.0  # longer than it takes until a used code is followed by the next
SECOND_FACTOR_KEPT = 200.0  # well within the five minutes for which a second factor counts as fresh

_Seen = TypeVar("_Seen")


@dataclass(frozen=True)
class SignIn:
    """The cookies of somebody who signed in, and when that was."""

    state: StorageState
    at: float

    @property
    def is_fresh(self) -> bool:
        return time.monotonic() - self.at < SECOND_FACTOR_KEPT


@dataclass
class Office:
    """The browsers of one test. Use it as a context manager; it keeps what their consoles complained about."""

    chromium: Browser
    address: str
    sign_ins: dict[str, SignIn]
    complaints: list[str] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for context in self.contexts:
            context.close()

    def browser(self, **options: Any) -> Page:
        """A page in a browser of its own, where nobody is signed in."""
        context = self.chromium.new_context(base_url=self.address, locale="en-GB", **options)
        context.on("console", self._note_console)
        context.on("weberror", self._note_error)
        self.contexts.append(context)
        return context.new_page()

    def page_of(self, name: str, **options: Any) -> Page:
        """A page in a browser of its own, where this person signed in a short while ago."""
        known = self.sign_ins.get(name)
        if known is None or not known.is_fresh:
            self.sign_in(self.browser(), name)
        return self.browser(storage_state=self.sign_ins[name].state, **options)

    def sign_in(self, page: Page, name: str) -> None:
        """Sign in as a person does, with the password and the code that the demo shows."""
        give_password(page, name)
        page.get_by_label("Code", exact=True).fill(present_code(page, name))
        page.get_by_role("button", name="Sign in", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(name.split()[0])
        self.sign_ins[name] = SignIn(page.context.storage_state(), time.monotonic())

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
    shown = shown_person(page.content(), name)
    page.get_by_label("E-mail address").fill(shown["email"])
    page.get_by_label("Password").fill(shown["password"])
    page.get_by_role("button", name="Continue").click()


def present_code(page: Page, name: str) -> str:
    """The code on the person's authenticator, which the open page shows; each works once, so it may be the next."""

    def unused() -> str:
        code = shown_person(page.content(), name)["code"]
        if not code:
            page.reload()
        return code

    return wait_until(unused)


def wait_until(condition: Callable[[], _Seen], *, within: float = WITHIN) -> _Seen:
    """What the condition gives once that is true; fails after the deadline."""
    deadline, look = time.monotonic() + within, threading.Event()
    while not (seen := condition()):
        assert time.monotonic() < deadline, "It did not happen in time"
        look.wait(0.2)
    return seen
