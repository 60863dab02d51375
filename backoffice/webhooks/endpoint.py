"""The URL at which the provider delivers webhooks. It is public, so nothing it receives is trusted.

The body is limited in size, and the connection is closed when it takes too long: gunicorn's threads have no
timeout of their own for a slow body.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from time import monotonic, sleep

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from gunicorn.http.errors import ParseException

from backoffice.audit.canonical import storable_text
from backoffice.core.web.request_context import close_connection
from backoffice.webhooks import configuration, processing
from backoffice.webhooks.processing import Arrival

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
MAX_HEADERS, MAX_NAME_LENGTH, MAX_VALUE_LENGTH = 30, 64, 256  # of a delivery: at most 10 kB are stored
_STORED_HEADERS = frozenset(
    {
        *("accept", "accept-encoding", "accept-language", "connection", "content-encoding", "content-length"),
        *("content-type", "date", "expect", "host", "transfer-encoding", "user-agent"),
        # the way through proxies
        *("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto"),
        *("x-real-ip", "cf-connecting-ip", "cf-ipcountry"),
        # ids with which the provider or a proxy finds the request in its own log
        *("correlation-id", "request-id", "traceparent", "x-amzn-trace-id", "x-cloud-trace-context"),
        *("x-correlation-id", "x-request-id", "cf-ray"),
    }
)
"""The headers, in lower case, whose values are stored: none of them carries a credential or an identity."""


@csrf_exempt
@login_not_required
def receive(request: HttpRequest, secret: str) -> HttpResponse:
    """Receive one delivery: 200 without a body once it is stored, also for a repeat.

    A delivery without a valid signature is stored for investigation and answered with 400: a sender whose new
    key we do not have yet tries again, and is accepted once we have it. A wrong URL or method gets 404.
    """
    began = monotonic()
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
    verdict = processing.receive_delivery(body, Arrival(headers_to_store(request.headers), began))
    return HttpResponse(status=processing.response_status(verdict))


def headers_to_store(headers: Mapping[str, str]) -> dict[str, str | None]:
    """The first `MAX_HEADERS` headers of a delivery by name, to find out who sent it and through which proxies.

    Only `_STORED_HEADERS` have their values, each cut to `MAX_VALUE_LENGTH`. Any other header has None instead,
    because a proxy may put a credential or the identity of a person into it, under any name. The secret part of our
    URL is replaced by asterisks if a stored value contains it.
    """
    return {
        storable_text(name)[:MAX_NAME_LENGTH]: _stored_value(value)
        if name.lower() in _STORED_HEADERS
        else None
        for name, value in list(headers.items())[:MAX_HEADERS]
    }


def _stored_value(value: str) -> str:
    shown = storable_text(value).replace(settings.WEBHOOK_SECRET, "***")
    return shown if len(shown) <= MAX_VALUE_LENGTH else f"{shown[: MAX_VALUE_LENGTH - 1]}…"


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
