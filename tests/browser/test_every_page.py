"""What holds for every page, whoever opens it."""

from collections.abc import Callable, Iterator

import pytest

from tests.browser.page_check import PageCheck, PageChecker
from tests.browser.page_list import PAGES, ListedPage
from tests.browser.people import People, SignIn

pytestmark = [
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.parametrize("place", PAGES, ids=str, scope="module"),
]
HTML_AT_MOST, CRITICAL_AT_MOST = 14 * 1024, 50 * 1024


@pytest.fixture(scope="module")
def visitors(everybodys_browsers: People) -> Iterator[Callable[[str], PageChecker]]:
    """One page for each person, which goes to all of that person's places; a new one when the second factor ages."""
    pages: dict[str, tuple[SignIn | None, PageChecker]] = {}
    sign_ins = everybodys_browsers.sign_ins

    def visitor(person: str) -> PageChecker:
        signed_in = sign_ins.get(person)
        if person not in pages or pages[person][0] is not signed_in or (signed_in and not signed_in.is_fresh):
            approver = PageChecker(everybodys_browsers, person)
            pages[person] = sign_ins.get(person), approver
        return pages[person][1]

    yield visitor
    everybodys_browsers.close_pages()


@pytest.fixture(scope="module")
def seen(visitors: Callable[[str], PageChecker], place: ListedPage) -> PageCheck:
    """One visit for all that is asked about the page."""
    return visitors(place.person).visit(place)


def test_no_page_scrolls_horizontally(seen: PageCheck) -> None:
    assert seen.too_wide == []


def test_no_page_violates_its_security_policy_or_raises_a_script_error(seen: PageCheck) -> None:
    assert seen.complaints == []


def test_every_page_stays_within_its_size_limit(seen: PageCheck) -> None:
    assert 0 < seen.html <= HTML_AT_MOST
    assert seen.html < seen.critical <= CRITICAL_AT_MOST


def test_every_page_has_title_heading_and_language(seen: PageCheck) -> None:
    assert seen.language == "en"
    assert len(seen.headings) == 1
    assert seen.headings[0].strip()


def test_every_control_has_a_unique_accessible_name(seen: PageCheck) -> None:
    assert seen.nameless == []
    assert seen.repeated_ids == []


def test_every_page_passes_the_accessibility_rules(seen: PageCheck) -> None:
    assert seen.barriers == []
