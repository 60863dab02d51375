"""The URL at which the provider delivers webhooks. It is public, so nothing it receives is trusted.

A middleware answers deliveries ahead of the middleware of pages, which costs more than receiving them.

The web server hands over a request once its body is complete, closes connections on which it takes too long, and has
already decoded a body in chunks (`backoffice/web_server.py`). The size is limited in both places.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from time import monotonic

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from backoffice.audit.canonical import storable_text
from backoffice.core.web import request_context
from backoffice.core.web.request_context import network_of
from backoffice.webhooks import configuration, processing
from backoffice.webhooks.processing import Arrival

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

_BEFORE_SECRET, _AFTER_SECRET = "/hooks/", "/"


@csrf_exempt
@login_not_required
def receive(request: HttpRequest, secret: str) -> HttpResponse:
    """Receive one delivery: 200 without a body once it is stored, also for a repeat.

    A delivery without a valid signature is stored for investigation and answered with 400: a sender whose new
    key we do not have yet tries again, and is accepted once we have it. A wrong URL or method gets 404. Plain HTTP
    is refused with 403, not redirected: the sender would not notice that the secret of the URL went unencrypted.
    """
    began = monotonic()
    if settings.SECURE_SSL_REDIRECT and not request.is_secure():
        return HttpResponse(status=HTTPStatus.FORBIDDEN)
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
    source = network_of(request_context.current().address)
    arrival = Arrival(headers_to_store(request.headers), source, began)
    verdict = processing.receive_delivery(body, arrival)
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
    """The body, up to one byte more than allowed; None if it cannot be read."""
    try:
        body: bytes = request.read(MAX_BODY_BYTES + 1)
    except OSError:
        return None
    return body


class DeliveryMiddleware:
    """Answers a POST to the callback URL. Whatever else is requested goes on to the next middleware and the URLs.

    It comes after the middleware that every request needs (TLS, request id) and before that of pages: session, person,
    form, language, messages. A delivery has none of these, and the endpoint is open to the public.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method != "POST" or not request.path_info.startswith(_BEFORE_SECRET):
            return self.get_response(request)
        secret = request.path_info.removeprefix(_BEFORE_SECRET).removesuffix(_AFTER_SECRET)
        if not configuration.is_secret(secret) or not request.path_info.endswith(_AFTER_SECRET):
            return self.get_response(request)
        request.get_host()  # raises DisallowedHost
        response = receive(request, secret)
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers["Content-Length"] = str(len(response.content))
        return response
