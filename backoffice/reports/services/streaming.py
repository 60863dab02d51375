"""A report on its way to a person who waits: streamed in constant memory, and on record before and after."""

import weakref
from collections.abc import Iterator
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import context
from backoffice.reports.csv_encoding import Chunk
from backoffice.reports.making import chunks_of
from backoffice.reports.slots import Place
from backoffice.reports.wanted import Wanted

AT_MOST = timedelta(minutes=10)


class Export:
    """The chunks of one file, for a streaming answer. Holds a `Place` until its end.

    Two entries stand in the audit log for each: `report.requested`, committed before the first byte leaves, and
    `report.exported` with the rows that were handed out and whether that was all. The second is written before
    the reader can see the end of the file, so a file that arrived whole is on record as whole; `close`, which
    the server calls however the answer ends, writes it for one that did not.
    """

    def __init__(self, wanted: Wanted) -> None:
        """Read the beginning, so that what fails at once fails here, and put the request on record.

        Raises BusyError where all places are taken.
        """
        self.wanted = wanted
        self.rows_sent = 0
        self._place = Place()
        weakref.finalize(self, self._place.leave)  # also where nobody ever closes it
        self._request_id, self._address = context.request_id(), context.address()
        self._chunks = chunks_of(wanted, at_most=AT_MOST)
        self._is_begun = self._is_ended = False
        try:
            self._first = self._next()
            self._record(Action.REPORT_REQUESTED)
        except BaseException:
            self._let_go()
            raise

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        chunk = self._next() if self._is_begun else self._first
        self._is_begun = True
        if chunk is None:
            self._end(complete=True)
            raise StopIteration
        self.rows_sent += chunk.rows
        return chunk.content

    def close(self) -> None:
        """Let go of the rows; an export that has not come to its end is put on record as incomplete."""
        self._let_go()
        self._end(complete=False)

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

    def _let_go(self) -> None:
        """End the query, if one is at work, and leave the place."""
        try:
            self._chunks.close()
        finally:
            self._place.leave()

    def _end(self, *, complete: bool) -> None:
        if not self._is_ended:
            self._record(Action.REPORT_EXPORTED, rows=self.rows_sent, complete=complete)
            self._is_ended = True
            self._place.leave()

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
