"""Currencies, amounts and exact JSON: a number in JSON is a `Decimal` or an `int`, never a float."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import NoReturn

from payments_gateway.errors import InputError, TemplateError
from payments_gateway.errors import gettext_noop as _

# No amount of money needs a larger exponent, and formatting 1e999999999 in full would exhaust the memory.
LARGEST_EXPONENT = 64
DEEPEST_NESTING = 50

# No ledger has more digits before the point. After it more are accepted than are stored: a provider that calculates
# in binary fractions sends such rounding residue, and its responses must remain readable.
MOST_WHOLE_DIGITS = 22
MOST_DECIMALS = 40

_TYPED_AMOUNT = re.compile(r"[0-9]+(\.[0-9]+)?")
_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


class AmountError(InputError):
    """An amount is not acceptable; the message gives the reason for the person who typed it."""


class UnreadableError(TemplateError):
    """A text is not the expected JSON or shape. The message completes "it cannot be read: …"."""


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency of the provider, and how many decimals its amounts have at most."""

    code: str
    name: str
    decimals: int


CURRENCIES: Mapping[str, Currency] = {
    "NGN": Currency("NGN", "Nigerian naira", 2),
    "USD": Currency("USD", "US dollar", 2),
    "USDT": Currency("USDT", "Tether", 6),
}


def currency(code: str) -> Currency:
    """Return the currency of this code. Raises AmountError if the provider has no balances in it."""
    if code not in CURRENCIES:
        raise AmountError(_("The currency must be one of {currencies}."), currencies=", ".join(CURRENCIES))
    return CURRENCIES[code]


def parse_amount(text: str, code: str) -> Decimal:
    """Parse an amount typed by a person, exactly, and pad it to all decimals of its currency.

    Accepts ASCII digits and one point only: rejects "1e5", "NaN", "1,000.50", other digits, signs, zero, and
    more decimals than the currency has, even if they are zeros. Raises AmountError.
    """
    amount = _typed_number(text)
    check_amount(amount, code)
    decimals = currency(code).decimals
    if decimals_of(amount) > decimals:  # zeros, too: 250.000 may be meant as 250,000
        raise AmountError(_("{currency} has at most {decimals} decimals."), currency=code, decimals=decimals)
    return amount.quantize(Decimal(1).scaleb(-decimals))


def parse_quantity(text: str, code: str) -> Decimal:
    """The same in a currency that may be unknown here: then as typed, with at most 18 decimals. Raises AmountError."""
    if code in CURRENCIES:
        return parse_amount(text, code)
    amount = _typed_number(text)
    check_quantity(amount, code)
    return amount


def _typed_number(text: str) -> Decimal:
    text = text.strip()
    if not text:
        raise AmountError(_("Enter an amount."))
    if not _TYPED_AMOUNT.fullmatch(text):
        raise AmountError(_("Enter digits and at most one point, for example 1000.50."))
    return Decimal(text)


def check_amount(amount: Decimal, code: str) -> None:
    """Check that an amount can be moved in this currency. Raises AmountError."""
    decimals = currency(code).decimals
    if not amount.is_finite() or amount <= 0:
        raise AmountError(_("The amount must be greater than zero."))
    if amount.adjusted() > 20:
        raise AmountError(_("The amount is too large."))
    if amount != amount.quantize(Decimal(1).scaleb(-decimals)):
        raise AmountError(_("{currency} has at most {decimals} decimals."), currency=code, decimals=decimals)


def check_quantity(amount: Decimal, code: str) -> None:
    """Check that an amount can be moved in a currency that may be unknown here. Raises AmountError.

    For a currency with balances at the provider the decimals are checked as well; for others only the size.
    """
    if code in CURRENCIES:
        check_amount(amount, code)
    elif not amount.is_finite() or amount <= 0:
        raise AmountError(_("The amount must be greater than zero."))
    elif amount.adjusted() > 20 or decimals_of(amount) > 18:
        raise AmountError(_("The amount is too large, or has more than 18 decimals."))


def fits_ledger(number: Decimal) -> bool:
    """Whether the number is finite and has no more digits than an amount of money can have."""
    if not number.is_finite():
        return False
    text = str(number)
    if len(text) <= MOST_WHOLE_DIGITS and "E" not in text:
        return True  # nearly every number; faster than examining its digits
    return decimals_of(number) <= MOST_DECIMALS and (
        number.is_zero() or number.adjusted() < MOST_WHOLE_DIGITS
    )


def decimals_of(number: Decimal) -> int:
    """How many digits a finite number has after the point, as written."""
    return max(0, -int(number.as_tuple().exponent))


def is_storable(text: str) -> bool:
    """Whether PostgreSQL can store the text: no NUL, no lone surrogate."""
    return _NOT_STORABLE.search(text) is None


def format_plain(number: Decimal) -> str:
    """Format a number with all digits, without an exponent."""
    if not number.is_finite() or abs(number.adjusted()) > LARGEST_EXPONENT:
        raise AmountError(_("This number is too large or has too many decimals."))
    return format(number, "f")


def loads(text: bytes | str) -> object:
    """Parse JSON exactly: decimals as `Decimal`, whole numbers as `int`.

    Raises UnreadableError for text that is not JSON in UTF-8, for NaN and Infinity, for numbers beyond the
    limits above, for too deep nesting, and for an object with one name and two different values. Characters
    that a database cannot store (NUL, lone surrogates) are replaced, so that one name cannot make a whole
    list unreadable.
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
        # Unstorable characters can arrive as escapes only: JSON allows no raw NUL, UTF-8 no surrogates.
        may_hide = "\\u" in decoded or not (isinstance(text, bytes) or is_storable(text))
        return _storable(value) if may_hide else value
    except UnreadableError:
        raise
    except (ValueError, RecursionError):
        why = _("it is not readable JSON")
    # Raised outside the handler, without a cause: the original error holds the document, which may contain a secret.
    raise UnreadableError(why)


def dumps(value: object) -> str:
    """Serialize to JSON exactly: a `Decimal` becomes a number with the same digits. Rejects floats."""
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
        raise UnreadableError(_("it contains a number that is too large")) from None
    if abs(number.adjusted()) > LARGEST_EXPONENT:
        raise UnreadableError(_("it contains a number that is too large"))
    return number


def _refuse_constant(_name: str) -> NoReturn:
    raise UnreadableError(_("it contains NaN or Infinity instead of a number"))


def _object_without_conflicts(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build an object. A repeated name is accepted with the same value only: another is ambiguous."""
    members = dict(pairs)
    if len(members) < len(pairs) and any(members[name] != value for name, value in pairs):
        raise UnreadableError(_("it contains one name with two different values"))
    return members


def _check_depth(value: object, depth: int) -> None:
    """Reject deeper nesting. Texts and numbers, the majority, are skipped without a call."""
    if depth == 0:
        raise UnreadableError(_("it is nested too deeply"))
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
