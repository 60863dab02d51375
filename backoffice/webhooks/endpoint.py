"""The URL at which the provider delivers webhooks. It is public, so nothing it receives is trusted.

The body is limited in size, and the connection is closed when it takes too long: gunicorn's threads have no
timeout of their own for a slow body.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from time import monotonic, sleep

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from gunicorn.http.errors import ParseException

from backoffice.core.web.request_context import close_connection
from backoffice.webhooks import configuration, processing
from backoffice.webhooks.models import DeliveryVerification

BODY_TIMEOUT = 5.0  # seconds for a whole body; a delivery is small
_WATCH_INTERVAL = 1.0

_open_requests: dict[object, tuple[float, Callable[[], None]]] = {}
_lock = threading.Lock()
_watch_threads: list[threading.Thread] = []


@contextmanager
def body_timeout(hang_up: Callable[[], None]) -> Iterator[None]:
    """Calls `hang_up` if the block has not ended in time. One thread monitors all such blocks of a process."""
    key = object()
    with _lock:
        _open_requests[key] = (monotonic() + BODY_TIMEOUT, hang_up)
        _start_watching()
    try:
        yield
    finally:
        with _lock:
            del _open_requests[key]


def close_late_connections() -> None:
    """Close the connections whose time is over."""
    now = monotonic()
    with _lock:
        for until, hang_up in _open_requests.values():
            if until <= now:
                hang_up()


def _start_watching() -> None:
    if not _watch_threads:
        _watch_threads.append(threading.Thread(target=_watch, name="slow-senders", daemon=True))
        _watch_threads[0].start()


def _watch() -> None:
    while True:
        sleep(_WATCH_INTERVAL)
        close_late_connections()


MAX_BODY_BYTES = 64 * 1024


@csrf_exempt
@login_not_required
def receive(request: HttpRequest, secret: str) -> HttpResponse:
    """Receive one delivery: 200 without a body once it is stored, also for a repeat.

    A delivery without a valid signature is stored for investigation and answered with 400: a sender whose new
    key we do not have yet tries again, and is accepted once we have it. A wrong URL or method gets 404.
    """
    if request.method != "POST" or not configuration.is_secret(secret):
        raise Http404
    declared = _declared_length(request)
    if declared > MAX_BODY_BYTES:
        return HttpResponse(status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    body = _read_body(request)
    if body is None or len(body) < declared:
        return HttpResponse(status=HTTPStatus.BAD_REQUEST)  # truncated, so not stored
    if len(body) > MAX_BODY_BYTES:
        return HttpResponse(status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    verdict = processing.receive_delivery(body)
    return HttpResponse(
        status=HTTPStatus.OK if verdict == DeliveryVerification.VALID else HTTPStatus.BAD_REQUEST
    )


def _declared_length(request: HttpRequest) -> int:
    """The Content-Length; 0 if it is invalid, as in Django."""
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0


def _read_body(request: HttpRequest) -> bytes | None:
    """The body, up to one byte more than allowed. None, or less than declared, if the sender disconnects or
    is too slow.

    A chunked body is read from the server's input, because Django treats it as empty.
    """
    stream = request.META["wsgi.input"] if "HTTP_TRANSFER_ENCODING" in request.META else request
    with body_timeout(partial(close_connection, request)):
        try:
            body: bytes = stream.read(MAX_BODY_BYTES + 1)
        except (OSError, ParseException):  # ParseException: malformed chunks
            return None
    return body
