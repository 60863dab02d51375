"""Statements add up to the last decimal or say where not; pages of the books."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.core.fields import normalized_text
from backoffice.ledger.mirror.merge import merge_records
from backoffice.ledger.models import BalanceBreak, BalanceSnapshot, Mirror, Transaction
from backoffice.ledger.statements import statement as books_statement
from backoffice.ledger.statements.continuity import breaks_by_day, filtered_breaks
from backoffice.ledger.statements.statement import Statement, build_statements
from backoffice.ledger.transactions.volumes import sums_between
from tests.ledger.statements.test_breaks import check_all, lose, merged, record

pytestmark = pytest.mark.django_db

STATEMENTS, CONTINUITY = "/money/statements/", "/reconciliation/continuity/"


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-{text}:00").replace(tzinfo=UTC)


def on(moment: str, name: str, before: object, amount: object, **members: Any) -> Any:
    return record(name, 0, before, amount, createdAt=at(moment).isoformat(), **members)


def out(moment: str, name: str, before: object, amount: object, fee: object) -> Any:
    return on(moment, name, before, amount, fee=fee, type="withdrawal")


@pytest.fixture(autouse=True)
def mirror(db: None) -> None:
    Mirror.objects.create(pk=1)


@pytest.fixture
def chain() -> None:
    merged(
        on("03-01T09:00", "A", "100", "50.000000000000000001"),
        out("03-02T23:30", "B", "150.000000000000000001", "30", "1.5"),
        on("03-03T00:00", "C", "118.500000000000000001", "10", fee="0.25"),
        out("03-03T12:00", "D", "128.250000000000000001", "28.250000000000000001", "0"),
    )


def build_statement(currency: str, since: datetime | None, until: datetime | None) -> Statement:
    [one] = build_statements([currency], since, until)
    return one


def gist(one: Statement) -> tuple[str, ...]:
    amounts = (one.opening, one.received.amount, one.sent.amount, one.fees, one.closing, one.difference)
    return tuple("not provided" if amount is None else normalized_text(amount) for amount in amounts)


@pytest.mark.parametrize(
    ("since", "until", "figures"),
    [
        (None, None, ("100", "60.000000000000000001", "58.250000000000000001", "1.75", "100", "0")),
        (
            "03-02T00:00",
            "03-03T00:00",
            ("150.000000000000000001", "0", "30", "1.5", "118.500000000000000001", "0"),
        ),
        ("03-03T00:00", None, ("118.500000000000000001", "10", "28.250000000000000001", "0.25", "100", "0")),
        (
            "03-02T23:00",
            "03-03T01:00",
            ("150.000000000000000001", "10", "30", "1.75", "128.250000000000000001", "0"),
        ),
        ("03-04T00:00", "03-05T00:00", ("100", "0", "0", "0", "100", "0")),
        ("02-01T00:00", "02-05T00:00", ("not provided", "0", "0", "0", "not provided", "not provided")),
    ],
)
def test_opening_balance_plus_movements_is_the_closing_balance(
    chain: None, since: str | None, until: str | None, figures: tuple[str, ...]
) -> None:
    one = build_statement("NGN", at(since) if since else None, at(until) if until else None)
    assert gist(one) == figures
    assert one.is_first == (since in {None, "02-01T00:00"})
    assert one.adds_up == (figures[-1] == "0")


def test_zero_has_no_sign(chain: None, reader: Client) -> None:
    moved = page(reader, STATEMENTS, currency="NGN", since="2026-03-03")
    for amount in ("+10.00", "−58.250000000000000001", "−1.75"):  # noqa: RUF001 - the sign that the page has
        assert f"<dd>{amount}</dd>" in moved
    still = page(reader, STATEMENTS, currency="NGN", since="2026-03-04", until="2026-03-04")
    assert still.count("<dd>0.00</dd>") == 3


def test_the_difference_equals_the_breaks_in_the_period(chain: None) -> None:
    merged(on("03-03T11:00", "gap", "130", "5"))
    one = build_statement("NGN", at("03-03T00:00"), None)
    assert (one.breaks.number, one.is_explained, one.adds_up) == (2, True, False)
    assert one.difference == one.unexplained == Decimal("-5")
    before = build_statement("NGN", None, at("03-03T00:00"))
    assert (before.breaks.number, before.adds_up) == (0, True)


def test_unlisted_records_are_reported_and_not_counted(chain: None) -> None:
    lose("B")
    one = build_statement("NGN", None, None)
    assert (one.missing, one.sent.count, one.breaks.number) == (1, 1, 1)
    assert one.difference == Decimal("-31.5")
    assert one.is_explained


def test_too_many_breaks_are_not_summed(chain: None, reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    merged(on("03-03T11:00", "gap", "130", "5"))
    monkeypatch.setattr(books_statement, "MAX_COUNTED", 1)
    one = build_statement("NGN", at("03-03T00:00"), None)
    assert (str(one.breaks), one.unexplained, one.is_explained) == ("more than 1", None, False)
    shown = page(reader, STATEMENTS, currency="NGN", since="2026-03-03", until="2026-03-31")
    assert "More than 1 breaks</a> are too many to total." in shown
    assert "The rest is" not in shown


def test_records_that_cannot_be_placed_are_counted_and_left_unchecked(chain: None) -> None:
    merged(on("03-04T00:00", "E", None, "7"), on("03-04T01:00", "F", "100", "1"))
    one = build_statement("NGN", None, None)
    assert (one.unplaceable.number, one.breaks.number, one.adds_up, one.is_explained) == (1, 0, False, False)
    assert one.difference == -7
    merged(on("03-05T00:00", "G", None, "7"))
    assert build_statement("NGN", None, None).difference is None


def mirrored(*, as_of: str) -> None:
    """The whole list is here as it was then."""
    Mirror.objects.update(loaded_at=at("03-01T00:00"), as_of=at(as_of))


def test_counting_records_that_cannot_be_placed_uses_an_index(chain: None) -> None:
    asked: list[tuple[str, Any]] = []

    def note(execute: Callable[..., Any], sql: str, params: Any, *rest: Any) -> Any:
        asked.append((sql, params))
        return execute(sql, params, *rest)

    with connection.execute_wrapper(note):
        build_statement("NGN", at("03-01T00:00"), at("04-01T00:00"))
    [(sql, params)] = [(sql, params) for sql, params in asked if "COUNT" in sql and " OR " in sql]
    is_sqlite = connection.vendor == "sqlite"
    with connection.cursor() as cursor:
        if not is_sqlite:  # as if the table were too large to be read whole
            cursor.execute("SET LOCAL enable_seqscan = off")
        # With the parameters apart, as it was asked: it is by them that the index fits.
        cursor.execute(f"{'EXPLAIN QUERY PLAN' if is_sqlite else 'EXPLAIN'} {sql}", params)
        plan = "\n".join(str(row[-1]) for row in cursor.fetchall())
    assert "transaction_unplaceable" in plan, plan


def keep_balance(moment: str, amount: str) -> None:
    nothing = {"total_received": 0, "total_sent": 0, "transaction_count": 0}
    BalanceSnapshot.objects.create(
        currency="NGN", slot=at(moment), as_of=at(moment), amount=Decimal(amount), **nothing
    )


def test_the_balance_that_the_provider_reported_is_compared_with_its_records(chain: None) -> None:
    mirrored(as_of="03-09T00:00")
    keep_balance("03-02T23:45", "118.500000000000000001")
    keep_balance("03-03T12:01", "128.250000000000000001")  # reported while the last one was under way
    keep_balance("03-03T23:45", "107")
    reported = [
        (one.at, one.difference)
        for one in build_statement("NGN", at("03-03T00:00"), at("03-04T00:00")).reported
    ]
    assert reported == [(at("03-02T23:45"), Decimal(0)), (at("03-03T23:45"), Decimal(7))]
    [told_last] = build_statement("NGN", None, at("03-03T12:02")).reported
    assert told_last.difference == 0
    assert build_statement("NGN", at("03-06T00:00"), at("03-07T00:00")).reported == []


def test_a_reported_balance_is_not_compared_before_the_first_load_is_complete(chain: None) -> None:
    keep_balance("03-03T13:00", "100")
    keep_balance("03-03T13:15", "107")  # something came in that the mirror does not know yet
    assert build_statement("NGN", None, None).reported == []
    for as_of, amount in (("03-03T13:16", "100"), ("03-03T13:20", "107")):
        mirrored(as_of=as_of)
        assert [one.amount for one in build_statement("NGN", None, None).reported] == [Decimal(amount)]
    Mirror.objects.update(loaded_at=None)
    assert build_statement("NGN", None, None).reported == []


def test_breaks_are_summed_by_currency_and_the_readers_days() -> None:
    merged(on("03-01T09:00", "A", 0, 10), on("03-01T23:30", "B", 11, 10), on("03-02T09:00", "C", 20, 1))
    merged(on("03-02T09:00", "X", 0, 1, currency="USD"), on("03-02T10:00", "Y", 3, 1, currency="USD"))
    with timezone.override("Africa/Lagos"):
        days = breaks_by_day(filtered_breaks("", None, None)) or []
    sums = [(one.currency, one.day, one.count, *map(str, (one.more, one.less, one.net))) for one in days]
    assert sums == [
        ("NGN", date(2026, 3, 2), 2, "1", "1", "0"),  # half past eleven in UTC is the next day in Lagos
        ("USD", date(2026, 3, 2), 1, "2", "0", "2"),
    ]


@pytest.fixture
def reader(client: Client, sign_in: Callable[[Client, User], Client], auditor: User) -> Client:
    return sign_in(client, auditor)


def page(reader: Client, address: str, **filters: str) -> str:
    return reader.get(address, filters).content.decode()


def test_the_breaks_page_links_to_both_transactions(reader: Client, chain: None) -> None:
    assert "Every balance that could be checked follows from the one before it" not in page(
        reader, CONTINUITY
    )  # it is not loaded
    Mirror.objects.update(loaded_at=at("03-01T00:00"))
    check_all()
    assert "Every balance that could be checked follows from the one before it" in page(reader, CONTINUITY)
    merged(on("03-05T11:00", "gap", "130", "5"))
    shown = page(reader, CONTINUITY, currency="NGN")
    assert (
        "The balance rose by NGN 30.00 between the two transactions, and no transaction explains it." in shown
    )
    broken = BalanceBreak.objects.get()
    for pk in (broken.before_id, broken.after_id):
        assert reverse("operations:transaction", args=[pk]) in shown
    assert "Every balance in this selection that could be checked follows" in page(
        reader, CONTINUITY, since="2026-03-06"
    )
    assert reader.get(CONTINUITY, {"since": "2026-03-06", "until": "2026-03-01"}).status_code == 422


def test_unchecked_ranges_are_not_reported_as_continuous(reader: Client, chain: None) -> None:
    merged(on("03-04T01:00", "E", None, "7"), on("03-04T02:00", "F", "100", "1"))
    mirrored(as_of="03-09T00:00")
    for address in (STATEMENTS, CONTINUITY):
        assert "The first check of NGN is not finished" in page(reader, address, since="2026-03-01")
    assert "Every balance" not in page(reader, CONTINUITY)
    assert "Every balance" not in page(reader, CONTINUITY, currency="NGN")
    assert "Any amount not explained by a break lies between" not in page(
        reader, STATEMENTS, since="2026-03-01"
    )
    check_all()
    for address in (STATEMENTS, CONTINUITY):
        assert "The first check of" not in page(reader, address, since="2026-03-01")
    assert "Every balance" in page(reader, CONTINUITY)
    assert "Every balance" in page(reader, CONTINUITY, currency="NGN")
    assert "Any amount not explained by a break lies between" in page(reader, STATEMENTS, since="2026-03-01")


def test_the_statements_page_shows_every_currency_and_the_movements_of_one(
    reader: Client, chain: None
) -> None:
    merged(on("03-02T09:00", "X", 0, 1, currency="USD"))
    every = page(reader, STATEMENTS, since="2026-03-01", until="2026-03-31")
    assert every.count("Adds up") == 2
    assert "Movements" not in every
    one = page(reader, STATEMENTS, currency="NGN", since="2026-03-03", until="2026-03-31")
    assert one.count("<tr>") == 4  # the heading and three: midnight in UTC is an hour later in Lagos
    assert "150.000000000000000001" in one
    assert reader.get(STATEMENTS).status_code == 200
    assert reader.get(STATEMENTS, {"currency": "XXX"}).status_code == 422


@pytest.mark.django_db(transaction=True)
def test_a_statement_is_read_in_one_snapshot(
    reader: Client, chain: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sums(*arguments: Any) -> Any:
        """Once the movements were added up something comes in, and all the rest is read."""
        found = list(sums_between(*arguments))
        threads = ThreadPoolExecutor(1)
        threads.submit(merged, on("03-05T00:00", "T-late", "100", "7")).result(timeout=30)
        threads.submit(lambda: connection.close()).result()  # that thread's own
        threads.shutdown()
        return found

    monkeypatch.setattr(books_statement, "sums_between", sums)
    one = page(reader, STATEMENTS, currency="NGN", since="2026-03-01", until="2026-03-31")
    assert Transaction.objects.count() == 5
    assert "Adds up" in one
    assert ">late" not in one


def test_movements_of_one_moment_are_ordered_by_their_balances(reader: Client) -> None:
    merged(on("03-02T09:00", "second", "10", "5"), on("03-02T09:00", "first", "0", "10"))
    with transaction.atomic():
        merge_records([on("03-02T09:00", "third", "15", "1")])
    shown = page(reader, STATEMENTS, currency="NGN", since="2026-03-01", until="2026-03-31")
    balances = [shown.index(f'data-label="Balance">{text}<') for text in ("10.00", "15.00", "16.00")]
    assert balances == sorted(balances)
