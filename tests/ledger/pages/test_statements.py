"""The movements of a statement, page by page, and pages of the books that are read in one moment of the database."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import User
from backoffice.ledger.models import BalanceBreak, Mirror
from backoffice.ledger.pages import statements
from backoffice.ledger.statements.continuity import breaks_by_day
from tests.ledger.statements.test_breaks import merged, record

pytestmark = pytest.mark.django_db

STATEMENTS, CONTINUITY = "/money/statements/", "/reconciliation/continuity/"
MARCH = {"currency": "NGN", "since": "2026-03-01", "until": "2026-03-31"}


@pytest.fixture(autouse=True)
def mirror(db: None) -> None:
    Mirror.objects.create(pk=1)


@pytest.fixture
def reader(client: Client, sign_in: Callable[[Client, User], Client], auditor: User) -> Client:
    return sign_in(client, auditor)


def minute(number: int, name: str, before: int, **members: Any) -> Any:
    return record(name, 0, before, 1, createdAt=f"2026-03-04T05:{number:02}:00Z", **members)


def test_with_a_refused_period_no_other_one_is_exported(reader: Client) -> None:
    refused = reader.get(STATEMENTS, MARCH | {"until": "2026-02-01"})
    [link] = re.findall(r'href="([^"]*statement\.csv[^"]*)"', refused.content.decode())
    answer = reader.get(link.replace("&amp;", "&"))
    assert (refused.status_code, answer.status_code) == (422, 422)
    assert "The last day is before the first day" in answer.content.decode()


def test_pages_end_between_moments_and_balances_continue_across_pages(reader: Client) -> None:
    """The records of the moment at the end of a page were merged in another order than their balances show."""
    merged(*(minute(number, f"T{number}", number) for number in range(48)))
    for balance in (51, 49, 50, 48):
        merged(minute(48, f"at-once-{balance}", balance))
    merged(*(minute(number, f"T{number}", number + 3) for number in range(49, 60)))
    first = reader.get(STATEMENTS, MARCH)
    second = reader.get(STATEMENTS, MARCH | {"cursor": first.context["page"].next_cursor})
    back = reader.get(STATEMENTS, MARCH | {"cursor": second.context["page"].previous_cursor})
    assert balances(first) == list(range(1, 49))
    assert balances(second) == list(range(49, 64))
    assert balances(back) == balances(first)


def test_a_moment_longer_than_a_page_is_split(reader: Client) -> None:
    merged(*(minute(1, f"T{number:02}", number) for number in range(60)))
    first = reader.get(STATEMENTS, MARCH)
    second = reader.get(STATEMENTS, MARCH | {"cursor": first.context["page"].next_cursor})
    assert sorted(balances(first) + balances(second)) == list(range(1, 61))


def test_a_balance_cycle_at_the_start_of_a_page_is_ordered_by_the_previous_balance(reader: Client) -> None:
    merged(record("A", 0, 0, 100, createdAt="2026-02-28T10:00:00Z"))
    merged(
        record("back", 0, 90, 10, createdAt="2026-03-01T10:00:00Z"),
        record("there", 0, 100, 10, createdAt="2026-03-01T10:00:00Z", type="withdrawal"),
    )
    assert balances(reader.get(STATEMENTS, MARCH)) == [90, 100]


def balances(page: Any) -> list[int]:
    return [int(text) for text in re.findall(r'data-label="Balance">([\d,]+)\.00<', page.content.decode())]


@pytest.mark.django_db(transaction=True)
def test_breaks_are_read_in_one_snapshot(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def days(*arguments: Any) -> Any:
        """Behind the sums a break appears, and then the list is read."""
        breaks = breaks_by_day(*arguments)
        threads = ThreadPoolExecutor(1)
        threads.submit(merged, record("B", 1, 12, 1)).result(timeout=30)
        threads.submit(lambda: connection.close()).result()  # that thread's own
        threads.shutdown()
        return breaks

    merged(record("A", 0, 0, 10))
    monkeypatch.setattr(statements, "breaks_by_day", days)
    shown = reader.get(CONTINUITY).content.decode()
    assert BalanceBreak.objects.count() == 1
    assert "Missing transaction" not in shown


def test_a_statement_takes_as_many_queries_however_long_it_is(
    reader: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    """More than other pages: each balance at an end is read from the chain, in one moment of the database."""
    merged(*(minute(number, f"T{number}", number) for number in range(8)))
    for more in ((), range(8, 58)):
        merged(*(minute(number, f"T{number}", number) for number in more))
        with django_assert_max_num_queries(20):
            answer = reader.get(STATEMENTS, MARCH)
        assert answer.context["statements"][0].adds_up


def test_a_further_currency_takes_only_the_queries_with_a_limit_of_its_own(
    reader: Client, warm_caches: None
) -> None:
    """The records at both ends, breaks and unplaceable records."""
    period, numbers = {"since": "2026-03-01", "until": "2026-03-31"}, []
    for currency in ("NGN", "USD", "USDT"):
        merged(*(minute(number, f"{currency}{number}", number, currency=currency) for number in range(3)))
        reader.get(STATEMENTS, period)
        with CaptureQueriesContext(connection) as queries:
            answer = reader.get(STATEMENTS, period)
        assert all(one.adds_up for one in answer.context["statements"])
        numbers.append(len(queries))
    assert [later - earlier for earlier, later in pairwise(numbers)] == [6, 6]
