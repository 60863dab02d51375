"""How many cases the contract tests try, and from which seed.

`make test` tries a few and always the same ones; `make test-contract` tries thousands from a new seed.
"""

import os

CASES = int(os.environ.get("CONTRACT_CASES", "12"))
"""Random cases for each operation, beside those that schemathesis derives from the document itself."""

SEED = int(os.environ.get("CONTRACT_SEED", "1"))


def summary() -> str:
    """What to set to see the same cases again."""
    return f"contract: CONTRACT_CASES={CASES} CONTRACT_SEED={SEED}"
