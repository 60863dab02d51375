"""Every page that shows what the provider answers opens under the specification's profile as well.

What else holds for every page is tested under the published profile, in `test_every_page`.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.page_list import PAGES, ListedPage
from tests.browser.people import ADMINISTRATOR, APPROVER, AUDITOR, PREPARER, People

pytestmark = [pytest.mark.browser, pytest.mark.stack]
SHOW_ANSWERS = {
    PREPARER: {
        *("overview", "withdrawal", "withdrawal with another name", "review", "balances", "transactions"),
        *("conversion", "transfer", "wallet transfer", "payment", "bank accounts", "account refused"),
        *("provider summary", "wallets", "payments", "unknown outcomes", "reconciliation", "case in review"),
    },
    APPROVER: {"succeeded operation", "failed operation", "unknown operation", "found"},
    AUDITOR: {"a statement", "transaction", "receipt", "system"},
    ADMINISTRATOR: {"new bank account", "webhooks", "new callback address", "API keys", "new API key"},
}
PLACES = [place for place in PAGES if place.name in SHOW_ANSWERS.get(place.person, ())]


@pytest.fixture(scope="module")
def pages(shared_people: People) -> Iterator[dict[str, Page]]:
    """One page for each person, which goes to all of that person's places."""
    yield {}
    shared_people.close_pages()


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_the_page_opens_under_the_profile_of_the_specification(
    shared_people: People, pages: dict[str, Page], place: ListedPage
) -> None:
    if place.person not in pages:
        pages[place.person] = shared_people.page_of(place.person)
    page = pages[place.person]
    place.visit(shared_people, page)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    assert shared_people.take_complaints() == []


def test_each_listed_page_exists() -> None:
    assert len(PLACES) == sum(map(len, SHOW_ANSWERS.values()))
