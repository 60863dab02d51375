"""Model fields that hold money exactly on both engines."""

from decimal import Decimal
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper


class ExactDecimalField(models.DecimalField):  # type: ignore[type-arg]
    """A decimal of any currency, exact to the last digit.

    SQLite has no decimal type and would keep a float: there the value is kept as text, which compares for
    equality only. PostgreSQL keeps a numeric.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"max_digits": 38, "decimal_places": 18, **kwargs})

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        return "text" if connection.vendor == "sqlite" else super().db_type(connection)

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        if connection.vendor == "sqlite" and value is not None:
            return plain(self.to_python(value))
        return super().get_db_prep_value(value, connection, prepared)

    def get_db_prep_save(self, value: Any, connection: BaseDatabaseWrapper) -> Any:
        return self.get_db_prep_value(value, connection)

    def from_db_value(self, value: Any, _expression: Any, _connection: BaseDatabaseWrapper) -> Decimal | None:
        return None if value is None else Decimal(plain(Decimal(value)))


def plain(value: Decimal) -> str:
    """The number without exponent and without trailing zeros, always the same text for the same value."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
