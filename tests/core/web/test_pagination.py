"""Keyset pages: every row once in either direction, whatever ties, arrives or is forged in between."""

import uuid
from datetime import datetime, timedelta

import pytest
from django.core import signing
from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import User
from backoffice.core.web.pagination import Page, keyset_page
from backoffice.operations.models.operations import Operation
from tests import factories

pytestmark = pytest.mark.django_db

ROWS = 120
NEWEST_FIRST = ("-prepared_at", "-id")
ORDERS = [NEWEST_FIRST, ("prepared_at", "id"), ("prepared_at", "-id"), ("-id",), ("reference",)]
START = datetime(2026, 11, 20, 9, 42, 7, 123456, tzinfo=timezone.get_default_timezone())


def operation(preparer: User, number: int, prepared_at: datetime) -> Operation:
    """A pending operation as the service leaves it, but at a time of the test's choice."""
    return Operation(
        reference=f"W-{number:06d}",
        kind="withdrawal",
        payload=factories.payload().stored(),
        content_key=str(number),
        sentence=f"Operation {number}",
        approvals_needed=1,
        rule={"code": "one_approver"},
        preparer=preparer,
        prepared_at=prepared_at,
        expires_at=prepared_at + timedelta(hours=72),
    )


@pytest.fixture
def operations(preparer: User) -> QuerySet[Operation]:
    """120 operations, seven of each moment, so that a page may begin and end anywhere within a tie."""
    Operation.objects.bulk_create(
        operation(preparer, number, START + timedelta(microseconds=number // 7)) for number in range(ROWS)
    )
    return Operation.objects.all()


def forwards(queryset: QuerySet[Operation], order: tuple[str, ...], size: int) -> list[Page[Operation]]:
    """Every page from the first to the last, as one who presses "Next"."""
    pages = [keyset_page(queryset, order=order, cursor=None, size=size)]
    while (cursor := pages[-1].next_cursor) is not None:
        pages.append(keyset_page(queryset, order=order, cursor=cursor, size=size))
    return pages


def backwards(
    queryset: QuerySet[Operation], order: tuple[str, ...], size: int, page: Page[Operation]
) -> list[Page[Operation]]:
    """The same in the other direction, from a page to the first one."""
    pages = [page]
    while (cursor := pages[0].previous_cursor) is not None:
        pages.insert(0, keyset_page(queryset, order=order, cursor=cursor, size=size))
    return pages


def ids(pages: list[Page[Operation]]) -> list[uuid.UUID]:
    return [row.pk for page in pages for row in page.rows]


@pytest.mark.parametrize("order", ORDERS, ids=",".join)
@pytest.mark.parametrize("size", [1, 7, 10, 119, 120, 121])
def test_every_row_is_on_exactly_one_page_in_either_direction(
    operations: QuerySet[Operation], order: tuple[str, ...], size: int
) -> None:
    expected = list(operations.order_by(*order).values_list("pk", flat=True))
    there = forwards(operations, order, size)
    back = backwards(operations, order, size, there[-1])
    assert ids(there) == expected
    assert ids(back) == expected
    assert all(len(page.rows) == size for page in there[:-1])
    assert there[0].previous_cursor is None
    assert there[-1].next_cursor is None


def test_the_edges_of_a_page_are_the_cursors_of_its_neighbours(operations: QuerySet[Operation]) -> None:
    first, second, *_ = forwards(operations, NEWEST_FIRST, 10)
    back = keyset_page(operations, order=NEWEST_FIRST, cursor=second.previous_cursor, size=10)
    assert back.rows == first.rows
    assert (back.previous_cursor, back.next_cursor) == (None, first.next_cursor)


def test_rows_inserted_between_pages_neither_repeat_nor_hide_others(
    operations: QuerySet[Operation], preparer: User
) -> None:
    expected = list(operations.order_by(*NEWEST_FIRST).values_list("pk", flat=True))
    pages, number = [keyset_page(operations, order=NEWEST_FIRST, cursor=None, size=10)], ROWS
    while (cursor := pages[-1].next_cursor) is not None:
        number += 1
        operation(preparer, number, START + timedelta(hours=number)).save()
        pages.append(keyset_page(operations, order=NEWEST_FIRST, cursor=cursor, size=10))
    assert ids(pages) == expected
    back = backwards(operations, NEWEST_FIRST, 10, pages[-1])
    assert ids(back) == list(operations.order_by(*NEWEST_FIRST).values_list("pk", flat=True))


def test_a_cursor_of_a_deleted_row_works(operations: QuerySet[Operation]) -> None:
    first = keyset_page(operations, order=NEWEST_FIRST, cursor=None, size=10)
    left = operations.exclude(pk=first.rows[-1].pk)
    second = keyset_page(left, order=NEWEST_FIRST, cursor=first.next_cursor, size=10)
    assert second.rows == list(left.order_by(*NEWEST_FIRST)[9:19])


def test_a_filter_applies_to_every_page(operations: QuerySet[Operation]) -> None:
    odd = operations.filter(reference__regex="[13579]$")
    assert len(ids(forwards(odd, NEWEST_FIRST, 7))) == ROWS // 2


@pytest.mark.parametrize("size", [1, 50])
def test_no_rows_are_one_empty_page(operations: QuerySet[Operation], size: int) -> None:
    page = keyset_page(operations.none(), order=NEWEST_FIRST, cursor=None, size=size)
    assert page == Page([], None, None)


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "x",
        ":::",
        "é\x00",
        "' OR 1=1 --",
        "W10:1vKxyz:notasignature",
        signing.dumps([False, [str(START), str(uuid.uuid4())]]),
        signing.dumps([False, [str(START), str(uuid.uuid4())]], salt="core.pagination"),
        "A" * 10_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_a_foreign_cursor_gives_the_first_page(operations: QuerySet[Operation], forged: str) -> None:
    first = keyset_page(operations, order=NEWEST_FIRST, cursor=None, size=10)
    assert keyset_page(operations, order=NEWEST_FIRST, cursor=forged, size=10) == first


def test_a_cursor_of_another_order_gives_the_first_page(operations: QuerySet[Operation]) -> None:
    cursor = keyset_page(operations, order=NEWEST_FIRST, cursor=None, size=10).next_cursor
    for order in (("prepared_at", "id"), ("-expires_at", "-id"), ("-id",)):
        first = keyset_page(operations, order=order, cursor=None, size=10)
        assert keyset_page(operations, order=order, cursor=cursor, size=10) == first


def test_an_altered_cursor_gives_the_first_page(operations: QuerySet[Operation]) -> None:
    first = keyset_page(operations, order=NEWEST_FIRST, cursor=None, size=10)
    cursor = first.next_cursor or ""
    for place in range(0, len(cursor), 7):
        altered = cursor[:place] + ("a" if cursor[place] != "a" else "b") + cursor[place + 1 :]
        assert keyset_page(operations, order=NEWEST_FIRST, cursor=altered, size=10) == first


def test_a_deep_page_takes_one_query(
    operations: QuerySet[Operation], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    deep = forwards(operations, NEWEST_FIRST, 10)[-2]
    with django_assert_num_queries(1) as queries:
        keyset_page(operations, order=NEWEST_FIRST, cursor=deep.next_cursor, size=10)
    assert "OFFSET" not in queries.captured_queries[0]["sql"]


def test_a_deep_page_seeks_in_the_index(
    operations: QuerySet[Operation], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    cursor = keyset_page(operations, order=NEWEST_FIRST, cursor=None, size=10).next_cursor
    with django_assert_num_queries(1) as queries:
        keyset_page(operations, order=NEWEST_FIRST, cursor=cursor, size=10)
    plan = plan_of(queries.captured_queries[0]["sql"])
    assert "operation_newest" in plan
    assert ("prepared_at<?" if connection.vendor == "sqlite" else "Index Cond: (prepared_at <=") in plan
    assert "TEMP B-TREE" not in plan
    assert "Sort" not in plan


def plan_of(sql: str) -> str:
    """How the database means to answer a query; PostgreSQL as if the table were too large to be read whole."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
            cursor.execute(f"EXPLAIN {sql}")
        else:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
        return "\n".join(str(part) for row in cursor.fetchall() for part in row)
