"""Protect /_sandbox/ from other websites: it has no sign-in, and its user's browser visits other sites.

* Another site may resolve its own name to this machine (DNS rebinding) and would then count as the same
  origin. So the Host must be localhost, a loopback address of this machine, or the address at which the
  request arrived.
* Another site may post to it without reading the response. Browsers mark such requests with Origin and
  Sec-Fetch-Site, and these must be those of the console itself. Programs send neither, and are admitted.
* Another site may embed the console in a frame to capture clicks (clickjacking). The response forbids frames.
"""

from collections.abc import Callable
from ipaddress import ip_address

from django.http import HttpRequest
from django.http.request import split_domain_port
from django.http.response import HttpResponseBase
from django.utils import translation

from payments_gateway.sandbox.api.http import error_response
from payments_gateway.sandbox.errors import RefusedError
from payments_gateway.sandbox.settings import HOST

_PREFIX = "/_sandbox/"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_FETCH_SITES = frozenset({"same-origin", "none"})
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self';"
    " frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class GuardMiddleware:
    """Rejects with 403 requests to /_sandbox/ that another website may have sent, and answers the others there in
    the language of the browser. Requests to the provider's API pass unchanged.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(_PREFIX):
            return self.get_response(request)
        foreign = _cross_site_problem(request)
        with translation.override(translation.get_language_from_request(request)):
            response = error_response(RefusedError(403, foreign)) if foreign else self.get_response(request)
        for name, value in _HEADERS.items():
            response[name] = value
        return response


def _cross_site_problem(request: HttpRequest) -> str:
    host = request.get_host()
    name, _ = split_domain_port(host)
    if not _is_own_host(name.strip("[]"), request):
        return f"Host {name[:60]} is not this machine; use localhost or the address that the banner names"
    if request.method in _SAFE_METHODS:
        return ""
    if request.headers.get("Origin", f"{request.scheme}://{host}") != f"{request.scheme}://{host}":
        return "requests from another origin cannot change the simulation"
    if request.headers.get("Sec-Fetch-Site", "none") not in _OWN_FETCH_SITES:
        return "requests from another site cannot change the simulation"
    return ""


def _is_own_host(name: str, request: HttpRequest) -> bool:
    if name in ("localhost", HOST):
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address == ip_address(request.META["gunicorn.socket"].getsockname()[0])
