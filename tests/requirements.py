"""What some tests need from the machine. Missing, they are skipped and say so; `.ci/run` demands all of it.

And which need the application's database: only those are run on the second engine, by `--only-with-database`.
"""

import os
import shutil
import socket
from collections.abc import Callable

import pytest

DEMANDED = os.environ.get("COUNTERSIGN_DEMAND_ALL") == "1"
REDIS = os.environ.get("COUNTERSIGN_TEST_REDIS", "redis://127.0.0.1:6379/9")
RABBITMQ = os.environ.get("COUNTERSIGN_TEST_RABBITMQ", "amqp://guest:guest@127.0.0.1:5672//")


def listens(port: int) -> bool:
    """Whether something on this machine answers at the port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


_DATABASE = {"db", "transactional_db", "live_server", "django_db_setup", "bench_server"}
"""Fixtures that bring it. The last one brings databases of its own, on PostgreSQL or not at all."""

NEEDS: dict[str, tuple[str, Callable[[], bool]]] = {
    "browser": ("Chromium is not installed", lambda: shutil.which("chromium") is not None),
    "redis": ("Redis does not run on port 6379", lambda: listens(6379)),
    "rabbitmq": ("RabbitMQ does not run on port 5672", lambda: listens(5672)),
}


def skip_what_cannot_run(items: list[pytest.Item]) -> None:
    """Mark tests whose need is not met: skipped with the reason, or failed where everything is demanded."""
    missing = {name: reason for name, (reason, is_there) in NEEDS.items() if not is_there()}
    if missing and DEMANDED:
        pytest.exit(f"Demanded and missing: {'; '.join(missing.values())}", returncode=1)
    for item in items:
        for name, reason in missing.items():
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=reason))


def leave_out_what_asks_for_no_database(config: pytest.Config, items: list[pytest.Item]) -> None:
    """One engine is enough for it: processes and browsers bring a database of their own."""
    gone = [item for item in items if not asks_for_the_database(item)]
    config.hook.pytest_deselected(items=gone)
    items[:] = [item for item in items if asks_for_the_database(item)]


def asks_for_the_database(item: pytest.Item) -> bool:
    """pytest-django refuses it to every test that does not."""
    fixtures = set(getattr(item, "fixturenames", ()))
    return item.get_closest_marker("django_db") is not None or not fixtures.isdisjoint(_DATABASE)
