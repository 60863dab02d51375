"""What must hold after every step. It knows the whole truth, the service's ledger with who caused what, and reads our
database past the ORM: it shares no judgement with the product."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from backoffice.accounts.roles import Role
from tests.simulation.provider import SimulatedTransaction
from tests.simulation.rows import (
    ATTEMPTS_QUERY,
    ENTRIES_QUERY,
    OPERATIONS_QUERY,
    SIGNED_QUERY,
    AttemptRow,
    OperationRow,
    attempt_of,
)
from tests.simulation.world import SECOND_APPROVAL_ABOVE, SimulatedProcess, World

EDGES = {
    "pending": {"approved", "rejected", "expired", "cancelled"},
    "approved": {"sending", "expired", "cancelled"},
    "sending": {"approved", "processing", "unknown", "succeeded", "failed"},
    "processing": {"succeeded", "failed", "review"},
    "unknown": {"succeeded", "failed", "processing", "review"},
    "review": {"succeeded", "failed"},
}
LOCAL_EDGE = ("approved", "succeeded")
CLOSED = {"succeeded", "failed", "rejected", "expired", "cancelled"}
HAS_NO_DEBIT = {"pending", "approved", "failed", "rejected", "expired", "cancelled"}

# The entry, one of these, that stands in the audit log for each arrival in a state; those below for nothing else.
ENTRIES = {
    "approved": {"operation.countersigned", "operation.returned"},
    "sending": {"operation.claimed"},
    "processing": {"operation.accepted"},
    "unknown": {"operation.unresolved", "operation.contradicted"},
    "succeeded": {"operation.succeeded", "operation.resolved", "operation.applied"},
    "failed": {"operation.failed", "operation.resolved"},
    "review": {"operation.escalated"},
    "rejected": {"operation.rejected"},
    "expired": {"operation.expired"},
    "cancelled": {"operation.cancelled"},
}
ONE_EACH = {"sending", "succeeded", "failed", "review", "rejected", "expired", "cancelled"}

# What the service may take: the same content, so long after the request at the latest, by a list whose times are so far
# off its own clock at most, and that clock so exact.
WINDOW = timedelta(hours=1)
SKEW = timedelta(minutes=5)
EXACT = timedelta(seconds=5)
BEGINS_WITHIN = timedelta(seconds=5)
# So long after the claim one waits for the list before another may be meant.
SHOWN_WITHIN = timedelta(seconds=50)


@dataclass
class Oracle:
    """Watches one history."""

    world: World
    checked_moves: int = 0
    state: object = None
    in_doubt: set[int] = field(default_factory=set)  # attempts of which nobody knew the transaction

    def check(self) -> None:
        """Raises AssertionError, unless nothing happened since the last time."""
        state = (self._database.raw.total_changes, len(self.world.service.ledger), self.world.true_time)
        if state == self.state:
            return
        self.state = state
        operations, attempts = self.operations(), self.attempts()
        self._check_moves(operations)
        self._check_doubts(operations, attempts)
        self._check_releases(operations)
        for operation in operations.values():
            if not operation.is_local:
                of_it = [attempt for attempt in attempts if attempt.operation == operation.pk]
                self._check_debits(operation, of_it)

    def check_point(self, point: str, process: SimulatedProcess) -> None:
        """What must hold when a process comes to a fault point of the product, or its request to the service."""
        assert not connection.in_atomic_block, f"{point}: a transaction is open"
        if point == "confirm.seen":
            process.candidates = self._candidates()
        elif point == "confirm.closed":
            self._check_taken(process.candidates)
        elif point == "send.claimed" and process.attempt:
            self._check_signed(process.attempt.operation_id)
        elif point == "service.requested" and process.attempt:
            late = self.world.our_time() - process.attempt.started_at
            assert late < BEGINS_WITHIN, f"The request leaves {late} after its claim"
        elif point == "send.leaving":
            assert not self._rows("SELECT 1 FROM operations_pause WHERE ended_at IS NULL"), (
                "It leaves though sending is paused"
            )

    def operations(self) -> dict[UUID, OperationRow]:
        return {operation.pk: operation for operation in map(OperationRow, self._rows(OPERATIONS_QUERY))}

    def attempts(self) -> list[AttemptRow]:
        return [attempt_of(row) for row in self._rows(ATTEMPTS_QUERY)]

    def debits_of(self, operation: UUID) -> list[SimulatedTransaction]:
        return [record for record in self.world.service.ledger if record.caused_by == operation]

    def is_ambiguous(self, operation: OperationRow, attempt: AttemptRow) -> bool:
        """Whether somebody else's transaction cannot be told from this attempt's by anything that the service shows."""
        return any(record.caused_by != operation.pk for record in self._could_be(operation, attempt))

    def is_excusable(self, operation: OperationRow, attempt: AttemptRow) -> bool:
        """Whether another transaction may be taken for this attempt's: its own does not exist, or comes late.

        Not one whose own time is before the request, unless that was accepted and it found the balance as we had seen
        it; nor one that left the balance as we saw it.
        What the service accepted, and named no transaction of, need not be waited for where the other one found the
        balance as we had seen it.
        """
        others = [
            each
            for each in self._could_be(operation, attempt)
            if each.caused_by != operation.pk and could_come_after(attempt, each)
        ]
        is_late = all(self._was_late(attempt, debit) for debit in self.debits_of(operation.pk))
        is_next = any(each.previous_balance == attempt.balance_before for each in others)
        return bool(others) and (is_late or (attempt.is_accepted and is_next))

    def is_disputed(self, operation: OperationRow) -> bool:
        """Whether what is on record about it may be wrong, and nobody is to blame: an incident is due, or may be."""
        attempts = [attempt for attempt in self.attempts() if attempt.operation == operation.pk]
        return any(self.is_ambiguous(operation, attempt) for attempt in attempts)

    def matching(self, operation: OperationRow, attempt: AttemptRow) -> list[SimulatedTransaction]:
        """What the list shows in the end that can be this attempt, and that no other has."""
        taken = {each.names for each in self.attempts() if each.pk != attempt.pk}
        found = self._could_be(operation, attempt)
        return [record for record in found if record.transaction_id not in taken]

    def unclaimed_debits(self, operation: OperationRow, attempt: AttemptRow) -> list[SimulatedTransaction]:
        """What people must hear of once this is closed: what took money as it would have, and is no attempt's own, nor
        can be that of one whose transaction nobody knows yet."""
        operations, now = self.operations(), self.world.service.now()
        in_doubt = [each for each in self.attempts() if each.is_in_doubt]
        perhaps = [record for each in in_doubt for record in self._could_be(operations[each.operation], each)]
        found = self.matching(operation, attempt)
        return [
            record
            for record in found
            if record.took(now) and record not in perhaps and record.transaction_id != attempt.names
        ]

    @property
    def _database(self) -> Any:
        return self.world.database

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._database.rows(query, *values)
        return found

    def _could_be(self, operation: OperationRow, attempt: AttemptRow) -> list[SimulatedTransaction]:
        if attempt.mark is None:
            return []
        seen = self.world.seen_before.get(attempt.pk, frozenset())
        return [
            record
            for record in self.world.service.ledger
            if self._looks_like(operation, record)
            and record.transaction_id not in seen
            and attempt.mark - SKEW <= record.created_at <= attempt.mark + WINDOW + SKEW
        ]

    def _looks_like(self, operation: OperationRow, record: SimulatedTransaction) -> bool:
        type_, currency, amount, destination = operation.content
        is_named = type_ == "transfer" and self.world.service.names_receivers
        return (
            record.is_debit
            and (record.type, record.currency, record.amount) == (type_, currency, amount)
            and (not is_named or record.destination == destination)
        )

    def _candidates(self) -> dict[int, set[str]]:
        """For each attempt in doubt, what the list shows at this moment that can be it."""
        operations, shown = self.operations(), self.world.service.shown()
        return {
            attempt.pk: {
                record.transaction_id
                for record in self.matching(operations[attempt.operation], attempt)
                if record in shown
            }
            for attempt in self.attempts()
            if attempt.is_in_doubt
        }

    def _check_taken(self, candidates: dict[int, set[str]]) -> None:
        """Also a lucky guess is a guess."""
        for attempt in self.attempts():
            seen = candidates.get(attempt.pk)
            if attempt.names and seen is not None:
                assert seen == {attempt.names}, f"{attempt.names} was taken, one of {seen or 'none'}"

    def _was_late(self, attempt: AttemptRow, debit: SimulatedTransaction) -> bool:
        shown = debit.shown_from - self.world.service.clock_is_off
        return shown > self.world.claimed_at[attempt.pk] + SHOWN_WITHIN

    def _check_moves(self, operations: dict[UUID, OperationRow]) -> None:
        """Along the table only, and with one entry in the audit log each."""
        moves = self._rows("SELECT number, operation, before, after FROM moves ORDER BY number")
        new = moves[self.checked_moves :]
        self.checked_moves = len(moves)
        for _, pk, before, after in new:
            is_applied = operations[UUID(pk)].is_local and (before, after) == LOCAL_EDGE
            assert is_applied or after in EDGES[before], f"There is no way from {before} to {after}"
        if new:
            self._check_entries({UUID(pk) for _, pk, _, _ in new}, moves)

    def _check_entries(self, moved: set[UUID], moves: list[tuple[Any, ...]]) -> None:
        written: dict[UUID, list[str]] = defaultdict(list)
        for pk, action in self._rows(ENTRIES_QUERY):
            written[UUID(pk)].append(action)
        for pk in moved:
            arrivals = [after for _, of, _, after in moves if UUID(of) == pk]
            rest = iter(written[pk])
            for status in arrivals:
                assert any(action in ENTRIES[status] for action in rest), (
                    f"No entry for {status}: {written[pk]}"
                )
            counted = Counter(arrivals)
            for status in ONE_EACH & counted.keys():
                entries = sum(action in ENTRIES[status] for action in written[pk])
                assert entries == counted[status], f"{entries} entries for {status}: {written[pk]}"

    def _check_doubts(self, operations: dict[UUID, OperationRow], attempts: list[AttemptRow]) -> None:
        doubts = [attempt for attempt in attempts if attempt.is_in_doubt]
        held = Counter(attempt.balance for attempt in doubts)
        assert all(number == 1 for number in held.values()), f"Attempts in doubt: {dict(held)}"
        waiting = {"unknown", "processing"}
        self.in_doubt |= {each.pk for each in doubts if operations[each.operation].status in waiting}

    def _check_releases(self, operations: dict[UUID, OperationRow]) -> None:
        """No token outlives the claim, or the end of its operation."""
        for (pk,) in self._rows("SELECT operation_id FROM operations_release"):
            assert operations[UUID(pk)].status == "approved", f"A release of {operations[UUID(pk)]} is left"

    def _check_signed(self, operation: UUID) -> None:
        """Enough people, none of them the maker, each here and an approver at this moment."""
        found = self.operations()[operation]
        needed = 2 if found.amount is not None and found.amount > SECOND_APPROVAL_ABOVE else 1
        signed = self._rows(SIGNED_QUERY, Role.APPROVER.value, operation.hex)[0][0]
        assert signed >= needed, f"{found} leaves with {signed} of {needed} countersignatures"

    def _check_debits(self, operation: OperationRow, attempts: list[AttemptRow]) -> None:
        debits, now = self.debits_of(operation.pk), self.world.service.now()
        assert len(debits) <= 1, f"{operation} was debited {len(debits)} times"
        for debit in debits:
            content = (debit.type, debit.currency, debit.amount, debit.destination)
            assert content == operation.content, f"{operation} was approved as {operation.content}: {content}"
            is_hidden = operation.status in HAS_NO_DEBIT and debit.took(now)
            assert not is_hidden, f"{operation} hides {debit}"
        if not any(self.is_excusable(operation, attempt) for attempt in attempts):
            self._check_names(operation, attempts, debits)

    def _check_names(
        self, operation: OperationRow, attempts: list[AttemptRow], debits: list[SimulatedTransaction]
    ) -> None:
        """Where nothing else can be meant, what it was closed by is its own."""
        took = [debit for debit in debits if debit.took(self.world.service.now())]
        assert operation.status != "succeeded" or took, f"{operation} has no debit"
        ours = {debit.transaction_id for debit in debits}
        for attempt in attempts:
            is_own = attempt.names is None or attempt.names in ours
            assert is_own, f"{operation} took {attempt.names}, which is not its own"


def could_come_after(attempt: AttemptRow, record: SimulatedTransaction) -> bool:
    """Whether its time speaks for it that the request came first, or, where that was accepted, the balance before it.

    Not where the balance after it is the one that the request found.
    """
    if record.previous_balance - record.amount == attempt.balance_before:
        return False
    found_it_so = attempt.is_accepted and record.previous_balance == attempt.balance_before
    return found_it_so or (attempt.mark is not None and record.created_at >= attempt.mark - EXACT)
