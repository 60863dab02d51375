"""Jobs that work through rows: what goes wrong with one, or takes long, stops no other."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from django.db import OperationalError, close_old_connections, connection
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.operations import services, tasks
from backoffice.operations.models import Attempt, Operation, Release
from backoffice.operations.services import apart
from backoffice.operations.services.sweeping import DOORBELL_HAS
from backoffice.operations.states import Status
from tests import factories
from tests.operations.cases import record, shows
from tests.operations.steps import status_of
from tests.stack.test_brokers import wait_until
from tests.stub_service import StubService

pytestmark = pytest.mark.django_db(transaction=True)
NOBODY_FORESAW = 7  # in place of a list of ids


@pytest.fixture(autouse=True)
def nothing_put_off() -> Iterator[None]:
    yield
    apart._put_off.clear()


def damaged(service: StubService, maker: User, checker: User) -> Operation:
    """A withdrawal that was not sent once, and of which something is stored that no release ever wrote."""
    service.answer_post = lambda: (400, '{"message": "Invalid OTP token"}')
    operation = factories.release(factories.approved(maker, checker), checker)
    services.send_operation(operation.pk)
    Attempt.objects.update(watermark_shown=NOBODY_FORESAW)
    shows(service, record("T-0"))
    service.posts.clear()
    service.answer_post = lambda: (200, '{"data": {"transactionId": "T-1"}}')
    return factories.release(Operation.objects.get(pk=operation.pk), checker)


def of_another_balance(maker: User, checker: User) -> Operation:
    dollars = {"currency": "USD", "amount": Decimal(300)}
    return factories.release(factories.approved(maker, checker, **dollars), checker)


def let_the_doorbell_be_missed() -> None:
    for release in Release.objects.all():
        Release.objects.filter(pk=release.pk).update(released_at=release.released_at - 2 * DOORBELL_HAS)


def test_one_that_cannot_be_sent_for_an_unforeseen_reason_stops_no_other(
    service: StubService, maker: User, checker: User, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = damaged(service, maker, checker), of_another_balance(maker, checker)
    let_the_doorbell_be_missed()
    assert services.send_due() == 1
    assert (status_of(first), status_of(second)) == (Status.APPROVED, Status.PROCESSING)
    [line] = [each for each in caplog.records if each.levelname == "ERROR"]
    assert first.reference in line.getMessage()
    assert line.exc_info is not None
    assert "in Countersign itself stands in the way (TypeError)" in str(Release.objects.get().obstacle)
    caplog.clear()
    assert services.send_due() == 0  # it is left alone for a while
    assert not caplog.records
    assert len(service.posts) == 1


def test_one_that_cannot_be_looked_at_stops_no_other(
    service: StubService, maker: User, checker: User
) -> None:
    service.answer_post = lambda: (502, "bad gateway")
    sent = [
        factories.release(factories.approved(maker, checker), checker),
        of_another_balance(maker, checker),
    ]
    for operation in sent:
        services.send_operation(operation.pk)
    Attempt.objects.filter(operation=sent[0]).update(watermark_shown=NOBODY_FORESAW)
    shows(service, record("T-0"))
    Attempt.objects.update(next_check_at=timezone.now())
    assert services.close_due() == 1
    assert Attempt.objects.get(operation=sent[1]).checks == 1
    assert "(TypeError); the log tells it" in Attempt.objects.get(operation=sent[0]).last_check


def test_a_database_that_is_away_is_of_no_row() -> None:
    def fails(_: int) -> None:
        raise OperationalError("The database is away")

    with pytest.raises(OperationalError):
        apart.for_each(fails, {1: "one"}, failed=apart.tell_nobody)
    assert apart.put_off() == set()


def test_a_job_that_fails_stops_no_other_of_the_round(
    service: StubService, maker: User, checker: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its query fails, not one of its rows."""

    def tidy_up() -> int:
        raise LookupError

    monkeypatch.setattr(services, "tidy_up", tidy_up)
    operation = of_another_balance(maker, checker)
    let_the_doorbell_be_missed()
    tasks.sweep()
    assert status_of(operation) == Status.PROCESSING


def test_a_slow_call_holds_up_none_but_itself(
    service: StubService, maker: User, checker: User, settings: Settings
) -> None:
    """As in the sweeper, where several threads send."""
    answered = threading.Event()

    def slowly() -> tuple[int, str]:
        service.answer_post = lambda: (200, '{"data": {"transactionId": "T-2"}}')
        assert answered.wait(60)
        return 200, '{"data": {"transactionId": "T-1"}}'

    service.answer_post = slowly
    first = factories.release(factories.approved(maker, checker), checker)
    second = of_another_balance(maker, checker)
    let_the_doorbell_be_missed()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(sends)
        wait_until(lambda: status_of(first) == Status.SENDING)
        assert services.send_due() == 1
        assert (status_of(first), status_of(second)) == (Status.SENDING, Status.PROCESSING)
        answered.set()
        running.result()
    assert status_of(first) == Status.PROCESSING


def sends() -> None:
    close_old_connections()
    try:
        services.send_due()
    finally:
        connection.close()
