"""Deliveries of the provider make checks due: what they name at once, the rest soon, and nothing ever later."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.db import transaction

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.outcome import schedule
from backoffice.operations.outcome.schedule import (
    UNNAMED_CHECK_INTERVAL,
    check_due,
    run_scheduled_checks,
    schedule_checks,
)
from backoffice.operations.states import Status
from tests.accounts.test_deadlocks import beside, wait_until_blocked
from tests.operations.provider_list import record, sent, shows
from tests.operations.steps import let_pass, put, status_of
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
HOURS = timedelta(hours=5)


@pytest.fixture
def under_way(provider: StubProvider, preparer: User, approver: User) -> list[Operation]:
    """Three that the provider works on for hours, as T-1, T-2 and T-3, and that are not due for hours."""
    shows(provider)
    found = [
        sent(
            provider,
            preparer,
            approver,
            (200, f'{{"data": {{"transactionId": "T-{number}"}}}}'),
            amount=Decimal(250_000 + number),
        )
        for number in (1, 2, 3)
    ]
    shows(provider, *(record(f"T-{number}", "processing") for number in (1, 2, 3)))
    let_pass(timedelta(hours=2))  # beyond the checks of the first hour
    Attempt.objects.update(next_check_at=clock.now() + HOURS, checks=0)
    return found


def checks(operations: list[Operation]) -> list[int]:
    return [Attempt.objects.get(operation=operation).checks for operation in operations]


def dues(operations: list[Operation]) -> list[datetime | None]:
    return [Attempt.objects.get(operation=operation).next_check_at for operation in operations]


def pass_by(monkeypatch: pytest.MonkeyPatch, time: timedelta) -> None:
    later = clock.now() + time
    monkeypatch.setattr(clock, "_source", lambda: later)


def test_a_named_attempt_is_checked_first_and_alone(under_way: list[Operation]) -> None:
    schedule_checks({"T-2"})
    assert run_scheduled_checks({"T-2"}) == 1
    assert checks(under_way) == [0, 1, 0]
    assert check_due() == 2
    assert checks(under_way) == [1, 1, 1]


def test_unnamed_attempts_are_checked_at_a_limited_rate(
    under_way: list[Operation], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(int(UNNAMED_CHECK_INTERVAL.total_seconds())):
        schedule_checks({"T-9"})
        check_due()
        pass_by(monkeypatch, timedelta(seconds=1))
    assert checks(under_way) == [1, 1, 1]
    check_due()
    assert checks(under_way) == [2, 2, 2]


def test_named_attempts_are_not_rate_limited(
    under_way: list[Operation], monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule_checks({"T-9"})
    check_due()
    pass_by(monkeypatch, timedelta(seconds=1))
    schedule_checks({"T-2"})
    assert run_scheduled_checks({"T-2"}) == 1
    assert check_due() == 0
    assert checks(under_way) == [1, 2, 1]


def test_attempts_beyond_one_round_are_checked_while_deliveries_arrive(
    under_way: list[Operation], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "BATCH_SIZE", 1)
    for _ in under_way:
        schedule_checks({"T-9"})
        check_due()
        pass_by(monkeypatch, timedelta(seconds=1))
    assert checks(under_way) == [1, 1, 1]


def test_deliveries_never_postpone_a_check(under_way: list[Operation]) -> None:
    due = clock.now() - timedelta(minutes=1)
    Attempt.objects.update(next_check_at=due)
    schedule_checks({"T-1"})
    assert dues(under_way) == [due] * 3


@pytest.mark.parametrize("named", ["T-1", "T-9"])
def test_an_attempt_moved_to_review_is_not_made_due(under_way: list[Operation], named: str) -> None:
    first, second, third = under_way
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            for operation in (first, second):
                Attempt.objects.filter(operation=operation).update(next_check_at=None)
                put(operation, "review")
            deliveries = pool.submit(beside(lambda: schedule_checks({named})))
            wait_until_blocked(deliveries)
        deliveries.result()
    assert [due is None for due in dues([first, second, third])] == [True, True, False]


def test_attempts_in_review_or_being_sent_are_not_checked(under_way: list[Operation]) -> None:
    first, second, _ = under_way
    put(first, "review")
    schedule_checks({"T-1", "T-2"})
    assert run_scheduled_checks({"T-1", "T-2"}) == 1
    assert (status_of(first), status_of(second)) == (Status.REVIEW, Status.PROCESSING)
