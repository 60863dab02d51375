"""Gives each request an id and remembers its address while it is answered."""

import uuid
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from backoffice.core import context


class RequestContextMiddleware:
    """Sets `core.context` for the request and names it in the answer's `X-Request-ID` header."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = uuid.uuid4().hex[:12]
        with context.calling(request_id=request_id, address=client_address(request)):
            response = self.get_response(request)
        response["X-Request-ID"] = request_id
        return response


def client_address(request: HttpRequest) -> str | None:
    """The caller's address. The proxy's own entry, the last one, counts only where a proxy is configured."""
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "")
    if settings.TRUST_FORWARDED_FOR and forwarded:
        return str(forwarded).rsplit(",", 1)[-1].strip()
    return request.META.get("REMOTE_ADDR") or None
