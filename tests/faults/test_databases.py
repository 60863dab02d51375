"""Databases that are unavailable, disconnected in mid-transaction, read-only or full."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from django.db import DatabaseError, connection

from backoffice.operations.delivery import send
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.reason_codes import ResponseCode
from backoffice.operations.states import Status
from tests.faults.harness.connection_cuts import Side
from tests.faults.harness.figures import compare_with_provider
from tests.faults.harness.forked_workers import ForkedWorkers
from tests.faults.harness.operations import MONEY, ONE_PER_BALANCE
from tests.faults.harness.processes import MakeProcesses, wait_until
from tests.faults.harness.proxy import Proxy, proxied
from tests.faults.harness.recovery import recovered
from tests.faults.harness.small_disk import IS_FULL, Disk, data_on_a_small_disk
from tests.faults.harness.stage import FaultStage, came_back, is_settled, statuses
from tests.operations.steps import status_of
from tests.tools.test_brokers import database_url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.stack, pytest.mark.faults]


@pytest.fixture
def database() -> Iterator[tuple[Proxy, str]]:
    """A proxy in front of PostgreSQL."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite is no server")
    with proxied(database_url()) as behind:
        yield behind


@pytest.fixture
def full_disk(stage: FaultStage, tmp_path: Path) -> Iterator[tuple[Disk, FaultStage]]:
    """A disk that can be filled, and the stage with workers whose database is on it."""
    with data_on_a_small_disk() as disk:
        workers = ForkedWorkers(
            tmp_path, {**stage.forked_workers.environment, "COUNTERSIGN_DATABASE_URL": database_url()}
        )
        workers.start()
        yield disk, replace(stage, forked_workers=workers)
        workers.stop()


def test_processes_recover_when_the_database_returns(
    stage: FaultStage, make_product: MakeProcesses, database: tuple[Proxy, str]
) -> None:
    wire, behind = database
    product = make_product(COUNTERSIGN_DATABASE_URL=behind)
    product.start_sweeper()
    [first] = stage.released("withdrawal")
    wait_until(lambda: is_settled(first), "the sweeper is at work")
    with wire.away():
        operations = stage.released(*ONE_PER_BALANCE)
        wait_until(lambda: "The database is unavailable" in product.log("sweeper"), "the sweeper misses it")
    recovered("database away", operations)
    compare_with_provider(stage.provider, "database away")


CLAIM = b'INSERT INTO "operations_attempt"'
BEGIN = b'UPDATE "operations_attempt" SET "begun_at"'
RECORD = b'UPDATE "operations_attempt" SET "operation_id"'


@pytest.fixture
def behind_the_wire(
    stage: FaultStage, database: tuple[Proxy, str], tmp_path: Path
) -> Iterator[tuple[Proxy, ForkedWorkers]]:
    """Workers whose connection to the database can be cut."""
    wire, behind = database
    workers = ForkedWorkers(
        tmp_path, {**stage.forked_workers.environment, "COUNTERSIGN_DATABASE_URL": behind}
    )
    workers.start()
    yield wire, workers
    workers.stop()


def send_until_it_is_cut(
    operation: Operation, behind: tuple[Proxy, ForkedWorkers], *words: bytes, side: Side = Side.REQUEST
) -> None:
    """Send this operation in a worker and wait for its end; its database connection is cut once, at these
    words.
    """
    wire, workers = behind
    cut = wire.cut(*words, side=side)
    worker = workers.run("send", str(operation.pk))
    cut.wait()
    wait_until(lambda: worker.is_gone, "the worker gives up, or waits for the database and goes on")


@pytest.mark.parametrize("kind", MONEY)
def test_an_uncommitted_claim_sends_nothing(
    stage: FaultStage, behind_the_wire: tuple[Proxy, ForkedWorkers], kind: str
) -> None:
    [operation] = stage.released(kind)
    send_until_it_is_cut(operation, behind_the_wire, CLAIM, b"COMMIT")
    assert status_of(operation) == Status.APPROVED
    assert stage.provider.ledger()["orders"] == stage.provider.ledger()["payments"] == []
    stage.sweep_until_settled([operation])
    compare_with_provider(stage.provider, "database cut before the claim's commit")


@pytest.mark.parametrize("kind", MONEY)
def test_a_claim_with_an_unconfirmed_commit_is_never_sent(
    stage: FaultStage, behind_the_wire: tuple[Proxy, ForkedWorkers], kind: str
) -> None:
    [operation] = stage.released(kind)
    send_until_it_is_cut(operation, behind_the_wire, CLAIM, b"COMMIT", side=Side.ANSWER)
    assert status_of(operation) == Status.SENDING
    stage.sweep_until(lambda: came_back(operation), "its silence is noticed")
    stage.assert_never_sent([operation])
    compare_with_provider(stage.provider, "database cut after the claim's commit")


@pytest.mark.parametrize("kind", MONEY)
@pytest.mark.parametrize("side", Side)
def test_a_request_whose_beginning_is_not_confirmed_is_never_sent(
    stage: FaultStage, behind_the_wire: tuple[Proxy, ForkedWorkers], side: Side, kind: str
) -> None:
    [operation] = stage.released(kind)
    send_until_it_is_cut(operation, behind_the_wire, BEGIN, b"COMMIT", side=side)
    assert came_back(operation)
    assert "The database connection was lost before sending began" in operation.attempts.get().response
    stage.assert_never_sent([operation])
    compare_with_provider(stage.provider, "database cut at the beginning of the request")


@pytest.mark.parametrize("kind", MONEY)
def test_a_response_that_cannot_be_recorded_at_once_is_recorded_later(
    stage: FaultStage, behind_the_wire: tuple[Proxy, ForkedWorkers], kind: str
) -> None:
    [operation] = stage.released(kind)
    send_until_it_is_cut(operation, behind_the_wire, RECORD, b"COMMIT")
    assert operation.attempts.get().responses[0]["code"].startswith(ResponseCode.ACCEPTED)
    stage.sweep_until_settled([operation])
    compare_with_provider(stage.provider, "database cut while the answer is recorded")


def test_nothing_is_sent_while_the_database_is_read_only(stage: FaultStage, tmp_path: Path) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("of SQLite the next test says it")
    reads_only = f"{database_url()}?options=-c%20default_transaction_read_only%3Don"
    workers = ForkedWorkers(
        tmp_path, {**stage.forked_workers.environment, "COUNTERSIGN_DATABASE_URL": reads_only}
    )
    workers.start()
    operations = stage.released(*ONE_PER_BALANCE)
    for operation in operations:
        worker = workers.run("send", str(operation.pk))
        wait_until(lambda: worker.is_gone, "the worker gives up")  # noqa: B023 - called at once
    assert "read-only transaction" in workers.log()
    workers.stop()
    assert statuses(operations) == {Status.APPROVED}
    stage.sweep_until_settled(operations)
    compare_with_provider(stage.provider, "database read-only")


def test_nothing_is_sent_while_the_sqlite_file_is_read_only(stage: FaultStage) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has no such file")
    operations = stage.released(*ONE_PER_BALANCE)
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = ON")
    for operation in operations:
        with pytest.raises(DatabaseError, match="readonly"):
            send.send_operation(operation.pk)
    connection.close()
    assert stage.provider.ledger()["orders"] == stage.provider.ledger()["payments"] == []
    stage.sweep_until_settled(operations)
    compare_with_provider(stage.provider, "file not writable")


def test_nothing_is_sent_while_the_sqlite_file_is_locked(stage: FaultStage) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has no such file")
    operations = stage.released(*ONE_PER_BALANCE)
    name = connection.settings_dict["NAME"]
    with closing(sqlite3.connect(name, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseError, match="locked"):
            send.send_operation(operations[0].pk)
        assert stage.provider.ledger()["orders"] == []
        other.execute("ROLLBACK")
    stage.sweep_until_settled(operations)
    compare_with_provider(stage.provider, "file locked")


def test_nothing_is_sent_while_the_disk_is_full(full_disk: tuple[Disk, FaultStage]) -> None:
    disk, stage = full_disk
    operations = stage.released(*ONE_PER_BALANCE)
    disk.fill()
    stage.enqueue(*operations)
    assert stage.forked_workers.log().count(IS_FULL[connection.vendor]) >= len(operations)
    assert statuses(operations) == {Status.APPROVED}
    assert stage.provider.ledger()["orders"] == stage.provider.ledger()["payments"] == []
    disk.free()
    stage.sweep_until_settled(operations)
    compare_with_provider(stage.provider, "disk full before the claim")


def test_responses_are_recorded_once_a_full_disk_has_space(
    full_disk: tuple[Disk, FaultStage],
) -> None:
    disk, stage = full_disk
    operations = stage.released(*ONE_PER_BALANCE)
    workers = [stage.freeze("send.response_received", operation) for operation in operations]
    disk.fill()
    for worker in workers:
        worker.process.resume()
    wait_until(
        lambda: stage.forked_workers.log().count("is not recorded yet") >= len(workers),
        "none finds room for its answer",
    )
    assert IS_FULL[connection.vendor] in stage.forked_workers.log()
    assert statuses(operations) == {Status.SENDING}
    disk.free()
    wait_until(lambda: all(worker.is_gone for worker in workers), "they find room, and record them")
    assert all(
        operation.attempts.get().responses[0]["code"].startswith(ResponseCode.ACCEPTED)
        for operation in operations
    )
    stage.sweep_until_settled(operations)
    compare_with_provider(stage.provider, "disk full while answers are recorded")
