"""Every page opens under the specification's profile as well.

What else holds for every page is tested under the published profile, in `test_every_page`.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.page_list import NOBODY, PAGES, ListedPage
from tests.browser.people import People
from tests.browser.stacks import stack_for_every_page
from tools.processes import Stack

pytestmark = [pytest.mark.browser, pytest.mark.stack]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with stack_for_every_page(tmp_path_factory.mktemp("specification"), "specification") as running:
        yield running


@pytest.fixture(scope="module")
def shared_people(chromium: Browser, stack: Stack) -> Iterator[People]:
    with People(chromium, stack.web) as people:
        yield people


@pytest.fixture(scope="module")
def pages(shared_people: People) -> Iterator[dict[str, Page]]:
    """One page for each person, which goes to all of that person's places."""
    yield {}
    shared_people.close_pages()


@pytest.mark.parametrize("place", PAGES, ids=str)
def test_the_page_opens_under_the_profile_of_the_specification(
    shared_people: People, pages: dict[str, Page], place: ListedPage
) -> None:
    if place.person not in pages:
        is_nobody = place.person == NOBODY
        pages[place.person] = shared_people.browser() if is_nobody else shared_people.page_of(place.person)
    page = pages[place.person]
    place.visit(shared_people, page)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    assert shared_people.take_complaints() == []
