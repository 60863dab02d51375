"""Error reports and traces: what arrives at a receiver on this machine, and that no secret, amount or person does."""

import gzip
import json
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from backoffice.core.management.setting_checks import check_extras
from backoffice.core.telemetry import provider_calls, tracing
from backoffice.core.telemetry.error_reports import ErrorReportHandler
from backoffice.core.telemetry.provider_calls import Call
from payments_gateway import ReadFailedError
from tests.core.environments import settings_in
from tools.processes import ROOT

CANARIES = ("ADA OBI", "250000.00", "0123456789", "canary-secret", "amara@countersign.example")
WORDS = " ".join(CANARIES)


@dataclass
class Receiver:
    """A server that keeps what is posted to it."""

    server: ThreadingHTTPServer
    bodies: list[bytes] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    def found(self) -> list[str]:
        """The canaries that arrived."""
        return [word for word in CANARIES for body in self.bodies if word.encode() in body]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    kept: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            kept.append(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Receiver(server, kept)
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def reports(receiver: Receiver, settings: Settings) -> Iterator[ErrorReportHandler]:
    settings.SENTRY_DSN = f"http://public@127.0.0.1:{receiver.port}/1"
    handler = ErrorReportHandler()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)
    handler.close()


def fail(secret: str) -> None:
    local = f"{secret} in a local variable"
    try:
        raise ValueError(f"account {local}")
    except ValueError as exc:
        raise RuntimeError(f"refused: {local}") from exc


def event_in(receiver: Receiver) -> dict[str, Any]:
    """The event of the envelope that arrived."""
    [body] = receiver.bodies
    return dict(json.loads(body.splitlines()[2]))


def test_an_error_report_has_types_and_places_and_nothing_else(
    receiver: Receiver, reports: ErrorReportHandler
) -> None:
    try:
        fail(WORDS)
    except RuntimeError:
        logging.getLogger("backoffice.x").exception("%s failed", WORDS, extra={"path": WORDS})
    reports.flush()
    event = event_in(receiver)
    assert [one["type"] for one in event["exception"]["values"]] == ["ValueError", "RuntimeError"]
    assert event["exception"]["values"][-1]["stacktrace"]["frames"][-1]["function"] == "fail"
    assert event["message"] == "%s failed"
    assert receiver.found() == []


def test_the_text_of_a_library_is_not_sent(receiver: Receiver, reports: ErrorReportHandler) -> None:
    logging.getLogger("some.library").error(WORDS)
    reports.flush()
    assert event_in(receiver)["message"] == "some.library"
    assert receiver.found() == []


def test_a_failed_page_is_reported_without_its_request(
    receiver: Receiver, reports: ErrorReportHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backoffice.operations.monitoring.metrics.render_metrics", lambda: fail(WORDS))
    client = Client(raise_request_exception=False, headers={"Cookie": WORDS, "User-Agent": WORDS})
    assert client.get("/metrics", {"q": WORDS}).status_code == 500
    reports.flush()
    assert b"RuntimeError" in receiver.bodies[0]
    assert receiver.found() == []


def test_a_trace_has_route_and_status_and_no_path(
    receiver: Receiver, settings: Settings, client: Client, db: None
) -> None:
    settings.OTEL_ENDPOINT = f"http://127.0.0.1:{receiver.port}/v1/traces"
    settings.MIDDLEWARE = ["backoffice.core.telemetry.tracing.TracingMiddleware", *settings.MIDDLEWARE]
    Client(headers={"User-Agent": WORDS}).get(f"/operations/{WORDS}/", {"q": WORDS})
    Client().get("/account/sign-in/", {"q": WORDS})
    tracing.flush()
    sent = b"".join(receiver.bodies)
    assert b"account/sign-in/" in sent
    assert b"http.response.status_code" in sent
    assert receiver.found() == []


def test_a_call_of_the_provider_is_a_span_without_its_text(receiver: Receiver, settings: Settings) -> None:
    settings.OTEL_ENDPOINT = f"http://127.0.0.1:{receiver.port}/v1/traces"

    def call() -> None:
        with provider_calls.counted(Call.READ):
            raise ReadFailedError.of(WORDS)

    provider_calls.AROUND_CALLS.append(tracing.call_span)
    try:
        with pytest.raises(ReadFailedError):
            call()
    finally:
        provider_calls.AROUND_CALLS.remove(tracing.call_span)
    tracing.flush()
    sent = b"".join(receiver.bodies)
    assert b"provider read" in sent
    assert b"countersign.failed" in sent
    assert receiver.found() == []


@pytest.fixture(autouse=True)
def fresh_provider() -> Iterator[None]:
    tracing.provider.cache_clear()
    yield
    if tracing.provider.cache_info().currsize:
        tracing.provider().shutdown()
    tracing.provider.cache_clear()


def test_nothing_is_sent_by_default() -> None:
    values = settings_in({})
    assert "reports" not in values["LOGGING"]["handlers"]
    assert not [name for name in (*values["MIDDLEWARE"], *values["INSTALLED_APPS"]) if "tracing" in name]


def test_the_settings_switch_both_on() -> None:
    values = settings_in(
        {
            "COUNTERSIGN_SENTRY_DSN": "http://public@127.0.0.1/1",
            "COUNTERSIGN_OTEL_ENDPOINT": "http://127.0.0.1:4318/v1/traces",
        }
    )
    assert values["LOGGING"]["root"]["handlers"] == ["stderr", "reports"]
    assert "backoffice.core.telemetry.tracing.TracingMiddleware" in values["MIDDLEWARE"]
    assert values["MISSING_EXTRAS"] == {}


def test_the_deployment_check_names_a_setting_without_its_package(settings: Settings) -> None:
    settings.MISSING_EXTRAS = {}
    assert list(check_extras()) == []
    settings.MISSING_EXTRAS = {"COUNTERSIGN_OTEL_ENDPOINT": "otel"}
    [message] = check_extras()
    assert message.id == "core.W002"
    how_to_install = "deploy/install.sh SOURCE TARGET extras"
    assert how_to_install in str(message.hint)
    assert how_to_install in (ROOT / "docs/operator/monitoring.md").read_text()
