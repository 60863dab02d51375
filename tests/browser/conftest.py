"""One running product and one Chromium for all tests of this package; every test opens pages of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from payments_gateway.profile.model import ProfileName
from tests.browser.people import People
from tests.requirements import CHROMIUM
from tools.processes import Stack, temporary_stack

ARGUMENTS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]


# Scope "package", not "session": while Playwright is running, Django refuses its ORM to every test in the process.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    expect.set_options(timeout=60_000)
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS) as browser,
    ):
        yield browser


@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with demo_stack(tmp_path_factory.mktemp("stack"), "specification") as running:
        yield running


@contextmanager
def demo_stack(folder: Path, profile: ProfileName, first_command: str = "") -> Iterator[Stack]:
    """Everything that `make demo` runs, with its history and what this Python code adds to it. The provider accepts one
    one-time code several times here, and people hired with break-glass may decide at once.
    """
    reusable = folder / "profile.toml"
    reusable.write_text(f'profile = "{profile}"\notp_single_use = false\n')
    extra = {
        "COUNTERSIGN_BREAK_GLASS_RESTRICTION_HOURS": "0",
        "COUNTERSIGN_GATEWAY_PROFILE": str(reusable),
    }
    options = {"settle_after": 1.0, "profile": profile, "extra": extra, "first_command": first_command}
    with temporary_stack(folder, **options) as running:
        running.set_sandbox(token_reuse=True)
        yield running


@pytest.fixture(scope="package")
def shared_people(chromium: Browser, stack: Stack) -> Iterator[People]:
    with People(chromium, stack.web) as people:
        yield people


@pytest.fixture
def people(shared_people: People) -> Iterator[People]:
    """Browsers for the test. Whatever it is about: no script failed and no page broke its security policy."""
    yield shared_people
    shared_people.close_pages()
    assert shared_people.take_complaints() == []
