"""Model fields: amounts that both engines store exactly (SQLite as text), and JSON that loads if it was altered."""

from decimal import Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.fields.json import KeyTransform
from django.utils.translation import gettext_noop

from payments_gateway.money import format_plain

if TYPE_CHECKING:
    DecimalColumn = models.Field[Decimal | str | int | None, Any]
else:
    DecimalColumn = models.Field


DIGITS, DECIMALS = 40, 18
_WIDTH = DIGITS + 1  # characters, including the decimal point


class ExactDecimalField(DecimalColumn):
    """A decimal of any currency: up to 22 digits before the point and 18 after it, stored exactly.

    PostgreSQL stores a numeric. SQLite has no decimal type and would store a float, so there the value is
    stored as text. Text compares for equality only, so no other lookup is offered. Not a `DecimalField`,
    because Django reads those back through floats on SQLite.
    """

    digits = DIGITS

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "text" if connection.vendor == "sqlite" else f"numeric({self.digits}, {DECIMALS})"

    def get_lookup(self, lookup_name: str) -> Any:
        return super().get_lookup(lookup_name) if lookup_name in {"exact", "in", "isnull"} else None

    def to_python(self, value: Any) -> Decimal | None:
        return None if value is None else Decimal(value)

    def get_prep_value(self, value: Any) -> Decimal | None:
        number = self.to_python(super().get_prep_value(value))
        return None if number is None else rounded_for_storage(number, digits=self.digits)

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        number = self.get_prep_value(value)
        return normalized_text(number) if number is not None and connection.vendor == "sqlite" else number

    def from_db_value(self, value: Any, _expression: Any, _connection: BaseDatabaseWrapper) -> Decimal | None:
        return None if value is None else Decimal(normalized_text(Decimal(value)))


class UnsignedDecimalField(ExactDecimalField):
    """A non-negative amount, exact as its parent class, that both engines also compare and sort by value.

    On SQLite it is zero-padded text of fixed width, so that text order is numeric order.
    """

    def get_lookup(self, lookup_name: str) -> Any:
        is_comparison = lookup_name in {"gt", "gte", "lt", "lte", "range"}
        return (
            models.Field.get_lookup(self, lookup_name) if is_comparison else super().get_lookup(lookup_name)
        )

    def get_prep_value(self, value: Any) -> Decimal | None:
        number = super().get_prep_value(value)
        if number is not None and number < 0:
            raise ValueError("An amount without a sign cannot be negative")
        return number

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        number = self.get_prep_value(value)
        return sortable_text(number) if number is not None and connection.vendor == "sqlite" else number


class DecimalSumField(ExactDecimalField):
    """The exact sum of any number of `ExactDecimalField` values."""

    digits = DIGITS + 20


def sortable_text(number: Decimal) -> str:
    """The absolute value as zero-padded text of fixed width, which sorts numerically."""
    return format(number.copy_abs(), f"0{_WIDTH}.{DECIMALS}f")


def rounded_for_storage(number: Decimal, *, digits: int = DIGITS) -> Decimal:
    """The number rounded to 18 decimals, as both engines store it. Raises ValueError if it is too large or
    not finite.
    """
    try:
        rounded = number.quantize(Decimal(1).scaleb(-DECIMALS), context=Context(prec=digits))
    except InvalidOperation as exc:
        raise ValueError(gettext_noop("a number has too many digits")) from exc
    if not rounded.is_finite():
        raise ValueError(gettext_noop("a value is not a number"))
    return rounded


def normalized_text(number: Decimal) -> str:
    """The number without trailing zeros, and zero without a sign: equal values give equal texts."""
    text = format_plain(abs(number) if number.is_zero() else number)
    return text.rstrip("0").rstrip(".") if "." in text else text


EXACT = Context(prec=100)
"""The decimal context for sums of amounts: more digits than any has. The default of 28 would round large ones."""


class TolerantJSONField(models.JSONField):
    """JSON that is loaded as `{}` if it was altered so that Python cannot read it, such as a number of 5,000 digits.

    So that such a row fails no list, and is refused and reported like any other that was altered. Only for what a
    digest or a seal covers, or what is only shown: nothing may be decided by `{}`.
    """

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        try:
            loaded = super().from_db_value(value, expression, connection)
        except (ValueError, RecursionError):
            return {}
        # Django returns a text that is no JSON as it is. SQLite may have one; a part of a JSON may rightly be one.
        is_text = loaded is value and isinstance(value, str) and not isinstance(expression, KeyTransform)
        return {} if is_text else loaded

    def deconstruct(self) -> Any:
        """As JSONField: the column is the same."""
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs
