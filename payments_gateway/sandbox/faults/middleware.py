"""WSGI middleware that applies the faults. Without an active fault it costs one check of a flag."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from http import HTTPStatus
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

    def __init__(self, application: WSGIHandler, plan: FaultRegistry) -> None:
        self._application = application
        self._plan = plan

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if not self._plan.in_force or not is_api_request(environ):
            return self._application(environ, start_response)
        incoming = IncomingRequest(environ)
        hits = self._plan.claim(incoming)
        if not hits:
            return self._application(environ, start_response)
        try:
            answer = FaultyExchange(self._application, incoming, hits).answer()
        finally:
            self._plan.release(hits)
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
                return self._answered(fault)
        return self._execute()

    def _answered(self, fault: ActiveFault) -> WireResponse:
        match fault.definition:
            case StatusFault() as order:
                return self._status(order)
            case DropFault() as order:
                return self._drop(order)
            case TruncateFault() as order:
                return self._truncate(order)
            case GarbageFault() as order:
                return self._garbage(order)
            case RateLimitFault():
                return _rate_limit_response(fault)
        raise TypeError(f"{fault.definition.kind} gives no answer alone")

    def _status(self, order: StatusFault) -> WireResponse:
        if order.when == "after_execution":
            self._execute()
        return _status_response(order.status, order.body, order.headers)

    def _drop(self, order: DropFault) -> WireResponse:
        reset = _RESET_BY_WHEN[order.when] if order.reset is None else order.reset
        sent = b""
        if order.when == "after_read":
            self._incoming.body()
        elif order.when == "after_execution":
            self._execute()
        elif order.when == "mid_answer":
            answer = self._execute()
            sent = answer.raw(cut_at=len(answer.body) // 2)
        send_and_hang_up(self._incoming.connection, sent, reset=reset)

    def _truncate(self, order: TruncateFault) -> WireResponse:
        answer = self._execute()
        if order.content_length == "full":
            send_and_hang_up(self._incoming.connection, answer.raw(cut_at=order.at), reset=False)
        return with_body(answer, answer.body[: order.at])

    def _garbage(self, order: GarbageFault) -> WireResponse:
        if order.when == "after_execution":
            self._execute()
        else:
            self._incoming.body()
        send_and_hang_up(self._incoming.connection, GARBAGE_FORMS[order.form](), reset=False)

    def _execute(self) -> WireResponse:
        orders = [(fault.since, fault.definition) for fault in self._hits]
        lags = [
            (since, timedelta(seconds=float(order.seconds)))
            for since, order in orders
            if isinstance(order, HideRecordFault)
        ]
        with lagging(lags):
            answer = self._served()
        self._wait("after_execution")
        for _, order in orders:
            if isinstance(order, DuplicateRecordFault):
                answer = with_record_twice(answer, order.position)
        return answer

    def _served(self) -> WireResponse:
        begun: list[tuple[str, list[tuple[str, str]]]] = []
        written: list[bytes] = []

        def start(
            status: str, headers: list[tuple[str, str]], error: object = None, /
        ) -> Callable[[bytes], None]:
            begun.append((status, headers))
            return written.append

        response = self._application(self._incoming.environ, start)
        try:
            written += response
        finally:
            response.close()
        return WireResponse(*begun[-1], b"".join(written))

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
    phrase = HTTPStatus(status).phrase if status in _KNOWN_STATUSES else "Status of a fault"
    if body is None:
        body = {"success": status < 400, "message": phrase}
    written = (body if isinstance(body, str) else dumps(body)).encode("utf-8", "surrogatepass")
    given = {name.lower() for name in headers}
    content_type = "text/plain; charset=utf-8" if isinstance(body, str) else "application/json"
    defaults = [] if "content-type" in given else [("Content-Type", content_type)]
    return with_body(WireResponse(f"{status} {phrase}", [*defaults, *headers.items()], b""), written)


_KNOWN_STATUSES = frozenset(int(status) for status in HTTPStatus)
