"""The stage for all histories of a process, and the figures printed at the end."""

import logging
from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from tests.simulation import world
from tests.simulation.campaign import HISTORIES, SEED, SimulationFigures
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures, including those of other processes: each test sends its figures with its report."""
    total = SimulationFigures()
    for report in terminalreporter.getreports("passed"):
        for name, figures in report.user_properties:
            if name == "simulation":
                total.add(SimulationFigures(**figures))
    if total.histories:
        terminalreporter.section("simulation")
        terminalreporter.write_line(f"SIMULATION_HISTORIES={HISTORIES} SIMULATION_SEED={SEED}\n{total}")
