"""Traces by OpenTelemetry, if `OTEL_ENDPOINT` is set and the extra is installed: requests, and calls to the provider.

The attributes of a span are listed here. None of them is a path, a query, an SQL statement or a text: those can hold
account numbers, names and amounts.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from django.apps import AppConfig
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Tracer

from backoffice.core.logs import process_name
from backoffice.core.telemetry import provider_calls
from backoffice.core.telemetry.provider_calls import Call
from backoffice.core.web import request_context


class TracingConfig(AppConfig):
    """Adds spans to the calls to the provider, in every process."""

    name = "backoffice.core.telemetry"
    label = "telemetry"

    def ready(self) -> None:
        provider_calls.AROUND_CALLS.append(call_span)


class TracingMiddleware:
    """A span for each request: method, route, status and request id."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        method = request.method or ""
        with tracer().start_as_current_span(
            method, record_exception=False, set_status_on_exception=False
        ) as span:
            response = self.get_response(request)
            route = request.resolver_match.route if request.resolver_match else ""
            span.update_name(f"{method} {route}")
            span.set_attribute("http.request.method", method)
            span.set_attribute("http.route", route)
            span.set_attribute("http.response.status_code", response.status_code)
            span.set_attribute("countersign.request_id", response.get("X-Request-ID", ""))
        return response


@contextmanager
def call_span(call: Call) -> Iterator[None]:
    """A span for one call of the provider: its kind, and whether it failed."""
    name = f"provider {call}"
    with tracer().start_as_current_span(name, record_exception=False, set_status_on_exception=False) as span:
        span.set_attribute("countersign.request_id", request_context.current().request_id)
        span.set_attribute("countersign.failed", True)
        yield
        span.set_attribute("countersign.failed", False)


def flush() -> None:
    """Send the spans that are not sent yet."""
    provider().force_flush()


def tracer() -> Tracer:
    """The tracer of this process."""
    return provider().get_tracer("countersign", settings.VERSION)


@cache
def provider() -> TracerProvider:
    """The provider of this process, made when the first span is, after a fork."""
    resource = Resource(
        {"service.name": f"countersign-{process_name()}", "service.version": settings.VERSION}
    )
    made = TracerProvider(resource=resource)
    made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=settings.OTEL_ENDPOINT, timeout=5)))
    return made
