"""Workers, service and two people together, and what a test does with them."""

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
    """The simulated service behind a wire, workers, and a test that is a process of the product, too."""

    nursery: ForkedWorkers
    service: SandboxProcess
    wire: Proxy
    maker: User
    checker: User

    def released(self, *kinds: str) -> list[Operation]:
        """An operation of each kind, with the word to send."""
        return [operations.released(kind, self.maker, self.checker, self.service) for kind in kinds]

    def strike(self, point: str, operation: Operation) -> None:
        """Have a worker send this one, and be killed at the point."""
        self.kill_at(point, "send", str(operation.pk))

    def kill_at(self, point: str, task: str, *arguments: str) -> None:
        """Have a worker do this task, and be killed at the point."""
        child = self.nursery.run(task, *arguments, fault_points={point: "kill"})
        wait_until(lambda: child.is_gone, f"a worker dies at {point}")
        assert child.has_reached(point), f"{task} {arguments} ended without reaching {point}"

    def freeze(self, point: str, operation: Operation, patience: float = PATIENCE) -> ForkedWorker:
        """Have a worker send this one, and stand still at the point."""
        return self.freeze_at(point, "send", str(operation.pk), patience=patience)

    def freeze_at(self, point: str, task: str, *arguments: str, patience: float = PATIENCE) -> ForkedWorker:
        """Have a worker do this task, and stand still at the point."""
        child = self.nursery.run(task, *arguments, fault_points={point: "stop"}, patience=patience)
        wait_until(lambda: child.is_frozen or child.is_gone, f"a worker freezes at {point}")
        assert child.has_reached(point), f"{task} {arguments} ended without reaching {point}"
        return child

    def thaw(self, frozen: ForkedWorker) -> None:
        """Let it go on to its end."""
        frozen.process.send_signal(signal.SIGCONT)
        wait_until(lambda: frozen.is_gone, "it goes on to its end")

    def ring(self, *operations: Operation) -> None:
        """Have a worker of its own send each, all at once, to their end."""
        children = [self.nursery.run("send", str(operation.pk)) for operation in operations]
        wait_until(lambda: all(child.is_gone for child in children), "the workers end")

    def sweep_until(
        self, condition: Callable[[], bool], what: str, *, patiently: bool = False, within: float = TIMEOUT
    ) -> float:
        """Do here what a sweeper does anywhere, until it is true; after how many seconds that was.

        No worker may be sending: unless the test is about the time itself, it is as if it had passed.
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
        """Until the machine has done with these what it can do."""
        return self.sweep_until(
            lambda: all(map(is_settled, operations)), "the end of each is known", patiently=patiently
        )

    def assert_never_sent(self, operations: list[Operation]) -> None:
        """Whoever rings, sweeps or asks: nothing is sent, and each is looked at again."""
        self.ring(*operations, *operations)
        jobs.send_due()
        for operation in operations:
            confirmation.confirm_operation(operation.pk)
        assert self.service.ledger()["orders"] == self.service.ledger()["payments"] == []
        assert all(map(is_left_open, operations)), statuses(operations)

    def story(self) -> str:
        """Every operation with its attempts and what the service's ledger has of it, and the workers' last words."""
        ledger = self.service.ledger()
        told = [reported_status(operation, ledger) for operation in Operation.objects.order_by("prepared_at")]
        return "\n".join([*told, "", "The workers wrote at last:", self.nursery.log()[-4000:]])


def skip_waiting_time() -> None:
    """As if every sender that is gone had been waited for, and the time of every look had come.

    Each attempt is put back once, so far that a list that lags has had its time, and no further.
    """
    back = listing_delay() + sender_grace()
    ours = Attempt.objects.filter(closed_at__isnull=True)
    ours.filter(started_at__gt=clock.now() - back).update(
        started_at=F("started_at") - back, deadline_at=F("deadline_at") - back
    )
    ours.filter(next_check_at__isnull=False).update(next_check_at=clock.now())


def is_settled(operation: Operation) -> bool:
    """Whether the end is proven, or people are asked: of a payment whose answer was lost, as no list shows it; and of
    what a machine too busy did not begin in time, so that nothing was sent.
    """
    status = status_of(operation)
    asks_people = operation.kind == "payment" and status == Status.REVIEW
    return status == Status.SUCCEEDED or asks_people or came_back(operation)


def came_back(operation: Operation) -> bool:
    """Whether it was claimed and proven not to be sent, so that it waits for a new word."""
    return (
        status_of(operation) == Status.APPROVED
        and operation.attempts.filter(outcome=Outcome.NOT_SENT).exists()
    )


def is_left_open(operation: Operation) -> bool:
    """Whether nothing proves an end: the list is looked at again at a known time, or people are asked."""
    attempt = operation.attempts.get()
    if operation.kind == "payment":
        return status_of(operation) == Status.REVIEW
    return status_of(operation) == Status.UNKNOWN and attempt.next_check_at is not None


def statuses(operations: Iterable[Operation]) -> set[str]:
    """Where they stand."""
    return {status_of(operation) for operation in operations}
