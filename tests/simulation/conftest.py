"""The stage for all histories of a process, and the figures printed at the end."""

import logging
from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from tests.simulation import world
from tests.simulation.campaign import CLOSED_SHARE, HISTORIES, SEED, SimulationFigures
from tests.simulation.world import SimulationStage


@pytest.fixture
def stage(django_db_blocker: DjangoDbBlocker) -> Iterator[SimulationStage]:
    """An in-memory database in place of the suite's, a simulated provider in this process, and no log."""
    logging.disable(logging.CRITICAL)
    try:
        with django_db_blocker.unblock(), world.stage() as made:
            yield made
    finally:
        logging.disable(logging.NOTSET)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if too few attempts were closed automatically: of all runs together, as one run has few such attempts."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if (
        reporter is not None
        and session.exitstatus == pytest.ExitCode.OK
        and _total(reporter).share < CLOSED_SHARE
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures."""
    total = _total(terminalreporter)
    if total.histories:
        terminalreporter.section("simulation")
        terminalreporter.write_line(f"SIMULATION_HISTORIES={HISTORIES} SIMULATION_SEED={SEED}\n{total}")
    if total.share < CLOSED_SHARE:
        terminalreporter.write_line(f"FAILED: fewer than {CLOSED_SHARE:.0%} closed automatically", red=True)


def _total(reporter: pytest.TerminalReporter) -> SimulationFigures:
    """The figures of all processes: each test sends its figures with its report."""
    total = SimulationFigures()
    for report in reporter.getreports("passed"):
        for name, figures in report.user_properties:
            if name == "simulation":
                total.add(SimulationFigures(**figures))
    return total
