"""Jobs that work through rows: what goes wrong with one, or takes long, stops no other."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from django.db import InterfaceError, InternalError, OperationalError, close_old_connections, connection
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.operations import services, tasks
from backoffice.operations.models import Attempt, Operation, Release
from backoffice.operations.services import apart, sweeping
from backoffice.operations.services.sweeping import DOORBELL_HAS
from backoffice.operations.states import Status
from backoffice.operations.turns import turn_of
from tests import factories
from tests.operations.cases import record, shows
from tests.operations.steps import status_of
from tests.stack.test_brokers import wait_until
from tests.stub_service import StubService

pytestmark = pytest.mark.django_db(transaction=True)
NOBODY_FORESAW = 7  # in place of a list of ids


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


def test_one_that_fails_for_an_unforeseen_reason_holds_its_balance_no_longer(
    service: StubService, maker: User, checker: User
) -> None:
    first = damaged(service, maker, checker)
    second = factories.release(factories.approved(maker, checker, amount=Decimal(100_000)), checker)
    let_the_doorbell_be_missed()
    assert turn_before(second) == 1
    services.send_due()
    assert (status_of(first), status_of(second)) == (Status.APPROVED, Status.PROCESSING)
    assert [json.loads(body)["amount"] for body in service.posts] == ["100000"]


def test_one_that_stepped_aside_is_in_its_turn_again_after_a_while(
    service: StubService, maker: User, checker: User
) -> None:
    first = damaged(service, maker, checker)
    let_the_doorbell_be_missed()
    services.send_due()
    second = factories.release(factories.approved(maker, checker, amount=Decimal(100_000)), checker)
    assert turn_before(second) == 0
    Release.objects.filter(pk=first.pk).update(out_of_turn_until=timezone.now())
    assert turn_before(second) == 1


def turn_before(operation: Operation) -> int:
    turn = turn_of(Operation.objects.get(pk=operation.pk))
    assert turn is not None
    return turn.before


def test_many_that_wait_at_one_balance_keep_nobody_from_another(
    service: StubService, maker: User, checker: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those whose turn it is come first of the many that one round looks at."""
    monkeypatch.setattr(sweeping, "AT_ONCE", 2)
    service.answer_post = lambda: (502, "bad gateway")
    lost = factories.release(factories.approved(maker, checker), checker)
    services.send_operation(lost.pk)
    for amount in (100_000, 200_000, 300_000):
        factories.release(factories.approved(maker, checker, amount=Decimal(amount)), checker)
    dollars = of_another_balance(maker, checker)
    let_the_doorbell_be_missed()
    services.send_due()
    assert status_of(dollars) == Status.UNKNOWN
    assert len(service.posts) == 2


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
    def is_away(*_: object) -> None:
        raise OperationalError("The server closed the connection unexpectedly")

    with connection.execute_wrapper(is_away), pytest.raises(OperationalError):
        apart.for_each(marked, {1: "one"}, failed=apart.tell_nobody)
    assert apart.put_off() == set()


def test_a_database_that_only_reads_is_of_no_row(only_reading: None) -> None:
    """As after a fail-over to a standby: PostgreSQL calls it an internal error."""
    with pytest.raises((InternalError, OperationalError)):
        apart.for_each(marked, {1: "one"}, failed=apart.tell_nobody)
    assert apart.do_apart(lambda: marked(1)) is None
    assert apart.put_off() == set()


@pytest.mark.parametrize("error", [OperationalError, InternalError, InterfaceError])
def test_what_the_database_does_to_one_row_stops_no_other(error: type[Exception]) -> None:
    """A statement that took too long, a deadlock: the database answers whoever asks next."""
    tried: list[str] = []

    def fails_for_the_first(row: str) -> None:
        tried.append(row)
        if row == "first":
            raise error

    def round_of_all() -> int:
        return len(
            apart.for_each(fails_for_the_first, {"first": "1", "second": "2"}, failed=apart.tell_nobody)
        )

    assert [round_of_all(), round_of_all()] == [1, 1]
    assert tried == ["first", "second", "second"]


def test_that_people_cannot_be_told_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_: int) -> None:
        raise LookupError

    def cannot_be_told(*_: object) -> None:
        raise OperationalError

    assert apart.for_each(fails, {1: "one", 2: "two"}, failed=cannot_be_told) == []
    assert "That one failed could not be written down" in caplog.text
    assert len(apart.put_off()) == 2


def test_no_job_is_put_off_for_what_the_database_did_to_it(caplog: pytest.LogCaptureFixture) -> None:
    tried: list[str] = []

    def is_cut_off_once() -> int:
        tried.append("once more")
        if len(tried) == 1:
            raise InterfaceError
        return 7

    assert [apart.do_apart(is_cut_off_once), apart.do_apart(is_cut_off_once)] == [None, 7]
    assert "The database did not allow is_cut_off_once" in caplog.text


def marked(_: int) -> int:
    return Release.objects.update(obstacle=None)


@pytest.fixture
def only_reading() -> Iterator[None]:
    """Connections, new ones too, that the database lets only read."""
    before = connection.settings_dict["OPTIONS"]
    reads = (
        {"init_command": "PRAGMA query_only = ON"}
        if connection.vendor == "sqlite"
        else {"options": "-c default_transaction_read_only=on"}
    )
    connection.close()
    connection.settings_dict["OPTIONS"] = {**before, **reads}
    yield
    connection.settings_dict["OPTIONS"] = before
    connection.close()


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
