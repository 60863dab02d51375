"""Answers deliveries of webhooks ahead of the middleware of pages, which costs more than receiving them."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from backoffice.webhooks import configuration, endpoint

_BEFORE_SECRET, _AFTER_SECRET = "/hooks/", "/"


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
        response = endpoint.receive(request, secret)
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers["Content-Length"] = str(len(response.content))
        return response
