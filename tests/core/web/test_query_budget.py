"""Every page that can be reached by links, for each role: it opens, and within its number of queries."""

import html
import re
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import resolve

from backoffice.accounts.models import User
from backoffice.operations.monitoring.inspection import inspect_due
from tests import factories
from tests.ledger.stored_transactions import stored
from tests.operations.batches import payouts
from tests.sandbox_process import SandboxProcess

pytestmark = [pytest.mark.django_db, pytest.mark.any_engine]

BUDGET = 6
ABOVE = {
    "governance:policy_review": 11,  # who could approve under each rule, and the replay of 90 days
    "ledger:continuity": 7,
    "ledger:statements": 17,
    "operations:bulk_send": 9,
    "operations:detail": 7,  # of a pending operation: who can approve it, and who is on leave
    # With a line for each batch whose rows can be sent, and what its rows are; one more for administrators until the
    # first payment was sent.
    "operations:overview": 10,
    "operations:system": 7,
}
"""Pages that put together more than six tables, such as both ends and all breaks of a statement. None may grow."""
FILES = re.compile(r"/csv/|/exports/.*file|\.csv|\.xlsx|/metrics")


@pytest.fixture
def something_everywhere(sandbox: SandboxProcess, preparer: User, approver: User) -> None:
    """An operation before and after its decision, a batch, a file, a transaction, a bulk release and an inspection."""
    stored()
    inspect_due()
    factories.approved(preparer, approver)
    factories.bulk_release(preparer)
    payouts.applied(preparer, approver, payouts.transfers(2))
    payouts.checked(preparer, payouts.transfers(2, first=9))


def pages_from(client: Client, start: str) -> Iterator[tuple[str, int]]:
    """Each page linked from there or from one of these, one of each address name, and its queries when it is opened
    the second time.
    """
    waiting, opened = [start], set()
    while waiting:
        path = waiting.pop(0)
        name = resolve(urlsplit(path).path).view_name
        if name in opened:
            continue
        opened.add(name)
        client.get(path)
        with CaptureQueriesContext(connection) as queries:
            page = client.get(path)
        asked = [one for one in queries if "SAVEPOINT" not in one["sql"]]  # none outside of a test
        if page.status_code == 200 and page.get("Content-Type", "").startswith("text/html"):
            yield name, len(asked)
            found = re.findall(r'href="(/[^"#]*)"', page.content.decode())
            waiting += [
                html.unescape(one)
                for one in found
                if not one.startswith("/static/") and not FILES.search(one)
            ]


@pytest.mark.parametrize("role", ["preparer", "approver", "auditor", "administrator"])
def test_every_linked_page_stays_within_its_queries(
    sign_in: Callable[[Client, User], Client],
    request: pytest.FixtureRequest,
    something_everywhere: None,
    warm_caches: None,
    role: str,
) -> None:
    client = sign_in(Client(), request.getfixturevalue(role))
    queries = dict(pages_from(client, "/"))
    above = {name: number for name, number in queries.items() if number > ABOVE.get(name, BUDGET)}
    assert above == {}
