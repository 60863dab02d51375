"""Measure recovery: the time from the return of what was missing until the right work is under way."""

import time

from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status
from tests.faults.harness.figures import FIGURES
from tests.faults.harness.processes import wait_until
from tests.faults.harness.stage import came_back, is_settled
from tests.operations.steps import status_of


def have_begun(operations: list[Operation]) -> bool:
    """Whether each was claimed."""
    return all(status_of(one) != Status.APPROVED or came_back(one) for one in operations)


def recovered(what: str, operations: list[Operation], since: float | None = None) -> None:
    """Measure the time, from now or from `since`, until all operations are claimed, and let them finish."""
    began = time.monotonic() if since is None else since
    wait_until(lambda: have_begun(operations), f"{what}: they are under way")
    FIGURES.recovered(what, time.monotonic() - began)
    wait_until(lambda: all(map(is_settled, operations)), f"{what}: their end is known")
