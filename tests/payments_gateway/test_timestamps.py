"""How timestamps are read: the specification names ISO 8601 for some, and a number without a unit for others."""

from datetime import UTC, datetime

import pytest
from pydantic import TypeAdapter

from payments_gateway.fields import Timestamp

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2026-11-20T12:00:00Z", NOON),
        ("2026-11-20T13:00:00+01:00", NOON),
        ("2026-11-20T12:00:00", NOON),
        (1795176000, NOON),
        ("1795176000", NOON),
        (1795176000000, NOON),
        ("1795176000000", NOON),
        ("1795176000250", NOON.replace(microsecond=250_000)),
        ("1795176000.5", NOON.replace(microsecond=500_000)),
        ("2026-11-20", MIDNIGHT),
        ("20261120", MIDNIGHT),
        (20261120, MIDNIGHT),
        ("99999999", datetime(1973, 3, 3, 9, 46, 39, tzinfo=UTC)),  # no such date: seconds
        ("100000000000", datetime(1973, 3, 3, 9, 46, 40, tzinfo=UTC)),
        ("9999999999999999", None),
        ("0", None),
        ("0001-01-01T00:00:00Z", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_a_timestamp_is_read_in_each_known_format(value: object, moment: datetime | None) -> None:
    assert TypeAdapter(Timestamp).validate_python(value) == moment
