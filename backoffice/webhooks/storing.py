"""Store deliveries, each once: the statement, and one commit for several that arrive at the same time.

A commit waits for the disk, however little it stores. So while one thread writes, the others queue, and one of them
then writes for all of them.
"""

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar, cast

from django.db import DEFAULT_DB_ALIAS, Error, InterfaceError, OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from backoffice.webhooks.models import Delivery, DeliveryVerification

_FIELDS = [field for field in Delivery._meta.concrete_fields if not field.primary_key]
# Columns set by the first valid verification, such as when the missing key has been configured. Later repeats do not
# change them: whatever the signature does not cover could be forged in a repeat.
_VERDICT_COLUMNS = (
    "verdict",
    "error",
    "key",
    "event",
    "transaction_id",
    "reference",
    "digest",
    "body",
    "valid_at",
    "check_due_at",
    "event_at",
    "headers",
    "response_status",
    "response_ms",
)
# No input is interpolated into these: names are those of our own columns, values are parameters.
_INSERT = f"INSERT INTO webhooks_delivery ({', '.join(field.attname for field in _FIELDS)}) VALUES "  # noqa: S608
_ROW = f"({', '.join(['%s'] * len(_FIELDS))})"
_COUNT_REPEAT = """
    ON CONFLICT (identity) DO UPDATE
    SET received_count = webhooks_delivery.received_count + 1, last_at = EXCLUDED.last_at
"""
_UNLESS_VALID = (
    "CASE WHEN webhooks_delivery.verdict = 'valid' THEN webhooks_delivery.{0} ELSE EXCLUDED.{0} END"
)
_SET_VALID = "".join(f", {name} = {_UNLESS_VALID.format(name)}" for name in _VERDICT_COLUMNS)
_RETURNING = " RETURNING identity, received_count, check_due_at IS NOT NULL"
_GROUP_LIMIT = 32
_WRITERS = 2
Item = TypeVar("Item")
Result = TypeVar("Result")


class Stored(NamedTuple):
    """How often a delivery was received, and whether a read of the provider is due because of it."""

    received_count: int
    is_check_due: bool


def store(delivery: Delivery) -> Stored:
    """Store it, or count a repeat. Returns after the commit, except within a transaction of the caller.

    Valid deliveries that arrive at the same time share a commit.
    """
    if delivery.verdict != DeliveryVerification.VALID:
        [stored] = _write([delivery], _COUNT_REPEAT)
        return stored
    if connection.in_atomic_block:
        [stored] = _write_valid([delivery])
        return stored
    return _together.store(delivery)


def _write_valid(deliveries: Sequence[Delivery]) -> list[Stored]:
    return _write(deliveries, f"{_COUNT_REPEAT}{_SET_VALID}")


def _write(deliveries: Sequence[Delivery], on_conflict: str) -> list[Stored]:
    """Store these, of different identities, with one statement, which is its own transaction.

    A lost connection is noticed by the statement itself and opened again, which spares each request a query.
    """
    cast(Any, connection).health_check_done = True  # of Django, which its stubs lack
    try:
        return _execute(deliveries, on_conflict)
    except (OperationalError, InterfaceError):
        if connection.in_atomic_block or connection.is_usable():
            raise
        connection.close()
        return _execute(deliveries, on_conflict)


def _execute(deliveries: Sequence[Delivery], on_conflict: str) -> list[Stored]:
    # In one order, so that two processes with the same deliveries do not wait for each other.
    ordered = sorted(deliveries, key=lambda delivery: delivery.identity)
    rows = ", ".join([_ROW] * len(ordered))
    database = connections[DEFAULT_DB_ALIAS]  # itself, since each use of `connection` looks it up
    values = [value for delivery in ordered for value in _values(delivery, database)]
    with database.cursor() as cursor:
        cursor.execute(f"{_INSERT}{rows}{on_conflict}{_RETURNING}", values)
        stored = {identity: Stored(count, bool(is_due)) for identity, count, is_due in cursor.fetchall()}
    return [stored[delivery.identity] for delivery in deliveries]


def _values(delivery: Delivery, database: BaseDatabaseWrapper) -> Iterator[Any]:
    for column in _FIELDS:
        value = getattr(delivery, column.attname)
        if isinstance(value, str):
            yield str(value)  # the value of an enum member, not its name
        else:
            yield (
                value if value is None or isinstance(value, int) else column.get_db_prep_save(value, database)
            )


@dataclass(eq=False)
class _Ticket(Generic[Item, Result]):
    """One item that waits. Its thread continues once `is_decided`: with a result, as the next writer, or alone."""

    item: Item
    is_decided: threading.Event = field(default_factory=threading.Event)
    results: list[Result] = field(default_factory=list)  # the result, once it is stored
    is_writer: bool = False


class GroupCommit(Generic[Item, Result]):
    """What several threads store at the same time becomes durable with one commit.

    Items are stored with `write`, which commits all of the given items or raises and commits none, and returns the
    result of each in their order.

    As many threads as `writers` write at the same time, each on its own connection, so that the database receives the
    next group while the disk stores the last one. A group never has two items with the same key, nor more than `limit`.
    """

    def __init__(
        self,
        write: Callable[[Sequence[Item]], Sequence[Result]],
        *,
        key: Callable[[Item], Hashable],
        limit: int,
        writers: int,
    ) -> None:
        self._write, self._key, self._limit = write, key, limit
        self._lock = threading.Lock()
        self._queue: list[_Ticket[Item, Result]] = []
        self._idle_writers = writers

    @property
    def queue_length(self) -> int:
        """How many items wait for a writer."""
        return len(self._queue)

    def store(self, item: Item) -> Result:
        """Store the item and return its result after the commit. Raises what `write` raises for this item alone.

        If a group cannot be stored, each of its threads stores its own item, on its own connection. An item may then be
        written twice, when a connection fails after the commit; `write` must allow that.
        """
        ticket = _Ticket[Item, Result](item)
        with self._lock:
            self._queue.append(ticket)
            ticket.is_writer = self._idle_writers > 0
            self._idle_writers -= ticket.is_writer
        if not ticket.is_writer:
            ticket.is_decided.wait()
        if ticket.is_writer:
            self._write_group(ticket)
        [result] = ticket.results or self._write([item])
        return result

    def _write_group(self, own: _Ticket[Item, Result]) -> None:
        """Write a group with this item, let its threads continue, and let the next thread write."""
        group = self._next_group(own)
        try:
            results = self._write([ticket.item for ticket in group])
            for ticket, result in zip(group, results, strict=True):
                ticket.results.append(result)
        except Error:  # an InterfaceError, too, which is no DatabaseError
            if len(group) == 1:
                raise
        finally:
            for ticket in group:
                ticket.is_decided.set()
            self._appoint_writer()

    def _next_group(self, own: _Ticket[Item, Result]) -> list[_Ticket[Item, Result]]:
        """This item and the next ones that wait, one for each key. The others stay in the queue."""
        with self._lock:
            group = {self._key(own.item): own}
            for ticket in self._queue:
                if len(group) < self._limit and not ticket.is_writer:
                    group.setdefault(self._key(ticket.item), ticket)
            chosen = list(group.values())
            self._queue = [ticket for ticket in self._queue if ticket not in chosen]
        return chosen

    def _appoint_writer(self) -> None:
        with self._lock:
            waiting = next((ticket for ticket in self._queue if not ticket.is_writer), None)
            if waiting is None:
                self._idle_writers += 1
            else:
                waiting.is_writer = True
                waiting.is_decided.set()


_together = GroupCommit(
    _write_valid, key=lambda delivery: delivery.identity, limit=_GROUP_LIMIT, writers=_WRITERS
)
