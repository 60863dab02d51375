"""What holds for every page, whoever opens it.

The provider has the published profile here: the other browser tests use the pages under the specification's.
"""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import demo_stack
from tests.browser.page_check import PageCheck, PageChecker
from tests.browser.page_list import PAGES, SENT_TOGETHER, ListedPage
from tests.browser.people import APPROVER, PREPARER, People, SignIn
from tools.demo import UNRECOGNISED_TRANSACTION
from tools.processes import Stack

pytestmark = [
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.parametrize("place", PAGES, ids=str, scope="module"),
]
HTML_AT_MOST, CRITICAL_AT_MOST = 14 * 1024, 50 * 1024
ANSWERED_DIRECTLY = {"sign-in refused", "form out of date", "new recovery codes"}
"""Nobody is signed in whose session could store the answer; and codes are shown once and never stored."""

WEBHOOKS_ON = """
from django.conf import settings
from django.urls import reverse
from backoffice.core.gateway import gateway
path = reverse("webhooks:receive", args=[settings.WEBHOOK_SECRET])
gateway().callbacks.set_url(f"{settings.PUBLIC_URL}{path}")
"""

ORDER_SENT_TOGETHER = f"""
from django.utils import timezone
from backoffice.accounts.models import User
from backoffice.operations.models.bulk_releases import BulkRelease
from backoffice.operations.models.operations import Operation
now = timezone.now()
order = BulkRelease.objects.create(
    pk="{SENT_TOGETHER}", released_by=User.objects.get(full_name="{APPROVER}"), created_at=now, confirmed_at=now,
    second_factor_at=now, is_pending=False,
)
for position, operation in enumerate(Operation.objects.exclude(status__in=["pending", "rejected"])[:60]):
    order.items.create(position=position, operation=operation, digest=operation.digest)
"""

PAYOUTS = f"""
from django.utils import timezone
from backoffice.accounts.models import User
from backoffice.operations.batches import checking, creation, files, submission
from backoffice.operations.workflow import approvals
preparer, approver = (User.objects.get(full_name=name) for name in ("{PREPARER}", "{APPROVER}"))
header = "currency,amount,receiver_username,memo"
def uploaded(name, rows):
    content = "\\n".join([header, *rows]).encode()
    return files.upload_file(actor=preparer, kind="transfer", name=name, content=content, language="en")
def checked(name, rows):
    file = uploaded(name, rows)
    files.check_columns(file.pk, actor=preparer, mapping=file.mapping)
    checking.check_file(file.pk, seconds=60)
    return file
def batch(name, first, count):
    rows = [f"NGN,{{1000 + number}}.00,person.{{number}},Payroll" for number in range(first, first + count)]
    return submission.submit_file(checked(name, rows).pk, actor=preparer)
uploaded("columns.csv", ["NGN,1.00,person.1,Payroll"])
checked("errors.csv", ["NGN,1e5,person.1,Payroll", "EUR,2.00,,Payroll", "NGN,3.00,person.3,{"long" * 30}"])
checked("valid.csv", ["NGN,1.00,person.1,Payroll", "USD,2.00,person.2,Payroll"])
batch("pending.csv", 100, 60)
approved = batch("approved.csv", 200, 3)
approvals.approve_operation(
    approved.pk, actor=approver, digest=approved.digest, second_factor_at=timezone.now(),
    confirmation=approvals.ApproverConfirmation(f"{{sum(range(1200, 1203))}}.00"),
)
creation.create_operations(approved.pk)
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The provider delivers a webhook of a transaction here that no operation explains: that raises an incident."""
    with demo_stack(tmp_path_factory.mktemp("published"), "published", PAYOUTS) as running:
        running.manage("shell", "--verbosity", "0", "--command", WEBHOOKS_ON + UNRECOGNISED_TRANSACTION)
        running.manage("shell", "--verbosity", "0", "--command", ORDER_SENT_TOGETHER)
        yield running


@pytest.fixture(scope="module")
def shared_people(chromium: Browser, stack: Stack) -> Iterator[People]:
    with People(chromium, stack.web) as people:
        yield people


@pytest.fixture(scope="module")
def page_checkers(shared_people: People) -> Iterator[Callable[[str], PageChecker]]:
    """One page for each person, which goes to all of that person's places; a new one when the second factor ages."""
    pages: dict[str, tuple[SignIn | None, PageChecker]] = {}
    sizes: dict[str, int] = {}
    sign_ins = shared_people.sign_ins

    def page_checker(person: str) -> PageChecker:
        signed_in = sign_ins.get(person)
        if person not in pages or pages[person][0] is not signed_in or (signed_in and not signed_in.is_fresh):
            checker = PageChecker(shared_people, person, sizes)
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
