"""How many cases the contract tests try, and from which seed.

`make test` tries a few and always the same ones; `make test-contract` tries thousands from a new seed.
"""

import os
from datetime import timedelta

from hypothesis import HealthCheck, Phase, settings

CASES = int(os.environ.get("CONTRACT_CASES", "12"))
"""Random cases for each operation, beside those that schemathesis derives from the document itself."""

SEED = int(os.environ.get("CONTRACT_SEED", "1"))

HISTORIES = max(20, int(os.environ.get("CONTRACT_CASES", "0")))
"""Random histories of the sandbox (tests/sandbox/test_properties.py), each of up to fifty steps."""

_MAKE_IT_SHORTER = os.environ.get("CONTRACT_SHRINK") == "1"


def of_histories() -> settings:
    """How histories are tried: the first one that fails ends the test.

    To search for a shorter one takes minutes, so that is done only on demand (CONTRACT_SHRINK=1); and the deadline ends
    a history in which the provider hangs.
    """
    return settings(
        max_examples=HISTORIES,
        stateful_step_count=50,
        deadline=timedelta(seconds=60),
        database=None,
        phases=[Phase.generate, Phase.shrink] if _MAKE_IT_SHORTER else [Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def summary() -> str:
    """What to set to see the same cases again."""
    return f"contract: CONTRACT_CASES={CASES} CONTRACT_SEED={SEED}"
