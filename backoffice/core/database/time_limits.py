"""How long PostgreSQL lets a statement wait for a lock, or run: in web processes, and while it is migrated.

Without limits, a migration that waits for one long transaction makes everybody wait behind it. SQLite has one write
lock and its own limit (`timeout`).
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connection, connections
from psycopg.errors import LockNotAvailable, QueryCanceled


def limit_web_process() -> None:
    """Limit every connection that this process opens from now on: what takes longer is cancelled, and rolled back.

    Not in worker and sweeper: what became of a request that was sent is recorded, however long that waits.
    """
    if connection.vendor != "postgresql":
        return
    limits = {"lock_timeout": settings.WEB_LOCK_TIMEOUT, "statement_timeout": settings.WEB_STATEMENT_TIMEOUT}
    options = connections.settings["default"]["OPTIONS"]
    flags = [f"-c {name}={seconds}s" for name, seconds in limits.items()]
    # The options of the URL come last, so that they take precedence.
    options["options"] = " ".join([*flags, options.get("options", "")]).rstrip()
    connections.close_all()


@contextmanager
def limited_lock_waits(seconds: int) -> Iterator[None]:
    """Until the end of the block, statements of this connection wait so many seconds for a lock; 0 is no limit."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{seconds}s"])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")


def has_waited_too_long(exc: BaseException) -> bool:
    """Whether PostgreSQL cancelled a statement because it waited for a lock, or ran, for too long."""
    return isinstance(exc.__cause__, (LockNotAvailable, QueryCanceled))
