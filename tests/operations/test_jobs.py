"""Jobs that work through rows: what goes wrong with one, or takes long, stops no other."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from django.db import close_old_connections, connection
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.operations import jobs
from backoffice.operations.delivery import send
from backoffice.operations.delivery.balance_queue import queue_position
from backoffice.operations.jobs import WORKER_HEAD_START
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import Blocker
from backoffice.operations.outcome import schedule
from backoffice.operations.states import Status
from tests import factories
from tests.operations.provider_list import shows
from tests.operations.steps import status_of
from tests.operations.unknown_outcomes import record
from tests.stub_provider import StubProvider
from tests.sweeping import sweep_operations
from tests.tools.test_brokers import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
NOBODY_FORESAW = 7  # in place of a list of ids


def damaged(provider: StubProvider, preparer: User, approver: User) -> Operation:
    """A withdrawal that was not sent once, and of which something is stored that no release ever wrote."""
    provider.answer_post = lambda: (400, '{"message": "Invalid OTP token"}')
    operation = factories.release(factories.approved(preparer, approver), approver)
    send.send_operation(operation.pk)
    Attempt.objects.update(watermark_seen_ids=NOBODY_FORESAW)
    shows(provider, record("T-0"))
    provider.posts.clear()
    provider.answer_post = lambda: (200, '{"data": {"transactionId": "T-1"}}')
    return factories.release(Operation.objects.get(pk=operation.pk), approver)


def of_another_balance(preparer: User, approver: User) -> Operation:
    dollars = {"currency": "USD", "amount": Decimal(300)}
    return factories.release(factories.approved(preparer, approver, **dollars), approver)


def lose_the_queued_tasks() -> None:
    for release in Release.objects.all():
        factories.change_release(release, released_at=release.released_at - 2 * WORKER_HEAD_START)


def test_an_unexpected_send_error_does_not_stop_the_others(
    provider: StubProvider, preparer: User, approver: User, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = damaged(provider, preparer, approver), of_another_balance(preparer, approver)
    lose_the_queued_tasks()
    assert jobs.send_due() == 1
    assert (status_of(first), status_of(second)) == (Status.APPROVED, Status.PROCESSING)
    [line] = [each for each in caplog.records if each.levelname == "ERROR"]
    assert first.reference in line.getMessage()
    assert line.exc_info is not None
    release = Release.objects.get()
    assert (release.blocker, release.blocker_parameters) == (Blocker.INTERNAL_ERROR, {"error": "TypeError"})
    assert "Internal error in Countersign. Contact the operator" in release.blocker_sentence
    caplog.clear()
    assert jobs.send_due() == 0  # it is left alone for a while
    assert not caplog.records
    assert len(provider.posts) == 1


def test_an_operation_with_an_unexpected_error_frees_its_balance(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    first = damaged(provider, preparer, approver)
    second = factories.release(factories.approved(preparer, approver, amount=Decimal(100_000)), approver)
    lose_the_queued_tasks()
    assert turn_before(second) == 1
    jobs.send_due()
    assert turn_before(second) == 0
    jobs.send_due()
    assert (status_of(first), status_of(second)) == (Status.APPROVED, Status.PROCESSING)
    assert [json.loads(body)["amount"] for body in provider.posts] == ["100000"]


def test_an_operation_set_aside_returns_to_the_queue(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    first = damaged(provider, preparer, approver)
    lose_the_queued_tasks()
    jobs.send_due()
    second = factories.release(factories.approved(preparer, approver, amount=Decimal(100_000)), approver)
    assert turn_before(second) == 0
    Release.objects.filter(pk=first.pk).update(skipped_until=timezone.now())
    assert turn_before(second) == 1


def turn_before(operation: Operation) -> int:
    turn = queue_position(Operation.objects.get(pk=operation.pk))
    assert turn is not None
    return turn.ahead


def test_a_long_queue_of_one_balance_does_not_delay_another(
    provider: StubProvider, preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those whose turn it is come first of the many that one round checks."""
    monkeypatch.setattr(jobs, "BATCH_SIZE", 2)
    monkeypatch.setattr(schedule, "BATCH_SIZE", 2)
    provider.answer_post = lambda: (502, "bad gateway")
    lost = factories.release(factories.approved(preparer, approver), approver)
    send.send_operation(lost.pk)
    for account in ("0000000001", "0000000002", "0000000003"):
        factories.release(factories.approved(preparer, approver, account_number=account), approver)
    dollars = of_another_balance(preparer, approver)
    lose_the_queued_tasks()
    jobs.send_due()
    assert status_of(dollars) == Status.UNKNOWN
    assert len(provider.posts) == 2


def test_an_unexpected_check_error_does_not_stop_the_others(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    provider.answer_post = lambda: (502, "bad gateway")
    sent = [
        factories.release(factories.approved(preparer, approver), approver),
        of_another_balance(preparer, approver),
    ]
    for operation in sent:
        send.send_operation(operation.pk)
    Attempt.objects.filter(operation=sent[0]).update(watermark_seen_ids=NOBODY_FORESAW)
    shows(provider, record("T-0"))
    Attempt.objects.update(next_check_at=timezone.now())
    assert schedule.check_due() == 1
    assert Attempt.objects.get(operation=sent[1]).checks == 1
    assert "the server log has the details" in Attempt.objects.get(operation=sent[0]).last_check


def test_a_failed_job_does_not_stop_the_others_of_the_round(
    provider: StubProvider, preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its query fails, not one of its rows."""

    def fails() -> int:
        raise LookupError

    monkeypatch.setitem(jobs.JOBS, "expire_due", fails)
    operation = of_another_balance(preparer, approver)
    lose_the_queued_tasks()
    sweep_operations()
    assert status_of(operation) == Status.PROCESSING


def test_a_slow_call_delays_only_itself(
    provider: StubProvider, preparer: User, approver: User, settings: Settings
) -> None:
    """As in the sweeper, where several threads send."""
    answered = threading.Event()

    def slowly() -> tuple[int, str]:
        provider.answer_post = lambda: (200, '{"data": {"transactionId": "T-2"}}')
        assert answered.wait(60)
        return 200, '{"data": {"transactionId": "T-1"}}'

    provider.answer_post = slowly
    first = factories.release(factories.approved(preparer, approver), approver)
    second = of_another_balance(preparer, approver)
    lose_the_queued_tasks()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(sends)
        wait_until(lambda: status_of(first) == Status.SENDING)
        assert jobs.send_due() == 1
        assert (status_of(first), status_of(second)) == (Status.SENDING, Status.PROCESSING)
        answered.set()
        running.result()
    assert status_of(first) == Status.PROCESSING


def sends() -> None:
    close_old_connections()
    try:
        jobs.send_due()
    finally:
        connection.close()


def _names(transaction_id: str) -> tuple[int, str]:
    return 200, json.dumps({"data": {"transactionId": transaction_id}})
