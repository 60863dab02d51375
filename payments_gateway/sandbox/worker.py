"""The worker of gunicorn, which says no in the words of the service where a request never gets as far as Django."""

import json
from typing import Any

from gunicorn import util
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException
from gunicorn.workers.gthread import ThreadWorker

_REFUSALS = {
    LimitRequestLine: "414 URI Too Long",
    LimitRequestHeaders: "431 Request Header Fields Too Large",
}
_BODY = json.dumps({"success": False, "message": "the request cannot be read"})


class Worker(ThreadWorker):
    """Threads, and refusals in JSON instead of HTML."""

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answer a request that is no HTTP, or too much of it; anything else is gunicorn's to handle."""
        if not isinstance(exc, ParseException):
            super().handle_error(req, client, addr, exc)  # type: ignore[no-untyped-call]  # gunicorn has none
            return
        head = (
            f"HTTP/1.1 {_REFUSALS.get(type(exc), '400 Bad Request')}",
            "Connection: close",
            "Content-Type: application/json",
            f"Content-Length: {len(_BODY)}",
        )
        answer = ("\r\n".join(head) + "\r\n\r\n" + _BODY).encode()
        util.write_nonblock(client, answer)  # type: ignore[no-untyped-call]
