"""One request and its answer, held against the document: method, path, headers, query, body, status, shape."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from payments_gateway.profile.model import ProfileName
from tests.contract.openapi_document import (
    answer_schema,
    described,
    disagreements,
    document,
    request_schema,
    resolved,
)

_CREDENTIALS = {
    name: scheme["name"].lower() for name, scheme in document()["components"]["securitySchemes"].items()
}


@dataclass(frozen=True)
class Request:
    """A request as it stood on the wire; the names of its headers are in small letters."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(urlsplit(self.target).query, keep_blank_values=True, strict_parsing=bool(self._raw))

    @property
    def _raw(self) -> str:
        return urlsplit(self.target).query


@dataclass(frozen=True)
class Answer:
    """An answer as it stood on the wire."""

    status: int
    content_type: str | None
    body: bytes


def operation_of(request: Request, profile: ProfileName = "specification") -> str:
    """The operationId of a request; AssertionError when the document has none for it."""
    found = [
        name
        for name, (method, path, _) in described(profile).items()
        if method == request.method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), request.path)
    ]
    # A path without a parameter comes before one with: `transaction/summary` is no id.
    found.sort(key=lambda name: "{" in described(profile)[name][1])
    assert found, f"{request.method} {request.path} is not documented"
    return found[0]


def check_request(request: Request, profile: ProfileName = "specification") -> None:
    """AssertionError, in words, for whatever the document does not allow."""
    name = operation_of(request, profile)
    _, path, description = described(profile)[name]
    schemes = description.get("security", document()["security"])
    demanded = {_CREDENTIALS[each] for scheme in schemes for each in scheme}
    assert demanded == set(request.headers) & set(_CREDENTIALS.values()), f"{name}: credential headers"
    parameters = [resolved(each, profile) for each in description.get("parameters", [])]
    _check_path(path, request, [each for each in parameters if each["in"] == "path"])
    _check_query(request, [each for each in parameters if each["in"] == "query"])
    _check_body(name, request, profile)


def check_answer(request: Request, answer: Answer, profile: ProfileName = "specification") -> None:
    """AssertionError, in words, for an answer that the document does not show."""
    name = operation_of(request, profile)
    assert answer.content_type == "application/json", f"{name}: {answer.content_type}"
    found = disagreements(answer_schema(name, answer.status, profile), json.loads(answer.body), profile)
    assert not found, f"{name}: {found}"


def _check_path(path: str, request: Request, parameters: list[Any]) -> None:
    pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)
    values = re.fullmatch(pattern, request.path)
    assert values is not None
    for each in parameters:
        assert not disagreements(each["schema"], unquote(values[each["name"]])), each["name"]


def _check_query(request: Request, parameters: list[Any]) -> None:
    given = dict(request.query)
    assert len(given) == len(request.query), "a query parameter is given twice"
    known = {each["name"]: each for each in parameters}
    assert set(given) <= set(known), f"undocumented in the query: {set(given) - set(known)}"
    assert {each["name"] for each in parameters if each.get("required")} <= set(given)
    for name, text in given.items():
        schema = resolved(known[name]["schema"])
        value = int(text) if schema.get("type") == "integer" else text
        assert not disagreements(schema, value), f"{name}={text}"


def _check_body(name: str, request: Request, profile: ProfileName) -> None:
    schema = request_schema(name, profile)
    if schema is None:
        assert request.body == b""
        return
    assert request.headers["content-type"] == "application/json"
    found = disagreements(schema, json.loads(request.body), profile)
    assert not found, f"{name}: {found}"
