"""What some tests need from the machine. If it is missing they are skipped; `.ci/run` requires all of it.

Also selects the tests that need the application's database: only these run on the second engine
(`--only-with-database`).
"""

import os
import shutil
import socket
from collections.abc import Callable, Iterable

import pytest
from _pytest.mark import ParameterSet

from tools.rehearsal import nginx

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

OF_ANY_ENGINE = (
    "tests/accounts/test_my_account.py",
    "tests/api_keys/test_key_list.py",
    "tests/api_keys/test_reveal.py",
    "tests/core/gateway/test_command.py",
    "tests/core/web/test_headers.py",
    "tests/core/web/test_page_frame.py",
    "tests/core/web/test_translations.py",
    "tests/ledger/pages/",
    "tests/operations/kinds/api_keys/test_forms.py",
    "tests/operations/kinds/payments/test_form.py",
    "tests/operations/kinds/test_forms_without_provider.py",
    "tests/operations/kinds/wallet_transfers/test_form.py",
    "tests/operations/pages/bulk/",
    "tests/operations/pages/operation/",
    "tests/operations/pages/recipient_choice/",
    "tests/operations/pages/test_investigation.py",
    "tests/operations/pages/test_overview_groups.py",
    "tests/operations/pages/test_prepare.py",
    "tests/operations/pages/transactions/test_filter_errors.py",
    "tests/reports/pages/test_schedules.py",
    "tests/webhooks/test_over_http.py",
)
"""Forms and pages: what they read and store has tests of its own on both engines, as have lists and filters. One
person opens every page on the second engine, too (`opened_by`). The command of the gateway asks the provider and
stores nothing.
"""

NEEDS: dict[str, tuple[str, Callable[[], bool]]] = {
    "browser": ("Chromium is not installed", lambda: CHROMIUM is not None),
    "redis": ("Redis does not run on port 6379", lambda: listens(6379)),
    "rabbitmq": ("RabbitMQ does not run on port 5672", lambda: listens(5672)),
    "nginx": ("nginx is not installed", lambda: nginx.PROGRAM is not None),
    "caddy": ("Caddy is not installed", lambda: shutil.which("caddy") is not None),
    "promtool": ("promtool is not installed", lambda: shutil.which("promtool") is not None),
    "faketime": ("faketime is not installed", lambda: shutil.which("faketime") is not None),
}


def opened_by(everyone: Iterable[str], *, on_both_engines: str) -> list[ParameterSet]:
    """The columns of a matrix of access: one person's on both engines, the others' on one of them."""
    marks = {person: () if person == on_both_engines else pytest.mark.any_engine for person in everyone}
    return [pytest.param(person, marks=mark) for person, mark in marks.items()]


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


def leave_out_what_one_engine_proves(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests without the application's database, or marked with `any_engine`."""
    deselected = [item for item in items if not depends_on_the_engine(item)]
    config.hook.pytest_deselected(items=deselected)
    items[:] = [item for item in items if depends_on_the_engine(item)]


def depends_on_the_engine(item: pytest.Item) -> bool:
    """Whether the test has to pass on both database engines."""
    is_of_any = item.nodeid.startswith(OF_ANY_ENGINE) or item.get_closest_marker("any_engine") is not None
    return asks_for_the_database(item) and not is_of_any


def asks_for_the_database(item: pytest.Item) -> bool:
    """Whether the test may use the database, which pytest-django refuses to all others."""
    fixtures = set(getattr(item, "fixturenames", ()))
    return item.get_closest_marker("django_db") is not None or not fixtures.isdisjoint(_DATABASE)
