"""The page: sums by day and currency, the list with its filters, and what it says while there is nothing."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.ledger.models import Transaction
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reconciliation import Comparison, ReconciliationResult
from backoffice.operations.reconciliation.runner import reconcile
from tests.ledger.stored_transactions import add_up
from tests.operations.reconciliation.steps import listed, reference, sent
from tests.operations.steps import text_of

pytestmark = pytest.mark.django_db
PAGE = "/reconciliation/"


def show(client: Client, **query: Any) -> str:
    answer = client.get(PAGE, query)
    assert answer.status_code == 200
    return text_of(answer)


def test_the_page_lists_what_is_unmatched_and_all_on_request(
    as_auditor: Client, matched: Attempt, unknown_movement: Transaction
) -> None:
    shown = show(as_auditor)
    assert "<h1>Unmatched</h1>" in shown
    assert reference(matched) not in shown
    assert 'href="/reports/reconciliation.csv?result=unmatched"' in shown
    assert reference(matched) in show(as_auditor, result="")
    assert 'href="?result="' in shown
    assert 'href="?currency=NGN&amp;result="' in show(as_auditor, currency="NGN")
    assert f'href="/transactions/{unknown_movement.pk}/"' in shown
    assert "&lt;b&gt;Somebody&lt;/b&gt;" in shown
    assert "View incident" in shown
    assert "Matched 1</a>" in shown
    assert "Unrecognised 1</a>" in shown


def test_the_report_by_day_opens_with_the_period_and_the_currency_of_the_page(
    as_auditor: Client, matched: Attempt
) -> None:
    shown = show(as_auditor, result="matched", since="2026-03-01", currency="NGN")
    link = "/reports/reconciliation-by-day/?since=2026-03-01&amp;currency=NGN"
    assert f'href="{link}"' in shown
    opened = text_of(as_auditor.get(link.replace("&amp;", "&")))
    assert 'value="2026-03-01"' in opened
    assert '<option value="NGN" selected>' in opened


@pytest.mark.parametrize(
    ("query", "is_there"),
    [
        ({"result": "unrecognised"}, True),
        ({"result": "matched"}, False),
        ({"currency": "NGN"}, True),
        ({"currency": "USD"}, False),
        ({"since": "2026-03-01", "until": "2026-03-01"}, True),
        ({"since": "2026-03-02"}, False),
        ({"until": "2026-02-28"}, False),
    ],
)
def test_filters_narrow_the_list(
    as_auditor: Client, preparer: User, query: dict[str, str], is_there: bool
) -> None:
    with clock.use_clock(lambda: datetime(2026, 1, 1, tzinfo=UTC)):
        sent(preparer, "T-1")
    listed("T-1", currency="USD", amount=Decimal(1))
    listed("X-1", occurred_at=datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC))
    reconcile()
    assert ("X-1" in show(as_auditor, **query)) == is_there


def test_every_result_but_matched_is_unmatched(as_auditor: Client, preparer: User) -> None:
    sent(preparer, "T-1")
    listed("T-1")
    reconcile()
    assert "All matched" in show(as_auditor)
    results = [*ReconciliationResult]
    for result in results:
        Comparison.objects.update(result=result)
        assert ("All matched" in show(as_auditor)) == (result == ReconciliationResult.MATCHED)


def test_the_bought_side_of_a_conversion_is_not_incoming(as_auditor: Client, matched: Attempt) -> None:
    bought = {"type": "conversion", "from_currency": "USD", "from_amount": Decimal(1)}
    rows = [
        listed("D-1", direction="in", type="deposit", amount=Decimal(700)),
        listed("C-1", direction="in", amount=Decimal(1600), **bought),
    ]
    add_up(rows)
    reconcile()
    shown = show(as_auditor)
    assert "1<small>700.00</small>" in shown
    assert "1,600.00" not in shown
    assert "2,300.00" not in shown


def test_totals_are_per_day_and_currency_with_incoming_amounts(as_auditor: Client, matched: Attempt) -> None:
    now = timezone.now()
    rows = [listed(f"D-{number}", direction="in", type="deposit", amount=Decimal(700)) for number in range(2)]
    add_up(rows)
    listed("X-1", currency="USD", amount=Decimal("12.5"), fee=None)
    reconcile()
    shown = show(as_auditor)
    day = now.astimezone(UTC).date()
    assert f"result=unrecognised&amp;currency=USD&amp;since={day}&amp;until={day}" in shown
    assert "<small>12.50</small>" in shown
    assert "2<small>1,400.00</small>" in shown
    assert "<small>250,000.00</small>" in shown


@pytest.mark.parametrize(
    ("first", "last", "is_there"),
    [
        (timedelta(days=-29), timedelta(days=0), True),
        (timedelta(days=-29), timedelta(days=60), True),  # the end of the month is still to come
        (None, timedelta(days=0), False),
    ],
)
def test_the_totals_cover_the_month_that_is_chosen(
    as_auditor: Client, preparer: User, first: timedelta | None, last: timedelta, is_there: bool
) -> None:
    now = timezone.now()
    with clock.use_clock(lambda: now - timedelta(days=100)):
        sent(preparer, "T-1")
    listed("X-1", occurred_at=now - timedelta(days=20), currency="USD", amount=Decimal("12.5"), fee=None)
    reconcile()
    today = now.astimezone(UTC).date()
    query = {"until": str(today + last)} | ({"since": str(today + first)} if first else {})
    assert ("<small>12.50</small>" in show(as_auditor, **query)) == is_there


def test_a_long_list_is_paginated(as_auditor: Client, operation: Operation) -> None:
    for number in range(53):
        listed(f"X-{number:02}", occurred_at=timezone.now() + timedelta(seconds=number))
    reconcile()
    first = show(as_auditor)
    assert ("X-52" in first, "X-03" in first, "X-02" in first) == (True, True, False)
    cursor = first.partition("?cursor=")[2].partition('"')[0]
    second = text_of(as_auditor.get(f"{PAGE}?cursor={cursor}"))
    assert ("X-02" in second, "X-00" in second, "X-03" in second) == (True, True, False)


def test_an_empty_reconciliation_is_reported(as_auditor: Client) -> None:
    assert "Reconciliation starts with the first operation prepared in Countersign for the provider." in show(
        as_auditor
    )


def test_days_without_movements_are_reported(as_auditor: Client, operation: Operation) -> None:
    reconcile()
    assert "Nothing to compare yet" in show(as_auditor)


def test_an_invalid_filter_is_reported_at_its_field(as_auditor: Client) -> None:
    answer = as_auditor.get(PAGE, {"since": "2026-03-02", "until": "2026-03-01"})
    assert answer.status_code == 422
    assert "The last day is before the first day." in text_of(answer)


def test_the_page_takes_at_most_eight_queries(
    as_auditor: Client, preparer: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(5):
        sent(preparer, f"T-{number}")
        listed(f"T-{number}")
        listed(f"X-{number}")
    reconcile()
    with django_assert_max_num_queries(8):
        show(as_auditor)
