"""Stands between the client and the provider, passes everything on as it is, and remembers it."""

import http.client
import http.server
import threading
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tests.contract.exchange import Answer, Request

_OF_THE_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "date", "server"}


class Recorder:
    """Serves on a free port of this machine; `exchanges` is what has passed, in order."""

    def __init__(self, target: str) -> None:
        self.exchanges: list[tuple[Request, Answer]] = []
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler(urlsplit(target)))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.005,), daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=60)

    def _handler(self, target: Any) -> type[http.server.BaseHTTPRequestHandler]:
        exchanges = self.exchanges

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                onward = http.client.HTTPConnection(target.hostname, target.port, timeout=30)
                onward.request(self.command, self.path, body or None, dict(self.headers.items()))
                response = onward.getresponse()
                content = response.read()
                onward.close()
                request = Request(
                    self.command,
                    self.path,
                    {name.lower(): value for name, value in self.headers.items()},
                    body,
                )
                exchanges.append(
                    (request, Answer(response.status, response.headers["Content-Type"], content))
                )
                self._pass_back(response, content)

            do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - so http.server calls them

            def _pass_back(self, response: http.client.HTTPResponse, content: bytes) -> None:
                self.send_response(response.status)
                for name, value in response.headers.items():
                    if name.lower() not in _OF_THE_CONNECTION:
                        self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler
