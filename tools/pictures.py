"""Take the pictures of README and docs from the running demo, so that they show what the product shows.

`python -m tools.pictures` starts the demo with its own data and writes `docs/pictures/`: each page in light and dark.
Needs Chromium.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, ViewportSize, sync_playwright

from tools.browser import HttpBrowser
from tools.processes import ROOT, temporary_stack

FOLDER = ROOT / "docs" / "pictures"
SIZE = ViewportSize(width=1440, height=900)
_SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
APPROVER = "Amara Okafor"
READY_TIMEOUT = 300.0  # seconds until the demo's history is sent and the provider's whole list is read
SETTLED_AFTER = 5_000  # milliseconds without a change


def _overview(page: Page) -> None:
    page.goto("/")


def _operation(page: Page) -> None:
    """A withdrawal that waits for this person's approval."""
    page.goto("/operations/?tab=waiting&kind=withdrawal&status=pending")
    page.locator("a.row").first.click()
    page.locator("#decision").wait_for()


def _operations(page: Page) -> None:
    page.goto("/operations/?tab=all")


PAGES = {"overview": _overview, "operation": _operation, "operations": _operations}


def main() -> int:
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if chromium is None:
        print("Chromium is not installed; no pictures were taken.", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as data,
        temporary_stack(Path(data), settle_after=1.0) as stack,
        HttpBrowser(stack.web) as person,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"]) as browser,
    ):
        person.sign_in(APPROVER)
        context = browser.new_context(base_url=stack.web, viewport=SIZE, reduced_motion="reduce")
        for cookie in person.session.cookies:
            context.add_cookies([{"name": cookie.name, "value": cookie.value or "", "url": stack.web}])
        _take_pictures(context.new_page())
    return 0


def _take_pictures(page: Page) -> None:
    _wait_until_settled(page)
    for name, open_page in PAGES.items():
        for scheme in _SCHEMES:
            page.emulate_media(color_scheme=scheme)
            open_page(page)
            page.wait_for_load_state("networkidle")
            page.screenshot(path=FOLDER / f"{name}-{scheme}.png")
            print(f"docs/pictures/{name}-{scheme}.png")


def _wait_until_settled(page: Page) -> None:
    """Wait until the overview has its charts and no alert, and its numbers of operations stay as they are.

    Raises TimeoutError.
    """
    deadline, counts = time.monotonic() + READY_TIMEOUT, ""
    while time.monotonic() < deadline:
        page.goto("/")
        before, counts = counts, page.locator(".standings").inner_text()
        is_synced = (
            page.locator(".lately article").count() and not page.locator('main [role="alert"]').count()
        )
        if counts == before and is_synced and not page.locator("main progress").count():
            return
        page.wait_for_timeout(SETTLED_AFTER)
    raise TimeoutError("The demo was not ready for its pictures in time")


if __name__ == "__main__":
    sys.exit(main())
