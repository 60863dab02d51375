"""Base models and field types of all schemas: exact numbers, texts, timestamps, wire names as aliases."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from payments_gateway.money import fits_ledger, is_storable

_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")
_SECONDS = re.compile(r"[0-9]{1,16}(\.[0-9]{1,9})?")
MAX_ID_LENGTH = 500
_ZERO, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)


def _exact(value: object) -> Decimal:
    """Take a JSON number or its text as it is. A float has already lost digits and is refused, and so is a number
    that no ledger could hold."""
    match value:
        case bool() | float():
            raise ValueError("not an exact number")
        case int() | Decimal():
            number = Decimal(value)
        case str() if _NUMBER.fullmatch(value.strip()):
            number = Decimal(value.strip())
        case _:
            raise ValueError("not a number")
    if not fits_ledger(number):
        raise ValueError("a number out of all proportion")
    return number


def _exact_or_none(value: object) -> Decimal | None:
    """Take a number that may be left out: no text stands for none, too."""
    return None if value is None or value == "" else _exact(value)


def _lenient_amount(value: object) -> Decimal | None:
    """Take a number beside a yes that must not be lost for it: what cannot be read is None."""
    try:
        return _exact_or_none(value)
    except ValueError:
        return None


def _lenient_text(value: object) -> str:
    """Take a text that nothing is decided on: what is no text is the empty one."""
    if isinstance(value, bool):
        return str(value).lower()
    return _text(value) if isinstance(value, (str, int, Decimal)) else ""


def _optional_id(value: object) -> str | None:
    """Take the text that names a thing. What is none, is empty, or is far too long to be a name, is None."""
    name = _lenient_text(value).strip()
    return name if 0 < len(name) <= MAX_ID_LENGTH else None


def _flag(value: object) -> bool | None:
    """Take a yes or no as JSON or a text says it. Anything else is None."""
    words: dict[object, bool] = {"true": True, "false": False}
    return value if isinstance(value, bool) else words.get(value) if isinstance(value, str) else None


def _storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError("a text that cannot be stored")
    return text


def _formatted(value: object) -> Decimal:
    """Take an amount made for people: it may hold thousands separators."""
    return _exact(value.replace(",", "") if isinstance(value, str) else value)


def _whole(value: object) -> int:
    """Take a count that may come as a number or as text."""
    number = _exact(value)
    if number != number.to_integral_value():
        raise ValueError("not a whole number")
    return int(number)


def _text(value: object) -> str:
    """Take a text; null is the empty text, and a number keeps its digits."""
    match value:
        case None:
            return ""
        case str():
            return value
        case int() | Decimal() if not isinstance(value, bool):
            return str(value)
    raise ValueError("not a text")


def _timestamp(value: object) -> datetime | None:
    """Take ISO 8601 or unix seconds. What cannot be read is None: a time stamp never spoils a record.

    So are the zeros of both (the year 1, and no second since 1970), which is how services write "never", and years
    that cannot be converted to every time zone.
    """
    text = str(value).strip()
    try:
        is_seconds = _SECONDS.fullmatch(text) is not None
        moment = datetime.fromtimestamp(float(text), UTC) if is_seconds else datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment if _ZERO < moment < _LATEST else None


Amount = Annotated[Decimal, BeforeValidator(_exact)]
OptionalAmount = Annotated[Decimal | None, BeforeValidator(_exact_or_none)]
LenientAmount = Annotated[Decimal | None, BeforeValidator(_lenient_amount)]
FormattedAmount = Annotated[Decimal, BeforeValidator(_formatted)]
Count = Annotated[int, BeforeValidator(_whole)]
Text = Annotated[str, BeforeValidator(_text)]
LenientText = Annotated[str, BeforeValidator(_lenient_text)]
OptionalId = Annotated[str | None, BeforeValidator(_optional_id)]
Flag = Annotated[bool | None, BeforeValidator(_flag)]
Timestamp = Annotated[datetime | None, BeforeValidator(_timestamp)]

Storable = AfterValidator(_storable)
RequiredText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), Storable]


class WireModel(BaseModel):
    """Frozen, known by both names, and silent about its input when it refuses it."""

    model_config = ConfigDict(
        frozen=True, extra="allow", validate_by_name=True, validate_by_alias=True, hide_input_in_errors=True
    )


class RequestModel(WireModel):
    """What is sent: it holds nothing that is not a member of it."""

    model_config = ConfigDict(extra="forbid")


class ReceiptModel(WireModel):
    """The service's yes to a call that must not be repeated.

    So a yes is never lost for its details: members that are missing or cannot be read are empty or None here,
    and as they came in `raw`, the `data` of the answer.
    """

    raw: Annotated[dict[str, object], Field(repr=False)]
