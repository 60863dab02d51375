"""Answers on the wire: the envelopes, the error body, and a clear word for everything unexpected."""

from collections.abc import Callable, Mapping

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from payments_gateway.money import dumps
from payments_gateway.sandbox.wire.errors import BareRefusalError, RefusedError


def answer(body: Mapping[str, object], status: int = 200) -> HttpResponse:
    """An answer with exactly these members."""
    return HttpResponse(dumps(body), status=status, content_type="application/json")


def envelope(message: str, data: object) -> HttpResponse:
    """The standard v2 envelope."""
    return answer({"success": True, "message": message, "data": data})


def refusal(error: RefusedError) -> HttpResponse:
    """The error body: `success` false, a message, and the members that are wrong, if any."""
    if isinstance(error, BareRefusalError):
        return answer({"message": error.message}, error.status)
    body: dict[str, object] = {"success": False, "message": error.message}
    if error.problems:
        body["errors"] = [{"field": field, "message": phrase} for field, phrase in error.problems]
    return answer(body, error.status)


class RefusalMiddleware:
    """Turns a RefusedError of any view into its answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return refusal(exception) if isinstance(exception, RefusedError) else None


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler404."""
    return refusal(RefusedError(404, "there is no such path"))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler400."""
    return refusal(RefusedError(400, "the request cannot be read"))


def internal_error(request: HttpRequest) -> HttpResponse:
    """Django's handler500: the catch-all. Django has logged the traceback; the client never sees it."""
    return refusal(RefusedError(500, "internal error"))
