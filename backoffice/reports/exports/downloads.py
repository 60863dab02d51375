"""Stream downloads: a report while it is produced, or a finished file, in constant memory.

A reader that is too slow is disconnected.

The audit log records a report before the first byte is sent and after the last, and a finished file before
the first.
"""

import logging
import threading
import weakref
from collections.abc import Callable, Iterator
from datetime import timedelta
from time import monotonic
from uuid import UUID

from django.db import connection, transaction
from django.http import StreamingHttpResponse

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core.web import request_context
from backoffice.reports.exports.limits import DownloadSlot
from backoffice.reports.exports.services import open_export
from backoffice.reports.rendering.csv import CHUNK_BYTES, FileChunk
from backoffice.reports.rendering.export_file import file_chunks
from backoffice.reports.report import ExportRequest, FileFormat

DOWNLOAD_TIME_LIMIT = timedelta(minutes=30)  # for the whole file; slower readers must use a background export
CHUNK_TIME_LIMIT = timedelta(minutes=1)  # for the reader to take one chunk: 128 kB, so about 2 kB a second
_WATCH_SECONDS = 1.0  # between two checks of the reader's speed


logger = logging.getLogger(__name__)


class SlowReaderError(Exception):
    """The download was ended because its reader took a chunk, or all of them, too slowly."""


class Download:
    """The chunks of one file, for a streaming response. Holds a `DownloadSlot` until its end.

    A reader that stops reading but stays connected would block the sending thread for ever. A second thread
    therefore checks that the next chunk is requested in time; if not, it closes the source, releases the slot
    and has the server close the connection.
    """

    def __init__(
        self, name: str, hang_up: Callable[[], object], *, at_most: timedelta = DOWNLOAD_TIME_LIMIT
    ) -> None:
        """Take a slot. Raises DownloadsBusyError if none is free."""
        self._name, self._hang_up, self._at_most = name, hang_up, at_most
        self._lock = threading.Lock()  # held while a chunk is produced or the download is ended
        self._begun_at = self._chunk_requested_at = monotonic()
        self._is_over = threading.Event()
        self._is_aborted = False
        self._slot = DownloadSlot()
        weakref.finalize(self, self._slot.release)  # also if nothing ever closes it

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        with self._lock:
            if self._is_aborted or self._is_late(self._begun_at, self._at_most):
                raise SlowReaderError("The download was aborted because the client reads too slowly.")
            content = self._next_content()
            if content is None:
                self._end(complete=True)
                raise StopIteration
            self._chunk_requested_at = monotonic()
            return content

    def close(self) -> None:
        """Close the source. The server calls this however the response ends."""
        with self._lock:
            self._abort()

    def stop_if_slow(self) -> None:
        """End the download if its reader is too slow. Does nothing while the next chunk is being produced."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if not self._is_over.is_set() and self._is_stalled():
                self._is_aborted = True
                logger.warning("The download of %s was ended: the client reads too slowly", self._name)
                try:
                    self._abort()
                finally:
                    self._hang_up()
        finally:
            self._lock.release()

    def _start_watching(self) -> None:
        """Start the thread that checks the reader's speed."""
        threading.Thread(target=_watch, args=(weakref.ref(self), self._is_over), daemon=True).start()

    def _next_content(self) -> bytes | None:
        """The next chunk; None at the end."""
        raise NotImplementedError

    def _close_source(self) -> None:
        """Release what the chunks come from. Idempotent."""
        raise NotImplementedError

    def _end(self, *, complete: bool) -> None:
        self._is_over.set()
        self._slot.release()

    def _is_stalled(self) -> bool:
        return self._is_late(self._chunk_requested_at, CHUNK_TIME_LIMIT) or self._is_late(
            self._begun_at, self._at_most
        )

    def _is_late(self, since: float, at_most: timedelta) -> bool:
        return monotonic() - since > at_most.total_seconds()

    def _abort(self) -> None:
        self._release()
        self._end(complete=False)

    def _release(self) -> None:
        self._is_over.set()
        try:
            self._close_source()
        finally:
            self._slot.release()


class ReportDownload(Download):
    """A report streamed while it is produced; its query ends with the download.

    Two entries are written to the audit log: `report.requested`, committed before the first byte is sent, and
    `report.exported`, with the number of rows sent and whether the file is complete. The second is written
    before the reader can see the end of the file, so a file that arrived completely is recorded as complete;
    `close` records one that did not.
    """

    def __init__(self, export_request: ExportRequest, hang_up: Callable[[], object] = lambda: None) -> None:
        """Read the first chunk, so that an immediate failure is raised here, and record the request.

        Raises DownloadsBusyError if no slot is free.
        """
        super().__init__(export_request.report.name, hang_up)
        self.request = export_request
        self.rows_sent = 0
        self._call = request_context.current()
        self._chunks = file_chunks(export_request, at_most=DOWNLOAD_TIME_LIMIT)
        self._is_begun = self._is_ended = False
        try:
            self._first = self._next()
            self._record(Action.REPORT_REQUESTED)
        except BaseException:
            self._release()
            raise
        self._start_watching()

    def _next_content(self) -> bytes | None:
        chunk = self._next() if self._is_begun else self._first
        self._is_begun = True
        if chunk is None:
            return None
        self.rows_sent += chunk.rows
        return chunk.content

    def _close_source(self) -> None:
        """Cancel the query if it is running."""
        self._chunks.close()

    def _next(self) -> FileChunk | None:
        """The next chunk with content, counting the rows of empty chunks before it; None at the end."""
        rows = 0
        # The response is sent after the middleware has ended, so time zone and language must be activated again.
        with self.request.localized():
            for chunk in self._chunks:
                rows += chunk.rows
                if chunk.content:
                    return FileChunk(chunk.content, rows)
        return None

    def _end(self, *, complete: bool) -> None:
        """Record the end of the export, incomplete if it did not reach its last row."""
        if not self._is_ended:
            self._record(Action.REPORT_EXPORTED, rows=self.rows_sent, complete=complete)
            self._is_ended = True
            super()._end(complete=complete)

    def _record(self, action: Action, **outcome: object) -> None:
        caller = request_context.call_context(
            request_id=self._call.request_id, address=self._call.address, by_request=True
        )
        with caller, transaction.atomic():
            audit.record(
                action,
                actor=self.request.user,
                target=self.request.report.audit_target,
                report=self.request.report.name,
                filters=self.request.filters,
                **outcome,
            )


def _watch(download_ref: weakref.ref[Download], is_over: threading.Event) -> None:
    """Check the reader's speed at intervals until the download ends or is garbage-collected."""
    try:
        while not is_over.wait(_WATCH_SECONDS) and (download := download_ref()) is not None:
            download.stop_if_slow()
            del download
    finally:
        connection.close()


MIN_BYTES_PER_SECOND = 128_000  # average required for a large file


class ExportDownload(Download):
    """A finished export file, recorded as downloaded before the first byte is sent."""

    def __init__(self, pk: UUID, *, actor: User, hang_up: Callable[[], object] = lambda: None) -> None:
        """Raises DownloadsBusyError, ReportNotAllowedError, ExportGoneError, StoreUnavailableError."""
        super().__init__(f"the export {pk}", hang_up)
        try:
            self.job, self._file = open_export(pk, actor=actor)
        except BaseException:
            self._slot.release()
            raise
        self._at_most = DOWNLOAD_TIME_LIMIT + timedelta(seconds=(self.job.size or 0) / MIN_BYTES_PER_SECOND)
        self._start_watching()

    def _next_content(self) -> bytes | None:
        return self._file.read(CHUNK_BYTES) or None

    def _close_source(self) -> None:
        self._file.close()


_CONTENT_TYPES = {
    FileFormat.CSV: "text/csv; charset=utf-8; header=present",
    FileFormat.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


def file_response(download: Download, kind: FileFormat, name: str) -> StreamingHttpResponse:
    """A streaming response that browsers save as a file of this name."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(download, content_type=_CONTENT_TYPES[kind], headers=headers)
