"""Faulty responses as raw bytes (truncated, repeated record, malformed), and ways to close a connection."""

import errno
import json
import os
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from email.utils import format_datetime
from typing import NoReturn

from payments_gateway.money import dumps
from payments_gateway.sandbox import clock

_SENDING_SECONDS = 20
_CONNECTION_CLOSED = (errno.ECONNRESET, "a fault has ended the connection")


@dataclass(frozen=True, slots=True)
class WireResponse:
    """A complete response: status line, headers, body."""

    status: str
    headers: Sequence[tuple[str, str]]
    body: bytes

    def raw(self, cut_at: int | None = None) -> bytes:
        """The raw response with `Connection: close`; truncated after this many bytes of the body."""
        fixed = (
            ("Server", "gunicorn"),
            ("Date", format_datetime(clock.now(), usegmt=True)),
            ("Connection", "close"),
        )
        lines = [f"HTTP/1.1 {self.status}", *(f"{name}: {value}" for name, value in (*fixed, *self.headers))]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + self.body[:cut_at]


def send_and_hang_up(connection: socket.socket, data: bytes, *, reset: bool) -> NoReturn:
    """Send these bytes and close the connection."""
    connection.settimeout(_SENDING_SECONDS)
    with suppress(OSError):  # the client has disconnected, or does not read
        connection.sendall(data)
    hang_up(connection, reset=reset)


def hang_up(connection: socket.socket, *, reset: bool) -> NoReturn:
    """Close the connection at once: with RST, or with FIN if all received bytes were read.

    Raises ConnectionResetError, which gunicorn takes for a disconnected client: it writes nothing and closes.
    The descriptor is replaced by an unconnected socket for gunicorn to close, because closing a closed one
    breaks its count.
    """
    with suppress(OSError), socket.socket(connection.family, connection.type) as unconnected:
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.dup2(unconnected.fileno(), connection.fileno(), inheritable=False)
    raise ConnectionResetError(*_CONNECTION_CLOSED)


def with_record_twice(answer: WireResponse, position: int) -> WireResponse:
    """The page with the record at this position (from 0) repeated. Errors and shorter pages are unchanged."""
    if not answer.status.startswith("200 "):
        return answer
    document = json.loads(answer.body, parse_float=Decimal)
    page = document["data"].get("txn", document["data"])
    page["data"][position:position] = page["data"][position : position + 1]
    return with_body(answer, dumps(document).encode())


def with_body(answer: WireResponse, body: bytes) -> WireResponse:
    """The same response with another body and a matching Content-Length."""
    headers = [(name, value) for name, value in answer.headers if name.lower() != "content-length"]
    return replace(answer, headers=[*headers, ("Content-Length", str(len(body)))], body=body)


_JSON = "application/json"
_VALID_BODY = b'{"success": true, "message": "OK", "data": {}}'
_TEN_MEGABYTES = 10_000_000


def _complete_response(
    body: bytes, content_type: str = _JSON, *headers: tuple[str, str], length: int | None = None
) -> bytes:
    size = str(len(body) if length is None else length)
    return WireResponse(
        "200 OK", [("Content-Type", content_type), ("Content-Length", size), *headers], body
    ).raw()


def _response_with_data(value: bytes) -> bytes:
    return _complete_response(b'{"success": true, "message": "OK", "data": ' + value + b"}")


def _chunked(chunks: bytes) -> bytes:
    return WireResponse("200 OK", [("Content-Type", _JSON), ("Transfer-Encoding", "chunked")], chunks).raw()


GARBAGE_FORMS: Mapping[str, Callable[[], bytes]] = {
    # a complete body that is not a response of this API
    "html": lambda: _complete_response(
        b"<!doctype html><title>Please sign in</title><p>Please sign in.", "text/html"
    ),
    "html_as_json": lambda: _complete_response(b"<!doctype html><title>Please sign in</title>"),
    "empty": lambda: _complete_response(b""),
    "not_json": lambda: _complete_response(b"success=true&message=OK"),
    "half_json": lambda: _complete_response(_VALID_BODY[: len(_VALID_BODY) // 2]),
    "two_documents": lambda: _complete_response(_VALID_BODY + _VALID_BODY),
    "null": lambda: _complete_response(b"null"),
    "array": lambda: _complete_response(b"[]"),
    "text": lambda: _complete_response(b'"OK"'),
    "number": lambda: _complete_response(b"1"),
    "empty_object": lambda: _complete_response(b"{}"),
    "data_is_null": lambda: _response_with_data(b"null"),
    "data_is_text": lambda: _response_with_data(b'"OK"'),
    "data_is_empty": lambda: _response_with_data(b"{}"),
    "success_is_false": lambda: _complete_response(b'{"success": false, "message": "no", "data": {}}'),
    # JSON that parsers interpret differently
    "nan": lambda: _response_with_data(b'{"amount": NaN}'),
    "infinity": lambda: _response_with_data(b'{"amount": -Infinity}'),
    "duplicate_keys": lambda: _complete_response(
        b'{"success": true, "success": false, "message": "OK", "data": {}, "data": []}'
    ),
    "huge_number": lambda: _response_with_data(b'{"amount": 1e999999999}'),
    "many_digits": lambda: _response_with_data(b'{"amount": ' + b"9" * 100_000 + b"}"),
    "deeply_nested": lambda: _response_with_data(b"[" * 100_000 + b"]" * 100_000),
    "ten_megabytes": lambda: _response_with_data(b'"' + b"x" * _TEN_MEGABYTES + b'"'),
    # character encodings
    "invalid_utf8": lambda: _response_with_data(b'{"accountName": "\xff\xfe"}'),
    "half_surrogate": lambda: _response_with_data(b'{"accountName": "\\ud800"}'),
    "null_character": lambda: _response_with_data(b'{"accountName": "a\\u0000b"}'),
    "byte_order_mark": lambda: _complete_response(b"\xef\xbb\xbf" + _VALID_BODY),
    "utf16": lambda: _complete_response(_VALID_BODY.decode().encode("utf-16")),
    # wrong headers and framing
    "wrong_type": lambda: _complete_response(_VALID_BODY, "text/html"),
    "not_gzip": lambda: _complete_response(_VALID_BODY, _JSON, ("Content-Encoding", "gzip")),
    "length_too_short": lambda: _complete_response(_VALID_BODY, length=len(_VALID_BODY) - 10),
    "length_too_long": lambda: _complete_response(_VALID_BODY, length=len(_VALID_BODY) + 10),
    "two_lengths": lambda: _complete_response(_VALID_BODY, _JSON, ("Content-Length", "3")),
    "bad_chunks": lambda: _chunked(b"zz\r\n" + _VALID_BODY),
    "unfinished_chunks": lambda: _chunked(b"%x\r\n%b\r\n" % (len(_VALID_BODY), _VALID_BODY)),
    "not_http": lambda: b"220 mail.example ESMTP ready\r\n",
    "half_a_head": lambda: b"HTTP/1.1 200 OK\r\nContent-Ty",
    "nothing_at_all": lambda: b"",
}
"""Malformed responses by the `form` of POST /_sandbox/faults."""
