"""The stage for all histories of a process, and the figures printed when they end."""

import logging
from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from tests.simulation import world
from tests.simulation.campaign import HISTORIES, SEED, SimulationFigures
from tests.simulation.world import SimulationStage


@pytest.fixture
def stage(django_db_blocker: DjangoDbBlocker) -> Iterator[SimulationStage]:
    """A database in memory in place of the suite's, a service in this process, and no log, which nobody would read."""
    logging.disable(logging.CRITICAL)
    try:
        with django_db_blocker.unblock(), world.stage() as made:
            yield made
    finally:
        logging.disable(logging.NOTSET)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Also what other processes counted: each test sends its figures with its report."""
    total = SimulationFigures()
    for report in terminalreporter.getreports("passed"):
        for name, figures in report.user_properties:
            if name == "simulation":
                total.add(SimulationFigures(**figures))
    if total.histories:
        terminalreporter.section("simulation")
        terminalreporter.write_line(f"SIMULATION_HISTORIES={HISTORIES} SIMULATION_SEED={SEED}\n{total}")
