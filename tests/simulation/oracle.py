"""What must hold after every step. The oracle has the complete truth, the provider's ledger with the cause of
each line, and reads our database without the ORM, so that it shares no logic with the product.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from backoffice.accounts.roles import Role
from backoffice.operations.models.otp import TotpSecret
from tests.simulation.provider import SimulatedTransaction
from tests.simulation.rows import (
    ATTEMPTS_QUERY,
    ENTRIES_QUERY,
    OPERATIONS_QUERY,
    ROWS_OF_BATCHES_QUERY,
    SIGNED_QUERY,
    STOPPED_BATCH_QUERY,
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

# Each change to a status has one of these audit entries; those of ONE_EACH are used for nothing else.
ENTRIES = {
    "approved": {"operation.approved", "operation.returned"},
    "sending": {"operation.claimed"},
    "processing": {"operation.accepted"},
    "unknown": {"operation.outcome_unknown", "operation.contradicted"},
    "succeeded": {"operation.succeeded", "operation.resolved", "operation.applied"},
    "failed": {"operation.failed", "operation.resolved"},
    "review": {"operation.escalated"},
    "rejected": {"operation.rejected"},
    "expired": {"operation.expired"},
    "cancelled": {"operation.cancelled"},
}
ONE_EACH = {"sending", "succeeded", "failed", "review", "rejected", "expired", "cancelled"}

# Which records may match: the same content, at most WINDOW after the request; the list's times differ by at most SKEW
# from the provider's clock, which is accurate to EXACT.
WINDOW = timedelta(hours=1)
SKEW = timedelta(minutes=5)
EXACT = timedelta(seconds=5)
BEGINS_WITHIN = timedelta(seconds=5)
# How long after the claim the list may lag before another transaction may be matched.
SHOWN_WITHIN = timedelta(seconds=50)


@dataclass
class Oracle:
    """Checks one history."""

    world: World
    checked_moves: int = 0
    state: object = None
    secret: TotpSecret | None = None  # from which codes are made, if people enter none
    rows_of_batches: dict[UUID, list[dict[str, Any]]] = field(default_factory=dict)  # as they were prepared
    unmatched: set[int] = field(default_factory=set)  # attempts without a known transaction
    side_by_side: set[int] = field(
        default_factory=set
    )  # of these, while another of the balance had none either

    def check(self) -> None:
        """Raises AssertionError if a rule is broken. Does nothing if nothing has happened since the last
        check.
        """
        state = (self._database.raw.total_changes, len(self.world.provider.ledger), self.world.true_time)
        if state == self.state:
            return
        self.state = state
        operations, attempts = self.operations(), self.attempts()
        self._check_moves(operations)
        self._check_unknown_outcomes(operations, attempts)
        self._check_releases(operations)
        self._check_codes()
        self._check_batches(operations)
        for operation in operations.values():
            if not operation.is_local:
                of_it = [attempt for attempt in attempts if attempt.operation == operation.pk]
                self._check_debits(operation, of_it)

    def check_point(self, point: str, process: SimulatedProcess) -> None:
        """What must hold when a process reaches a fault point of the product, or its request to the provider."""
        assert not connection.in_atomic_block, f"{point}: a transaction is open"
        if point == "confirm.seen":
            process.candidates = self._candidates()
        elif point == "confirm.closed":
            self._check_taken(process.candidates)
        elif point == "send.claimed" and process.attempt:
            self._check_signed(process.attempt.operation_id)
            stopped = self._rows(STOPPED_BATCH_QUERY, process.attempt.operation_id.hex)
            assert not stopped, "A row of a batch that people stopped is claimed"
        elif point == "service.requested" and process.attempt:
            late = self.world.our_time() - process.attempt.started_at
            assert late < BEGINS_WITHIN, f"The request leaves {late} after its claim"
            self._check_begun(process.attempt.pk)
        elif point == "send.before_request":
            assert not self._rows("SELECT 1 FROM operations_pause WHERE ended_at IS NULL"), (
                "It leaves though sending is paused"
            )

    def operations(self) -> dict[UUID, OperationRow]:
        return {operation.pk: operation for operation in map(OperationRow, self._rows(OPERATIONS_QUERY))}

    def attempts(self) -> list[AttemptRow]:
        return [attempt_of(row) for row in self._rows(ATTEMPTS_QUERY)]

    def debits_of(self, operation: UUID) -> list[SimulatedTransaction]:
        return [record for record in self.world.provider.ledger if record.caused_by == operation]

    def is_ambiguous(self, operation: OperationRow, attempt: AttemptRow) -> bool:
        """Whether another transaction cannot be distinguished from this attempt's by anything that the
        provider shows.
        """
        return any(record.caused_by != operation.pk for record in self._could_be(operation, attempt))

    def is_excusable(self, operation: OperationRow, attempt: AttemptRow) -> bool:
        """Whether another transaction may be matched to this attempt, because its own does not exist or is
        listed late.

        Not one whose time is before the request, unless the request was accepted and the balance before that
        transaction was the one we had seen; nor one after which the balance was the one we had seen. For a
        request that was accepted without a transaction id, a transaction that found the balance as we had
        seen it may be matched without waiting.
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
        """Whether the record of it may be wrong without a fault of the product: an incident is due, or may
        be.
        """
        attempts = [attempt for attempt in self.attempts() if attempt.operation == operation.pk]
        return any(self.is_ambiguous(operation, attempt) for attempt in attempts)

    def matching(self, operation: OperationRow, attempt: AttemptRow) -> list[SimulatedTransaction]:
        """Transactions that finally match this attempt, and that no other attempt has claimed."""
        taken = {each.names for each in self.attempts() if each.pk != attempt.pk}
        found = self._could_be(operation, attempt)
        return [record for record in found if record.transaction_id not in taken]

    def unclaimed_debits(self, operation: OperationRow, attempt: AttemptRow) -> list[SimulatedTransaction]:
        """Debits that must be reported to people once this is closed: they match, and belong to no attempt.

        Not those that may belong to an attempt whose outcome is unknown.
        """
        operations, now = self.operations(), self.world.provider.now()
        unmatched = [each for each in self.attempts() if each.is_unmatched]
        perhaps = [
            record for each in unmatched for record in self._could_be(operations[each.operation], each)
        ]
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
            for record in self.world.provider.ledger
            if self._looks_like(operation, record)
            and record.transaction_id not in seen
            and attempt.mark - SKEW <= record.created_at <= attempt.mark + WINDOW + SKEW
        ]

    def _looks_like(self, operation: OperationRow, record: SimulatedTransaction) -> bool:
        type_, currency, amount, destination = operation.content
        is_named = type_ == "transfer" and self.world.provider.names_receivers
        return (
            record.is_debit
            and (record.type, record.currency, record.amount) == (type_, currency, amount)
            and (not is_named or record.destination == destination)
        )

    def _candidates(self) -> dict[int, set[str]]:
        """For each attempt with unknown outcome, the listed transactions that match it now."""
        operations, shown = self.operations(), self.world.provider.shown()
        return {
            attempt.pk: {
                record.transaction_id
                for record in self.matching(operations[attempt.operation], attempt)
                if record in shown
            }
            for attempt in self.attempts()
            if attempt.is_unmatched
        }

    def _check_taken(self, candidates: dict[int, set[str]]) -> None:
        """A transaction was claimed only if it was the single candidate: a correct guess is an error too."""
        for attempt in self.attempts():
            seen = candidates.get(attempt.pk)
            if attempt.names and seen is not None:
                assert seen == {attempt.names}, f"{attempt.names} was taken, one of {seen or 'none'}"

    def _was_late(self, attempt: AttemptRow, debit: SimulatedTransaction) -> bool:
        shown = debit.shown_from - self.world.provider.clock_is_off
        return shown > self.world.claimed_at[attempt.pk] + SHOWN_WITHIN

    def _check_moves(self, operations: dict[UUID, OperationRow]) -> None:
        """Every change of status is in the table of transitions, with one audit entry each."""
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

    def _check_unknown_outcomes(
        self, operations: dict[UUID, OperationRow], attempts: list[AttemptRow]
    ) -> None:
        doubts = [attempt for attempt in attempts if attempt.is_unmatched]
        held = Counter((attempt.balance, operations[attempt.operation].amount) for attempt in doubts)
        assert all(number == 1 for number in held.values()), f"Attempts in doubt: {dict(held)}"
        balances = Counter(attempt.balance for attempt in doubts)
        self.side_by_side |= {each.pk for each in doubts if balances[each.balance] > 1}
        under_way = [each.balance for each in doubts if operations[each.operation].status == "sending"]
        assert len(under_way) == len(set(under_way)), f"Requests under way: {under_way}"
        waiting = {"unknown", "processing"}
        self.unmatched |= {each.pk for each in doubts if operations[each.operation].status in waiting}
        for each in doubts:
            is_known = not each.has_begun and operations[each.operation].status != "sending"
            assert not is_known, f"{operations[each.operation]} is in doubt, though nothing was sent"

    def _check_releases(self, operations: dict[UUID, OperationRow]) -> None:
        """No one-time code outlives the claim, or the end of its operation."""
        for (pk,) in self._rows("SELECT operation_id FROM operations_release"):
            assert operations[UUID(pk)].status == "approved", f"A release of {operations[UUID(pk)]} is left"

    def _check_codes(self) -> None:
        """No one-time code arrives twice, and a code that is made here is the one of its moment."""
        codes = Counter(code for code, _ in self.world.codes)
        assert all(number == 1 for number in codes.values()), f"A one-time code was used again: {codes}"
        if self.secret is not None:
            for code, moment in self.world.codes:
                assert self.secret.is_code_at(code, moment), f"{code} is not the code of {moment}"

    def _check_batches(self, operations: dict[UUID, OperationRow]) -> None:
        """Only rows of approved batches are operations, each one, with the content that was prepared."""
        if not self.rows_of_batches:
            return
        for batch, number, operation in self._rows(ROWS_OF_BATCHES_QUERY):
            row, found = self.rows_of_batches[UUID(batch)][number - 2], operations[UUID(operation)]
            assert found.payload == row, f"{found} is not row {number} of its batch: {row}"
            status = operations[UUID(batch)].status
            assert status in {"approved", "succeeded", "cancelled"}, f"{found} is a row of a {status} batch"

    def _check_signed(self, operation: UUID) -> None:
        """Enough approvals, none by the preparer, each by a person who is active and an approver now."""
        found = self.operations()[operation]
        needed = 2 if found.amount is not None and found.amount > SECOND_APPROVAL_ABOVE else 1
        signed = self._rows(SIGNED_QUERY, Role.APPROVER.value, operation.hex)[0][0]
        assert signed >= needed, f"{found} leaves with {signed} of {needed} countersignatures"

    def _check_begun(self, attempt: int) -> None:
        """A request that arrives was recorded to begin, and nothing was decided about it meanwhile."""
        [found] = [each for each in self.attempts() if each.pk == attempt]
        operation = self.operations()[found.operation]
        assert found.has_begun, f"{operation} is sent without a record that it begins"
        assert (found.is_open, operation.status) == (True, "sending"), f"{operation} is sent after all"

    def _check_debits(self, operation: OperationRow, attempts: list[AttemptRow]) -> None:
        debits, now = self.debits_of(operation.pk), self.world.provider.now()
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
        """Unless another transaction could be meant, the operation was closed by its own transaction."""
        took = [debit for debit in debits if debit.took(self.world.provider.now())]
        assert operation.status != "succeeded" or took, f"{operation} has no debit"
        ours = {debit.transaction_id for debit in debits}
        for attempt in attempts:
            is_own = attempt.names is None or attempt.names in ours
            assert is_own, f"{operation} took {attempt.names}, which is not its own"


def could_come_after(attempt: AttemptRow, record: SimulatedTransaction) -> bool:
    """Whether the request can have caused this record, by its time or, if accepted, by the balance before it.

    Not if the balance after it is the one that the request found.
    """
    if record.previous_balance - record.amount == attempt.balance_before:
        return False
    found_it_so = attempt.is_accepted and record.previous_balance == attempt.balance_before
    return found_it_so or (attempt.mark is not None and record.created_at >= attempt.mark - EXACT)
