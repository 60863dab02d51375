"""Fixtures and hooks of the whole suite: the fixed cast, the simulated provider, and the order of the tests."""

import gc
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast
from weakref import WeakSet

import hypothesis
import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import Group
from django.core.cache import cache
from django.db import connection
from django.test import Client
from pytest_django import DjangoAssertNumQueries, DjangoDbBlocker, Settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from backoffice.accounts.models import StaffSession, User
from backoffice.accounts.roles import PERMISSIONS, Role
from backoffice.api_keys import key_list
from backoffice.core import credentials, isolation
from backoffice.ledger.statements import continuity
from backoffice.ledger.transactions import filters
from backoffice.operations.approval import waiting
from backoffice.operations.delivery import restore_check
from backoffice.operations.lifecycle import pause
from backoffice.operations.pages import operation_list
from backoffice.operations.reconciliation import selectors
from backoffice.reports.exports.downloads import Download
from tests import factories
from tests.requirements import leave_out_what_one_engine_proves, skip_what_cannot_run
from tests.sandbox_process import SandboxProcess
from tests.shared_database import KEPT_IN, SharedDatabase
from tools.processes import run_python

pytest_plugins = ["tests.faults.harness.clocks", "tests.object_store"]

# Hypothesis runs the same examples every time and without a deadline: a random finding must not fail an unrelated
# change. `--hypothesis-profile=default` runs new examples each time.
hypothesis.settings.register_profile(
    "the same every time",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("the same every time")


LONGEST = (
    "tests/simulation/test_simulation.py",
    "tests/operations/pages/test_query_plans.py",
    "tests/sandbox/test_properties.py",
    "tests/contract/test_sandbox.py",
    "tests/tools/",
)
"""Tests that take long: they run first, so that no process is left with one at the end."""


IN_THE_MIDDLE = ("tests/tools/test_bench.py", "tests/reports/exports/test_slow_readers.py")
"""On PostgreSQL these start the product or hold many connections, and so does the fault campaign, which may run beside
the tests and begins with them. Together they would need more connections than a server has by default.
"""

BROWSER = "tests/browser/"
"""These tests share a running product, which would be restarted whenever other tests ran in between."""

EVERY_PAGE = "tests/browser/test_every_page.py"
"""Half of the time of the browser tests, on a product of its own."""


class ModulesOnOneWorker(LoadScopeScheduling):
    """Schedules each module on any free worker, but each of the longest tests on its own, and the browser tests on
    two: those of every page, and the others. All on a worker share a running product.

    Single tests would cost a message each, and every worker the fixtures of every module. The browser tests start
    first, since on one worker they ended last, and the longest tests right after; the other workers run the rest
    meanwhile.
    """

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(BROWSER):
            return "every page" if nodeid.startswith(EVERY_PAGE) else "browser"
        return nodeid if nodeid.startswith(LONGEST) else nodeid.split("::")[0]


@pytest.hookimpl(optionalhook=True)  # pytest-xdist may not be loaded
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """The scheduler of `--dist loadgroup`: pytest-xdist 3.8 loses its groups with pytest 9.2 (its issue
    1386).
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    config.option.loadscopereorder = False  # in the order of the tests, not of the sizes of modules
    return ModulesOnOneWorker(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--only-with-database", action="store_true", help="leave out what one database engine proves"
    )


def pytest_report_header(config: pytest.Config) -> str:
    if not config.getoption("--only-with-database"):
        return ""
    return f"Only what has to pass on both database engines; this one is {connection.vendor}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--only-with-database"):
        leave_out_what_one_engine_proves(config, items)
    skip_what_cannot_run(items)
    items.sort(key=lambda item: (not item.nodeid.startswith(BROWSER), not item.nodeid.startswith(LONGEST)))
    middle = [item for item in items if item.nodeid.startswith(IN_THE_MIDDLE)]
    others = [item for item in items if not item.nodeid.startswith(IN_THE_MIDDLE)]
    items[:] = [*others[: len(others) // 2], *middle, *others[len(others) // 2 :]]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what is loaded out of garbage collection, and collect the rest seldom: each saves a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


@pytest.fixture(scope="session")
def shared_database(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    django_db_modify_db_settings: None,
) -> SharedDatabase:
    """What the processes of pytest-xdist copy, so that one alone runs the migrations."""
    kept_in = os.environ.get(KEPT_IN)
    if kept_in:
        shared = SharedDatabase(Path(kept_in), is_kept=True)
    else:
        is_one_of_several = hasattr(request.config, "workerinput")
        shared = SharedDatabase(tmp_path_factory.getbasetemp().parent if is_one_of_several else None)
    shared.begin()
    return shared


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_keepdb: bool, shared_database: SharedDatabase) -> bool:
    """Without it Django deletes a copied file of SQLite and migrates an empty one."""
    return django_db_keepdb or (shared_database.is_copied and connection.vendor == "sqlite")


@pytest.fixture(scope="session")
def django_db_setup(
    shared_database: SharedDatabase, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """The database of this process; the first one offers it to the others."""
    with django_db_blocker.unblock():
        shared_database.offer()
    yield
    with django_db_blocker.unblock():
        shared_database.take_back()


@pytest.fixture(autouse=True, scope="module")
def rolled_back_rows_are_cleared(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Vacuum our own tables after each module: autovacuum may be off, and rolled-back rows remain in
    PostgreSQL's files.

    They would slow every later test and distort the planner's estimates, which exports use. Locked tables are
    skipped, and the catalogue is left alone, since it is shared with the databases of other processes.
    """
    yield
    if connection.vendor == "postgresql" and connection.connection is not None:
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            tables = ", ".join(map(connection.ops.quote_name, connection.introspection.table_names(cursor)))
            cursor.execute(f"VACUUM (SKIP_LOCKED) {tables}")


_downloads: WeakSet[Download] = WeakSet()


@pytest.fixture(autouse=True)
def downloads_end_with_their_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Note the downloads that a test begins, for `pytest_runtest_teardown`."""
    begin = Download._start_watching

    def noted(download: Download) -> None:
        _downloads.add(download)
        begin(download)

    monkeypatch.setattr(Download, "_start_watching", noted)


@pytest.hookimpl(tryfirst=True)  # before the database of the test is rolled back
def pytest_runtest_teardown() -> None:
    """End what a test has not read to its end: its thread would record that in the database of a later test."""
    for download in list(_downloads):
        download._release()
    _downloads.clear()


@pytest.fixture(autouse=True)
def empty_caches() -> None:
    """Clear the caches of the process, which outlive a test's rollback and a reset of the provider."""
    credentials.clear_key_cache()
    isolation._postponed_until.clear()
    isolation._failing.clear()
    isolation._failures.clear()
    restore_check.forget_positions()
    for journal in django_settings.JOURNAL_DIR.iterdir():
        journal.unlink()
    cache.clear()


@pytest.fixture
def warm_caches(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill the caches of the API key in use, the pause, unrecognised transactions, breaks, filtered
    currencies and expiring keys, and keep them from expiring.

    Otherwise the number of queries would depend on the speed of the machine.
    """
    monkeypatch.setattr(credentials, "CACHE_SECONDS", 3600.0)
    monkeypatch.setattr(pause, "CACHED_SECONDS", 3600.0)
    monkeypatch.setattr(selectors, "CACHED_SECONDS", 3600.0)
    monkeypatch.setattr(waiting, "BADGE_SECONDS", 3600.0)
    monkeypatch.setattr(continuity, "COUNT_CACHE_SECONDS", 3600.0)
    monkeypatch.setattr(operation_list, "CURRENCIES_KEPT_SECONDS", 3600.0)
    credentials.key_in_use()
    pause.cached_pause()
    selectors.cached_unrecognised_count()
    continuity.cached_break_count()
    operation_list.currency_choices()
    key_list.expiring_keys()


def _with_warm_badges(count: DjangoAssertNumQueries) -> DjangoAssertNumQueries:
    """The same, for people who were here a moment ago: what their badges count is cached for some seconds."""

    def counted(*args: Any, **kwargs: Any) -> Any:
        for session in StaffSession.objects.select_related("user"):
            if session.user is not None:
                waiting.waiting_count(session.user)
        return count(*args, **kwargs)

    return counted


@pytest.fixture
def django_assert_num_queries(
    django_assert_num_queries: DjangoAssertNumQueries, warm_caches: None
) -> DjangoAssertNumQueries:
    """Counts the queries of a process with filled caches."""
    return _with_warm_badges(django_assert_num_queries)


@pytest.fixture
def django_assert_max_num_queries(
    django_assert_max_num_queries: DjangoAssertNumQueries, warm_caches: None
) -> DjangoAssertNumQueries:
    """Counts the queries of a process with filled caches."""
    return _with_warm_badges(django_assert_max_num_queries)


@pytest.fixture(autouse=True)
def no_facets_known() -> None:
    """Clear the facets of transactions, which a process caches without limit."""
    filters.forget_facets()


@pytest.fixture
def preparer(db: None) -> User:
    return factories.person("Tunde Bello", Role.PREPARER)


@pytest.fixture
def approver(db: None) -> User:
    return factories.person("Amara Okafor", Role.APPROVER)


@pytest.fixture
def second_approver(db: None) -> User:
    return factories.person("Chidi Nwosu", Role.APPROVER)


@pytest.fixture
def auditor(db: None) -> User:
    return factories.person("Femi Ade", Role.AUDITOR)


@pytest.fixture
def administrator(db: None) -> User:
    return factories.person("Zainab Musa", Role.ADMINISTRATOR)


@pytest.fixture
def second_administrator(db: None) -> User:
    return factories.person("Kemi Balogun", Role.ADMINISTRATOR)


@pytest.fixture
def outsider(db: None) -> User:
    """A person who may sign in and has no role."""
    return factories.person("Ola Stranger")


@pytest.fixture
def may_only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., User]:
    """Give a person a role of the tests alone, with these permissions such as "operations.view_operation"."""

    def give(person: User, *permissions: str) -> User:
        role = " ".join(sorted(permissions))
        monkeypatch.setitem(PERMISSIONS, cast(Role, role), set(permissions))
        person.groups.set([Group.objects.get_or_create(name=role)[0]])
        return person

    return give


@pytest.fixture
def sign_in() -> Callable[[Client, User], Client]:
    """Sign a person in to a test client, with password and a fresh second factor."""
    return factories.sign_in


@pytest.fixture(scope="session")
def sandbox_process() -> Iterator[SandboxProcess]:
    """One simulated provider for the whole run; `sandbox` gives it to a test in its seeded state."""
    with SandboxProcess() as process:
        yield process


@pytest.fixture(scope="session")
def published_process() -> Iterator[SandboxProcess]:
    """The same in the `published` profile."""
    with SandboxProcess(profile="published") as process:
        yield process


@pytest.fixture
def sandbox(sandbox_process: SandboxProcess, settings: Settings) -> SandboxProcess:
    """The simulated provider over real HTTP, reset, and the product configured to use it."""
    sandbox_process.reset()
    settings.GATEWAY_URL = sandbox_process.url
    settings.GATEWAY_URL_V4 = sandbox_process.url.replace("/v2", "/v4")
    settings.GATEWAY_API_KEY = sandbox_process.api_key
    settings.GATEWAY_API_USER = sandbox_process.api_user
    return sandbox_process


@pytest.fixture
def start_settings() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Load the product's settings in a separate process with the given environment."""

    def start(**environment: str) -> subprocess.CompletedProcess[str]:
        own = {"COUNTERSIGN_DATA_DIR": os.environ["COUNTERSIGN_DATA_DIR"], **environment}
        return run_python("-c", "import backoffice.settings", own=own)

    return start
