"""Where a chain of balances breaks, held against every order that the records of one moment could have."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise, permutations, product
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backoffice.ledger.statements import chain
from backoffice.ledger.statements.chain import ChainLink, ChainMoment, ChainStep

AT = datetime(2026, 11, 20, 10, 42, 7, tzinfo=UTC)


def links(*rows: tuple[int, str | None, str]) -> list[ChainLink]:
    """Second, balance before and what it adds, of each record in turn."""
    return [
        chain.make_link(
            pk, AT + timedelta(seconds=second), None if before is None else Decimal(before), Decimal(adds)
        )
        for pk, (second, before, adds) in enumerate(rows)
    ]


def walked(found: list[ChainLink]) -> list[ChainStep]:
    return [step for stretch in chain.segments(chain.moments(found)) for step in stretch.steps]


def broken(*rows: tuple[int, str | None, str]) -> list[tuple[int, str]]:
    """Second and difference of each break."""
    return [
        ((one.after.at - AT).seconds, f"{one.difference:f}") for one in chain.breaks_in(walked(links(*rows)))
    ]


@pytest.mark.parametrize(
    ("direction", "fee", "adds"),
    [
        ("in", "1.5", "98.5"),
        ("in", None, "100"),
        ("out", "1.5", "-101.5"),
        ("out", None, "-100"),
        ("", "1.5", None),
    ],
)
def test_the_fee_is_added_to_the_amount(direction: str, fee: str | None, adds: str | None) -> None:
    rows = chain.balance_effect(direction, Decimal(100), None if fee is None else Decimal(fee))
    assert rows == (None if adds is None else Decimal(adds))


def test_continuous_balances_have_no_breaks() -> None:
    assert broken((0, "0", "10"), (1, "10", "-3"), (2, "7", "0.5")) == []
    assert broken() == []


def test_a_break_has_the_unexplained_amount() -> None:
    assert broken((0, "0", "10"), (1, "7", "1"), (2, "8", "1"), (3, "9.5", "1")) == [(1, "-3"), (3, "0.5")]


def test_amounts_of_any_size_are_exact() -> None:
    huge = "9999999999999999999999.999999999999999999"
    assert broken((0, huge, huge), (1, "19999999999999999999999.999999999999999998", "1")) == []
    assert broken((0, huge, huge), (1, "19999999999999999999999.999999999999999999", "1")) == [
        (1, "0.000000000000000001")
    ]


def test_records_of_one_moment_are_ordered_by_their_balances() -> None:
    found = walked(links((0, "0", "10"), (1, "15", "1"), (1, "10", "5"), (2, "16", "1")))
    assert [step.link.pk for step in found] == [0, 2, 1, 3]
    assert chain.breaks_in(found) == []


def test_a_balance_cycle_is_ordered_by_the_following_record() -> None:
    """Nothing before it says with which of the two it began."""
    assert broken((0, "100", "-10"), (0, "90", "10"), (1, "90", "1")) == []
    assert broken((0, "100", "-10"), (0, "90", "10"), (1, "100", "1")) == []


def test_no_break_is_reported_around_a_record_that_cannot_be_placed() -> None:
    assert broken((0, "0", "10"), (1, None, "-3"), (2, "700", "1"), (3, "702", "1")) == [(3, "1")]


def test_a_moment_of_very_many_records_is_left_unchecked() -> None:
    many = [(1, str(number), "1") for number in range(chain.MAX_RECORDS_PER_MOMENT)]
    assert broken((0, "0", "5"), *many) == [(1, "-5")]
    assert broken((0, "0", "5"), *many, (1, "7", "1")) == []


def test_a_moment_with_a_provable_order_is_a_landmark() -> None:
    rows = [(0, "10", "5"), (0, "0", "10"), (0, "15", "-5")]
    circle, gap = [(1, "10", "5"), (1, "15", "-5")], [(2, "10", "1"), (2, "12", "1")]
    found = list(chain.moments(links(*rows, *circle, *gap, (3, "13", "1"), (4, None, "1"), (4, "14", "1"))))
    assert [moment.is_landmark for moment in found] == [True, False, False, True, True]
    assert [link.pk for link in found[0].links] == [1, 0, 2]


def pairs(first: int, number: int) -> list[tuple[int, str | None, str]]:
    """So many moments in each of which one comes in and the same goes out, so that nothing shows their order."""
    return [
        one for second in range(first, first + number) for one in ((second, "0", "1"), (second, "1", "-1"))
    ]


def test_no_break_is_reported_between_distant_landmarks() -> None:
    number = chain.MAX_RECORDS_WITHOUT_LANDMARK // 2
    many = [(0, "0", "0"), *pairs(1, number)]
    assert broken(*many, (number + 1, "7", "1")) == [(number + 1, "7")]
    more = [*many, *pairs(number + 1, 2)]
    assert broken(*more, (number + 3, "7", "1")) == []
    assert broken(*more, (number + 3, "7", "1"), (number + 4, "9", "1")) == [(number + 4, "1")]


BALANCE = st.integers(0, 3).map(Decimal)
TOLD = st.lists(st.tuples(st.integers(0, 3), BALANCE, BALANCE), max_size=7)


def in_turn(rows: list[tuple[int, Decimal, Decimal]]) -> list[ChainLink]:
    ordered = sorted(rows, key=lambda one: one[0])
    return [
        ChainLink(pk, AT + timedelta(seconds=second), before, after)
        for pk, (second, before, after) in enumerate(ordered)
    ]


def fewest(found: list[ChainMoment]) -> float:
    """How many breaks the best of all orders has."""
    best = inf
    for orders in product(*(permutations(moment.links) for moment in found)):
        line = [one for order in orders for one in order]
        best = min(best, sum(1 for one, other in pairwise(line) if one.after != other.before))
    return best


@given(TOLD)
def test_a_moment_is_continuous_if_any_order_explains_its_balances(
    rows: list[tuple[int, Decimal, Decimal]],
) -> None:
    found = list(chain.moments(in_turn(rows)))
    steps = walked(in_turn(rows))
    assert sorted(step.link.pk for step in steps) == list(range(len(rows)))
    assert [step.link.at for step in steps] == [one.at for one in in_turn(rows)]
    least, number = fewest(found) if rows else 0, len(chain.breaks_in(steps))
    assert (number == 0) == (least == 0)
    assert number >= least


@contextmanager
def search_limit_of_one_step() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain, "MAX_RECORDS_WITHOUT_LANDMARK", 3)
        patch.setattr(chain, "MAX_RECORDS_PER_MOMENT", 3)
        yield


@given(st.lists(st.tuples(st.integers(0, 9), BALANCE, BALANCE), max_size=24))
def test_a_check_from_a_landmark_equals_one_from_the_start(
    rows: list[tuple[int, Decimal, Decimal]],
) -> None:
    with search_limit_of_one_step():
        every = in_turn(rows)
        whole = walked(every)
        for stretch in chain.segments(chain.moments(every)):
            if stretch.landmark:
                behind = [link for link in every if link.at > stretch.landmark.last.at]
                again = [
                    step
                    for one in chain.segments(chain.moments(behind), stretch.landmark)
                    for step in one.steps
                ]
                assert again == whole[len(whole) - len(behind) :]


@given(st.lists(st.tuples(st.integers(0, 9), BALANCE, BALANCE), max_size=24))
def test_the_last_landmark_is_found_within_the_limit(rows: list[tuple[int, Decimal, Decimal]]) -> None:
    with search_limit_of_one_step():
        every = in_turn(rows)
        [*_, last] = [None, *(one.landmark for one in chain.segments(chain.moments(every)) if one.landmark)]
        near = every[-chain.lookback_limit() :]
        seen = chain.last_landmark(near, is_all=len(near) == len(every))
        assert (seen and seen.last) == (last and last.last)
