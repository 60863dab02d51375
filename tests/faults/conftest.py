"""Fixtures of the fault campaign: one set of processes for the run, and its figures at the end.

`FAULTS=whole` runs everything, each case `FAULT_ROUNDS` times; `FAULTS=sample` runs the cases named in
`sample.py`. Without it only tests not marked `faults` run, as part of the whole suite.
"""

import os
import uuid
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from unittest import mock

import pytest
from django.conf import settings as django_settings
from django.core.cache import cache
from django.db import DatabaseError, connection
from kombu import Connection
from kombu.pools import producers
from pytest_django import Settings
from requests import RequestException

from backoffice.accounts.models import StaffGroup, User
from backoffice.accounts.roles import Role
from backoffice.celery import app
from tests import factories
from tests.faults.harness.figures import FIGURES, CampaignFigures
from tests.faults.harness.forked_workers import ForkedWorkers
from tests.faults.harness.processes import PATIENCE, MakeProcesses, ProductProcesses
from tests.faults.harness.proxy import Proxy
from tests.faults.harness.stage import FaultStage
from tests.faults.sample import SAMPLE, name_of
from tests.policies.versions import group, levels, of_people, put_in_effect
from tests.requirements import RABBITMQ, REDIS
from tests.sandbox_process import ISSUED_CODES, SandboxProcess
from tests.tools.test_brokers import database_url

SIZE = os.environ.get("FAULTS", "")
ROUNDS = int(os.environ.get("FAULT_ROUNDS", "5")) if SIZE == "whole" else 1
BROKERS = [
    pytest.param(REDIS, id="redis", marks=pytest.mark.redis),
    pytest.param(RABBITMQ, id="rabbitmq", marks=pytest.mark.rabbitmq),
]


@pytest.hookimpl(tryfirst=True)  # before other hooks deselect tests
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    cells = [item for item in items if item.get_closest_marker("faults")]
    deselected = {"": cells, "sample": left_out(cells, config), "whole": []}[SIZE]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item not in deselected]


def left_out(cells: list[pytest.Item], config: pytest.Config) -> list[pytest.Item]:
    """The cases that are not in the sample. Raises UsageError if a case of the sample no longer exists."""
    sample = SAMPLE[connection.vendor]
    missing = sample - {name_of(cell) for cell in cells}
    if SIZE == "sample" and missing and config.args == ["tests/faults"]:
        raise pytest.UsageError(f"tests/faults/sample.py names what is no test: {sorted(missing)}")
    return [cell for cell in cells if name_of(cell) not in sample]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "round_number" in metafunc.fixturenames:
        metafunc.parametrize("round_number", range(1, ROUNDS + 1))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A missed target fails the run, even if every test passed."""
    if exitstatus == pytest.ExitCode.OK and broken_promises(FIGURES, SIZE):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def broken_promises(figures: CampaignFigures, size: str) -> list[str]:
    """The targets missed by the figures of a run of this size. A sample is too small to judge recovery times."""
    return figures.missed() + (figures.late() if size == "whole" else [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if FIGURES.cells:
        terminalreporter.section(f"the fault campaign on {connection.vendor}")
        for line in FIGURES.lines():
            terminalreporter.write_line(line)
        for broken in broken_promises(FIGURES, SIZE):
            terminalreporter.write_line(f"MISSED: {broken}", red=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add details to a failure report: operations, attempts, the provider's ledger, and the workers' output."""
    report = yield
    stage = getattr(item, "funcargs", {}).get("stage")
    if report.when == "call" and report.failed and stage is not None:
        with suppress(DatabaseError, RequestException):  # the failure may have broken these too
            report.sections.append(("operations, and the service's ledger", stage.story()))
    return report


@pytest.fixture(scope="session")
def wire(sandbox_process: SandboxProcess) -> Iterator[Proxy]:
    """The proxy between the product and the simulated provider."""
    with Proxy(int(sandbox_process.address.rpartition(":")[2])) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def forked_workers(
    wire: Proxy, django_db_setup: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ForkedWorkers]:
    """Workers on this run's database, one process per task."""
    environment = {
        "COUNTERSIGN_DATABASE_URL": database_url(),
        "COUNTERSIGN_BROKER_URL": "memory://",
        "COUNTERSIGN_JOURNAL_DIR": str(django_settings.JOURNAL_DIR),
        **route_to_the_provider(wire),
    }
    running = ForkedWorkers(tmp_path_factory.mktemp("workers"), environment)
    running.start()
    yield running
    running.stop()


@pytest.fixture
def provider(sandbox: SandboxProcess, wire: Proxy, settings: Settings) -> Iterator[SandboxProcess]:
    """The simulated provider behind the proxy, which accepts a one-time code repeatedly, with all caches
    cleared.

    Deadlines are long enough for a busy machine: to begin, to wait for the response, and for the code to be
    valid.
    """
    cache.clear()
    sandbox.options(token_reuse=True)
    settings.SEND_DEADLINE_SECONDS = settings.SEND_WITHIN_SECONDS = float(PATIENCE)
    settings.OTP_LIFETIME_SECONDS = 60 * settings.RELEASE_LIFETIME_MINUTES
    settings.GATEWAY_URL, settings.GATEWAY_URL_V4, settings.GATEWAY_PROFILE = route_to_the_provider(
        wire
    ).values()
    # Not by the setting, which Celery reads once: in a process whose first message it is, it would hold for all tests.
    with mock.patch.object(app.amqp, "_producer_pool", producers[Connection("memory://")]):
        yield sandbox


@pytest.fixture
def administrators(administrator: User, second_administrator: User) -> None:
    """As many as there have to be before anything is sent."""


@pytest.fixture
def stage(
    forked_workers: ForkedWorkers,
    provider: SandboxProcess,
    wire: Proxy,
    preparer: User,
    approver: User,
    administrators: None,
    round_number: int,
) -> FaultStage:
    """Workers, provider and two people, once per round of the campaign."""
    return FaultStage(forked_workers, provider, wire, preparer, approver)


@pytest.fixture
def make_product(tmp_path: Path, wire: Proxy) -> Iterator[MakeProcesses]:
    """Product processes of this test's own."""
    made: list[ProductProcesses] = []

    def make(broker: str = "filesystem://localhost//", **environment: str) -> ProductProcesses:
        ours = {"COUNTERSIGN_DATABASE_URL": database_url(), **route_to_the_provider(wire), **environment}
        made.append(ProductProcesses(tmp_path, ours, broker=broker, queue=f"faults-{uuid.uuid4()}"))
        return made[-1]

    yield make
    for product in made:
        product.stop()


def route_to_the_provider(wire: Proxy) -> dict[str, str]:
    """Environment variables with the provider's address behind this proxy, and its profile."""
    base = f"http://127.0.0.1:{wire.port}"
    return {
        "COUNTERSIGN_GATEWAY_URL": f"{base}/v2",
        "COUNTERSIGN_GATEWAY_URL_V4": f"{base}/v4",
        "COUNTERSIGN_GATEWAY_PROFILE": str(ISSUED_CODES),
    }


@pytest.fixture
def away(db: None) -> User:
    return factories.person("Chidi Eze", Role.APPROVER, email="eze@countersign.example")


@pytest.fixture
def treasury(away: User, approver: User, second_approver: User) -> StaffGroup:
    """With a policy by which only the person on leave could approve."""
    put_in_effect(levels((1, of_people(away))))
    return group("Treasury", away, approver, second_approver)
