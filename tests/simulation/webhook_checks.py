"""What a delivery must not do by itself, and what must be due once it is processed; read without the ORM."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from tests.simulation.rows import moment
from tests.simulation.world import World

TOLD = ("as it is", "as it is", "stale", "wrong", "of nothing", "of nobody's", "again")
NAMED_WITHIN = timedelta(seconds=10)  # another process holds the lease, or it is due
OTHERS_WITHIN = timedelta(minutes=1)  # fifteen seconds, by a clock that may have been set back since

_MONEY = (
    "SELECT * FROM operations_operation",
    "SELECT * FROM operations_attempt",
    "SELECT * FROM operations_release",
    "SELECT COUNT(*) FROM audit_entry",
)
_WANTED = "SELECT transaction_id FROM webhooks_delivery WHERE check_due_at IS NOT NULL"
_WAITING = """
    SELECT operations_attempt.id, provider_transaction_id, checks, next_check_at FROM operations_attempt
    JOIN operations_operation ON operations_operation.id = operation_id
    WHERE operations_attempt.closed_at IS NULL AND status IN ('processing', 'unknown')
"""


@contextmanager
def moving_nothing(world: World) -> Iterator[None]:
    """No operation changes within the block. Raises AssertionError."""
    before = [world.database.rows(query) for query in _MONEY]
    yield
    assert [world.database.rows(query) for query in _MONEY] == before, "A delivery moved something by itself"


@contextmanager
def leaving_none_out(world: World) -> Iterator[None]:
    """If the block processed deliveries, every open attempt was checked or is due. Raises AssertionError."""
    named = {transaction_id for (transaction_id,) in world.database.rows(_WANTED)}
    looks_before = {pk: looks for pk, _, looks, _ in world.database.rows(_WAITING)}
    yield
    if not named or world.database.rows(_WANTED):
        return
    for pk, transaction_id, looks, due in world.database.rows(_WAITING):
        by = world.our_time() + (NAMED_WITHIN if transaction_id in named else OTHERS_WITHIN)
        is_due = due is not None and moment(due) <= by
        assert looks > looks_before[pk] or is_due, (
            f"Attempt {pk} is not looked at because of news until {due}"
        )
