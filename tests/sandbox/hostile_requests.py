"""What a bad client sends, for every operation that the document describes, and what must come back."""

import json
from collections.abc import Iterator
from typing import Any

import requests

from tests.contract.openapi_document import described, resolved
from tests.sandbox_process import SandboxProcess

WITH_A_BODY = [name for name, (_, _, each) in described().items() if "requestBody" in each]
WITHOUT_A_BODY = [name for name in described() if name not in WITH_A_BODY]
JSON = {"Content-Type": "application/json"}
_LONGEST_MESSAGE = 200

RAW_BODIES: dict[str, bytes] = {
    "empty": b"",
    "blank": b" \n",
    "a form": b"accountNumber=1",
    "cut off": b'{"accountNumber": "01234',
    "an array": b"[]",
    "an array of an object": b'[{"accountNumber": "0123456789", "bankCode": "044"}]',
    "a text": b'"hello"',
    "a number": b"5",
    "true": b"true",
    "null": b"null",
    "two objects": b"{}{}",
    "a comma too many": b'{"amount": "1",}',
    "single quotes": b"{'amount': '1'}",
    "a comment": b'{"amount": "1"} // one',
    "NaN": b'{"amount": NaN}',
    "Infinity": b'{"amount": -Infinity}',
    "a huge exponent": b'{"amount": 1e999999999}',
    "an exponent that is itself huge": b'{"amount": 1e' + b"9" * 30 + b"}",
    "a huge integer": b'{"amount": ' + b"9" * 100_000 + b"}",
    "a raw line break in a text": b'{"amount": "1\n2"}',
    "bad UTF-8": b'{"accountName": "\xff\xfe"}',
    "half a surrogate in UTF-8": b'{"accountName": "\xed\xa0\x80"}',
    "UTF-8 with a mark": b'\xef\xbb\xbf{"amount": "1"}',
    "UTF-16": '{"amount": "1"}'.encode("utf-16"),
    "UTF-32": '{"amount": "1"}'.encode("utf-32"),
    "half a surrogate in a name": b'{"\\ud800": "x"}',
    "NUL in a name": b'{"\\u0000": "x"}',
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "deep arrays": b'{"amount":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a member twice": b'{"amount": "1", "amount": "2"}',
    "half a surrogate twice": b'{"\\ud800": 1, "\\ud800": 2}',
    "a member twice among very many": b"{" + b",".join(b'"m%d":1' % n for n in range(80_000)) + b',"m0":1}',
    "a very long name": b'{"' + b"x" * 10_000 + b'": 1}',
}

MEMBERS: dict[str, Any] = {
    "null": None,
    "true": True,
    "zero": 0,
    "a whole number": 7,
    "a decimal": 7.25,
    "negative": -1,
    "negative text": "-1",
    "more than the books can hold": 10**30,
    "huge": 10**400,
    "a huge decimal": 1.7976931348623157e308,
    "a tiny decimal": 5e-324,
    "an exponent in a text": "1e5",
    "NaN in a text": "NaN",
    "digits of another script": "١٢٣٤٥٦٧٨٩٠",
    "a list": [],
    "a list of what belongs there": ["0123456789"],
    "an object": {},
    "nested": {"a": {"b": [1, 2, {"c": None}]}},
    "empty": "",
    "blank": " \t ",
    "too long": "x" * 10_000,
    "NUL": "a\x00b",
    "a line break": "a\r\nb",
    "half a surrogate": "\ud800",
    "two halves in the wrong order": "\udc00\ud800",
    "right to left": "\u202eevah",
    "a name from right to left": "مريم",
    "an emoji": "👩\u200d🔬",
    "combining marks": "e" + "\u0301" * 100,
    "SQL": "' OR 1=1 --",
    "a template": "{{7*7}}${7*7}%(message)s%n",
    "markup": "<script>alert(1)</script>",
    "a path": "../../../etc/passwd",
    "a file address": "file:///etc/passwd",
}


def example(name: str, provider: SandboxProcess) -> dict[str, Any]:
    """The body that the document gives as an example, with a valid one-time code."""
    body = dict(described()[name][2]["requestBody"]["content"]["application/json"]["example"])
    return {
        member: provider.totp() if member in {"token", "otp"} else value for member, value in body.items()
    }


def bad_members(name: str, provider: SandboxProcess) -> Iterator[tuple[str, dict[str, Any]]]:
    """(What is wrong, the body) for each member that an operation's body may have."""
    schema = resolved(described()[name][2]["requestBody"]["content"]["application/json"]["schema"])
    good = example(name, provider)
    yield "a member too many", {**good, "surprise": "x"}
    yield "a member in other letters", {**good, **{member.upper(): value for member, value in good.items()}}
    for member in schema["properties"]:
        yield f"{member} is missing", {key: value for key, value in good.items() if key != member}
        for label, value in MEMBERS.items():
            yield f"{member} is {label}", {**good, member: value}


def send(
    provider: SandboxProcess,
    session: requests.Session,
    name: str,
    body: bytes = b"",
    query: str = "",
    **headers: str,
) -> requests.Response:
    """Send exactly this to an operation, with credentials."""
    method, path, _ = described()[name]
    return session.request(
        method,
        f"{provider.address}{path}{query}",
        data=body or None,
        headers={**provider.headers, **JSON, **headers},
        timeout=30,
        allow_redirects=False,
    )


def encoded(body: object) -> bytes:
    """JSON with every character escaped, so that half a surrogate can be sent."""
    return json.dumps(body).encode()


def complaint(response: requests.Response, *, is_refusal: bool = True) -> str | None:
    """What is wrong with an answer to bad input; None when it is a 4xx with a readable message, and nothing more.

    Unless `is_refusal`, the request may also have been accepted.
    """
    if not is_refusal and response.status_code == requests.codes.ok:
        return None
    if not 400 <= response.status_code < 500:
        return f"status {response.status_code}: {response.text[:300]}"
    if response.headers.get("Content-Type") != "application/json":
        return f"Content-Type {response.headers.get('Content-Type')}"
    message = response.json().get("message")
    if not isinstance(message, str) or not 0 < len(message) <= _LONGEST_MESSAGE:
        return f"message {message!r:.300}"
    return "a traceback" if "Traceback" in response.text else None
