"""PUT and GET /callbackurl."""

import re
from typing import Annotated
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from pydantic import AfterValidator, AnyHttpUrl, Field, ValidationError

from payments_gateway.sandbox.merchant import profile
from payments_gateway.sandbox.merchant.entrance import operation
from payments_gateway.sandbox.wire.answers import answer, envelope
from payments_gateway.sandbox.wire.bodies import Body, Nothing, read_body, read_query

_PLAIN = re.compile(r"https?://[!-\[\]-~]+", re.IGNORECASE)


def _web_address(text: str) -> str:
    # AnyHttpUrl alone mends what browsers mend, such as spaces and backslashes; a service should be asked plainly.
    if not _PLAIN.fullmatch(text) or not _is_url(text):
        raise ValueError("must be an http or https URL")
    if "@" in urlsplit(text).netloc:
        raise ValueError("must not contain a user name or password")
    return text


def _is_url(text: str) -> bool:
    try:
        AnyHttpUrl(text)
        return bool(urlsplit(text).hostname)
    except (ValidationError, ValueError):
        return False


class CallbackBody(Body):
    """Body of PUT /callbackurl."""

    callback_url: Annotated[str, Field(max_length=2048), AfterValidator(_web_address)]


@operation("PUT", "GET")
def callback_url(request: HttpRequest) -> HttpResponse:
    """Where webhooks go; to be set, or told."""
    if request.method == "PUT":
        return _set(request)
    read_query(request, Nothing)
    return envelope("Callback URL retrieved", {"callbackUrl": profile.callback_url()})


def _set(request: HttpRequest) -> HttpResponse:
    profile.set_callback_url(read_body(request, CallbackBody).callback_url)
    return answer({"success": True, "message": "Callback URL updated"})
