"""The list of transactions: the same as plain Python finds, page by page in either direction, whatever is asked for."""

import random
from datetime import datetime, timedelta
from decimal import Decimal
from importlib import import_module
from zoneinfo import ZoneInfo

import pytest
from django.db import connection

from backoffice.core.web.pagination import Order, Page
from backoffice.ledger.models import DayTotal, Facet, Transaction
from backoffice.ledger.transactions import filters, names, query_planner
from backoffice.ledger.transactions.filters import NEWEST_FIRST, ORDERS, TransactionFilter
from backoffice.ledger.transactions.listing import TransactionCount, transaction_count, transaction_page
from backoffice.ledger.transactions.query_planner import FilterTooBroadError
from backoffice.ledger.transactions.sql import IndexScan
from tests.ledger.stored_transactions import AT, store, stored, unsaved

pytestmark = pytest.mark.django_db

ROWS = 120
SIZE = 7
NAMES = ("Ada Obi", "ADA BELLO", "Tunde Bello", "100% Sure_Ltd", "Back\\slash Bros", "Zoë Ade", "merchant")
AMOUNTS = {"120": 120, "9000": 9000, "9,000.00": 9000, "100": 100}  # `100` is part of a name, too
on_postgresql = pytest.mark.skipif(
    "connection.vendor != 'postgresql'", reason="SQLite looks through all rows"
)


@pytest.fixture
def rows() -> list[Transaction]:
    """Some hundreds at random, with ties of time and of amount, and amounts that grow with time for one currency."""
    chance = random.Random(20261120)  # noqa: S311 - the same every time, no secret
    made = []
    for _ in range(ROWS):
        day = chance.randrange(40)
        direction, other = chance.choice(("in", "out", "")), chance.choice(NAMES)
        made.append(
            unsaved(
                currency=(currency := chance.choice(("NGN", "NGN", "NGN", "USD", "USDT"))),
                type=chance.choice(("withdrawal", "deposit", "transfer", "transfer", "conversion")),
                status=chance.choice(("fulfilled",) * 8 + ("failed", "processing")),
                direction=direction,
                occurred_at=AT - timedelta(days=day, hours=chance.choice((0, 0, 7, 13))),
                amount=Decimal(
                    100 - day if currency == "USD" else chance.choice(("0.5", "7", "7.01", "120", "9000"))
                ),
                sender=other if direction == "in" else "merchant",
                username="merchant" if direction == "in" else other,
                counterparty=other,
                business_id=f"biz-{chance.randrange(3)}",
            )
        )
    return store(made)


def fits(row: Transaction, chosen: TransactionFilter) -> bool:
    """The promise of `TransactionFilter` in plain Python."""
    says = [row.sender, row.username, row.business_id, row.counterparty]
    return all(
        (
            chosen.since is None or row.occurred_at >= chosen.since,
            chosen.until is None or row.occurred_at < chosen.until,
            chosen.min_amount is None or row.amount >= chosen.min_amount,
            chosen.max_amount is None or row.amount <= chosen.max_amount,
            all(getattr(row, name) == word for name, word in chosen.facet_values.items()),
            chosen.transaction_id in ("", row.transaction_id),
            chosen.counterparty.lower() in row.counterparty.lower(),
            any(chosen.text.lower() in text.lower() for text in says)
            or chosen.text == row.transaction_id
            or AMOUNTS.get(chosen.text) == row.amount,
        )
    )


def expected(rows: list[Transaction], chosen: TransactionFilter, order: Order) -> list[str]:
    column = order[0].lstrip("-")
    found = sorted(
        (row for row in rows if fits(row, chosen)),
        key=lambda row: (getattr(row, column), row.pk),
        reverse=order[0].startswith("-"),
    )
    return [row.transaction_id for row in found]


def forwards(
    chosen: TransactionFilter, order: Order = NEWEST_FIRST, size: int = SIZE
) -> list[Page[Transaction]]:
    pages = [transaction_page(chosen, order=order, cursor=None, size=size)]
    while (cursor := pages[-1].next_cursor) is not None:
        pages.append(transaction_page(chosen, order=order, cursor=cursor, size=size))
    return pages


def backwards(
    chosen: TransactionFilter, page: Page[Transaction], order: Order = NEWEST_FIRST, size: int = SIZE
) -> list[Page[Transaction]]:
    pages = [page]
    while (cursor := pages[0].previous_cursor) is not None:
        pages.insert(0, transaction_page(chosen, order=order, cursor=cursor, size=size))
    return pages


def ids(pages: list[Page[Transaction]]) -> list[str]:
    return [row.transaction_id for page in pages for row in page.rows]


def day(back: int) -> datetime:
    return AT.replace(hour=0, minute=0, second=0) - timedelta(days=back)


ALONE: dict[str, TransactionFilter] = {
    "nothing": TransactionFilter(),
    "since": TransactionFilter(since=day(5)),
    "until": TransactionFilter(until=day(30)),
    "period": TransactionFilter(since=day(20), until=day(10)),
    "empty period": TransactionFilter(since=day(400), until=day(300)),
    "currency": TransactionFilter(currency="USD"),
    "type": TransactionFilter(type="transfer"),
    "status": TransactionFilter(status="failed"),
    "direction": TransactionFilter(direction="in"),
    "words that never meet": TransactionFilter(currency="EUR"),
    "min amount": TransactionFilter(min_amount=Decimal("7.01")),
    "max amount": TransactionFilter(max_amount=Decimal("7")),
    "one amount": TransactionFilter(min_amount=Decimal(120), max_amount=Decimal(120)),
    "counterparty": TransactionFilter(counterparty="bello"),
    "text": TransactionFilter(text="ada"),
    "text of everybody": TransactionFilter(text="MERCHANT"),
    "business": TransactionFilter(text="biz-2"),
    "nobody": TransactionFilter(text="nobody at all"),
    "percent": TransactionFilter(text="0% s"),
    "underscore": TransactionFilter(counterparty="e_l"),
    "backslash": TransactionFilter(text="back\\s"),
    "several words": TransactionFilter(text="ada bel"),
    "words in another order": TransactionFilter(text="bello ada"),
    "words of a counterparty": TransactionFilter(counterparty="SURE_LTD"),
    **{f"amount {text}": TransactionFilter(text=text) for text in AMOUNTS},
}
TOGETHER: dict[str, TransactionFilter] = {
    "all words": TransactionFilter(currency="NGN", type="transfer", status="fulfilled", direction="out"),
    "words and period": TransactionFilter(currency="NGN", since=day(30), until=day(3)),
    "words and amounts": TransactionFilter(currency="USD", min_amount=Decimal(80), max_amount=Decimal(95)),
    "two ranges": TransactionFilter(
        since=day(30), until=day(3), min_amount=Decimal(7), max_amount=Decimal(120)
    ),
    "two ranges that never meet": TransactionFilter(currency="USD", since=day(3), max_amount=Decimal(65)),
    "text and status": TransactionFilter(text="ada", status="failed"),
    "text and both ranges": TransactionFilter(text="bello", since=day(35), min_amount=Decimal(5)),
    "text and counterparty": TransactionFilter(text="merchant", counterparty="obi"),
    "amount and counterparty": TransactionFilter(text="9000", counterparty="ada"),
    "amount, status and period": TransactionFilter(text="100", status="fulfilled", since=day(30)),
    "everything": TransactionFilter(
        since=day(39),
        until=day(1),
        currency="NGN",
        direction="in",
        min_amount=Decimal(1),
        counterparty="ada",
        text="biz",
    ),
}
EVERY = {**ALONE, **TOGETHER}


@pytest.mark.parametrize("order", [order for _, order in ORDERS.values()], ids=",".join)
@pytest.mark.parametrize("chosen", EVERY.values(), ids=EVERY)
def test_every_filter_and_order_matches_a_python_reference(
    rows: list[Transaction], chosen: TransactionFilter, order: Order
) -> None:
    there = forwards(chosen, order)
    assert ids(there) == expected(rows, chosen, order)
    assert ids(backwards(chosen, there[-1], order)) == expected(rows, chosen, order)
    assert all(len(page.rows) == SIZE for page in there[:-1])


@pytest.mark.parametrize("listed", [2, 1_000])
@pytest.mark.parametrize("chosen", EVERY.values(), ids=EVERY)
def test_the_limits_change_page_ends_only(
    rows: list[Transaction], chosen: TransactionFilter, listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_planner, "PROBED_ROWS", 3)
    monkeypatch.setattr(query_planner, "MAX_GATHERED", 5)
    monkeypatch.setattr(query_planner, "MAX_SCANNED", 20)
    monkeypatch.setattr(names, "MAX_MERGED_NAMES", 2)
    monkeypatch.setattr(names, "MAX_LISTED_NAMES", listed)
    for _, order in ORDERS.values():
        there = forwards(chosen, order)
        assert ids(there) == expected(rows, chosen, order), (order, there)
        assert ids(backwards(chosen, there[-1], order)) == expected(rows, chosen, order)


@on_postgresql
def test_the_scan_in_list_order_is_not_counted_first(
    rows: list[Transaction], monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_small(scan: IndexScan) -> bool:
        counted.append(scan.order)
        return False

    counted: list[Order] = []
    monkeypatch.setattr(query_planner, "PROBED_ROWS", 3)
    monkeypatch.setattr(query_planner, "_is_small", is_small)
    chosen = TransactionFilter(since=day(30), min_amount=Decimal(10**9))
    transaction_page(chosen, order=NEWEST_FIRST, cursor=None, size=SIZE)
    assert counted == [("-amount", "-id")]


def test_random_filters_match_a_python_reference(rows: list[Transaction]) -> None:
    chance = random.Random(6)  # noqa: S311 - the same every time, no secret
    for _ in range(60):
        picked = chance.sample(list(EVERY.values()), 3)
        chosen = TransactionFilter(
            **{name: value for one in picked for name, value in vars(one).items() if value}
        )
        _, order = chance.choice(list(ORDERS.values()))
        assert ids(forwards(chosen, order, size=20)) == expected(rows, chosen, order), chosen
        assert transaction_count(chosen) == TransactionCount(
            len(expected(rows, chosen, order)), is_exact=True
        ), chosen


def test_an_id_finds_its_transaction_regardless_of_names(rows: list[Transaction]) -> None:
    wanted = rows[99]
    for chosen in (
        TransactionFilter(transaction_id=wanted.transaction_id),
        TransactionFilter(text=wanted.transaction_id),
    ):
        assert ids(forwards(chosen)) == [wanted.transaction_id]
    others = TransactionFilter(transaction_id=wanted.transaction_id, counterparty="nobody at all")
    assert ids(forwards(others)) == []
    assert ids(forwards(TransactionFilter(text=wanted.transaction_id, counterparty="nobody at all"))) == []


@pytest.mark.parametrize(
    "chosen",
    [
        TransactionFilter(),
        TransactionFilter(currency="NGN", min_amount=Decimal(1)),
        TransactionFilter(text="ada"),
    ],
    ids=str,
)
def test_rows_inserted_between_pages_neither_repeat_nor_hide_others(
    rows: list[Transaction], chosen: TransactionFilter
) -> None:
    pages = [transaction_page(chosen, order=NEWEST_FIRST, cursor=None, size=SIZE)]
    while (cursor := pages[-1].next_cursor) is not None:
        rows.append(stored(occurred_at=AT + timedelta(minutes=len(pages)), type=f"type {len(pages)}"))
        pages.append(transaction_page(chosen, order=NEWEST_FIRST, cursor=cursor, size=SIZE))
    assert ids(pages) == expected(rows[:ROWS], chosen, NEWEST_FIRST)
    assert ids(backwards(chosen, pages[-1])) == expected(rows, chosen, NEWEST_FIRST)


def test_a_new_facet_is_listed_at_once(rows: list[Transaction]) -> None:
    transaction_page(TransactionFilter(), order=NEWEST_FIRST, cursor=None)
    new = stored(status="on hold", occurred_at=AT + timedelta(days=1))
    assert ids(forwards(TransactionFilter()))[0] == new.transaction_id
    newer = stored(status="on ice", occurred_at=AT + timedelta(days=2))
    assert ids(forwards(TransactionFilter(status="on ice"))) == [newer.transaction_id]


def test_a_new_facet_is_counted_at_once(rows: list[Transaction]) -> None:
    transaction_page(TransactionFilter(), order=NEWEST_FIRST, cursor=None)
    stored(status="on hold")
    assert transaction_count(TransactionFilter(status="on hold")).number == 1


def test_a_process_that_reads_no_rows_learns_new_facets(
    rows: list[Transaction], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(filters.known_facets())
    stored(status="on hold")
    assert len(filters.known_facets()) == before
    monkeypatch.setattr(filters, "FACETS_KEPT_SECONDS", -1.0)
    assert len(filters.known_facets()) == before + 1


def test_a_changed_name_is_found_by_its_current_value(rows: list[Transaction]) -> None:
    Transaction.objects.filter(pk=rows[0].pk).update(username="Renamed Person", counterparty="Renamed Person")
    assert ids(forwards(TransactionFilter(text="renamed"))) == [rows[0].transaction_id]
    assert ids(forwards(TransactionFilter(counterparty="named per"))) == [rows[0].transaction_id]


@on_postgresql
def test_names_stored_by_the_release_before_are_found_after_the_migration() -> None:
    migration = import_module("backoffice.ledger.migrations.0006_names_in_lower_case")
    with connection.cursor() as cursor:
        cursor.execute(migration.AS_WRITTEN)
        before = stored(sender="ÉMILE Obi", counterparty="ÉMILE Obi")
        cursor.execute(migration.IN_LOWER_CASE)
        cursor.execute(migration.PUT_INTO_LOWER_CASE)
        after = stored(sender="Émile OBI", counterparty="Émile OBI", occurred_at=AT - timedelta(days=1))
        # Names outlive their transactions, those of other tests too.
        cursor.execute(
            "SELECT DISTINCT split_part(names, chr(10), 1) FROM ledger_names WHERE names ILIKE '%mile obi%'"
        )
        assert cursor.fetchall() == [("émile obi",)]
    both = [before.transaction_id, after.transaction_id]
    assert ids(forwards(TransactionFilter(text="émile O"))) == both
    assert ids(forwards(TransactionFilter(counterparty="ÉMILE"))) == both


@pytest.mark.parametrize("forged", ["x", "' OR 1=1 --", "A" * 5_000])
def test_a_forged_or_foreign_cursor_gives_the_first_page(rows: list[Transaction], forged: str) -> None:
    first = transaction_page(TransactionFilter(), order=NEWEST_FIRST, cursor=None)
    of_another = transaction_page(TransactionFilter(), order=("-amount", "-id"), cursor=None).next_cursor
    for cursor in (forged, of_another):
        assert transaction_page(TransactionFilter(), order=NEWEST_FIRST, cursor=cursor) == first


@pytest.mark.parametrize(
    "chosen",
    [
        TransactionFilter(currency="NGN"),
        TransactionFilter(min_amount=Decimal(7)),
        TransactionFilter(text="ada"),
    ],
    ids=str,
)
def test_up_to_the_limit_the_count_is_exact(rows: list[Transaction], chosen: TransactionFilter) -> None:
    there = len(expected(rows, chosen, NEWEST_FIRST))
    assert transaction_count(chosen, at_most=there) == TransactionCount(there, is_exact=True)
    assert transaction_count(chosen, at_most=there + 1) == TransactionCount(there, is_exact=True)
    beyond = transaction_count(chosen, at_most=there - 1)
    assert not beyond.is_exact
    assert beyond.number >= there


def test_an_expensive_count_is_estimated(rows: list[Transaction], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_planner, "MAX_GATHERED", 5)
    monkeypatch.setattr(query_planner, "MAX_SCANNED", 20)
    chosen = TransactionFilter(max_amount=Decimal(7), since=day(30))
    there = len(expected(rows, chosen, NEWEST_FIRST))
    is_walked = connection.vendor == "postgresql"
    assert transaction_count(chosen).is_exact is not is_walked
    assert (transaction_count(chosen).number == there) is not is_walked


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (TransactionCount(0, is_exact=True), "0"),
        (TransactionCount(9_999, is_exact=True), "9,999"),
        (TransactionCount(10_000, is_exact=True), "10,000"),
        (TransactionCount(10_001, is_exact=False), "About 10,000"),
        (TransactionCount(8_149_000, is_exact=False), "About 8,100,000"),
    ],
    ids=str,
)
def test_estimated_counts_are_rounded(count: TransactionCount, words: str) -> None:
    assert count.text == words


def test_ten_thousand_are_counted_exactly_and_more_are_estimated(rows: list[Transaction]) -> None:
    store([unsaved(currency="EUR") for _ in range(9_999)])
    assert transaction_count(TransactionFilter(currency="EUR")) == TransactionCount(9_999, is_exact=True)
    stored(currency="EUR")
    assert transaction_count(TransactionFilter(currency="EUR")) == TransactionCount(10_000, is_exact=True)
    stored(currency="EUR")
    assert transaction_count(TransactionFilter(currency="EUR")) == TransactionCount(10_001, is_exact=False)
    assert transaction_count(TransactionFilter(currency="EUR", since=day(0))) == TransactionCount(
        10_001, is_exact=False
    )


def test_day_totals_estimate_counts_beyond_the_limit(rows: list[Transaction]) -> None:
    stored(currency="EUR")
    facet = Facet.objects.get(currency="EUR")
    for back, number in ((0, 70_000), (1, 20_000), (2, 9_000)):
        DayTotal.objects.create(day=day(back).date(), facet=facet, count=number, amount=0, fee=0)
    assert transaction_count(TransactionFilter(currency="EUR"), at_most=0) == TransactionCount(
        99_000, is_exact=False
    )
    assert transaction_count(TransactionFilter(currency="EUR", since=day(1)), at_most=0) == TransactionCount(
        90_000, is_exact=False
    )


@pytest.mark.parametrize(
    ("since", "until", "counted"),
    [(day(1), day(0), 20_000), (day(1) - timedelta(hours=1), day(0) - timedelta(hours=1), 29_000)],
    ids=["a UTC day", "a day in Lagos"],
)
def test_a_count_is_estimated_from_the_days_of_the_period_only(
    since: datetime, until: datetime, counted: int
) -> None:
    stored(currency="EUR", occurred_at=day(1) + timedelta(hours=1))
    facet = Facet.objects.get(currency="EUR")
    for back, number in ((0, 70_000), (1, 20_000), (2, 9_000)):
        DayTotal.objects.create(day=day(back).date(), facet=facet, count=number, amount=0, fee=0)
    lagos = ZoneInfo("Africa/Lagos")
    chosen = TransactionFilter(currency="EUR", since=since.astimezone(lagos), until=until.astimezone(lagos))
    assert transaction_count(chosen, at_most=0) == TransactionCount(counted, is_exact=False)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="only PostgreSQL breaks statements off")
def test_a_slow_query_is_cancelled_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_planner, "TIMEOUT_SECONDS", 0.05)
    with pytest.raises(FilterTooBroadError, match="shorter period"), query_planner.query_timeout():
        connection.cursor().execute("SELECT pg_sleep(60)")
