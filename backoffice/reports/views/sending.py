"""The answer that is a file."""

import socket
from contextlib import suppress

from django.http import StreamingHttpResponse

from backoffice.accounts.http import StaffRequest
from backoffice.reports.services.streaming import Sending
from backoffice.reports.wanted import Format

_TYPES = {
    Format.CSV: "text/csv; charset=utf-8; header=present",
    Format.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


def file_answer(pieces: Sending, kind: Format, name: str) -> StreamingHttpResponse:
    """The pieces, to be kept as a file of this name."""
    kept = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(pieces, content_type=_TYPES[kind], headers=kept)


def hang_up(request: StaffRequest) -> None:
    """End the connection, so that the thread that sends into it is free again. Servers of tests have none to give."""
    connection: socket.socket | None = request.META.get("gunicorn.socket")
    if connection is not None:
        with suppress(OSError):  # it has ended by itself
            connection.shutdown(socket.SHUT_RDWR)
