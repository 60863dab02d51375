"""Parse requests and build responses in the format common to all resources of the simulated provider.

A request has at most 1 MB of JSON in UTF-8 and is validated strictly; an error names the wrong member.
Responses have the envelopes and the error body of the specification.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal, NoReturn, TypeVar

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from gunicorn.http.errors import ParseException
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from payments_gateway import BANKS
from payments_gateway.money import dumps
from payments_gateway.operations import OPERATIONS, ApiOperation, Endpoint
from payments_gateway.sandbox.errors import BareRefusalError, RefusedError
from payments_gateway.sandbox.settings import PROFILE


def json_response(body: Mapping[str, object], status: int = 200) -> HttpResponse:
    """A JSON response with exactly these members."""
    return HttpResponse(dumps(body), status=status, content_type="application/json")


def envelope(message: str, data: object) -> HttpResponse:
    """The standard v2 envelope."""
    return json_response({"success": True, "message": message, "data": data})


def error_response(error: RefusedError) -> HttpResponse:
    """The error body: `success` false, a message, and the invalid members, if any."""
    if isinstance(error, BareRefusalError):
        return json_response({"message": error.message}, error.status)
    body: dict[str, object] = {"success": False, "message": error.message}
    if error.problems:
        body["errors"] = [{"field": field, "message": phrase} for field, phrase in error.problems]
    return json_response(body, error.status)


class ErrorMiddleware:
    """Turns a RefusedError of any view into its response."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return error_response(exception) if isinstance(exception, RefusedError) else None


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler404."""
    return error_response(RefusedError(404, "there is no such path"))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler400."""
    return error_response(RefusedError(400, "the request cannot be read"))


def internal_error(request: HttpRequest) -> HttpResponse:
    """Django's handler500. Django has logged the traceback; the client never sees it."""
    return error_response(RefusedError(500, "internal error"))


_EMAIL = re.compile(r"[^@\s\x00-\x1f]{1,64}@[^@\s\x00-\x1f]+\.[^@\s.\x00-\x1f]{2,}")


def _ten_digits(text: str) -> str:
    if not (len(text) == 10 and text.isascii() and text.isdigit()):
        raise ValueError("must be 10 digits")
    return text


def _known_bank(code: str) -> str:
    if code not in BANKS:
        raise ValueError("is not a known bank code")
    return code


def _printable(text: str) -> str:
    if not text.isprintable() or not text.strip():
        raise ValueError("must be printable text and not blank")
    return text


def _printable_or_empty(text: str) -> str:
    return _printable(text) if text else text


def _word(text: str) -> str:
    if any(char.isspace() for char in text):
        raise ValueError("must not hold spaces")
    return _printable(text)


def _email(text: str) -> str:
    if not _EMAIL.fullmatch(text):
        raise ValueError("must be an email address")
    return text


def _whole_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise ValueError("must be a whole number")
    return int(text)


def _number(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError("must be a number")
    return Decimal(value)


AccountNumber = Annotated[str, AfterValidator(_ten_digits)]
BankCode = Annotated[str, AfterValidator(_known_bank)]
PrintableText = Annotated[str, Field(max_length=120), AfterValidator(_printable)]
Username = Annotated[str, Field(max_length=60), AfterValidator(_word)]
Reference = Annotated[str, Field(max_length=80), AfterValidator(_printable)]
WalletType = Annotated[str, Field(max_length=40), AfterValidator(_printable)]
OptionalText = Annotated[str, Field(max_length=120), AfterValidator(_printable_or_empty)]
Memo = Annotated[str, Field(max_length=28), AfterValidator(_printable_or_empty)]
EmailAddress = Annotated[str, Field(max_length=254), AfterValidator(_printable), AfterValidator(_email)]
CryptoCurrency = Literal["USDT", "USDC", "BTC"]
AddressText = Annotated[str, Field(max_length=128), AfterValidator(_word)]
AmountText = Annotated[str, Field(min_length=1, max_length=40)]
TokenText = Annotated[str, Field(max_length=16), AfterValidator(_printable)]
ExactNumber = Annotated[Decimal, BeforeValidator(_number)]
WholeNumber = Annotated[int, BeforeValidator(_whole_number)]


MAXIMUM_BYTES = 1024 * 1024
_DISCARDED_BYTES = 64 * 1024 * 1024

_ERROR_PHRASES = {
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


class ApiRequest(BaseModel):
    """A request of the specification: camel case in JSON, no coercion, no unknown members, no null.

    Optional members may be omitted but not null: the specification allows null for none of them.
    """

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=False
    )


#: `otpType` is a required member if the profile requires one-time codes, an optional one otherwise.
OTP_TYPE_IF_ANY: Any = Field() if PROFILE.otp_required else None


class EmptyQuery(ApiRequest):
    """The query of an operation without parameters."""


BodyT = TypeVar("BodyT", bound=BaseModel)


def read_body(request: HttpRequest, kind: type[BodyT]) -> BodyT:
    """Parse the body into `kind`; RefusedError 413, 415 or 400 if that fails."""
    body = _read_raw_body(request)
    if issubclass(kind, ApiRequest):
        _check_media_type(request)
    return validated(kind, _parsed(body))


def read_optional_body(request: HttpRequest, kind: type[BodyT]) -> BodyT:
    """Like `read_body`, but a missing body counts as an empty object."""
    body = _read_raw_body(request)
    return validated(kind, _parsed(body) if body else {})


def read_query(request: HttpRequest, kind: type[BodyT]) -> BodyT:
    """Parse the query parameters into `kind`; RefusedError 400 also for an unknown or repeated one."""
    for name, values in request.GET.lists():
        if len(values) > 1:
            raise _repeated(name)
    return validated(kind, request.GET.dict())


def validated(kind: type[BodyT], members: object) -> BodyT:
    """Validate the members as `kind`; RefusedError 400 whose message names the first invalid member."""
    if not isinstance(members, dict):
        raise RefusedError(400, "the body must be a JSON object")
    try:
        value = kind.model_validate(members)
    except ValidationError as exc:
        details = exc.errors(include_url=False, include_input=False)
        raise _invalid_members(map(_member_problem, details)) from exc
    if isinstance(value, ApiRequest) and None in members.values():
        raise _invalid_members((name, "must not be null") for name, given in members.items() if given is None)
    return value


def _check_media_type(request: HttpRequest) -> None:
    """Requests with a body need `Content-Type: application/json` (Address families of the specification)."""
    charset = (request.content_params or {}).get("charset", "utf-8")
    if request.content_type != "application/json" or charset.lower() not in {"utf-8", "utf8"}:
        raise RefusedError(415, "the Content-Type must be application/json, in UTF-8")


def _read_raw_body(request: HttpRequest) -> bytes:
    """Read from the WSGI stream itself, because Django takes a chunked body for an empty one."""
    stream = request.META["wsgi.input"]
    try:
        body: bytes = stream.read(MAXIMUM_BYTES + 1)
        if len(body) > MAXIMUM_BYTES:
            _discard(stream)  # a client that is still sending would not receive the response
            raise RefusedError(413, f"the body must be at most {MAXIMUM_BYTES} bytes")
    except (OSError, ParseException) as exc:
        raise RefusedError(400, "the body ended early or is badly cut into chunks") from exc
    return body


def _discard(stream: Any) -> None:
    remaining = _DISCARDED_BYTES
    while remaining > 0 and (chunk := stream.read(64 * 1024)):
        remaining -= len(chunk)


def _parsed(body: bytes) -> object:
    try:
        text = body.decode()  # json.loads would also accept bytes in UTF-16 and UTF-32
        return json.loads(
            text, parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=_unique_members
        )
    except (
        ValueError,
        RecursionError,
        InvalidOperation,
    ) as exc:  # InvalidOperation: an exponent too large for Decimal
        raise RefusedError(400, "the body is not valid JSON") from exc


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _unique_members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members: dict[str, object] = {}
    for name, value in pairs:
        if name in members:
            raise _repeated(name)
        members[name] = value
    return members


def _repeated(name: str) -> RefusedError:
    return _invalid_members([(name[:60], "is given more than once")])


def _invalid_members(problems: Iterable[tuple[str, str]]) -> RefusedError:
    """A rejection whose message is the first problem."""
    listed = list(problems)
    return RefusedError(400, " ".join(listed[0]), listed)


def _member_problem(detail: ErrorDetails) -> tuple[str, str]:
    # Bodies are flat, so the first part is the member; it is missing if a name itself is unreadable.
    member = str(detail["loc"][0])[:60] if detail["loc"] else "the body"
    phrase = _ERROR_PHRASES.get(detail["type"])
    if phrase is None:
        return member, detail["msg"].removeprefix("Value error, ")
    return member, phrase.format(**detail.get("ctx", {}))


V2 = "/v2"
V4 = "/v4"
_BASES = {Endpoint.V2: V2, Endpoint.V2_OPEN: V2, Endpoint.V4: V4}


def operation_at(method: str, path: str) -> ApiOperation | None:
    """The operation of a path and method; None if the specification does not have it."""
    return _OPERATIONS_BY_PATH.get((method, path))


def _operation_table() -> Iterator[tuple[tuple[str, str], ApiOperation]]:
    for operation in OPERATIONS:
        yield (operation.method, _BASES[operation.endpoint] + operation.path_in(PROFILE)), operation


_OPERATIONS_BY_PATH = dict(_operation_table())
