"""An answer that is there, and a database that is not: it is written down as soon as that is possible."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from django.db import DataError, IntegrityError, InternalError, connection, transaction

from backoffice.operations.delivery import send
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.states import Status
from tests.operations.provider_list import shows
from tests.operations.steps import reloaded
from tests.operations.unknown_outcomes import record
from tests.stub_provider import StubProvider
from tests.tools.test_brokers import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_response_is_recorded_after_the_database_returns(
    provider: StubProvider, released: Operation
) -> None:
    """The connections of before the call are dead when the answer arrives, as after a fail-over."""

    def answer_after_fail_over() -> tuple[int, str]:
        if connection.vendor == "postgresql":
            end_other_connections()
        return 200, '{"data": {"transactionId": "T-1"}}'

    provider.answer_post = answer_after_fail_over
    send.send_operation(released.pk)
    assert reloaded(released).status == Status.PROCESSING


def end_other_connections() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    connection.close()


def test_a_response_is_recorded_after_the_database_was_busy(
    provider: StubProvider, released: Operation, impatient: None, caplog: pytest.LogCaptureFixture
) -> None:
    def held_until_it_was_noticed() -> tuple[int, str]:
        held = threading.Event()
        keeping.append(pool.submit(keep, released, held, lambda: "is not recorded yet" in caplog.text))
        assert held.wait(30)
        return 200, '{"data": {"transactionId": "T-1"}}'

    keeping: list[Future[None]] = []
    provider.answer_post = held_until_it_was_noticed
    with ThreadPoolExecutor(1) as pool:
        send.send_operation(released.pk)
    assert [kept.result() for kept in keeping] == [None]
    assert reloaded(released).status == Status.PROCESSING
    assert Attempt.objects.get().provider_transaction_id == "T-1"


def test_a_response_is_recorded_after_the_database_was_read_only(
    provider: StubProvider, released: Operation
) -> None:
    """As after a fail-over to a standby that is not promoted yet."""
    refused: list[str] = []

    def only_read(execute: Callable[..., object], sql: str, *rest: object) -> object:
        if provider.posts and not refused and sql.startswith("UPDATE"):
            refused.append(sql)
            raise InternalError("cannot execute UPDATE in a read-only transaction")
        return execute(sql, *rest)

    with connection.execute_wrapper(only_read):
        send.send_operation(released.pk)
    assert refused
    assert reloaded(released).status == Status.PROCESSING


@pytest.mark.parametrize("error", [DataError, IntegrityError])
def test_recording_is_not_retried_for_permanent_errors(
    provider: StubProvider, released: Operation, error: type[Exception]
) -> None:
    refused: list[str] = []

    def refuse(execute: Callable[..., object], sql: str, *rest: object) -> object:
        if provider.posts and '"responses" =' in sql:
            refused.append(sql)
            raise error
        return execute(sql, *rest)

    with connection.execute_wrapper(refuse), pytest.raises(error):
        send.send_operation(released.pk)
    assert len(refused) == 1
    assert reloaded(released).status == Status.SENDING  # until the sweeper declares it unknown


@pytest.mark.parametrize(("length", "kept"), [(120, True), (500, True), (5000, False)])
def test_a_response_with_an_id_of_any_length_is_recorded(
    provider: StubProvider, released: Operation, length: int, kept: bool
) -> None:
    """One that is too long for a name is none: the list shows what became of it."""
    named = "W" * length
    provider.answer_post = lambda: (200, f'{{"data": {{"transactionId": "{named}"}}}}')
    send.send_operation(released.pk)
    assert reloaded(released).status == Status.PROCESSING
    assert Attempt.objects.get().provider_transaction_id == (named if kept else None)


@pytest.mark.parametrize("length", [120, 5000])
def test_an_id_of_any_length_in_the_list_does_not_block_sending(
    provider: StubProvider, released: Operation, length: int
) -> None:
    shows(provider, record("W" * length, type="deposit"))
    send.send_operation(released.pk)
    assert (len(provider.posts), reloaded(released).status) == (1, Status.PROCESSING)
    assert Attempt.objects.get().watermark_transaction_id == "W" * length


@pytest.fixture
def impatient() -> Iterator[None]:
    """New connections wait a moment for a lock, not twenty seconds."""
    before = connection.settings_dict["OPTIONS"]
    quick = {"timeout": 0.05} if connection.vendor == "sqlite" else {"options": "-c lock_timeout=50ms"}
    connection.settings_dict["OPTIONS"] = {**before, **quick}
    yield
    connection.settings_dict["OPTIONS"] = before
    connection.close()


def keep(operation: Operation, held: threading.Event, until: Callable[[], bool]) -> None:
    """Hold the operation, in a connection of our own, until the condition is true."""
    try:
        with transaction.atomic():
            Operation.objects.get_locked(operation.pk)
            held.set()
            wait_until(until)
    finally:
        connection.close()
