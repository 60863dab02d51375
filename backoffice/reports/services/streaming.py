"""A file on its way to a person who waits: in constant memory, and no longer than its reader takes it.

A report that is made meanwhile is on record before and after.
"""

import logging
import threading
import weakref
from collections.abc import Callable, Iterator
from datetime import timedelta
from time import monotonic

from django.db import connection, transaction
from django.utils import timezone

from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import context
from backoffice.reports.csv_encoding import Chunk
from backoffice.reports.making import chunks_of
from backoffice.reports.slots import Place
from backoffice.reports.wanted import Wanted

AT_MOST = timedelta(minutes=30)  # for the whole file; who reads more slowly has it made in the background
PIECE_WITHIN = timedelta(minutes=1)  # for its reader to take one piece: of 128 kB, that is 2 kB a second
_LOOKS_EVERY = 1.0  # seconds


logger = logging.getLogger(__name__)


class TooSlowError(Exception):
    """Its reader took no piece for so long, or so long for all of them, that the file was broken off."""


class Sending:
    """The pieces of one file, for a streaming answer. Holds a `Place` until its end.

    Who stops reading and stays connected blocks the thread that sends, for ever. So another thread looks whether the
    piece that was handed out is asked for the next one in time; if not, it lets go of what the pieces come from, leaves
    the place, and has the server hang up.
    """

    def __init__(self, name: str, hang_up: Callable[[], object], *, at_most: timedelta = AT_MOST) -> None:
        """Take a place. Raises BusyError where all are taken."""
        self._name, self._hang_up, self._at_most = name, hang_up, at_most
        self._at_work = threading.Lock()  # held by whoever reads on, or ends it
        self._begun_at = self._handed_out_at = monotonic()
        self._is_over = threading.Event()
        self._is_broken_off = False
        self._place = Place()
        weakref.finalize(self, self._place.leave)  # also where nobody ever closes it

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        with self._at_work:
            if self._is_broken_off or self._is_late(self._begun_at, self._at_most):
                raise TooSlowError("The file was broken off, as its reader was too slow.")
            piece = self._piece()
            if piece is None:
                self._end(complete=True)
                raise StopIteration
            self._handed_out_at = monotonic()
            return piece

    def close(self) -> None:
        """Let go of what the pieces come from. The server calls it however the answer ends."""
        with self._at_work:
            self._break_off()

    def break_off_if_late(self) -> None:
        """End it if its reader keeps it waiting for too long. Whoever is reading the next piece is let alone."""
        if not self._at_work.acquire(blocking=False):
            return
        try:
            if not self._is_over.is_set() and self._keeps_waiting():
                self._is_broken_off = True
                logger.warning("A download of %s was broken off: its reader is slow", self._name)
                try:
                    self._break_off()
                finally:
                    self._hang_up()
        finally:
            self._at_work.release()

    def _watched(self) -> None:
        """From now on its reader is."""
        threading.Thread(target=_watch, args=(weakref.ref(self), self._is_over), daemon=True).start()

    def _piece(self) -> bytes | None:
        """The next one; None at the end."""
        raise NotImplementedError

    def _close_source(self) -> None:
        """Let go of what the pieces come from; once is enough."""
        raise NotImplementedError

    def _end(self, *, complete: bool) -> None:
        self._is_over.set()
        self._place.leave()

    def _keeps_waiting(self) -> bool:
        return self._is_late(self._handed_out_at, PIECE_WITHIN) or self._is_late(
            self._begun_at, self._at_most
        )

    def _is_late(self, since: float, at_most: timedelta) -> bool:
        return monotonic() - since > at_most.total_seconds()

    def _break_off(self) -> None:
        self._let_go()
        self._end(complete=False)

    def _let_go(self) -> None:
        self._is_over.set()
        try:
            self._close_source()
        finally:
            self._place.leave()


class Export(Sending):
    """A report that is made while it is sent: in pieces, and its query ends with it.

    Two entries stand in the audit log for each: `report.requested`, committed before the first byte leaves, and
    `report.exported` with the rows that were handed out and whether that was all. The second is written before
    the reader can see the end of the file, so a file that arrived whole is on record as whole; `close` writes it for
    one that did not.
    """

    def __init__(self, wanted: Wanted, hang_up: Callable[[], object] = lambda: None) -> None:
        """Read the beginning, so that what fails at once fails here, and put the request on record.

        Raises BusyError where all places are taken.
        """
        super().__init__(wanted.report.name, hang_up)
        self.wanted = wanted
        self.rows_sent = 0
        self._request_id, self._address = context.request_id(), context.address()
        self._chunks = chunks_of(wanted, at_most=AT_MOST)
        self._is_begun = self._is_ended = False
        try:
            self._first = self._next()
            self._record(Action.REPORT_REQUESTED)
        except BaseException:
            self._let_go()
            raise
        self._watched()

    def _piece(self) -> bytes | None:
        chunk = self._next() if self._is_begun else self._first
        self._is_begun = True
        if chunk is None:
            return None
        self.rows_sent += chunk.rows
        return chunk.content

    def _close_source(self) -> None:
        """End the query, if one is at work."""
        self._chunks.close()

    def _next(self) -> Chunk | None:
        """The next chunk with content, its rows counted with those of the empty ones before it; None at the end."""
        rows = 0
        # The answer is sent after the middleware has left: the person's time zone has to be taken up again.
        with timezone.override(self.wanted.zone):
            for chunk in self._chunks:
                rows += chunk.rows
                if chunk.content:
                    return Chunk(chunk.content, rows)
        return None

    def _end(self, *, complete: bool) -> None:
        """An export that has not come to its end is put on record as incomplete."""
        if not self._is_ended:
            self._record(Action.REPORT_EXPORTED, rows=self.rows_sent, complete=complete)
            self._is_ended = True
            super()._end(complete=complete)

    def _record(self, action: Action, **outcome: object) -> None:
        caller = context.calling(request_id=self._request_id, address=self._address, by_request=True)
        with caller, transaction.atomic():
            audit.record(
                action,
                actor=self.wanted.user,
                target=f"the report {self.wanted.report.title}",
                report=self.wanted.report.name,
                filters=self.wanted.filters,
                **outcome,
            )


def _watch(sending: weakref.ref[Sending], is_over: threading.Event) -> None:
    """Look at it now and then until it is over, or nobody knows it any more."""
    try:
        while not is_over.wait(_LOOKS_EVERY) and (watched := sending()) is not None:
            watched.break_off_if_late()
            del watched
    finally:
        connection.close()
