"""Of a run of new records that follow from each other only the ends are examined, and no break is overlooked for it."""

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from backoffice.ledger.models import BalanceBreak, Mirror
from backoffice.ledger.statements import breaks, continuity
from backoffice.ledger.statements.breaks import run_ends
from backoffice.ledger.statements.chain import make_link
from tests.ledger.statements.test_breaks import merged, record, stored_breaks

AT = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)


@pytest.fixture(autouse=True)
def mirror(db: None) -> None:
    Mirror.objects.create(pk=1)


@pytest.mark.parametrize(
    ("rows", "others", "ends"),
    [
        ([(0, 0), (1, 1), (2, 2), (3, 3)], [], {0, 3}),
        ([(0, 0), (1, 1), (2, 7), (3, 8)], [], {0, 1, 2, 3}),
        ([(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)], [2], {0, 1, 2, 3, 4}),
        ([(0, 0), (1, 1), (2, 2), (4, 3), (5, 4)], [3], {0, 2, 4, 5}),
        ([(0, 0), (1, 1), (2, None), (3, 3), (4, 4)], [], {0, 1, 2, 3, 4}),
        ([(0, 0), (1, 1), (1, 2), (1, 3), (2, 4)], [], {0, 2}),
        ([(5, 0)], [], {5}),
    ],
)
def test_a_run_ends_at_a_break_or_at_another_record(
    rows: list[tuple[int, int | None]], others: list[int], ends: set[int]
) -> None:
    """Second and balance before of each, which adds one."""
    links = [
        make_link(0, AT + timedelta(seconds=at), None if before is None else Decimal(before), Decimal(1))
        for at, before in rows
    ]
    found = run_ends(links, [AT + timedelta(seconds=at) for at in others])
    assert found == {AT + timedelta(seconds=at) for at in ends}


def minutes(*numbers: int, missing: int = 0) -> list[Any]:
    """A record for each minute, which adds one; `missing` is in the balance and in no record."""
    return [
        record(f"T{number}", 0, number + missing, 1, createdAt=(AT + timedelta(minutes=number)).isoformat())
        for number in numbers
    ]


def test_a_long_run_is_not_read_again() -> None:
    with CaptureQueriesContext(connection) as of_a_few:
        merged(*reversed(minutes(*range(400, 420))))
    with CaptureQueriesContext(connection) as of_many:
        merged(*reversed(minutes(*range(100, 400))))
    assert len(of_many) <= len(of_a_few) + 2
    assert not any("LIMIT 500" in query["sql"] for query in of_many)
    assert stored_breaks() == []


def test_a_break_at_either_end_of_a_run_and_within_it_is_found() -> None:
    merged(*minutes(*range(10)))
    merged(*minutes(*range(30, 40), missing=2))
    merged(*minutes(*range(10, 15), missing=1), *minutes(*range(15, 30), missing=5))
    assert [one[:2] for one in stored_breaks()] == [("T9", "T10"), ("T14", "T15"), ("T29", "T30")]


def random_batches(rng: random.Random) -> list[list[Any]]:
    """A history that hardly breaks, some of it in one moment, listed newest first with a few out of place."""
    rows, balance, at = [], 100, 0
    for number in range(60):
        at += rng.choice((0, 1, 1, 1, 2))
        balance += rng.choice((0,) * 15 + (1, -1))
        way, amount = rng.choice(("deposit", "withdrawal")), rng.randrange(1, 3)
        before = None if rng.random() < 0.03 else balance
        moment = (AT + timedelta(seconds=at)).isoformat()
        rows.append(record(f"R{number}", 0, before, amount, type=way, createdAt=moment))
        balance += amount if way == "deposit" else -amount
    for _ in range(rng.randrange(4)):
        rows.insert(rng.randrange(50), rows.pop(rng.randrange(50)))
    rows.reverse()
    size = rng.randrange(3, 25)
    batches = [rows[first : first + size] for first in range(0, len(rows), size)]
    if rng.random() < 0.5:
        rng.shuffle(batches)
    return batches


@pytest.mark.parametrize("seed", range(12))
def test_stored_runs_equal_a_full_recomputation(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)  # noqa: S311 - to be repeatable, not secret
    monkeypatch.setattr(breaks, "MAX_EXISTING_BETWEEN", rng.choice((2, 200)))
    for batch in random_batches(rng):
        merged(*batch)
        assert list(continuity.break_disagreements()) == []
    assert BalanceBreak.objects.count() <= 20
