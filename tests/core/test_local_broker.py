"""The broker without a server: what is read while it is written, by several at once, or damaged."""

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from kombu import Connection, Consumer, Exchange, Queue
from kombu.transport import filesystem

from backoffice.celery import app, broker_options
from backoffice.core import local_broker

LOCAL = "filesystem://localhost//"


class WhileItIsWritten:
    """A header that does something at the moment when its message is turned into text."""

    def __init__(self, then: Callable[[], object]) -> None:
        self.then = then

    def __json__(self) -> str:
        self.then()
        return "written"


@pytest.fixture
def task_queue() -> Queue:
    """A queue of its own: kombu remembers for the whole process what is bound, whatever folder it is in."""
    return new_queue()


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Callable[..., Connection]]:
    """Connections to one broker in a folder, closed with the test."""
    opened: list[Connection] = []

    def connect(transport: type | None = None) -> Connection:
        options = broker_options(LOCAL, tmp_path)
        opened.append(Connection(LOCAL, transport=transport, transport_options=options))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.release()


def new_queue() -> Queue:
    name = f"bell-{uuid.uuid4()}"
    return Queue(name, Exchange(name), routing_key=name)


def taken_from(connection: Connection, queue: Queue) -> list[Any]:
    """All bodies that wait in the queue."""
    bodies: list[Any] = []
    with Consumer(connection, [queue], no_ack=True, callbacks=[lambda body, _message: bodies.append(body)]):
        while True:
            try:
                connection.drain_events(timeout=0.05)
            except TimeoutError:
                return bodies


def publish(connection: Connection, queue: Queue, body: object, **headers: object) -> None:
    connection.Producer().publish(
        body, exchange=queue.exchange, routing_key=queue.name, declare=[queue], headers=headers
    )


def read_while_written(
    connect: Callable[..., Connection], task_queue: Queue, transport: type | None
) -> list[Any]:
    """What a reader finds in the middle of the writing of a message."""
    reader, found = connect(transport), []
    in_the_middle = WhileItIsWritten(lambda: found.extend(taken_from(reader, task_queue)))
    publish(connect(transport), task_queue, "ring", header=in_the_middle)
    return found


def test_the_local_broker_is_used_for_a_local_address() -> None:
    with app.connection_for_read(LOCAL) as read, Celery(broker=LOCAL).connection_for_write() as write:
        for connection in (read, write):
            assert type(connection.transport) is local_broker.LocalBrokerTransport


def test_a_reader_never_sees_an_incomplete_message(
    connect: Callable[..., Connection], task_queue: Queue
) -> None:
    assert read_while_written(connect, task_queue, None) == []
    assert taken_from(connect(), task_queue) == ["ring"]


def test_kombus_own_transport_fails_for_that_reader(
    connect: Callable[..., Connection], task_queue: Queue
) -> None:
    """If this fails, kombu has mended it, and `local_broker` may go."""
    with pytest.raises(json.JSONDecodeError):
        read_while_written(connect, task_queue, filesystem.Transport)


def test_concurrent_readers_take_every_message_once(
    connect: Callable[..., Connection], task_queue: Queue
) -> None:
    writer = connect()
    for number in range(200):
        publish(writer, task_queue, number)
    with ThreadPoolExecutor(4) as pool:
        shares = list(pool.map(taken_from, [connect() for _ in range(4)], [task_queue] * 4))
    assert sorted(number for share in shares for number in share) == list(range(200))


def test_messages_are_read_in_the_order_written(
    connect: Callable[..., Connection], task_queue: Queue
) -> None:
    writer = connect()
    for number in range(20):
        publish(writer, task_queue, number)
    assert taken_from(connect(), task_queue) == list(range(20))


@pytest.mark.parametrize("content", [b"", b'{"body": "cut o', b"\xff\xfe", b"<html>"])
def test_a_damaged_message_is_dropped_with_a_warning(
    connect: Callable[..., Connection],
    task_queue: Queue,
    tmp_path: Path,
    content: bytes,
    caplog: pytest.LogCaptureFixture,
) -> None:
    publish(connect(), task_queue, "ring")
    (tmp_path / "broker" / "messages" / f"0_damaged.{task_queue.name}.msg").write_bytes(content)
    assert taken_from(connect(), task_queue) == ["ring"]
    assert f"Dropped the damaged message 0_damaged.{task_queue.name}.msg" in caplog.text
    assert list((tmp_path / "broker" / "messages").iterdir()) == []


def test_processes_started_together_read_complete_binding_tables(tmp_path: Path) -> None:
    """Half of them would read an empty table, or lose a binding of another, if it was created under its name."""
    together = threading.Barrier(4)

    def bind(exchange: str, queue: str) -> int:
        with Connection(LOCAL, transport_options=broker_options(LOCAL, tmp_path)) as connection:
            channel: Any = connection.default_channel
            together.wait(60)
            channel._queue_bind(exchange, queue, "", queue)
            return len(channel.get_table(exchange))

    with ThreadPoolExecutor(4) as pool:
        for number in range(50):
            seen = list(pool.map(bind, [f"exchange-{number}"] * 4, "abcd"))
            assert max(seen) == 4
