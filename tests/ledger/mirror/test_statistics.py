"""The planner knows how many rows the mirror has while it is loaded, also without autovacuum."""

import pytest
from django.db import connection

from backoffice.ledger.mirror import passes
from backoffice.ledger.mirror.passes import analyze_if_grown
from backoffice.ledger.models import Transaction
from tests.ledger.stored_transactions import store, unsaved

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "MIN_ROWS", 8)


@pytest.fixture
def nothing_counted() -> None:
    """PostgreSQL may still count rows that an earlier test inserted and deleted."""
    _execute("SELECT pg_stat_force_next_flush()")
    _execute("ANALYZE ledger_transaction")


def _store(first: int, count: int) -> None:
    store([unsaved(transaction_id=f"T-{number}") for number in range(first, first + count)])
    _execute("SELECT pg_stat_force_next_flush()")


def _execute(statement: str) -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(statement)


@pytest.mark.usefixtures("few_are_enough", "nothing_counted")
def test_a_mirror_that_grew_several_fold_is_analyzed_once() -> None:
    on_postgresql = connection.vendor == "postgresql"
    assert not analyze_if_grown()
    _store(0, 10)
    assert [analyze_if_grown(), analyze_if_grown()] == [on_postgresql, False]
    _store(10, 10)
    assert not analyze_if_grown()
    _store(20, 30)
    assert analyze_if_grown() is on_postgresql
    assert Transaction.objects.count() == 50
