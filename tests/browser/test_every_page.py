"""What holds for every page, whoever opens it.

The provider has the published profile here: the other browser tests use the pages under the specification's.
"""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.page_check import PageCheck, PageChecker
from tests.browser.page_list import PAGES, ListedPage
from tests.browser.people import People, SignIn
from tests.browser.stacks import stack_for_every_page
from tools.processes import Stack

pytestmark = [
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.parametrize("place", PAGES, ids=str, scope="module"),
]
HTML_AT_MOST, CRITICAL_AT_MOST = 14 * 1024, 50 * 1024
ANSWERED_DIRECTLY = {"sign-in refused", "form out of date", "new recovery codes"}
"""Nobody is signed in whose session could store the answer; and codes are shown once and never stored."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with stack_for_every_page(tmp_path_factory.mktemp("published"), "published") as running:
        yield running


@pytest.fixture(scope="module")
def shared_people(chromium: Browser, stack: Stack) -> Iterator[People]:
    with People(chromium, stack.web) as people:
        yield people


@pytest.fixture(scope="module")
def page_checkers(shared_people: People) -> Iterator[Callable[[str], PageChecker]]:
    """One page for each person, which goes to all of that person's places; a new one when the second factor ages.

    It is left at an empty page while others visit theirs, and closed before its successor: what is open goes on
    polling.
    """
    pages: dict[str, tuple[SignIn | None, PageChecker]] = {}
    checked_looks: dict[int, None] = {}
    sign_ins = shared_people.sign_ins
    visitor = ""

    def page_checker(person: str) -> PageChecker:
        nonlocal visitor
        if visitor != person and visitor in pages:
            pages[visitor][1].page.goto("about:blank")
        visitor = person
        signed_in = sign_ins.get(person)
        if person not in pages or pages[person][0] is not signed_in or (signed_in and not signed_in.is_fresh):
            if person in pages:
                pages[person][1].page.close()
            checker = PageChecker(shared_people, person, checked_looks)
            pages[person] = sign_ins.get(person), checker
        return pages[person][1]

    yield page_checker
    shared_people.close_pages()


@pytest.fixture(scope="module")
def page_check(page_checkers: Callable[[str], PageChecker], place: ListedPage) -> PageCheck:
    """One visit for all that is asked about the page."""
    return page_checkers(place.person).visit(place)


def test_no_page_scrolls_horizontally(page_check: PageCheck) -> None:
    assert page_check.too_wide == []


def test_no_panel_scrolls_horizontally(page_check: PageCheck) -> None:
    assert page_check.scrolling_panels == []


def test_no_page_violates_its_security_policy_or_raises_a_script_error(page_check: PageCheck) -> None:
    assert page_check.complaints == []


def test_every_page_stays_within_its_size_limit(page_check: PageCheck) -> None:
    assert 0 < page_check.html <= HTML_AT_MOST
    assert page_check.html < page_check.critical <= CRITICAL_AT_MOST


def test_every_page_has_title_heading_and_language(page_check: PageCheck) -> None:
    assert (page_check.language, page_check.language_in_french) == ("en", "fr")
    assert len(page_check.headings) == 1
    assert page_check.headings[0].strip()


def test_every_id_is_unique(page_check: PageCheck) -> None:
    assert page_check.repeated_ids == []


def test_every_page_passes_the_accessibility_rules(page_check: PageCheck) -> None:
    assert page_check.barriers == []


def test_no_french_page_has_an_english_text(page_check: PageCheck) -> None:
    assert page_check.untranslated == []


def test_no_page_asks_to_resubmit_a_form_on_back_or_reload(page_check: PageCheck, place: ListedPage) -> None:
    assert page_check.method == ("POST" if place.name in ANSWERED_DIRECTLY else "GET")
