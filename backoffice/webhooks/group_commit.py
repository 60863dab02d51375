"""Group commit: what several threads store at the same time becomes durable with one commit.

A commit waits for the disk, however little it stores. So while one thread writes, the others queue, and one of them
then writes for all of them.
"""

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from django.db import Error

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(eq=False)
class _Ticket(Generic[Item, Result]):
    """One item that waits. Its thread continues once `is_decided`: with a result, as the next writer, or alone."""

    item: Item
    is_decided: threading.Event = field(default_factory=threading.Event)
    results: list[Result] = field(default_factory=list)  # the result, once it is stored
    is_writer: bool = False


class GroupCommit(Generic[Item, Result]):
    """Stores items with `write`, which commits all of the given items or raises and commits none, and returns the
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
