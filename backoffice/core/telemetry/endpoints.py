"""`/livez` and `/readyz` for load balancers and monitoring, and the page for a database that is away."""

import logging
import sys
from collections.abc import Callable

from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader
from django.utils import translation
from django.views.defaults import server_error

from backoffice.core.cached_reads import cached_in_process
from backoffice.core.database.time_limits import has_waited_too_long
from backoffice.core.isolation import is_database_unavailable
from backoffice.core.telemetry.readiness import State, part_states

logger = logging.getLogger(__name__)
LIVE, READY = "/livez", "/readyz"
RETRY_AFTER = "10"  # seconds


class HealthMiddleware:
    """Answers `/livez` and `/readyz`, before the checks of host name and TLS and without a session.

    Both are for machines: no sign-in, no secret, no line in the access log.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path not in {LIVE, READY}:
            return self.get_response(request)
        if request.method not in {"GET", "HEAD"}:
            return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        response = JsonResponse({"status": "live"}) if request.path == LIVE else _readiness(request)
        response["Cache-Control"], response["X-Content-Type-Options"] = "no-store", "nosniff"
        return response


def _readiness(request: HttpRequest) -> HttpResponse:
    """Status 200 if every part is ready, otherwise 503. `exclude` names parts that do not count.

    The state is a second old at most, so that a flood of requests opens no flood of connections.
    """
    states = cached_in_process("readiness", part_states, seconds=1)
    excluded = request.GET.getlist("exclude")
    is_ready = all(state == State.OK for part, state in states.items() if part not in excluded)
    content = {"status": "ready" if is_ready else "not_ready", "parts": states}
    return JsonResponse(content, status=200 if is_ready else 503)


def failed_request(request: HttpRequest) -> HttpResponse:
    """The response to an exception that no view handled (`handler500`): 503 if the database is away or busy, or 500."""
    exc = sys.exc_info()[1]
    if not isinstance(exc, DatabaseError):
        return server_error(request)
    if is_busy := has_waited_too_long(exc):
        logger.error("The database was busy and cancelled what a request waited for: %s", exc.__cause__)
    elif is_database_unavailable(exc):
        logger.error("The database cannot be reached or is read-only: %s", type(exc).__name__)
    else:
        return server_error(request)
    language = translation.get_language_from_request(request)
    with translation.override(language):
        page = loader.render_to_string("503.html", {"is_busy": is_busy})
    return HttpResponse(
        page,
        status=503,
        headers={"Retry-After": RETRY_AFTER, "Cache-Control": "no-store", "Content-Language": language},
    )
