"""Counts and durations of requests, of all web workers of one machine together.

Under gunicorn prometheus_client adds up the files that each worker writes (see the configuration of gunicorn);
without it, as in tests, the counts are those of this process.
"""

import os
import time
from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
    multiprocess,
)

_METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"})
disable_created_metrics()
_REGISTRY = CollectorRegistry()
_REQUESTS = Counter(
    "countersign_http_requests",
    "Requests of pages and of the provider's webhooks, by method and status",
    ["method", "status"],
    registry=_REGISTRY,
)
_DURATION = Histogram(
    "countersign_http_request_duration_seconds",
    "Time from the request to the beginning of its response",
    ["method"],
    buckets=(0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    registry=_REGISTRY,
)


class RequestMetricsMiddleware:
    """Counts each request. Methods that do not exist count as `other`: labels must not be chosen by clients."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        started = time.perf_counter()
        response = self.get_response(request)
        method = request.method if request.method in _METHODS else "other"
        _REQUESTS.labels(method, str(response.status_code)).inc()
        _DURATION.labels(method).observe(time.perf_counter() - started)
        return response


def render_http_metrics() -> bytes:
    """These metrics in Prometheus' text format."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(_REGISTRY)
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)
    return generate_latest(registry)
