"""The states of an export in the background and the only moves between them."""

from django.db.models import TextChoices


class State(TextChoices):
    """Where an export stands. The same word in code, database, screen and audit log."""

    WAITING = "waiting", "Waiting"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"
    EXPIRED = "expired", "Expired"
    REMOVED = "removed", "Removed"


EDGES: dict[State, frozenset[State]] = {
    State.WAITING: frozenset({State.RUNNING, State.FAILED, State.CANCELLED}),
    # To running again when the lease of a killed worker ran out, and back to waiting when its worker was told to end:
    # another one starts anew, from nothing.
    State.RUNNING: frozenset({State.WAITING, State.RUNNING, State.DONE, State.FAILED, State.CANCELLED}),
    State.DONE: frozenset({State.EXPIRED, State.REMOVED}),
    State.FAILED: frozenset(),
    State.CANCELLED: frozenset(),
    State.EXPIRED: frozenset(),
    State.REMOVED: frozenset(),
}

UNDER_WAY = frozenset({State.WAITING, State.RUNNING})


def before(state: State) -> frozenset[State]:
    """The states from which it may come to this one."""
    return frozenset(earlier for earlier, onward in EDGES.items() if state in onward)
