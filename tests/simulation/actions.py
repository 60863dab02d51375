"""Actions of people and processes in a history. They call the real services, as
pages and workers do.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid5

from django.contrib.auth.models import Group
from django.db import transaction
from pydantic import SecretStr

from backoffice import tasks
from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock, isolation
from backoffice.core.isolation import postponed
from backoffice.core.models import LeaseRow
from backoffice.ledger.mirror import sync
from backoffice.operations.delivery import release
from backoffice.operations.delivery.record import sender_grace
from backoffice.operations.errors import OperationError
from backoffice.operations.kinds.base import KindForm, Payload
from backoffice.operations.kinds.conversion import ConversionPayload
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.kinds.resolution.kind import ResolutionForm
from backoffice.operations.kinds.resume import ResumeForm
from backoffice.operations.kinds.transfer import TransferPayload
from backoffice.operations.kinds.wallet_transfer import WalletTransferPayload
from backoffice.operations.lifecycle import pause
from backoffice.operations.models import monitoring
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.otp import otp_secret_in_use
from backoffice.operations.outcome import confirmation
from backoffice.operations.reconciliation import runner
from backoffice.operations.workflow import approvals, prepare
from backoffice.webhooks.processing import receive_delivery
from tests import factories
from tests.simulation.oracle import Oracle
from tests.simulation.request_outcomes import FULFILLED, Settlement
from tests.simulation.rows import DUE_QUERY, moment
from tests.simulation.webhook_checks import leaving_none_out, moving_nothing
from tests.simulation.world import (
    CAST,
    SECOND_APPROVAL_ABOVE,
    InjectedFault,
    KilledError,
    SimulatedProcess,
    SimulationStage,
    queued_tasks,
)
from tests.sweeping import sweep_operations

Act = Callable[..., object]
NO_OPERATION = UUID(int=4)
_SPACE = UUID("6f9619ff-8b86-4d01-b42d-00cf4fc964ff")
_A_BIT = timedelta(seconds=1)
_ADDRESS = "TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE"

# Equal amounts to different recipients, whom the list rarely shows: only order and time distinguish them.
KINDS: dict[str, Callable[[Decimal, int], Payload]] = {
    "withdrawal": lambda amount, number: factories.payload(
        amount=amount, account_number=f"{number:010}", duplicate_reason="Another one"
    ),
    "transfer": lambda amount, number: TransferPayload(
        receiver_username=f"emeka{number}", currency="NGN", amount=amount, memo=""
    ),
    "conversion": lambda amount, number: ConversionPayload(
        from_currency="NGN",
        to_currency="USD",
        amount=amount,
        known_rate=None,
        duplicate_reason=str(number),
    ),
    "wallet_transfer": lambda amount, number: WalletTransferPayload(
        network="TRC20",
        currency="USDT",
        amount=amount,
        address=f"{_ADDRESS}{number}",
        wallet_type="",
        memo="",
    ),
}

DECISIONS = frozenset({"approve", "approve and release", "release", "reject", "cancel"})


@dataclass
class HistoryActions:
    """The back office in one history, with the oracle that checks it."""

    stage: SimulationStage
    prepared: list[UUID] = field(default_factory=list)
    queued: list[str] = field(default_factory=list)
    away: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.oracle: Oracle
        self.world = self.stage.new_world(lambda point, process: self.oracle.check_point(point, process))
        self.oracle = Oracle(self.world)
        self.people = self.stage.people
        self.tokens = itertools.count(1)

    def prepare(self, kind: str, amount: int, preparer: str = "Tunde") -> UUID | None:
        """Prepare an operation; returns its id, or None if it was refused."""
        return self._prepare(kind, KINDS[kind](Decimal(amount), len(self.prepared)), preparer)

    def decide(self, pk: UUID, decision: str, person: str) -> None:
        """A person uses a button of the operation's page, permitted or not."""
        operation = Operation.objects.get(pk=pk)
        kind, payload = read_content(operation)
        wanted, actor = kind.confirmation(payload), self.people[person]
        signature: dict[str, Any] = {
            "actor": actor,
            "digest": operation.digest,
            "second_factor_at": clock.now(),
        }
        typed = {"confirmation": approvals.ApproverConfirmation(wanted.expected if wanted else "")}
        otp = {"otp": SecretStr(f"token-{next(self.tokens)}") if kind.asks_for_otp else None}
        declared = self._another_payment(operation) if decision == "release" else {}
        choices: dict[str, tuple[Act, dict[str, Any]]] = {
            "approve": (approvals.approve_operation, signature | typed),
            "approve and release": (approvals.approve_and_release_operation, signature | typed | otp),
            "release": (release.release_operation, signature | otp | declared),
            "reject": (approvals.reject_operation, signature | {"reason": "Not now"}),
            "cancel": (approvals.cancel_operation, {"actor": actor}),
        }
        provider, options = choices[decision]
        self.try_to(provider, pk, **options)

    def _another_payment(self, operation: Operation) -> dict[str, Any]:
        """The declaration of a person who compares the look-alikes, and never takes an own debit for another's."""
        found = operation.look_alikes.filter(declared_at=None).values_list("transaction_id", flat=True)
        own = {debit.transaction_id for debit in self.oracle.debits_of(operation.pk)}
        if not found or own & set(found):
            return {}
        return {"statement": release.AnotherPayment(tuple(found), "Paid for another invoice")}

    def order(self, kind: str, amount: int) -> UUID:
        """The normal case: one person prepares, others who are present approve and release."""
        pk = self.prepare(kind, amount, preparer="Ngozi" if "Tunde" in self.away else "Tunde")
        if pk is None:
            return NO_OPERATION
        there = [name for name in ("Amara", "Chidi", "Bola") if name not in self.away]
        for name in there[: 2 if amount > SECOND_APPROVAL_ABOVE else 1]:
            self.decide(pk, "approve", name)
        for name in there[-1:]:
            self.decide(pk, "release", name)
        return pk

    def pay_by_another_channel(
        self, pk: UUID, ends: Settlement = FULFILLED, *, is_shown_at_once: bool = False
    ) -> None:
        """A person sends the same amount from the same balance to the same destination outside this product."""
        operation = self.oracle.operations()[pk]
        if operation.is_local:
            return
        type_, currency, amount, destination = operation.content
        self.world.provider.add(
            type=type_,
            currency=currency,
            amount=amount,
            destination=destination,
            ends=ends,
            is_shown_at_once=is_shown_at_once,
        )

    def status(self, pk: UUID) -> str:
        return Operation.objects.get(pk=pk).status

    def pause(self, person: str) -> None:
        self.try_to(pause.pause_payments, actor=self.people[person], reason="Something looks wrong")

    @property
    def is_paused(self) -> bool:
        return monitoring.is_paused()

    def resume_by_two_people(self, person: str, countersigner: str | None) -> None:
        """One person proposes to resume sending, and another approves, now or later."""
        self._sign_here("resume", ResumeForm({"reason": "Looked at it"}), person, countersigner)

    def settle(self, pk: UUID, person: str, countersigner: str | None) -> None:
        """Two people find out the true outcome and resolve the operation, if the product allows it."""
        own = next(iter(self.oracle.debits_of(pk)), None)
        said = {"operation": str(pk), "reason": "Asked the service"}
        said |= (
            {"choice": "executed", "transaction_id": own.transaction_id}
            if own
            else {"choice": "not_executed"}
        )
        self._sign_here("resolution", ResolutionForm(said), person, countersigner)

    def try_to(self, provider: Act, *arguments: Any, **options: Any) -> object:
        """The result of the call; None if it was refused with a message, or the web process was killed
        meanwhile.
        """
        try:
            return provider(*arguments, **options)
        except (OperationError, KilledError):
            return None
        finally:
            self.queued += queued_tasks()

    def work(self, injected_fault: InjectedFault | None = None) -> None:
        """A worker processes the oldest message."""
        if self.queued:
            self.deliver(self.queued.pop(0), injected_fault)

    def deliver(self, pk: str, injected_fault: InjectedFault | None = None) -> None:
        self.process(lambda: tasks.send(pk), injected_fault)

    def sweep(self, injected_fault: InjectedFault | None = None) -> None:
        self.process(sweep_operations, injected_fault)

    def check_status_of(
        self, pk: UUID, person: str | None, injected_fault: InjectedFault | None = None
    ) -> None:
        actor = self.people[person] if person else None
        self.process(lambda: confirmation.confirm_operation(pk, actor=actor), injected_fault)

    def receive_delivery_of(self, number: int, accuracy: str) -> None:
        """A delivery of the provider arrives, and changes no operation."""
        with moving_nothing(self.world):
            receive_delivery(self.world.provider.delivery(number, accuracy))

    def process_deliveries(self, injected_fault: InjectedFault | None = None) -> None:
        """A worker reads the provider because of deliveries, if it gets the lease."""
        with leaving_none_out(self.world):
            self.process(tasks.process_deliveries, injected_fault)

    def thaw(self, process: SimulatedProcess) -> None:
        self.world.thaw(process)
        self.queued += queued_tasks()

    def end_all_frozen(self) -> None:
        """Kill all frozen processes, so that no greenlet outlives its history."""
        for process in list(self.world.frozen):
            self.world.kill(process)

    def change_staff(self, person: str, how: str) -> None:
        """A person is deactivated, loses permissions, or is restored with all of them."""
        (self.away.discard if how == "back" else self.away.add)(person)
        roles = () if how == "without a role" else CAST[person]
        User.objects.filter(pk=self.people[person].pk).update(is_active=how != "gone")
        user = self.people[person]
        user.groups.set(Group.objects.filter(name__in=roles))
        with transaction.atomic():
            audit.record(Action.STAFF_ROLES_CHANGED, actor=None, target=user, before=[], after=sorted(roles))

    def run_to_the_horizon(self) -> None:
        """Without further faults, sweep whenever something is due, until nothing is or two weeks have passed."""
        provider = self.world.provider
        provider.unreadable_calls = provider.busy_pages = 0
        end = self.world.true_time + timedelta(days=14)
        while self.world.true_time < end:
            while self.queued:
                self.work()
            self.sweep()
            self.process_deliveries()
            self.oracle.check()
            due = self._due()
            if due is None:
                return
            self.world.wait(max(due - self.world.our_time(), timedelta()) + _A_BIT)
        raise AssertionError(f"Something is due for ever: {self._due()}")

    def reconcile_at_the_end(self) -> None:
        """Compare with the whole list, so long after the last end that what is not listed counts as missing."""
        self.world.wait(timedelta(hours=2))
        self.process(lambda: sync.load_all(lambda _: None), None)
        self.process(runner.reconcile, None)

    def _due(self) -> datetime | None:
        """The time of the next work, according to the database or the provider."""
        [(checks, expiries, releases, deadlines, begin_by, bulk_releases, deliveries)] = (
            self.world.database.rows(DUE_QUERY)
        )
        found = [moment(due) for due in (checks, expiries, releases) if due]
        found += [moment(due) + sender_grace() for due in (deadlines, begin_by) if due]
        if releases:
            found += self._due_of_releases()
        if bulk_releases:
            found += LeaseRow.objects.filter(name__startswith="release:").values_list("held_until", flat=True)
        if deliveries:
            found.append(LeaseRow.objects.get(name="webhooks").held_until)
        return min(found, default=None)

    def _due_of_releases(self) -> list[datetime]:
        """When another process takes over a queue, and when the next code can be made."""
        now, stored = clock.now(), otp_secret_in_use()
        sending = LeaseRow.objects.filter(name__startswith="sending from", held_until__gt=now)
        found = list(sending.values_list("held_until", flat=True))
        if stored is not None and stored.last_step == stored.secret().step_at(now):
            found.append(stored.secret().end_of(stored.last_step))
        return found

    def process(self, work: Callable[[], object], injected_fault: InjectedFault | None) -> None:
        """Run this in a process of its own, which may die or be frozen."""
        isolation._busy.clear()  # each real process has its own: a frozen one must not block others
        self.world.run(work, injected_fault)
        self.queued += queued_tasks()
        assert not postponed(), f"Unexpected errors: {postponed()}"

    def _sign_here(self, kind: str, form: KindForm, person: str, countersigner: str | None) -> None:
        if not form.is_valid():
            return
        pk = self._prepare(kind, form.payload(), person)
        if pk is not None and countersigner is not None:
            self.decide(pk, "approve", countersigner)

    def _prepare(self, kind: str, content: Payload, preparer: str) -> UUID | None:
        pk = uuid5(_SPACE, str(len(self.prepared)))
        made = self.try_to(
            prepare.prepare_operation, pk, actor=self.people[preparer], kind=kind, payload=content
        )
        if made is None:
            return None
        self.prepared.append(pk)
        return pk
