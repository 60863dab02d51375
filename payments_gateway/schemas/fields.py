"""What every schema is made of: exact numbers, texts, moments, and the base that knows both names of a member."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints

_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")
_SECONDS = re.compile(r"[0-9]{1,16}(\.[0-9]{1,9})?")


def _exact(value: object) -> Decimal:
    """Take a JSON number or its text as it is. A float has already lost digits and is refused."""
    match value:
        case bool() | float():
            raise ValueError("not an exact number")
        case int() | Decimal():
            return Decimal(value)
        case str() if _NUMBER.fullmatch(value.strip()):
            return Decimal(value.strip())
    raise ValueError("not a number")


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


def _moment(value: object) -> datetime | None:
    """Take ISO 8601 or unix seconds. What cannot be read is None: a time stamp never spoils a record."""
    text = str(value).strip()
    try:
        if _SECONDS.fullmatch(text):
            return datetime.fromtimestamp(float(text), UTC)
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


Amount = Annotated[Decimal, BeforeValidator(_exact)]
FormattedAmount = Annotated[Decimal, BeforeValidator(_formatted)]
Count = Annotated[int, BeforeValidator(_whole)]
Text = Annotated[str, BeforeValidator(_text)]
Moment = Annotated[datetime | None, BeforeValidator(_moment)]
Filled = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Wire(BaseModel):
    """Frozen, known by both names, and silent about its input when it refuses it."""

    model_config = ConfigDict(
        frozen=True, extra="allow", validate_by_name=True, validate_by_alias=True, hide_input_in_errors=True
    )
