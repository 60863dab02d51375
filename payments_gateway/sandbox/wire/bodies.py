"""Reading a request: at most 1 MB of JSON in UTF-8, strictly as declared, every mistake named by its member."""

import json
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn, TypeVar

from django.http import HttpRequest
from gunicorn.http.errors import ParseException
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from payments_gateway.sandbox.wire.errors import RefusedError

MAXIMUM_BYTES = 1024 * 1024
_DISCARDED_BYTES = 64 * 1024 * 1024

_PHRASES = {
    "missing": "is required",
    "extra_forbidden": "is not a known member",
    "string_type": "must be a string",
    "string_unicode": "must be text in valid Unicode",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "literal_error": "must be {expected}",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}


class Body(BaseModel):
    """A request of the specification: names in camel case on the wire, no coercion, nothing unknown, no null.

    What a client leaves out it leaves out; null is a value, and no member of the specification may have it.
    """

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=False
    )


class Nothing(Body):
    """The query of an operation that takes none."""


BodyT = TypeVar("BodyT", bound=BaseModel)


def read_body(request: HttpRequest, kind: type[BodyT]) -> BodyT:
    """The body as `kind`; RefusedError 413, 415 or 400 otherwise."""
    body = _received(request)
    if issubclass(kind, Body):
        _check_media_type(request)
    return validated(kind, _parsed(body))


def read_optional_body(request: HttpRequest, kind: type[BodyT]) -> BodyT:
    """Like `read_body`, but no body at all stands for an empty object."""
    body = _received(request)
    return validated(kind, _parsed(body) if body else {})


def read_query(request: HttpRequest, kind: type[BodyT]) -> BodyT:
    """The query parameters as `kind`; RefusedError 400 also for one that is unknown or given twice."""
    for name, values in request.GET.lists():
        if len(values) > 1:
            raise _repeated(name)
    return validated(kind, request.GET.dict())


def validated(kind: type[BodyT], members: object) -> BodyT:
    """The members as `kind`; RefusedError 400 whose message names the first wrong member."""
    if not isinstance(members, dict):
        raise RefusedError(400, "the body must be a JSON object")
    try:
        value = kind.model_validate(members)
    except ValidationError as exc:
        details = exc.errors(include_url=False, include_input=False)
        raise _wrong(map(_problem, details)) from exc
    if isinstance(value, Body) and None in members.values():
        raise _wrong((name, "must not be null") for name, given in members.items() if given is None)
    return value


def _check_media_type(request: HttpRequest) -> None:
    """Requests with a body carry `Content-Type: application/json` (Address families of the specification)."""
    charset = (request.content_params or {}).get("charset", "utf-8")
    if request.content_type != "application/json" or charset.lower() not in {"utf-8", "utf8"}:
        raise RefusedError(415, "the Content-Type must be application/json, in UTF-8")


def _received(request: HttpRequest) -> bytes:
    """Read from the server itself, because Django takes a chunked body for an empty one."""
    stream = request.META["wsgi.input"]
    try:
        body: bytes = stream.read(MAXIMUM_BYTES + 1)
        if len(body) > MAXIMUM_BYTES:
            _discard(stream)  # a client that is still sending would never see the answer
            raise RefusedError(413, f"the body must be at most {MAXIMUM_BYTES} bytes")
    except (OSError, ParseException) as exc:
        raise RefusedError(400, "the body ended early or is badly cut into chunks") from exc
    return body


def _discard(stream: Any) -> None:
    left = _DISCARDED_BYTES
    while left > 0 and (chunk := stream.read(64 * 1024)):
        left -= len(chunk)


def _parsed(body: bytes) -> object:
    try:
        text = body.decode()  # json.loads would take bytes in UTF-16 and UTF-32, too
        return json.loads(text, parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=_once)
    except (ValueError, RecursionError, InvalidOperation) as exc:  # the last: an exponent beyond all numbers
        raise RefusedError(400, "the body is not valid JSON") from exc


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members: dict[str, object] = {}
    for name, value in pairs:
        if name in members:
            raise _repeated(name)
        members[name] = value
    return members


def _repeated(name: str) -> RefusedError:
    return _wrong([(name[:60], "is given more than once")])


def _wrong(problems: Iterable[tuple[str, str]]) -> RefusedError:
    """The refusal whose message is the first problem."""
    listed = list(problems)
    return RefusedError(400, " ".join(listed[0]), listed)


def _problem(detail: ErrorDetails) -> tuple[str, str]:
    # Bodies are flat, so the first part is the member; there is none when a name itself cannot be read.
    member = str(detail["loc"][0])[:60] if detail["loc"] else "the body"
    phrase = _PHRASES.get(detail["type"])
    if phrase is None:
        return member, detail["msg"].removeprefix("Value error, ")
    return member, phrase.format(**detail.get("ctx", {}))
