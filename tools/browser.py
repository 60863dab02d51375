"""An HTTP client that acts as a browser without JavaScript: pages, forms and cookies."""

import re
import time
from dataclasses import dataclass, field
from html.parser import HTMLParser
from types import TracebackType
from typing import Self
from urllib.parse import urljoin

import requests

CODE_TIMEOUT = 65.0


class BrowserError(Exception):
    """A page did not contain what the caller needs."""


@dataclass
class HtmlForm:
    """One form of a page: the targets of its buttons, and its present values."""

    actions: list[str]
    values: dict[str, str] = field(default_factory=dict)


@dataclass
class HttpBrowser:
    """One person's browser. Use it as a context manager."""

    address: str
    session: requests.Session = field(default_factory=requests.Session)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.session.close()

    def get(self, path: str) -> requests.Response:
        """Open a page. Raises BrowserError unless it exists."""
        return _expect(self.session.get(urljoin(self.address, path), timeout=60))

    def submit(self, page: requests.Response, action: str, **typed: str) -> requests.Response:
        """Fill in and send the form with this target (empty: this page), and follow redirects to the next page.

        Raises BrowserError if the page has no such form or the next page does not exist.
        """
        for form in forms_of(page.text):
            for target in form.actions:
                if target.endswith(action) if action else not target:
                    return self._post(urljoin(page.url, target), {**form.values, **typed}, seen_on=page.url)
        raise BrowserError(f"{page.url} has no form for {action}")

    def upload(
        self, page: requests.Response, action: str, *, file: tuple[str, str], **typed: str
    ) -> requests.Response:
        """As `submit`, with the name and the text of a file."""
        for form in forms_of(page.text):
            if form.actions[0].endswith(action) or (not form.actions[0] and page.url.endswith(action)):
                values = {name: value for name, value in form.values.items() if name != "file"} | typed
                target, headers = urljoin(page.url, form.actions[0]), {"Referer": page.url}
                return _expect(
                    self.session.post(target, values, files={"file": file}, headers=headers, timeout=60)
                )
        raise BrowserError(f"{page.url} has no form for {action}")

    def sign_in(self, name: str) -> None:
        """Sign in with the password and code that the demo shows on the sign-in page."""
        page = self.get("/account/sign-in/")
        person = demo_person(page.text, name)
        page = self.submit(page, "/account/sign-in/", email=person["email"], password=person["password"])
        deadline = time.monotonic() + CODE_TIMEOUT
        while not person["code"] and time.monotonic() < deadline:
            time.sleep(1)  # a code is accepted once; the next one follows within thirty seconds
            page = self.get("/account/second-factor/")
            person = demo_person(page.text, name)
        self.submit(page, "/account/second-factor/", code=person["code"])

    def _post(self, address: str, values: dict[str, str], *, seen_on: str) -> requests.Response:
        return _expect(self.session.post(address, values, headers={"Referer": seen_on}, timeout=60))


def forms_of(html: str) -> list[HtmlForm]:
    """The forms of a page, in order."""
    parser = _FormParser()
    parser.feed(html)
    return parser.found


def demo_person(html: str, name: str) -> dict[str, str]:
    """Email, password and current code (empty if already used) of a person listed by the demo. Raises BrowserError."""
    shown = re.search(
        rf'{name}.*?data-email="(?P<email>[^"]*)" data-password="(?P<password>[^"]*)" data-code="(?P<code>[^"]*)"',
        html,
        re.DOTALL,
    )
    if shown is None:
        raise BrowserError(f"The sign-in page does not list {name}")
    return shown.groupdict()


class _FormParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[HtmlForm] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.found.append(HtmlForm([values.get("action", "")]))
        elif tag == "button" and self.found and "formaction" in values:
            self.found[-1].actions.append(values["formaction"])
        elif tag == "input" and self.found and values.get("name"):
            self.found[-1].values[values["name"]] = values.get("value", "")


def _expect(response: requests.Response) -> requests.Response:
    if response.status_code != 200:
        text = re.sub(r"<[^>]+>|\s+", " ", response.text)
        raise BrowserError(f"{response.url} answered {response.status_code}: {' '.join(text.split())[:600]}")
    return response
