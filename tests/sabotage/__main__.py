"""Remove each safeguard in turn and verify that a named test fails: `python -m tests.sabotage`.

Works in copies of the project, two at a time; the project itself is not changed. Exit code 1 unless every
removal is noticed.
"""

import argparse
import random
import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.sabotage.safeguards import SAFEGUARDS
from tests.sabotage.workshop import SabotagedCopy, Safeguard, SafeguardNotFoundError, of_test

AT_ONCE = 2
MIGRATES = "tests/core/test_leases.py::test_each_acquisition_has_a_higher_number"
"""A short test that uses the database: the first run in a copy of the project migrates one, which the others copy."""
_STOPPED = threading.Event()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sabotage", description=__doc__)
    parser.add_argument("--sample", type=int, metavar="N", help="only so many, chosen by chance")
    parser.add_argument(
        "--seed", type=int, default=secrets.randbelow(2**32), help="chooses the same ones again"
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only those that have this text in their name"
    )
    options = parser.parse_args()
    chosen = [each for each in SAFEGUARDS if options.only in each.name]
    if options.sample is not None and options.sample < len(chosen):
        say(f"A sample of {options.sample} of {len(chosen)} (--seed {options.seed})")
        chosen = random.Random(options.seed).sample(chosen, options.sample)  # noqa: S311 - a choice of tests
    began = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        shares = [chosen[number::AT_ONCE] for number in range(AT_ONCE)]
        try:
            caught = sum(pool.map(work_on, [share for share in shares if share]))
        except KeyboardInterrupt:
            _STOPPED.set()
            raise
    say(f"sabotage: {caught}/{len(chosen)} caught in {time.monotonic() - began:.0f} s")
    return 0 if 0 < len(chosen) == caught else 1


def work_on(share: Sequence[Safeguard]) -> int:
    """Remove these safeguards one after the other and print whether each was noticed; returns how many were."""
    folder = Path(tempfile.mkdtemp(prefix="countersign-sabotage-"))
    with SabotagedCopy(folder) as workshop:
        return sum(caught for caught in _each(workshop, share))


def _each(workshop: SabotagedCopy, share: Sequence[Safeguard]) -> Iterator[bool]:
    workshop.run_all(
        [MIGRATES]
    )  # so that the tests are green on the database that they get without a safeguard
    untouched = workshop.run_all(safeguard.test for safeguard in share)
    for safeguard in share:
        if _STOPPED.is_set():
            return
        began = time.monotonic()
        before = of_test(untouched, safeguard.test)
        why = (
            why_unnoticed(workshop, safeguard)
            if before == {"passed"}
            else f"it is not green before: {before}"
        )
        took = f"{time.monotonic() - began:.0f} s"
        say(f"{'NOT CAUGHT' if why else 'caught':10}  {safeguard.name} -> {safeguard.test} ({why or took})")
        yield not why


def why_unnoticed(workshop: SabotagedCopy, safeguard: Safeguard) -> str:
    """Why the removal was not noticed; empty if the test failed as it should.

    The database is migrated without the safeguard only where that may matter: in a migration, or if the test does not
    fail on the database that was migrated with it.
    """
    why = ""
    for migrates in [True] if ".migrations." in safeguard.where else [False, True]:
        why = _why_unnoticed_in_one_run(workshop, safeguard, migrates=migrates)
        if not why:
            break
    return why


def _why_unnoticed_in_one_run(workshop: SabotagedCopy, safeguard: Safeguard, *, migrates: bool) -> str:
    try:
        results = of_test(workshop.without(safeguard, migrates=migrates), safeguard.test)
    except SafeguardNotFoundError as exc:
        return f"the text is no longer there: {exc}"
    except SyntaxError as exc:
        return f"what is left is no Python: {exc}"
    if "failed" in results and results <= {"failed", "passed"}:
        return ""
    return "; ".join(sorted(results)) or "the test did not run"


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
