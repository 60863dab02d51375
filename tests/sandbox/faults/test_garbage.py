"""Answers that are none: each named form on the wire, after the operation was executed or instead of it."""

import json
from collections.abc import Callable

import pytest

from payments_gateway.sandbox.faults.responses import GARBAGE_FORMS
from tests.sandbox.conftest import SandboxClient
from tests.sandbox.raw_http import Received, exchanged


def is_not_json(answer: Received) -> bool:
    try:
        json.loads(answer.body)
    except (ValueError, RecursionError):
        return True
    return False


def is_whole(answer: Received) -> bool:
    return int(answer.header("Content-Length") or 0) == len(answer.body)


LOOKS: dict[str, Callable[[Received], bool]] = {
    "html": lambda answer: answer.header("Content-Type") == "text/html" and is_not_json(answer),
    "html_as_json": lambda answer: (
        answer.header("Content-Type") == "application/json" and is_not_json(answer)
    ),
    "empty": lambda answer: answer.body == b"" and answer.header("Content-Length") == "0",
    "not_json": lambda answer: is_whole(answer) and is_not_json(answer),
    "half_json": lambda answer: is_whole(answer) and is_not_json(answer),
    "two_documents": lambda answer: is_whole(answer) and is_not_json(answer),
    "null": lambda answer: answer.body == b"null",
    "array": lambda answer: answer.body == b"[]",
    "text": lambda answer: answer.body == b'"OK"',
    "number": lambda answer: answer.body == b"1",
    "empty_object": lambda answer: answer.body == b"{}",
    "data_is_null": lambda answer: json.loads(answer.body)["data"] is None,
    "data_is_text": lambda answer: json.loads(answer.body)["data"] == "OK",
    "data_is_empty": lambda answer: json.loads(answer.body)["data"] == {},
    "success_is_false": lambda answer: json.loads(answer.body)["success"] is False,
    "nan": lambda answer: b'{"amount": NaN}' in answer.body,
    "infinity": lambda answer: b'{"amount": -Infinity}' in answer.body,
    "duplicate_keys": lambda answer: (
        answer.body.count(b'"data"') == 2 and answer.body.count(b'"success"') == 2
    ),
    "huge_number": lambda answer: b"1e999999999}" in answer.body,
    "many_digits": lambda answer: b"9" * 100_000 in answer.body,
    "deeply_nested": lambda answer: b"[" * 100_000 in answer.body,
    "ten_megabytes": lambda answer: len(answer.body) > 10_000_000 and is_whole(answer),
    "invalid_utf8": lambda answer: b"\xff\xfe" in answer.body,
    "half_surrogate": lambda answer: json.loads(answer.body)["data"]["accountName"] == "\ud800",
    "null_character": lambda answer: json.loads(answer.body)["data"]["accountName"] == "a\0b",
    "byte_order_mark": lambda answer: answer.body.startswith(b"\xef\xbb\xbf{"),
    "utf16": lambda answer: answer.body.decode("utf-16").startswith("{"),
    "wrong_type": lambda answer: answer.header("Content-Type") == "text/html" and not is_not_json(answer),
    "not_gzip": lambda answer: answer.header("Content-Encoding") == "gzip" and not is_not_json(answer),
    "length_too_short": lambda answer: int(answer.header("Content-Length") or 0) == len(answer.body) - 10,
    "length_too_long": lambda answer: int(answer.header("Content-Length") or 0) == len(answer.body) + 10,
    "two_lengths": lambda answer: answer.head.count(b"Content-Length: ") == 2,
    "bad_chunks": lambda answer: (
        answer.header("Transfer-Encoding") == "chunked" and answer.body[:4] == b"zz\r\n"
    ),
    "unfinished_chunks": lambda answer: (
        not answer.body.endswith(b"0\r\n\r\n") and answer.body[-2:] == b"\r\n"
    ),
    "not_http": lambda answer: answer.data == b"220 mail.example ESMTP ready\r\n",
    "half_a_head": lambda answer: answer.data == b"HTTP/1.1 200 OK\r\nContent-Ty",
    "nothing_at_all": lambda answer: answer.data == b"",
}


def test_every_kind_of_garbage_is_covered() -> None:
    assert LOOKS.keys() == GARBAGE_FORMS.keys()


@pytest.mark.parametrize("form", LOOKS)
def test_garbage_is_of_the_named_kind(provider: SandboxClient, form: str) -> None:
    provider.process.fault("balances.withdraw", "garbage", form=form)
    answer = exchanged(provider.process, "POST", "/v2/balance/withdraw", provider.withdrawal())
    assert LOOKS[form](answer)
    assert not answer.reset
    assert len(provider.process.ledger()["withdrawals"]) == 1


def test_garbage_can_replace_the_execution(provider: SandboxClient) -> None:
    provider.process.fault("balances.withdraw", "garbage", form="html", when="before_execution")
    answer = exchanged(provider.process, "POST", "/v2/balance/withdraw", provider.withdrawal())
    assert LOOKS["html"](answer)
    assert provider.process.ledger()["withdrawals"] == []
