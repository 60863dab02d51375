"""What some tests need from the machine. If it is missing they are skipped; `.ci/run` requires all of it.

Also selects the tests that need the application's database: only these run on the second engine
(`--only-with-database`).
"""

import os
import shutil
import socket
from collections.abc import Callable

import pytest

DEMANDED = os.environ.get("COUNTERSIGN_DEMAND_ALL") == "1"
REDIS = os.environ.get("COUNTERSIGN_TEST_REDIS", "redis://127.0.0.1:6379/9")
RABBITMQ = os.environ.get("COUNTERSIGN_TEST_RABBITMQ", "amqp://guest:guest@127.0.0.1:5672//")

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
"""The browser of the tests. The first has no windows of its own to draw, and takes 40% less time."""


def listens(port: int) -> bool:
    """Whether a server on this machine accepts connections at the port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


_DATABASE = {"db", "transactional_db", "live_server", "django_db_setup", "bench_server"}
"""Fixtures that use the database. The last one has databases of its own, on PostgreSQL only."""

NEEDS: dict[str, tuple[str, Callable[[], bool]]] = {
    "browser": ("Chromium is not installed", lambda: CHROMIUM is not None),
    "redis": ("Redis does not run on port 6379", lambda: listens(6379)),
    "rabbitmq": ("RabbitMQ does not run on port 5672", lambda: listens(5672)),
}


def skip_what_cannot_run(items: list[pytest.Item]) -> None:
    """Mark tests whose requirement is missing: skipped with the reason, or failed where everything is
    required.
    """
    missing = {name: reason for name, (reason, is_there) in NEEDS.items() if not is_there()}
    if missing and DEMANDED:
        pytest.exit(f"Demanded and missing: {'; '.join(missing.values())}", returncode=1)
    for item in items:
        for name, reason in missing.items():
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=reason))


def leave_out_what_asks_for_no_database(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests without the application's database: running them on one engine is enough."""
    gone = [item for item in items if not asks_for_the_database(item)]
    config.hook.pytest_deselected(items=gone)
    items[:] = [item for item in items if asks_for_the_database(item)]


def asks_for_the_database(item: pytest.Item) -> bool:
    """Whether the test may use the database, which pytest-django refuses to all others."""
    fixtures = set(getattr(item, "fixturenames", ()))
    return item.get_closest_marker("django_db") is not None or not fixtures.isdisjoint(_DATABASE)
