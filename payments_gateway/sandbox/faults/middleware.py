"""WSGI middleware that applies the faults. Without an active fault it costs one check of a flag."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from http.client import responses
from typing import Any

from django.core.handlers.wsgi import WSGIHandler

from payments_gateway.money import dumps
from payments_gateway.sandbox.books.records import lagging
from payments_gateway.sandbox.faults.definitions import (
    DelayFault,
    DropFault,
    DuplicateRecordFault,
    GarbageFault,
    HideRecordFault,
    RateLimitFault,
    StatusFault,
    TruncateFault,
)
from payments_gateway.sandbox.faults.registry import (
    ActiveFault,
    Environ,
    FaultRegistry,
    IncomingRequest,
    is_api_request,
)
from payments_gateway.sandbox.faults.responses import (
    GARBAGE_FORMS,
    WireResponse,
    hang_up,
    send_and_hang_up,
    with_body,
    with_record_twice,
)

_RESET_BY_WHEN = {"before_read": True, "after_read": False, "after_execution": False, "mid_answer": True}


class FaultMiddleware:
    """Serves the application, with faults applied to the requests that they hit."""

    def __init__(self, application: WSGIHandler, registry: FaultRegistry) -> None:
        self._application = application
        self._registry = registry

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if not self._registry.has_faults or not is_api_request(environ):
            return self._application(environ, start_response)
        incoming = IncomingRequest(environ)
        hits = self._registry.claim(incoming)
        if not hits:
            return self._application(environ, start_response)
        try:
            answer = FaultyExchange(self._application, incoming, hits).answer()
        finally:
            self._registry.release(hits)
        start_response(answer.status, list(answer.headers))
        return [answer.body]


class FaultyExchange:
    """One request hit by faults: returns a response, or raises ConnectionResetError after closing."""

    def __init__(self, application: WSGIHandler, incoming: IncomingRequest, hits: list[ActiveFault]) -> None:
        self._application = application
        self._incoming = incoming
        self._hits = hits

    def answer(self) -> WireResponse:
        """The response that the client receives."""
        self._wait("before_execution")
        for fault in self._hits:
            if fault.definition.answers:
                return self._faulty_response(fault)
        return self._execute()

    def _faulty_response(self, fault: ActiveFault) -> WireResponse:
        match fault.definition:
            case StatusFault() as definition:
                return self._status(definition)
            case DropFault() as definition:
                return self._drop(definition)
            case TruncateFault() as definition:
                return self._truncate(definition)
            case GarbageFault() as definition:
                return self._garbage(definition)
            case RateLimitFault():
                return _rate_limit_response(fault)
        raise TypeError(f"{fault.definition.kind} gives no answer alone")

    def _status(self, definition: StatusFault) -> WireResponse:
        if definition.when == "after_execution":
            self._execute()
        return _status_response(definition.status, definition.body, definition.headers)

    def _drop(self, definition: DropFault) -> WireResponse:
        reset = _RESET_BY_WHEN[definition.when] if definition.reset is None else definition.reset
        sent = b""
        if definition.when == "after_read":
            self._incoming.body()
        elif definition.when == "after_execution":
            self._execute()
        elif definition.when == "mid_answer":
            answer = self._execute()
            sent = answer.raw(cut_at=len(answer.body) // 2)
        send_and_hang_up(self._incoming.connection, sent, reset=reset)

    def _truncate(self, definition: TruncateFault) -> WireResponse:
        answer = self._execute()
        if definition.content_length == "full":
            send_and_hang_up(self._incoming.connection, answer.raw(cut_at=definition.at), reset=False)
        return with_body(answer, answer.body[: definition.at])

    def _garbage(self, definition: GarbageFault) -> WireResponse:
        if definition.when == "after_execution":
            self._execute()
        else:
            self._incoming.body()
        send_and_hang_up(self._incoming.connection, GARBAGE_FORMS[definition.form](), reset=False)

    def _execute(self) -> WireResponse:
        definitions = [(fault.since, fault.definition) for fault in self._hits]
        lags = [
            (since, timedelta(seconds=float(definition.seconds)))
            for since, definition in definitions
            if isinstance(definition, HideRecordFault)
        ]
        with lagging(lags):
            answer = self._application_response()
        self._wait("after_execution")
        for _, definition in definitions:
            if isinstance(definition, DuplicateRecordFault):
                answer = with_record_twice(answer, definition.position)
        return answer

    def _application_response(self) -> WireResponse:
        started: list[tuple[str, list[tuple[str, str]]]] = []
        chunks: list[bytes] = []

        def start(
            status: str, headers: list[tuple[str, str]], error: object = None, /
        ) -> Callable[[bytes], None]:
            started.append((status, headers))
            return chunks.append

        response = self._application(self._incoming.environ, start)
        try:
            chunks += response
        finally:
            response.close()
        return WireResponse(*started[-1], b"".join(chunks))

    def _wait(self, when: str) -> None:
        for fault in self._hits:
            if isinstance(fault.definition, DelayFault) and fault.definition.when == when:
                self._incoming.body()  # so that the client may disconnect during the wait
                fault.ended.wait(float(fault.definition.seconds))
                if fault.abandoned:
                    hang_up(self._incoming.connection, reset=True)


def _rate_limit_response(fault: ActiveFault) -> WireResponse:
    seconds = fault.allowance.seconds_to_wait() if fault.allowance else 1
    body = {"success": False, "message": f"too many requests; try again in {seconds} s"}
    return _status_response(429, body, {"Retry-After": str(seconds)})


def _status_response(status: int, body: object, headers: dict[str, str]) -> WireResponse:
    phrase = responses.get(status, "Status of a fault")
    if body is None:
        body = {"success": status < 400, "message": phrase}
    content = (body if isinstance(body, str) else dumps(body)).encode("utf-8", "surrogatepass")
    header_names = {name.lower() for name in headers}
    content_type = "text/plain; charset=utf-8" if isinstance(body, str) else "application/json"
    defaults = [] if "content-type" in header_names else [("Content-Type", content_type)]
    return with_body(WireResponse(f"{status} {phrase}", [*defaults, *headers.items()], b""), content)
