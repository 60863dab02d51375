"""A report on its way to a person: streamed in constant memory, and on record before and after."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from django.db import transaction
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import context
from backoffice.reports.csv_encoding import encode
from backoffice.reports.report import Filters, Report, Row


class Export:
    """The chunks of one file, for a streaming answer.

    Two entries stand in the audit log for each: `report.requested`, committed before the first byte leaves, and
    `report.exported` with the rows that were handed out and whether that was all. The second is written before
    the reader can see the end of the file, so a file that arrived whole is on record as whole; `close`, which
    the server calls however the answer ends, writes it for one that did not.
    """

    def __init__(self, report: Report[Any, Filters], form: Filters, *, user: User) -> None:
        """Read the first row, so that what fails at once fails here, and put the request on record."""
        self.report = report
        self.rows_sent = 0
        self._user = user
        self._filters = {name: str(value) for name, value in form.cleaned_data.items() if value}
        self._zone = timezone.get_current_timezone()
        self._request_id, self._address = context.request_id(), context.address()
        self._chunks = encode(report.header, map(report.cells, _begun(report.rows(user, form))))
        self._ended = False
        self._record(Action.REPORT_REQUESTED)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        # The answer is sent after the middleware has left: the person's time zone has to be taken up again.
        with timezone.override(self._zone):
            chunk = next(self._chunks, None)
        if chunk is None:
            self._end(complete=True)
            raise StopIteration
        self.rows_sent += chunk.rows
        return chunk.content

    def close(self) -> None:
        """Let go of the rows; an export that has not come to its end is put on record as incomplete."""
        self._chunks.close()
        self._end(complete=False)

    def _end(self, *, complete: bool) -> None:
        if not self._ended:
            self._record(Action.REPORT_EXPORTED, rows=self.rows_sent, complete=complete)
            self._ended = True

    def _record(self, action: Action, **outcome: object) -> None:
        caller = context.calling(request_id=self._request_id, address=self._address, by_request=True)
        with caller, transaction.atomic():
            audit.record(
                action,
                actor=self._user,
                target=f"the report {self.report.title}",
                report=self.report.name,
                filters=self._filters,
                **outcome,
            )


def _begun(rows: Iterator[Row]) -> Iterator[Row]:
    """The same rows, with the first one already read."""
    return chain(list(islice(rows, 1)), rows)
