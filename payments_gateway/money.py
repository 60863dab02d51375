"""Currencies, amounts and exact JSON: a number on the wire is a `Decimal` or an `int`, never a float."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import NoReturn

# Beyond this no amount of money exists, and writing 1e999999999 out in full would fill the memory.
LARGEST_EXPONENT = 64
DEEPEST_NESTING = 50

# No ledger keeps more digits before the point. Behind it an amount may have more than is kept: a service that
# calculates in binary fractions writes such dust, and must stay readable.
MOST_WHOLE_DIGITS = 22
MOST_DECIMALS = 40

_TYPED_AMOUNT = re.compile(r"[0-9]+(\.[0-9]+)?")
_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


class AmountError(ValueError):
    """An amount cannot be accepted; the message says why, in words for the person who typed it."""


class UnreadableError(ValueError):
    """A text is not the JSON, or not the shape, that was expected. The message completes "it cannot be read: …"."""


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency of the service and how many decimals its amounts have at most."""

    code: str
    name: str
    decimals: int


CURRENCIES: Mapping[str, Currency] = {
    "NGN": Currency("NGN", "Nigerian naira", 2),
    "USD": Currency("USD", "US dollar", 2),
    "USDT": Currency("USDT", "Tether", 6),
}


def currency(code: str) -> Currency:
    """Return the currency of this code. Raises AmountError for one that the service does not keep."""
    if code not in CURRENCIES:
        raise AmountError(f"The currency must be one of {', '.join(CURRENCIES)}.")
    return CURRENCIES[code]


def parse_amount(text: str, code: str) -> Decimal:
    """Read an amount that a person typed, exactly, written out with all decimals of its currency.

    Digits and one point only: `1e5`, `NaN`, `1,000.50` and other alphabets are refused, as are zero, a sign
    and more decimals than the currency has. Raises AmountError.
    """
    text = text.strip()
    if not text:
        raise AmountError("Enter an amount.")
    if not _TYPED_AMOUNT.fullmatch(text):
        raise AmountError("Enter the amount with digits and one point only, for example 1000.50.")
    amount = Decimal(text)
    check_amount(amount, code)
    return amount.quantize(Decimal(1).scaleb(-currency(code).decimals))


def check_amount(amount: Decimal, code: str) -> None:
    """Refuse what cannot be an amount to move in this currency. Raises AmountError."""
    decimals = currency(code).decimals
    if not amount.is_finite() or amount <= 0:
        raise AmountError("The amount must be greater than zero.")
    if amount.adjusted() > 20:
        raise AmountError("The amount is too large.")
    if amount != amount.quantize(Decimal(1).scaleb(-decimals)):
        raise AmountError(f"{code} has at most {decimals} decimals.")


def check_quantity(amount: Decimal, code: str) -> None:
    """Refuse what cannot be an amount to move in a currency that we may not know. Raises AmountError.

    Of a currency that the service keeps balances in, the decimals are checked as well; of any other only the size.
    """
    if code in CURRENCIES:
        check_amount(amount, code)
    elif not amount.is_finite() or amount <= 0:
        raise AmountError("The amount must be greater than zero.")
    elif amount.adjusted() > 20 or decimals_of(amount) > 18:
        raise AmountError("The amount is too large, or has more than 18 decimals.")


def fits_ledger(number: Decimal) -> bool:
    """Whether a ledger can hold it: finite, and of no more digits than any amount of money has."""
    if not number.is_finite():
        return False
    text = str(number)
    if len(text) <= MOST_WHOLE_DIGITS and "E" not in text:
        return True  # nearly all, and faster than to take the number apart
    return decimals_of(number) <= MOST_DECIMALS and (
        number.is_zero() or number.adjusted() < MOST_WHOLE_DIGITS
    )


def decimals_of(number: Decimal) -> int:
    """How many digits a finite number has behind its point, as it is written."""
    return max(0, -int(number.as_tuple().exponent))


def is_storable(text: str) -> bool:
    """Whether a database takes the text: no NUL, no half of a surrogate pair."""
    return _NOT_STORABLE.search(text) is None


def format_plain(number: Decimal) -> str:
    """Write a number out in full, digit by digit, without an exponent."""
    if not number.is_finite() or abs(number.adjusted()) > LARGEST_EXPONENT:
        raise AmountError("This number cannot be written out.")
    return format(number, "f")


def loads(text: bytes | str) -> object:
    """Read JSON exactly: decimals as `Decimal`, whole numbers as `int`.

    Raises UnreadableError for what is not JSON in UTF-8, for NaN and Infinity, for numbers out of all
    proportion, and for an object that gives one name two different values. Characters that a database
    refuses to store (NUL, half a surrogate pair) are replaced, so that one name cannot stop a whole list.
    """
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        value = json.loads(
            decoded,
            parse_float=_decimal,
            parse_constant=_refuse_constant,
            object_pairs_hook=_object_without_conflicts,
        )
        _check_depth(value, DEEPEST_NESTING)
        # Out of UTF-8 what cannot be stored comes as an escape only; JSON allows no NUL, UTF-8 no surrogate.
        may_hide = "\\u" in decoded or not (isinstance(text, bytes) or is_storable(text))
        return _storable(value) if may_hide else value
    except UnreadableError:
        raise
    except (ValueError, RecursionError) as exc:
        problem = type(exc).__name__
    # Raised out here, chained to nothing: the original carries the whole document, which may echo a secret.
    raise UnreadableError(f"it is not readable JSON ({problem})")


def dumps(value: object) -> str:
    """Write JSON exactly: a `Decimal` becomes a JSON number with the same digits. A float is refused."""
    match value:
        case None | bool() | int() | str():
            return json.dumps(value)
        case Decimal():
            return format_plain(value)
        case Mapping():
            members = (f"{json.dumps(str(name))}: {dumps(item)}" for name, item in value.items())
            return "{" + ", ".join(members) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(dumps, value)) + "]"
        case _:
            raise TypeError(f"{type(value).__name__} has no exact JSON form.")


def _decimal(digits: str) -> Decimal:
    try:
        number = Decimal(digits)
    except InvalidOperation:
        raise UnreadableError("it holds a number out of all proportion") from None
    if abs(number.adjusted()) > LARGEST_EXPONENT:
        raise UnreadableError("it holds a number out of all proportion")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise UnreadableError(f"it holds {name}, which is not a number")


def _object_without_conflicts(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build an object. The same name twice is harmless when the value is the same, and ambiguous when not."""
    members = dict(pairs)
    if len(members) < len(pairs) and any(members[name] != value for name, value in pairs):
        raise UnreadableError("it gives one name two different values")
    return members


def _check_depth(value: object, depth: int) -> None:
    """Refuse what is nested more deeply than this. Texts and numbers are not even looked at: most are those."""
    if depth == 0:
        raise UnreadableError("it is nested too deeply")
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, (dict, list)):
                _check_depth(item, depth - 1)


def _storable(value: object) -> object:
    match value:
        case str():
            return _NOT_STORABLE.sub("\ufffd", value)
        case dict():
            return {_storable(name): _storable(item) for name, item in value.items()}
        case list():
            return [_storable(item) for item in value]
        case _:
            return value
