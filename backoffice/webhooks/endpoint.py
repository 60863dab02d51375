"""The URL at which the provider delivers webhooks. Open to everybody who knows it, so it trusts nobody.

The body is limited in size, and its connection is closed when it takes too long: nothing else would give the server
its thread back.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from time import monotonic, sleep

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from gunicorn.http.errors import ParseException

from backoffice.webhooks import configuration, processing
from backoffice.webhooks.models import DeliveryVerification

BODY_TIMEOUT = 5.0  # seconds for a whole body; a delivery comes in one piece
_WATCH_INTERVAL = 1.0

_open_requests: dict[object, tuple[float, Callable[[], None]]] = {}
_lock = threading.Lock()
_watch_threads: list[threading.Thread] = []


@contextmanager
def body_timeout(hang_up: Callable[[], None]) -> Iterator[None]:
    """Whoever is still inside when the time is over is hung up on. One thread watches all those of a process."""
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
    """End the connections whose time is over."""
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
    """Take one delivery: 200 with nothing else once it is kept, also for a repeat.

    What the service did not sign is kept for people and answered with 400: a sender whose new key we do not have yet
    tries again, and counts when we have it. Whatever is wrong with the address or the method looks like no address.
    """
    if request.method != "POST" or not configuration.is_secret(secret):
        raise Http404
    declared = _declared_length(request)
    if declared > MAX_BODY_BYTES:
        return HttpResponse(status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    body = _read_body(request)
    if body is None or len(body) < declared:
        return HttpResponse(status=HTTPStatus.BAD_REQUEST)  # cut off on its way, so it is no delivery
    if len(body) > MAX_BODY_BYTES:
        return HttpResponse(status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    verdict = processing.receive_delivery(body)
    return HttpResponse(
        status=HTTPStatus.OK if verdict == DeliveryVerification.VALID else HTTPStatus.BAD_REQUEST
    )


def _declared_length(request: HttpRequest) -> int:
    """How long the body is by its header; 0 for a header that says nothing, as Django takes it."""
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0


def _read_body(request: HttpRequest) -> bytes | None:
    """What comes, up to one byte more than is taken; None or less than was declared if the sender is gone or too slow.

    What comes in chunks is read from the server itself, because Django takes it for empty.
    """
    stream = request.META["wsgi.input"] if "HTTP_TRANSFER_ENCODING" in request.META else request
    with body_timeout(partial(_close_connection, request)):
        try:
            body: bytes = stream.read(MAX_BODY_BYTES + 1)
        except (OSError, ParseException):  # the second: chunks that are badly cut
            return None
    return body


def _close_connection(request: HttpRequest) -> None:
    """End the connection. Servers of tests have none to give."""
    connection: socket.socket | None = request.META.get("gunicorn.socket")
    if connection is not None:
        with suppress(OSError):  # it has ended by itself
            connection.shutdown(socket.SHUT_RDWR)
