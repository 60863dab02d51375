"""Middleware for every request: its id and the access log, headers for browsers, compression.

Also the address of the client, and the environment banner of every page.
"""

import logging
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils.translation import gettext_lazy as _

from backoffice.core.web import request_context

_COMPRESSIBLE = re.compile(r"(text/html|application/json)\s*(;|$)")
_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{8,36}")  # an id of a proxy, such as a UUID with or without dashes
_UNUSED_FEATURES = (
    *("accelerometer", "bluetooth", "browsing-topics", "camera", "display-capture", "encrypted-media"),
    *("geolocation", "gyroscope", "hid", "idle-detection", "local-fonts", "magnetometer"),
    *("microphone", "midi"),
    *("payment", "picture-in-picture", "screen-wake-lock", "serial", "usb", "xr-spatial-tracking"),
)
_PERMISSIONS_POLICY = ", ".join(f"{feature}=()" for feature in _UNUSED_FEATURES)
access_log = logging.getLogger("countersign.access")
_WITH_PORT = re.compile(r"\[([^\]]+)\](?::[0-9]+)?|([^:]+):[0-9]+")


class RequestContextMiddleware:
    """Sets `request_context` for the request, returns the id in the `X-Request-ID` header, and writes a line to the
    access log.

    The line has no query string: it holds what people search for. Its duration ends when the response begins.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started, request_id = time.perf_counter(), _proxy_request_id(request) or uuid.uuid4().hex[:12]
        with request_context.call_context(
            request_id=request_id, address=client_address(request), by_request=True
        ):
            response = self.get_response(request)
            _log_access(request, response, time.perf_counter() - started)
        response["X-Request-ID"] = request_id
        return response


def _proxy_request_id(request: HttpRequest) -> str | None:
    """The id that the one trusted proxy gave, if it is well-formed; what a client sends directly does not count."""
    given = request.headers.get("X-Request-ID", "") if settings.TRUST_FORWARDED_FOR else ""
    return given if _REQUEST_ID.fullmatch(given) else None


def _log_access(request: HttpRequest, response: HttpResponseBase, seconds: float) -> None:
    fields = {
        "method": request.method,
        "path": request.path,
        "status": response.status_code,
        "duration_seconds": round(seconds, 4),
        "bytes": len(response.content) if isinstance(response, HttpResponse) else None,
    }
    access_log.info("Request", extra=fields)


class BrowserPolicyMiddleware:
    """Headers of every response that keep other sites from embedding it, and this one from using devices.

    Django's own middleware sets the others.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        response.headers.setdefault("Permissions-Policy", _PERMISSIONS_POLICY)
        return response


class PageCompressionMiddleware(GZipMiddleware):
    """Compresses complete pages and JSON for clients that accept it. Streamed files are not compressed.

    Compression next to a secret could reveal the secret by the length of the response (BREACH). Three things
    prevent it: Django masks the CSRF token anew in every response, its middleware adds up to 100 random bytes
    ("Heal the Breach"), and SameSite cookies keep another site from repeating requests in a person's session.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.streaming or not _COMPRESSIBLE.match(response.get("Content-Type", "")):
            return response
        return super().process_response(request, response)


def client_address(request: HttpRequest) -> str | None:
    """The client's address in canonical form; None if the value is not an address.

    The last entry of X-Forwarded-For, which our proxy writes, counts only if a proxy is configured.
    """
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "")
    if settings.TRUST_FORWARDED_FOR and forwarded:
        return _address(str(forwarded).rsplit(",", 1)[-1].strip())
    return _address(str(request.META.get("REMOTE_ADDR", "")))


def is_from_this_machine(request: HttpRequest) -> bool:
    """Whether the client is on this machine and connected directly. A proxied request is never local."""
    is_direct = not {"HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED"} & request.META.keys()
    address = _address(str(request.META.get("REMOTE_ADDR", "")))
    return is_direct and address is not None and ip_address(address).is_loopback


def _address(text: str) -> str | None:
    """The address in `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:4711`."""
    with_port = _WITH_PORT.fullmatch(text)
    host = with_port[1] or with_port[2] if with_port else text
    try:
        return str(ip_address(host))
    except ValueError:
        return None


_BANNER_TEXTS = {
    "sandbox": _("SANDBOX · NO REAL MONEY"),
    "rehearsal": _("REHEARSAL · NO REAL MONEY"),
    "staging": _("STAGING · TEST MONEY"),
    "production": _("PRODUCTION · REAL MONEY"),
}


@dataclass(frozen=True)
class EnvironmentBanner:
    """`name` is the class of <body>, for the colour. The top bar shows `label` and, where there is room, `money`."""

    name: str
    label: str
    money: str


def environment_banner() -> EnvironmentBanner:
    """The banner of this installation, from the settings alone."""
    label, _dot, money = str(_BANNER_TEXTS[settings.ENVIRONMENT]).partition(" · ")
    return EnvironmentBanner(settings.ENVIRONMENT, label, money)


def environment(_request: HttpRequest) -> dict[str, EnvironmentBanner]:
    """Context processor: `environment` in every template."""
    return {"environment": environment_banner()}
