"""Base models and field types of all requests and responses: exact numbers, texts, timestamps, API names as aliases."""

import re
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    ValidationError,
)

from payments_gateway.errors import NotSentError, TemplateError
from payments_gateway.errors import gettext_noop as _
from payments_gateway.money import fits_ledger, format_plain, is_storable

_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")
_SECONDS = re.compile(r"[0-9]{1,16}(\.[0-9]{1,9})?")
_DATE_DIGITS, _MILLISECONDS_DIGITS = 8, 12
MAX_ID_LENGTH = 500
_NOT_A_NUMBER = _("not an exact number")
_TOO_LARGE = _("a number that is too large")
_NOT_STORABLE = _("text that cannot be stored")
NOT_A_TEXT = _("not text")
_VALUE_PROBLEMS = frozenset({_NOT_A_NUMBER, _TOO_LARGE, _NOT_STORABLE, NOT_A_TEXT})
"""The messages of these field types for a rejected value."""
NOT_AS_SPECIFIED = _("not as specified")
_PROBLEMS = {
    "missing": _("missing"),
    "string_type": NOT_A_TEXT,
    "string_too_short": _("empty"),  # the minimum length of every text is 1
    "list_type": _("not a list"),
    "model_type": _("not an object"),
    "dict_type": _("not an object"),
    "string_too_long": _("too long"),
}
"""Messages for the most frequent error types of pydantic."""
_NOT_BUILT = _("The request cannot be sent: it does not meet the provider's specification. Nothing was sent.")
_INVALID = _("The request cannot be sent: {why} Nothing was sent.")
_INVALID_AT = _("The request cannot be sent ({place}: {why}). Nothing was sent.")
_ZERO, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)


def _exact(value: object) -> Decimal:
    """Convert a JSON number or its text exactly. Rejects floats, which have lost digits, and excessive
    numbers.
    """
    match value:
        case bool() | float():
            raise ValueError(_NOT_A_NUMBER)
        case int() | Decimal():
            number = Decimal(value)
        case str() if _NUMBER.fullmatch(value.strip()):
            number = Decimal(value.strip())
        case _:
            raise ValueError(_NOT_A_NUMBER)
    if not fits_ledger(number):
        raise ValueError(_TOO_LARGE)
    return number


def _exact_or_none(value: object) -> Decimal | None:
    """Like `_exact`, but null and the empty text are None."""
    return None if value is None or value == "" else _exact(value)


def _lenient_amount(value: object) -> Decimal | None:
    """Like `_exact_or_none`, but an unreadable value is None: it must not invalidate a success response."""
    try:
        return _exact_or_none(value)
    except ValueError:
        return None


def _lenient_text(value: object) -> str:
    """Convert a text, a number or a boolean to text; anything else becomes empty. For values that decide nothing."""
    if isinstance(value, bool):
        return str(value).lower()
    return _text(value) if isinstance(value, (str, int, Decimal)) else ""


def _optional_id(value: object) -> str | None:
    """Convert an id to text. None if it is missing, empty or too long to be an id."""
    name = _lenient_text(value).strip()
    return name if 0 < len(name) <= MAX_ID_LENGTH else None


def _flag(value: object) -> bool | None:
    """Convert a boolean, or its text, to bool. Anything else is None."""
    flags: dict[object, bool] = {"true": True, "false": False}
    return value if isinstance(value, bool) else flags.get(value) if isinstance(value, str) else None


def _storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError(_NOT_STORABLE)
    return text


def _formatted(value: object) -> Decimal:
    """Convert an amount formatted for display, with thousands separators."""
    return _exact(value.replace(",", "") if isinstance(value, str) else value)


def _text(value: object) -> str:
    """Accept a text; null becomes the empty text, and a number keeps its digits."""
    match value:
        case None:
            return ""
        case str():
            return value
        case int() | Decimal() if not isinstance(value, bool):
            return str(value)
    raise ValueError(NOT_A_TEXT)


def _timestamp(value: object) -> datetime | None:
    """Parse ISO 8601, or Unix seconds or milliseconds. An unreadable timestamp is None; it never invalidates a record.

    The specification does not say in which unit a number is: one of twelve digits or more is in milliseconds, since
    seconds would be after the year 5000. Eight digits are a date if there is such a date.

    Also None: the zero values of both formats (year 1, 0 seconds), which servers use for "never", and years that
    cannot be converted to every time zone.
    """
    text = str(value).strip()
    try:
        moment = _unix_time(text) if _SECONDS.fullmatch(text) else datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment if _ZERO < moment < _LATEST else None


def _unix_time(text: str) -> datetime:
    if len(text) == _DATE_DIGITS and text.isdecimal():
        with suppress(ValueError):
            return datetime.fromisoformat(text)
    whole = len(text.partition(".")[0])
    return datetime.fromtimestamp(float(text) / (1000 if whole >= _MILLISECONDS_DIGITS else 1), UTC)


# As JSON without an exponent, which no amount may have when it is read again.
_AS_JSON = PlainSerializer(format_plain, return_type=str, when_used="json-unless-none")
Amount = Annotated[Decimal, BeforeValidator(_exact), _AS_JSON]
OptionalAmount = Annotated[Decimal | None, BeforeValidator(_exact_or_none), _AS_JSON]
LenientAmount = Annotated[Decimal | None, BeforeValidator(_lenient_amount), _AS_JSON]
FormattedAmount = Annotated[Decimal, BeforeValidator(_formatted), _AS_JSON]
Count = Annotated[int, BeforeValidator(_exact)]
Text = Annotated[str, BeforeValidator(_text)]
LenientText = Annotated[str, BeforeValidator(_lenient_text)]
OptionalId = Annotated[str | None, BeforeValidator(_optional_id)]
CurrencyCode = Annotated[str, BeforeValidator(_text), StringConstraints(pattern=r"^[A-Z][A-Z0-9]{1,11}$")]
Flag = Annotated[bool | None, BeforeValidator(_flag)]
Timestamp = Annotated[datetime | None, BeforeValidator(_timestamp)]

Storable = AfterValidator(_storable)
RequiredText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), Storable]


class WireModel(BaseModel):
    """Base of all models: frozen, accepts field names and aliases, and hides its input in validation errors."""

    model_config = ConfigDict(
        frozen=True, extra="allow", validate_by_name=True, validate_by_alias=True, hide_input_in_errors=True
    )


class RequestModel(WireModel):
    """Base of requests: rejects unknown members.

    A request that cannot be built is not sent: raises NotSentError, which names the member and repeats none of the
    values. Every call that changes something takes its content from such a model, before a connection is opened.
    """

    model_config = ConfigDict(extra="forbid")

    def __init__(self, /, **members: Any) -> None:
        try:
            super().__init__(**members)
        except ValidationError as exc:
            template, parameters = _reason_not_sent(exc)
        else:
            return
        # Raised outside the handler, without a cause: pydantic's error holds its input, which may be an API key.
        raise NotSentError.of(template, **parameters)


def first_problem(exc: ValidationError) -> tuple[str, str]:
    """The member that pydantic rejected first, empty for the whole, and why. Repeats none of the values."""
    problem = exc.errors(include_url=False, include_input=False, include_context=False)[0]
    message = problem["msg"].removeprefix("Value error, ")
    why = message if message in _VALUE_PROBLEMS else NOT_AS_SPECIFIED
    return ".".join(map(str, problem["loc"])), _PROBLEMS.get(problem["type"], why)


def _reason_not_sent(exc: ValidationError) -> tuple[str, dict[str, Any]]:
    """The template and parameters that say why a request cannot be built."""
    place, why = first_problem(exc)
    if place:
        return _INVALID_AT, {"place": place, "why": why}
    cause = exc.errors(include_url=False, include_input=False)[0].get("ctx", {}).get("error")
    if isinstance(cause, TemplateError):  # about several members, which it names
        return _INVALID, {**cause.parameters, "why": cause.template}
    return _NOT_BUILT, {}


class ReceiptModel(WireModel):
    """The success response to a call that must not be repeated.

    A missing or unreadable member never invalidates it: such a member is empty or None. `raw` is the `data`
    of the response as received, `provider_message` its message in one line.
    """

    raw: Annotated[dict[str, object], Field(repr=False)]
    provider_message: str = ""
