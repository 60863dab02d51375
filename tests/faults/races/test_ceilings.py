"""Two payments to one recipient that is cooling: together they stay within its ceiling, whenever they are claimed."""

import threading
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.operations.delivery import send
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.states import Status
from tests import factories
from tests.faults.races.actions import sends
from tests.faults.races.conftest import Races
from tests.operations.steps import status_of
from tests.recipients import registered
from tests.stub_provider import StubProvider

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults]
_PATIENCE = 60  # seconds


@pytest.fixture(autouse=True)
def ceiling(settings: Settings) -> None:
    """Of two payments of 200,000, one is within it."""
    settings.ALLOW_LIST = frozenset({"withdrawal"})
    settings.RECIPIENT_COOLING_HOURS = 24
    settings.RECIPIENT_COOLING_CEILINGS = {"NGN": Decimal("300000.00")}


def two_released(preparer: User, approver: User, account: str) -> list[Operation]:
    """Two payments to a new recipient of which each alone is within the ceiling."""
    registered.agreed(registered.bank_account(account), preparer, approver)
    amounts = ("200000.00", "200000.01")
    approved = [
        factories.approved(preparer, approver, account_number=account, amount=amount) for amount in amounts
    ]
    return [factories.release(one, approver) for one in approved]


def test_two_payments_sent_at_the_same_moment_stay_within_the_ceiling(
    races: Races, provider: StubProvider, preparer: User, approver: User
) -> None:
    for number in races.rounds():
        both = two_released(preparer, approver, f"{7_000_000_000 + number}")
        races.race(*map(sends, both))
        for one in both:
            send.send_operation(one.pk)
        assert sorted(map(status_of, both)) == [Status.APPROVED, Status.PROCESSING]
        assert (Attempt.objects.filter(operation__in=both).count(), Release.objects.count()) == (1, 0)


def test_a_payment_waits_for_the_claim_of_another_to_the_same_recipient(
    races: Races, provider: StubProvider, preparer: User, approver: User
) -> None:
    """The claim of the first has checked the ceiling and stops, so that the queue skips it for a while."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    first, second = two_released(preparer, approver, "7000000000")
    checked, continues = threading.Event(), threading.Event()

    def stop(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith('DELETE FROM "operations_release"'):
            checked.set()
            assert continues.wait(_PATIENCE)
        return execute(sql, params, many, context)

    def sends_and_stops() -> None:
        with connection.execute_wrapper(stop):
            send.send_operation(first.pk)

    def sends_meanwhile() -> None:
        assert checked.wait(_PATIENCE)
        Release.objects.filter(pk=first.pk).update(skipped_until=clock.now() + timedelta(minutes=1))
        send.send_operation(second.pk)
        continues.set()

    def continues_once_the_other_waits() -> None:
        is_time = partial(continues.wait, 0.05)
        while not is_time() and not _is_a_claim_waiting():
            pass
        continues.set()

    races.race(sends_and_stops, sends_meanwhile, continues_once_the_other_waits)
    assert [status_of(one) for one in (first, second)] == [Status.PROCESSING, Status.APPROVED]
    assert Attempt.objects.count() == 1


def _is_a_claim_waiting() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return bool(cursor.fetchone()[0])
