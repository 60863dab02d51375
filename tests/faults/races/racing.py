"""People and processes that act in the same moment, over and over, each on a database connection of its own."""

import json
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from django.db import connection

from backoffice.audit.verification import ChainVerification, verify_chain
from backoffice.core import clock
from backoffice.operations.errors import OperationError
from backoffice.operations.models.operations import Operation
from backoffice.operations.monitoring.invariants import INVARIANTS, InspectionScope
from backoffice.operations.states import Outcome
from tests.stub_provider import StubProvider

DONE = "done"
AT_MOST = 8
_PATIENCE = 60  # seconds

Act = Callable[[], object]


class Racers:
    """As many threads as a race needs; their connections last from round to round, as those of workers do."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_MOST)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.race(*[_hang_up] * AT_MOST)
        self._threads.shutdown()

    def race(self, *acts: Act) -> list[str]:
        """Let them begin in the same moment; "done", or the name of the refusal, of each. Other errors are raised."""
        start = threading.Barrier(len(acts))

        def run(act: Act) -> str:
            start.wait(_PATIENCE)
            try:
                act()
            except OperationError as exc:
                return type(exc).__name__
            return DONE

        return list(self._threads.map(run, acts))


def _hang_up() -> None:
    connection.close()  # that of the thread that runs this


def debits_of(operation: Operation, service: StubProvider) -> int:
    """How often the service was asked to execute this operation, or anything else in its name."""
    account = operation.payload.get("account_number")  # none of what is applied here
    return sum(json.loads(body)["accountNumber"] == account for body in service.posts)


def assert_sent_once_at_most(operations: Iterable[Operation], service: StubProvider) -> None:
    """One debit for what left, none for what did not."""
    for operation in operations:
        left = operation.attempts.exclude(outcome=Outcome.NOT_SENT).count()
        assert debits_of(operation, service) == left <= 1, f"{operation} left {left} times"


def broken_rules(operations: Iterable[Operation], *names: str) -> dict[str, list[str]]:
    """By rule of what must always hold, what breaks it: by these rules, or by all of them and the whole log."""
    log = ChainVerification(0, "") if names else verify_chain()
    scope = InspectionScope(clock.now(), [operation.pk for operation in operations], log)
    found = {rule.name: rule.broken_by(scope) for rule in INVARIANTS if not names or rule.name in names}
    return {name: broken for name, broken in found.items() if broken}
