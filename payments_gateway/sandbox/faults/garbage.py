"""Answers that are none, by name. Each has status 200 and is framed as told; then the connection is closed."""

from collections.abc import Callable, Mapping

from payments_gateway.sandbox.faults.answers import Answer

_JSON = "application/json"
_GOOD = b'{"success": true, "message": "OK", "data": {}}'
_TEN_MEGABYTES = 10_000_000


def _whole(
    body: bytes, content_type: str = _JSON, *headers: tuple[str, str], length: int | None = None
) -> bytes:
    size = str(len(body) if length is None else length)
    return Answer("200 OK", [("Content-Type", content_type), ("Content-Length", size), *headers], body).raw()


def _data(value: bytes) -> bytes:
    return _whole(b'{"success": true, "message": "OK", "data": ' + value + b"}")


def _chunked(chunks: bytes) -> bytes:
    return Answer("200 OK", [("Content-Type", _JSON), ("Transfer-Encoding", "chunked")], chunks).raw()


FORMS: Mapping[str, Callable[[], bytes]] = {
    # a body that is whole, and no answer of this service
    "html": lambda: _whole(b"<!doctype html><title>Please sign in</title><p>Please sign in.", "text/html"),
    "html_as_json": lambda: _whole(b"<!doctype html><title>Please sign in</title>"),
    "empty": lambda: _whole(b""),
    "not_json": lambda: _whole(b"success=true&message=OK"),
    "half_json": lambda: _whole(_GOOD[: len(_GOOD) // 2]),
    "two_documents": lambda: _whole(_GOOD + _GOOD),
    "null": lambda: _whole(b"null"),
    "array": lambda: _whole(b"[]"),
    "text": lambda: _whole(b'"OK"'),
    "number": lambda: _whole(b"1"),
    "empty_object": lambda: _whole(b"{}"),
    "data_is_null": lambda: _data(b"null"),
    "data_is_text": lambda: _data(b'"OK"'),
    "data_is_empty": lambda: _data(b"{}"),
    "success_is_false": lambda: _whole(b'{"success": false, "message": "no", "data": {}}'),
    # JSON that readers read differently
    "nan": lambda: _data(b'{"amount": NaN}'),
    "infinity": lambda: _data(b'{"amount": -Infinity}'),
    "duplicate_keys": lambda: _whole(
        b'{"success": true, "success": false, "message": "OK", "data": {}, "data": []}'
    ),
    "huge_number": lambda: _data(b'{"amount": 1e999999999}'),
    "many_digits": lambda: _data(b'{"amount": ' + b"9" * 100_000 + b"}"),
    "deeply_nested": lambda: _data(b"[" * 100_000 + b"]" * 100_000),
    "ten_megabytes": lambda: _data(b'"' + b"x" * _TEN_MEGABYTES + b'"'),
    # characters
    "invalid_utf8": lambda: _data(b'{"accountName": "\xff\xfe"}'),
    "half_surrogate": lambda: _data(b'{"accountName": "\\ud800"}'),
    "null_character": lambda: _data(b'{"accountName": "a\\u0000b"}'),
    "byte_order_mark": lambda: _whole(b"\xef\xbb\xbf" + _GOOD),
    "utf16": lambda: _whole(_GOOD.decode().encode("utf-16")),
    # headers and framing that lie
    "wrong_type": lambda: _whole(_GOOD, "text/html"),
    "not_gzip": lambda: _whole(_GOOD, _JSON, ("Content-Encoding", "gzip")),
    "length_too_short": lambda: _whole(_GOOD, length=len(_GOOD) - 10),
    "length_too_long": lambda: _whole(_GOOD, length=len(_GOOD) + 10),
    "two_lengths": lambda: _whole(_GOOD, _JSON, ("Content-Length", "3")),
    "bad_chunks": lambda: _chunked(b"zz\r\n" + _GOOD),
    "unfinished_chunks": lambda: _chunked(b"%x\r\n%b\r\n" % (len(_GOOD), _GOOD)),
    "not_http": lambda: b"220 mail.example ESMTP ready\r\n",
    "half_a_head": lambda: b"HTTP/1.1 200 OK\r\nContent-Ty",
    "nothing_at_all": lambda: b"",
}
"""What POST /_sandbox/faults accepts as `form`."""
