"""One running product and one Chromium for all tests of this package; every test opens pages of its own."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.people import People
from tests.browser.stacks import demo_stack
from tests.requirements import CHROMIUM
from tools.processes import Stack

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
