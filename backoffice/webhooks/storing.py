"""Store deliveries, each once: the statement, and one commit for several that arrive at the same time."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

from django.db import InterfaceError, OperationalError, connection

from backoffice.webhooks.group_commit import GroupCommit
from backoffice.webhooks.models import Delivery, DeliveryVerification

_FIELDS = [field for field in Delivery._meta.concrete_fields if not field.primary_key]
# Columns set by the first valid verification, such as when the missing key has been configured. Later repeats do not
# change them: whatever the signature does not cover could be forged in a repeat.
_VERDICT_COLUMNS = (
    "verdict",
    "error",
    "key",
    "event",
    "transaction_id",
    "reference",
    "digest",
    "body",
    "valid_at",
    "check_due_at",
    "event_at",
    "headers",
    "response_status",
    "response_ms",
)
# No input is interpolated into these: names are those of our own columns, values are parameters.
_INSERT = f"INSERT INTO webhooks_delivery ({', '.join(field.attname for field in _FIELDS)}) VALUES "  # noqa: S608
_ROW = f"({', '.join(['%s'] * len(_FIELDS))})"
_COUNT_REPEAT = """
    ON CONFLICT (identity) DO UPDATE
    SET received_count = webhooks_delivery.received_count + 1, last_at = EXCLUDED.last_at
"""
_UNLESS_VALID = (
    "CASE WHEN webhooks_delivery.verdict = 'valid' THEN webhooks_delivery.{0} ELSE EXCLUDED.{0} END"
)
_SET_VALID = "".join(f", {name} = {_UNLESS_VALID.format(name)}" for name in _VERDICT_COLUMNS)
_RETURNING = " RETURNING identity, received_count, check_due_at IS NOT NULL"
_GROUP_LIMIT = 32
_WRITERS = 2


class Stored(NamedTuple):
    """How often a delivery was received, and whether a read of the provider is due because of it."""

    received_count: int
    is_check_due: bool


def store(delivery: Delivery) -> Stored:
    """Store it, or count a repeat. Returns after the commit, except within a transaction of the caller.

    Valid deliveries that arrive at the same time share a commit.
    """
    if delivery.verdict != DeliveryVerification.VALID:
        [stored] = _write([delivery], _COUNT_REPEAT)
        return stored
    if connection.in_atomic_block:
        [stored] = _write_valid([delivery])
        return stored
    return _together.store(delivery)


def _write_valid(deliveries: Sequence[Delivery]) -> list[Stored]:
    return _write(deliveries, f"{_COUNT_REPEAT}{_SET_VALID}")


_together = GroupCommit(
    _write_valid, key=lambda delivery: delivery.identity, limit=_GROUP_LIMIT, writers=_WRITERS
)


def _write(deliveries: Sequence[Delivery], on_conflict: str) -> list[Stored]:
    """Store these, of different identities, with one statement, which is its own transaction.

    A lost connection is noticed by the statement itself and opened again, which spares each request a query.
    """
    cast(Any, connection).health_check_done = True  # of Django, which its stubs lack
    try:
        return _execute(deliveries, on_conflict)
    except (OperationalError, InterfaceError):
        if connection.in_atomic_block or connection.is_usable():
            raise
        connection.close()
        return _execute(deliveries, on_conflict)


def _execute(deliveries: Sequence[Delivery], on_conflict: str) -> list[Stored]:
    # In one order, so that two processes with the same deliveries do not wait for each other.
    ordered = sorted(deliveries, key=lambda delivery: delivery.identity)
    rows = ", ".join([_ROW] * len(ordered))
    values = [value for delivery in ordered for value in _values(delivery)]
    with connection.cursor() as cursor:
        cursor.execute(f"{_INSERT}{rows}{on_conflict}{_RETURNING}", values)
        stored = {identity: Stored(count, bool(is_due)) for identity, count, is_due in cursor.fetchall()}
    return [stored[delivery.identity] for delivery in deliveries]


def _values(delivery: Delivery) -> Iterator[Any]:
    for field in _FIELDS:
        value = getattr(delivery, field.attname)
        if isinstance(value, str):
            yield str(value)  # the value of an enum member, not its name
        else:
            yield (
                value
                if value is None or isinstance(value, int)
                else field.get_db_prep_save(value, connection)
            )
