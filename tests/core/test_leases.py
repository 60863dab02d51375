"""Leases: one holder at a time, and a number that distinguishes a former holder from the present one."""

import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction

from backoffice.core import clock
from backoffice.core.leases import (
    Lease,
    LeaseLostError,
    acquire_lease,
    claim_due_row,
    held_leases,
    is_held,
    next_run_time,
)
from backoffice.core.models import LeaseRow

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
THEN = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)


def acquired(seconds: float, name: str = "balances") -> Lease | None:
    """The lease, asked for a minute at this time."""
    with clock.use_clock(lambda: THEN + timedelta(seconds=seconds)):
        return acquire_lease(name, MINUTE)


def test_a_lease_is_acquired_by_the_clock_of_the_database() -> None:
    assert [bool(acquired(seconds)) for seconds in (0, 59, 60)] == [True, False, True]


def test_each_acquisition_has_a_higher_number() -> None:
    numbers = [lease.number for seconds in (0, 60, 120) if (lease := acquired(seconds))]
    assert numbers == [1, 2, 3]


def test_leases_of_different_names_are_independent() -> None:
    assert acquired(0)
    assert acquired(0, "keys")


def test_a_lease_is_released_at_the_end_of_its_block_even_after_an_error() -> None:
    with clock.use_clock(lambda: THEN):
        with suppress(LookupError), acquire_lease("balances", MINUTE) or pytest.fail("is free"):
            assert acquire_lease("balances", MINUTE) is None
            raise LookupError
        assert acquire_lease("balances", MINUTE)


def test_a_lease_can_be_released_for_a_later_time() -> None:
    lease = acquired(0)
    assert lease
    lease.release(free_at=THEN + 2 * MINUTE)
    assert [bool(acquired(seconds)) for seconds in (60, 119, 120)] == [False, False, True]


def test_the_lease_of_a_killed_process_expires() -> None:
    assert acquired(0)
    assert acquired(60)


def test_a_lease_expires_by_the_real_clock() -> None:
    assert acquire_lease("short", timedelta(milliseconds=200))
    assert (acquire_lease("short", MINUTE), is_held("short")) == (None, True)
    deadline = time.monotonic() + 10
    while is_held("short"):
        assert time.monotonic() < deadline
    assert acquire_lease("short", MINUTE)


def test_verifying_extends_the_lease() -> None:
    lease = acquired(0)
    assert lease
    with clock.use_clock(lambda: THEN + MINUTE / 2):
        lease.verify()
    assert [bool(acquired(seconds)) for seconds in (60, 89, 90)] == [False, False, True]


def test_a_lost_lease_can_be_neither_extended_nor_released() -> None:
    lost = acquired(0)
    assert lost
    assert acquired(60)
    with pytest.raises(LeaseLostError):
        lost.verify()
    lost.release()
    assert acquired(61) is None


def test_a_released_lease_cannot_be_extended() -> None:
    lease = acquired(0)
    assert lease
    lease.release()
    with pytest.raises(LeaseLostError):
        lease.verify()


def test_a_lease_is_renewed_only_when_an_eighth_of_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    lease = acquired(0)
    assert lease
    LeaseRow.objects.update(number=99)
    lease.renew()
    lease._extended_at -= MINUTE.total_seconds() / 8
    with pytest.raises(LeaseLostError):
        lease.renew()


def test_the_held_leases_are_listed_with_the_time_of_acquisition() -> None:
    for name in ("exports 0", "exports 1", "mirror"):
        acquired(0, name)
    expired_only = acquired(0, "exports 2")
    assert expired_only
    expired_only.release(free_at=THEN)
    with clock.use_clock(lambda: THEN + MINUTE / 2):
        assert held_leases("exports") == {"exports 0 #1": THEN, "exports 1 #1": THEN}
        assert list(held_leases("mirror").values()) == [THEN]


@pytest.mark.django_db(transaction=True)
def test_a_lease_cannot_be_acquired_during_the_transaction_that_verified_it() -> None:
    """Although it had expired: what is written under it is committed before anybody else begins."""
    lease = acquired(0)
    assert lease
    order: list[str] = []

    def take_over() -> None:
        try:
            order.append("acquired" if acquired(119) else "refused")
        finally:
            connection.close()

    with clock.use_clock(lambda: THEN + MINUTE):
        thread = threading.Thread(target=take_over)
        with transaction.atomic():
            lease.verify()
            thread.start()
            thread.join(0.3)
            order.append("committed")
        thread.join(60)
    assert order == ["committed", "refused"]


def test_requests_before_the_next_run_share_it() -> None:
    times = []
    for seconds in (0, 10, 59, 60, 61, 200):
        with clock.use_clock(lambda: THEN + timedelta(seconds=seconds)):  # noqa: B023 - called at once
            times.append((next_run_time("others", interval=MINUTE) - THEN).total_seconds())
    assert times == [0, 60, 60, 120, 120, 200]


def test_one_of_two_concurrent_claims_of_a_due_row_succeeds() -> None:
    LeaseRow.objects.create(name="any row", acquired_at=THEN, held_until=THEN)
    first, second = LeaseRow.objects.get(), LeaseRow.objects.get()
    assert claim_due_row(first, "held_until", until=THEN + MINUTE)
    assert not claim_due_row(second, "held_until", until=THEN + MINUTE)
    assert LeaseRow.objects.get().held_until == THEN + MINUTE
