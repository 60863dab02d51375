"""A provider that gives the responses a test defines, over real HTTP, for responses that the sandbox never
gives.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from typing import TypeVar

from tests.http_server import http_server

Answer = tuple[int, str]


class StubProvider:
    """Answers GET plausibly, and POST, PUT and DELETE as defined by `answer_post`.

    `answer_resolve`, where a test sets it, answers the reads of account holders, which `resolved` counts.
    `balance`, `records`, `accounts`, `callback` and `keys` are its data, as JSON. `posts` are the bodies of requests
    that change something, `changes` their methods and paths; `keys_shown` the API keys of all requests. Its clock is
    `clock_behind` ours; None leaves out the header Date.
    """

    def __init__(self) -> None:
        self.posts: list[str] = []
        self.changes: list[str] = []
        self.resolved: list[str] = []
        self.keys_shown: list[str] = []
        self.records = "[]"
        self.accounts = "[]"
        self.keys = '{"Apikeys": []}'
        self.balance = _BALANCE
        self.wallet = '{"addresses": []}'
        self.callback = '"https://hooks.example.com/before"'
        self.answer_post: Callable[[], Answer] = lambda: (200, '{"data": {"transactionId": "T-1"}}')
        self.answer_resolve: Callable[[], Answer] | None = None
        self.before_get: Callable[[], object] = lambda: None
        self.clock_behind: timedelta | None = timedelta()
        self.url = ""
        self.url_v4 = ""

    def answer_get(self, path: str) -> Answer:
        self.before_get()
        total = len(json.loads(self.records))
        page = f'{{"data": {self.records}, "total": {total}, "perPage": 100, "page": 1, "pages": 1}}'
        held = {
            "/v2/balance": f'{{"balances": [{self.balance}]}}',
            "/v2/transaction/summary": f'{{"txn": {page}, "summary": {_SUMMARY}}}',
            "/v2/wallet": f'{{"wallet": {self.wallet}}}',
            "/v2/callbackurl": f'{{"callbackUrl": {self.callback}}}',
            "/v4/user/api-keys": self.keys,
            "/v4/account": f'{{"accounts": {self.accounts}}}',
        }
        data = held.get(path.partition("?")[0], page)
        return 200, f'{{"success": true, "message": "ok", "data": {data}}}'


_BALANCE = """{"toCurrency": "NGN", "amount": 5000000, "formattedAmount": 5000000,
 "totalRecieved": 5000000, "totalSent": 0, "txnCount": 1}"""
_SUMMARY = '{"volume": 250000, "txnCount": 1, "duration": 0}'


Stub = TypeVar("Stub", bound=StubProvider)


@contextmanager
def running() -> Iterator[StubProvider]:
    """The stub on a free port of this machine, within the block."""
    with serving(StubProvider()) as stub:
        yield stub


@contextmanager
def serving(stub: Stub) -> Iterator[Stub]:
    """The same for another stub."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            stub.keys_shown.append(self.headers["X-Api-Key"])
            self._answer(*stub.answer_get(self.path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if stub.answer_resolve is not None and self.path.endswith("/bank/resolve"):
                stub.resolved.append(body.decode())
                self._answer(*stub.answer_resolve())
                return
            stub.posts.append(body.decode())
            stub.keys_shown.append(self.headers["X-Api-Key"])
            stub.changes.append(f"{self.command} {self.path}")
            self._answer(*stub.answer_post())

        do_PUT = do_DELETE = do_POST  # noqa: N815 - names of the standard library's handler

        def _answer(self, status: int, body: str) -> None:
            self.send_response_only(status)
            if stub.clock_behind is not None:
                self.send_header(
                    "Date", self.date_time_string(time.time() - stub.clock_behind.total_seconds())
                )
            self.send_header("Content-Length", str(len(body.encode())))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *arguments: object) -> None:
            """Stay quiet."""

    with http_server(Handler) as port:
        stub.url = f"http://127.0.0.1:{port}/v2"
        stub.url_v4 = f"http://127.0.0.1:{port}/v4"
        yield stub
