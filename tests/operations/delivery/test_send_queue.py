"""The queue of one balance: sent from its head, by one process at a time, with what was read before."""

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from unittest import mock
from uuid import UUID

import pytest
from django.db import OperationalError
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import background, clock
from backoffice.core.leases import Lease, LeaseLostError, acquire_lease
from backoffice.ledger import provider_list
from backoffice.operations import jobs
from backoffice.operations.delivery import balance_queue, send_queue
from backoffice.operations.delivery.balance_queue import QueuedRelease
from backoffice.operations.delivery.send import SendingRun, send_operation
from backoffice.operations.delivery.send_queue import send_in_turn
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status
from tests.core.test_background import messages
from tests.ledger.long_list import LongList, member
from tests.operations.delivery.test_balance_queue import answered, released
from tests.operations.steps import status_of
from tests.stub_provider import StubProvider, serving

pytestmark = pytest.mark.django_db(transaction=True)

AFTER = QueuedRelease(UUID(int=1), Decimal(900_000))  # with another amount than all


def good(number: int) -> tuple[int, str]:
    return 200, json.dumps({"data": {"transactionId": f"T-{number}"}})


def now() -> str:
    return timezone.now().isoformat()


def released_together(preparer: User, approver: User, count: int) -> list[Operation]:
    return [released(preparer, approver, 100_000 * number) for number in range(1, count + 1)]


def statuses(operations: list[Operation]) -> list[str]:
    return [status_of(one) for one in operations]


def test_one_message_sends_the_queue_in_the_order_of_release(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    answered(provider, *map(good, range(3)))
    operations = released_together(preparer, approver, 3)
    send_in_turn(operations[2].pk)
    assert statuses(operations) == [Status.PROCESSING] * 3
    assert [json.loads(body)["amount"] for body in provider.posts] == ["100000", "200000", "300000"]


def test_an_operation_that_cannot_be_sent_ends_the_run(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    answered(provider, good(1))
    operations = released_together(preparer, approver, 3)
    before = [len(messages(one.pk)) for one in operations]
    with mock.patch.object(send_queue, "send_operation", side_effect=[True, False]) as send:
        send_in_turn(operations[0].pk)
    assert send.call_count == 2
    assert [
        len(messages(one.pk)) for one in operations
    ] == before  # the sweeper tries it again, no message does


def test_while_another_process_sends_the_queue_nothing_is_read_or_sent(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    [operation] = released_together(preparer, approver, 1)
    reads: list[str] = []
    provider.before_get = lambda: reads.append("read")
    lease = acquire_lease(balance_queue.sending_lease("NGN"), timedelta(minutes=1))
    assert lease is not None
    send_in_turn(operation.pk)
    jobs.send_due()
    assert (status_of(operation), reads, provider.posts) == (Status.APPROVED, [], [])
    lease.release()
    answered(provider, good(1))
    send_in_turn(operation.pk)
    assert status_of(operation) == Status.PROCESSING


@pytest.mark.parametrize("ended_by", ["time", "stop"])
def test_a_run_that_ends_before_its_queue_leaves_a_message_for_the_next_operation(
    ended_by: str, monkeypatch: pytest.MonkeyPatch, provider: StubProvider, preparer: User, approver: User
) -> None:
    if ended_by == "time":
        monkeypatch.setattr(send_queue, "RUN_SECONDS", -1)
    else:
        background.stop_requested.set()
    answered(provider, good(1))
    first, second = released_together(preparer, approver, 2)
    before = len(messages(second.pk))
    try:
        send_in_turn(first.pk)
    finally:
        background.stop_requested.clear()
    assert statuses([first, second]) == [Status.PROCESSING, Status.APPROVED]
    assert len(messages(second.pk)) > before


def test_a_process_that_lost_its_lease_sends_no_more(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    first, second = released_together(preparer, approver, 2)

    provider.answer_post = lambda: good(1)
    with mock.patch.object(Lease, "renew", side_effect=LeaseLostError):
        send_in_turn(first.pk)
    assert statuses([first, second]) == [Status.PROCESSING, Status.APPROVED]


class PagedProvider(LongList):
    """A long list that gets each accepted withdrawal."""

    def __init__(self) -> None:
        super().__init__()
        self.answer_post = self.accept

    def accept(self) -> tuple[int, str]:
        name = f"T-{len(self.posts)}"
        self.listed.insert(0, member(name, type="withdrawal", status="processing", createdAt=now()))
        return 200, json.dumps({"data": {"transactionId": name}})


@pytest.fixture
def busy_provider(settings: Settings) -> Iterator[PagedProvider]:
    """Its last five minutes have more than a page of transactions."""
    with serving(PagedProvider()) as stub:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = stub.url, stub.url_v4
        stub.listed = [member(f"F{number:03}", createdAt=now()) for number in range(250)]
        yield stub


def test_a_page_that_has_not_changed_is_read_once_for_the_queue(
    busy_provider: PagedProvider, preparer: User, approver: User
) -> None:
    operations = released_together(preparer, approver, 3)
    send_in_turn(operations[0].pk)
    assert statuses(operations) == [Status.PROCESSING] * 3
    assert busy_provider.asked == [1, 2, 3, 1, 1]
    assert busy_provider.limits == [100, 100, 100, 25, 25]


def test_a_page_that_does_not_continue_as_before_is_read_again_with_those_after_it(
    busy_provider: PagedProvider, preparer: User, approver: User, settings: Settings
) -> None:
    settings.STRICT_BALANCE_ORDER = True  # so that it is read after the response
    operations = released_together(preparer, approver, 2)
    accept = busy_provider.answer_post

    def accept_with_a_late_record() -> tuple[int, str]:
        busy_provider.listed.insert(150, member("late", createdAt=now()))
        return accept()

    busy_provider.answer_post = accept_with_a_late_record
    send_in_turn(operations[0].pk)
    assert busy_provider.asked == [1, 2, 3, 1, 1, 2, 3]
    assert busy_provider.limits == [100, 100, 100, 25, 100, 100, 100]


def test_what_was_read_is_read_again_after_a_while(
    busy_provider: PagedProvider, preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_list, "_REMEMBERED_SECONDS", 0.0)
    operations = released_together(preparer, approver, 2)
    send_in_turn(operations[0].pk)
    assert busy_provider.asked == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize(("second_amount", "is_strict"), [(100_000, False), (200_000, True)])
def test_for_an_operation_that_could_be_mistaken_the_provider_is_read_after_the_response_before_it(
    second_amount: int,
    is_strict: bool,
    provider: StubProvider,
    preparer: User,
    approver: User,
    settings: Settings,
) -> None:
    settings.STRICT_BALANCE_ORDER = is_strict
    first, second = (released(preparer, approver, amount) for amount in (100_000, second_amount))
    events: list[str] = []
    provider.before_get = lambda: events.append("read")

    def answer() -> tuple[int, str]:
        events.append("request")
        return good(len(provider.posts))

    provider.answer_post = answer
    send_in_turn(first.pk)
    assert statuses([first, second]) == [Status.PROCESSING] * 2
    assert events == ["read", "read", "request", "read", "read", "request"]
    assert None not in watermark_balances(first, second)


def test_for_another_amount_the_list_is_read_while_the_request_before_it_is_made(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    """Without the balance, which that request changes meanwhile."""
    first, second = released_together(preparer, approver, 2)
    reads = threading.Semaphore(0)
    provider.before_get = reads.release
    were_read: list[bool] = []

    def answer() -> tuple[int, str]:
        if len(provider.posts) == 1:
            were_read.extend(reads.acquire(timeout=10) for _ in range(3))
        return good(len(provider.posts))

    provider.answer_post = answer
    send_in_turn(first.pk)
    assert statuses([first, second]) == [Status.PROCESSING] * 2
    assert were_read == [True] * 3
    assert not reads.acquire(blocking=False)
    assert [balance is None for balance in watermark_balances(first, second)] == [False, True]


def watermark_balances(*operations: Operation) -> list[Decimal | None]:
    return [one.attempts.get().watermark_balance for one in operations]


def test_what_was_read_during_a_request_is_not_enough_for_what_could_be_mistaken_for_it(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    """Such as one that was released meanwhile and is sent before the one that was expected to follow."""
    answered(provider, good(1), good(2))
    first, second = (released(preparer, approver, 100_000) for _ in range(2))
    run = SendingRun(following=QueuedRelease(second.pk, Decimal(200_000)))
    assert send_operation(first.pk, run)
    assert run.ahead is not None
    assert run.ahead.is_beside
    run.ahead.reading.page()
    run.following = None
    reads: list[str] = []
    provider.before_get = lambda: reads.append("read")
    assert send_operation(second.pk, run)
    assert len(reads) == 2
    assert None not in watermark_balances(second)


def test_what_was_read_before_another_attempt_of_the_balance_is_not_enough(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    """Another process sent in between, such as one that took over the lease."""
    answered(provider, *map(good, range(3)))
    first, second, third = released_together(preparer, approver, 3)
    run = SendingRun(following=AFTER)
    assert send_operation(first.pk, run)
    assert send_operation(second.pk)
    assert not send_operation(third.pk, run)
    assert (status_of(third), len(provider.posts)) == (Status.APPROVED, 2)
    assert send_operation(third.pk, run)


def test_a_response_is_recorded_although_the_database_fails_before_the_next_reading(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    answered(provider, good(1), good(2))
    first, second = released_together(preparer, approver, 2)
    run = SendingRun(following=AFTER)
    failing = mock.Mock(side_effect=[provider_list.begin_reading("NGN"), OperationalError, OperationalError])
    with mock.patch.object(provider_list, "begin_reading", failing):
        assert send_operation(first.pk, run)
    assert failing.call_count == 3  # before it, while it was sent, and after its response
    assert status_of(first) == Status.PROCESSING
    assert send_operation(second.pk, run)


def test_each_operation_of_a_run_has_its_own_request_id(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    answered(provider, good(1), good(2))
    operations = released_together(preparer, approver, 2)
    send_in_turn(operations[0].pk)
    for operation in operations:
        claimed = Entry.objects.get(action=Action.OPERATION_CLAIMED, target_id=str(operation.pk))
        assert claimed.request_id == f"send-{str(operation.pk)[:8]}"


def test_what_was_read_long_ago_is_read_again(
    provider: StubProvider, preparer: User, approver: User, settings: Settings
) -> None:
    """Such as while the database could not record the response before."""
    answered(provider, good(1), good(2))
    first, second = released_together(preparer, approver, 2)
    run = SendingRun(following=AFTER)
    assert send_operation(first.pk, run)
    assert run.ahead is not None
    run.ahead.reading.page()
    reads: list[str] = []
    provider.before_get = lambda: reads.append("read")
    later = timedelta(seconds=settings.SEND_WITHIN_SECONDS)
    run.following = None
    with clock.use_clock(lambda: timezone.now() + later):
        assert send_operation(second.pk, run)
    assert len(reads) == 2


def test_a_provider_that_is_slow_to_read_does_not_keep_an_operation_from_being_sent(
    provider: StubProvider, preparer: User, approver: User, settings: Settings
) -> None:
    [operation] = released_together(preparer, approver, 1)
    passed = [timedelta(0)]

    def take_long() -> None:
        passed[0] += timedelta(seconds=settings.SEND_WITHIN_SECONDS)

    provider.before_get = take_long
    with clock.use_clock(lambda: timezone.now() + passed[0]):
        assert send_operation(operation.pk)
    assert len(provider.posts) == 1


def test_no_message_is_sent_for_what_is_released_while_its_queue_is_being_sent(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    lease = acquire_lease(balance_queue.sending_lease("NGN"), timedelta(minutes=1))
    assert lease is not None
    first, _second = released_together(preparer, approver, 2)
    assert messages(first.pk) == []
    answered(provider, good(1))
    send_operation(first.pk)
    lease.release()
    [other] = released_together(preparer, approver, 1)
    assert len(messages(other.pk)) == 1
