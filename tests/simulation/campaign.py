"""How many histories are run, from which seed, and their figures.

`make test` runs one hundred, always the same; `make test-simulation` runs 20,000 from a new seed.
"""

import os
from dataclasses import asdict, dataclass

from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

HISTORIES = int(os.environ.get("SIMULATION_HISTORIES", "40"))
SEED = int(os.environ.get("SIMULATION_SEED", "1"))
IN_ONE_RUN = 50
"""Histories per test, each test with a seed of its own, so that two processes can share the tests."""

CLOSED_SHARE = 0.99  # of the ambiguous attempts with one matching record, at least
STEPS = 20
RUNS = -(-HISTORIES // IN_ONE_RUN)
AFRESH = "afresh"
"""Generate every history independently. By default Hypothesis makes four in five by mutating the one before,
which pays off only where an example costs little.
"""

AVAILABLE_PROVIDERS[AFRESH] = HypothesisProvider
_MAKE_IT_SHORTER = os.environ.get("SIMULATION_SHRINK") == "1"


@dataclass
class SimulationFigures:
    """Counts over the histories of one run."""

    histories: int = 0
    steps: int = 0
    operations: int = 0
    requests: int = 0
    debits: int = 0
    ambiguous: int = 0  # attempts without a transaction id for which the list shows exactly one match
    closed_automatically: int = 0
    in_review: int = 0
    batch_rows: int = 0  # operations that were rows of a batch
    bulk_releases: int = 0
    managed_codes: int = 0  # requests with a one-time code that was made here
    side_by_side: int = 0  # attempts without a transaction, while another of their balance had none either

    def add(self, other: "SimulationFigures") -> None:
        for name, number in asdict(other).items():
            setattr(self, name, getattr(self, name) + number)

    @property
    def share(self) -> float:
        """Of the ambiguous attempts with one matching record, the share closed automatically."""
        return self.closed_automatically / self.ambiguous if self.ambiguous else 1.0

    def __str__(self) -> str:
        return (
            f"{self.histories:,} histories, {self.steps:,} steps, {self.operations:,} operations, "
            f"{self.requests:,} requests sent, {self.debits:,} debits, {self.in_review:,} for people to review\n"
            f"ambiguous attempts with one matching record: {self.ambiguous:,}, "
            f"closed automatically: {self.closed_automatically:,} ({100 * self.share:.2f} %)\n"
            f"operations of batches: {self.batch_rows:,}, bulk releases: {self.bulk_releases:,}, "
            f"requests with a managed code: {self.managed_codes:,}\n"
            f"attempts with no transaction yet, beside another of their balance: {self.side_by_side:,}"
        )


def of_histories(number: int) -> settings:
    """Hypothesis settings. The first failing history ends the run; shrinking takes minutes:
    SIMULATION_SHRINK=1.
    """
    return settings(
        max_examples=number,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        backend=AFRESH,
        phases=[Phase.generate, Phase.shrink] if _MAKE_IT_SHORTER else [Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def runs() -> list[tuple[int, int]]:
    """Seed and number of histories of each run."""
    rest = [min(IN_ONE_RUN, HISTORIES - IN_ONE_RUN * run) for run in range(RUNS)]
    return [(SEED + run, number) for run, number in enumerate(rest)]
