"""Keeps foreign pages out of the control API: it has no sign-in, and the browser of whoever runs it visits others, too.

* Another site may point its own name at this machine (DNS rebinding) and would then count as the same origin. So the
  Host must be localhost, an address of this machine's loopback, or the address at which the request has arrived.
* Another site may post to it without reading the answer. Browsers mark such requests with Origin and Sec-Fetch-Site,
  and these must be those of the console itself. Programs send neither, and are let in.
* Another site may put the console into a frame and let people click there. The answer forbids frames.
"""

from collections.abc import Callable
from ipaddress import ip_address

from django.http import HttpRequest
from django.http.request import split_domain_port
from django.http.response import HttpResponseBase

from payments_gateway.sandbox.settings import HOST
from payments_gateway.sandbox.wire.answers import refusal
from payments_gateway.sandbox.wire.errors import RefusedError

_PREFIX = "/_sandbox/"
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN = frozenset({"same-origin", "none"})
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self';"
    " frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class GuardMiddleware:
    """Refuses with 403 what a foreign page may have sent to /_sandbox/; all else passes."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(_PREFIX):
            return self.get_response(request)
        foreign = _what_is_foreign(request)
        response = refusal(RefusedError(403, foreign)) if foreign else self.get_response(request)
        for name, value in _HEADERS.items():
            response[name] = value
        return response


def _what_is_foreign(request: HttpRequest) -> str:
    host = request.get_host()
    name, _ = split_domain_port(host)
    if not _is_ours(name.strip("[]"), request):
        return f"Host {name[:60]} is not this machine; use localhost or the address that the banner names"
    if request.method in _READING:
        return ""
    if request.headers.get("Origin", f"{request.scheme}://{host}") != f"{request.scheme}://{host}":
        return "a page of another origin may change nothing here"
    if request.headers.get("Sec-Fetch-Site", "none") not in _OWN:
        return "a page of another site may change nothing here"
    return ""


def _is_ours(name: str, request: HttpRequest) -> bool:
    if name in ("localhost", HOST):
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address == ip_address(request.META["gunicorn.socket"].getsockname()[0])
