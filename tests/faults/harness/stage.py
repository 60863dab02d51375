"""Workers, provider and two people together, and the steps of a test with them."""

import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.db.models import F

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.operations import jobs
from backoffice.operations.delivery.record import sender_grace
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.outcome import confirmation, schedule
from backoffice.operations.outcome.confirmation import listing_delay
from backoffice.operations.states import Outcome, Status
from tests.faults.harness import operations
from tests.faults.harness.figures import reported_status
from tests.faults.harness.forked_workers import ForkedWorker, ForkedWorkers
from tests.faults.harness.processes import PATIENCE, TIMEOUT, wait_until
from tests.faults.harness.proxy import Proxy
from tests.operations.steps import status_of
from tests.sandbox_process import SandboxProcess


@dataclass
class FaultStage:
    """The simulated provider behind a proxy, workers, and the test, which is also a process of the product."""

    forked_workers: ForkedWorkers
    provider: SandboxProcess
    wire: Proxy
    preparer: User
    approver: User

    def released(self, *kinds: str) -> list[Operation]:
        """A released operation of each kind."""
        return [operations.released(kind, self.preparer, self.approver, self.provider) for kind in kinds]

    def strike(self, point: str, operation: Operation) -> None:
        """Send this operation in a worker that is killed at the point."""
        self.kill_at(point, "send", str(operation.pk))

    def kill_at(self, point: str, task: str, *arguments: str) -> None:
        """Run this task in a worker that is killed at the point."""
        child = self.forked_workers.run(task, *arguments, fault_points={point: "kill"})
        wait_until(lambda: child.is_gone, f"a worker dies at {point}")
        assert child.has_reached(point), f"{task} {arguments} ended without reaching {point}"

    def freeze(self, point: str, operation: Operation, patience: float = PATIENCE) -> ForkedWorker:
        """Send this operation in a worker that is frozen at the point."""
        return self.freeze_at(point, "send", str(operation.pk), patience=patience)

    def freeze_at(self, point: str, task: str, *arguments: str, patience: float = PATIENCE) -> ForkedWorker:
        """Run this task in a worker that is frozen at the point."""
        child = self.forked_workers.run(task, *arguments, fault_points={point: "stop"}, patience=patience)
        wait_until(lambda: child.is_frozen or child.is_gone, f"a worker freezes at {point}")
        assert child.has_reached(point), f"{task} {arguments} ended without reaching {point}"
        return child

    def thaw(self, frozen: ForkedWorker) -> None:
        """Resume it and wait for its end."""
        frozen.process.send_signal(signal.SIGCONT)
        wait_until(lambda: frozen.is_gone, "it goes on to its end")

    def enqueue(self, *operations: Operation) -> None:
        """Send each in a worker of its own, all at the same time, and wait for their ends."""
        children = [self.forked_workers.run("send", str(operation.pk)) for operation in operations]
        wait_until(lambda: all(child.is_gone for child in children), "the workers end")

    def sweep_until(
        self, condition: Callable[[], bool], what: str, *, patiently: bool = False, within: float = TIMEOUT
    ) -> float:
        """Sweep in this process until the condition is true; returns the seconds.

        No worker may be sending: waiting times are skipped, except with `patiently`, for tests of the time
        itself.
        """

        def is_true_after_a_round() -> bool:
            if not patiently:
                skip_waiting_time()
            jobs.expire_due()
            jobs.send_due()
            schedule.check_due()
            return condition()

        return wait_until(is_true_after_a_round, what, within, every=0.2)

    def sweep_until_settled(self, operations: list[Operation], *, patiently: bool = False) -> float:
        """Sweep until nothing more can be done automatically for these operations."""
        return self.sweep_until(
            lambda: all(map(is_settled, operations)), "the end of each is known", patiently=patiently
        )

    def assert_never_sent(self, operations: list[Operation]) -> None:
        """Neither messages nor sweeps nor status checks send anything. Each operation has a next check, or waits
        for a new release.
        """
        self.enqueue(*operations, *operations)
        jobs.send_due()
        for operation in operations:
            confirmation.confirm_operation(operation.pk)
        assert self.provider.ledger()["orders"] == self.provider.ledger()["payments"] == []
        assert all(came_back(one) or is_left_open(one) for one in operations), statuses(operations)

    def story(self) -> str:
        """Every operation with its attempts and the provider's record of it, and the workers' last output."""
        ledger = self.provider.ledger()
        statuses = [
            reported_status(operation, ledger) for operation in Operation.objects.order_by("prepared_at")
        ]
        return "\n".join([*statuses, "", "The workers wrote at last:", self.forked_workers.log()[-4000:]])


def skip_waiting_time() -> None:
    """Date attempts back, as if the waiting time for their senders had passed and every next check was due.

    Each attempt is dated back once, just far enough for a lagging list, and no further.
    """
    back = listing_delay() + sender_grace()
    ours = Attempt.objects.filter(closed_at__isnull=True)
    ours.filter(started_at__gt=clock.now() - back).update(
        started_at=F("started_at") - back, begin_by=F("begin_by") - back, deadline_at=F("deadline_at") - back
    )
    ours.filter(next_check_at__isnull=False).update(next_check_at=clock.now())


def is_settled(operation: Operation) -> bool:
    """Whether the end is proven, or people are asked.

    People are asked for a payment without a response, since no list shows it, and for an operation that a
    busy machine did not begin in time, so that nothing was sent.
    """
    status = status_of(operation)
    asks_people = operation.kind == "payment" and status == Status.REVIEW
    return status == Status.SUCCEEDED or asks_people or came_back(operation)


def came_back(operation: Operation) -> bool:
    """Whether it was claimed and proven not sent, so that it waits for a new release."""
    return (
        status_of(operation) == Status.APPROVED
        and operation.attempts.filter(outcome=Outcome.NOT_SENT).exists()
    )


def is_left_open(operation: Operation) -> bool:
    """Whether nothing proves an end: it has a next check at a known time, or people are asked."""
    attempt = operation.attempts.get()
    if operation.kind == "payment":
        return status_of(operation) == Status.REVIEW
    return status_of(operation) == Status.UNKNOWN and attempt.next_check_at is not None


def statuses(operations: Iterable[Operation]) -> set[str]:
    """Their statuses."""
    return {status_of(operation) for operation in operations}
