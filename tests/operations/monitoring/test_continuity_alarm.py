"""A break of the books reaches people without a search: on the overview and in the metrics."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from backoffice.accounts.models import User
from backoffice.ledger.models import Mirror
from backoffice.ledger.statements import continuity
from backoffice.ledger.statements.continuity import cached_break_count, open_break_count
from backoffice.operations.monitoring.metrics import render_metrics
from tests.ledger.statements.test_breaks import check_all, merged, record

pytestmark = pytest.mark.django_db


@pytest.fixture
def two_breaks() -> None:
    Mirror.objects.create(pk=1)
    merged(record("A", 0, 0, 10), record("B", 1, 11, 5), record("C", 2, 20, 1))


@pytest.mark.usefixtures("two_breaks")
def test_the_overview_links_to_the_breaks(as_approver: Client) -> None:
    shown = as_approver.get("/").content.decode()
    assert '<a href="/reconciliation/continuity/">2 breaks in balance continuity</a>' in shown
    assert "Nothing. No operation has an unknown outcome" not in shown


def test_the_overview_shows_nothing_without_breaks(as_approver: Client) -> None:
    shown = as_approver.get("/").content.decode()
    assert "in balance continuity" not in shown
    assert "Nothing. No operation has an unknown outcome" in shown


@pytest.mark.usefixtures("two_breaks")
def test_users_without_access_to_transactions_get_no_link(
    client: Client,
    sign_in: Callable[[Client, User], Client],
    may_only: Callable[..., User],
    outsider: User,
) -> None:
    may_only(outsider, "operations.view_operation")
    assert "in balance continuity" not in sign_in(client, outsider).get("/").content.decode()


@pytest.mark.usefixtures("two_breaks")
def test_breaks_are_counted_by_one_bounded_query(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with CaptureQueriesContext(connection) as asked:
        assert str(open_break_count(at_most=1)) == "more than 1"
        assert str(open_break_count(at_most=2)) == "2"
    assert ["LIMIT" in query["sql"] for query in asked] == [True, True]
    monkeypatch.setattr(continuity, "COUNT_CACHE_SECONDS", 3600.0)
    with CaptureQueriesContext(connection) as asked:
        assert {cached_break_count().number for _ in range(3)} == {2}
    assert len(asked) == 1


@pytest.mark.usefixtures("two_breaks")
def test_metrics_count_breaks_and_unchecked_currencies() -> None:
    assert "countersign_continuity_breaks 2.0" in render_metrics().decode()
    assert "countersign_continuity_unchecked_currencies 1.0" in render_metrics().decode()
    check_all()
    assert "countersign_continuity_unchecked_currencies 0.0" in render_metrics().decode()
