"""Run actions at the same moment, repeatedly, each on a database connection of its own."""

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
from backoffice.operations.monitoring.integrity_checks import INTEGRITY_CHECKS, InspectionScope
from backoffice.operations.states import Outcome
from tests.stub_provider import StubProvider

DONE = "done"
AT_MOST = 8
_PATIENCE = 60  # seconds

Act = Callable[[], object]


class Racers:
    """As many threads as a race needs; their connections persist between rounds, like those of workers."""

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
        """Start the actions at the same moment; returns "done" or the name of the refusal for each. Other
        errors are raised.
        """
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
    connection.close()  # the connection of the thread that runs this


def debits_of(operation: Operation, provider: StubProvider) -> int:
    """How often the provider was asked to execute this operation, or anything else under its identity."""
    account = operation.payload.get("account_number")  # operations applied locally have none
    return sum(json.loads(body)["accountNumber"] == account for body in provider.posts)


def assert_sent_once_at_most(operations: Iterable[Operation], provider: StubProvider) -> None:
    """One debit for each operation that was sent, none for the others."""
    for operation in operations:
        requests = operation.attempts.filter(released_by__isnull=False)
        left = requests.exclude(outcome=Outcome.NOT_SENT).count()
        assert debits_of(operation, provider) == left <= 1, f"{operation} left {left} times"


def broken_rules(operations: Iterable[Operation], *names: str) -> dict[str, list[str]]:
    """The violations by integrity check: of these checks, or of all of them and the audit log."""
    log = ChainVerification(0, "") if names else verify_chain()
    scope = InspectionScope(clock.now(), [operation.pk for operation in operations], log)
    found = {rule.name: rule.broken_by(scope) for rule in INTEGRITY_CHECKS if not names or rule.name in names}
    return {name: broken for name, broken in found.items() if broken}
