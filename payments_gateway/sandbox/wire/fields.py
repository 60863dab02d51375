"""The kinds of text that members of requests may hold."""

from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from payments_gateway.reference import BANKS


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
Name = Annotated[str, Field(max_length=120), AfterValidator(_printable)]
AmountText = Annotated[str, Field(min_length=1, max_length=40)]
TokenText = Annotated[str, Field(max_length=16), AfterValidator(_printable)]
Number = Annotated[Decimal, BeforeValidator(_number)]
Whole = Annotated[int, BeforeValidator(_whole_number)]
