"""At most one debit per operation, and every outcome known in the end, whatever happens in any order.

How many outcomes were found without people is judged over all runs together (`conftest`).
"""

from collections.abc import Callable
from dataclasses import asdict

import pytest
from hypothesis import seed
from hypothesis.stateful import run_state_machine_as_test

from tests.simulation.campaign import SimulationFigures, of_histories, runs
from tests.simulation.state_machine import HistoryMachine
from tests.simulation.world import SimulationStage


@pytest.mark.parametrize(("start", "number"), runs())
def test_no_history_debits_twice_or_loses_an_outcome(
    stage: SimulationStage, start: int, number: int, record_property: Callable[[str, object], None]
) -> None:
    class Run(HistoryMachine):
        pass

    Run.stage, Run.figures = stage, SimulationFigures()
    run_state_machine_as_test(seed(start)(Run), settings=of_histories(number))
    record_property("simulation", asdict(Run.figures))
