"""The results of the campaign, compared with the provider's own ledger and printed at the end."""

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from statistics import median
from typing import Any, Protocol

from backoffice.operations.kinds.base import LocalKind, MoneyKind
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.states import Outcome, Status

RECOVERS_WITHIN = 15.0  # seconds
ENOUGH = 3  # minimum number of recoveries for a meaningful median
CLOSED_AT_LEAST = 0.99  # share of the ambiguous cases with one record, closed automatically


class HasLedger(Protocol):
    """The part of the simulated provider that serves as the reference."""

    def ledger(self) -> Any:
        """What it has really executed."""


@dataclass
class CampaignFigures:
    """Counts over the whole run."""

    cells: Counter[str] = field(default_factory=Counter)
    double_debits: int = 0
    wrong_closures: int = 0
    open_without_reason: int = 0
    ambiguous: int = 0  # attempts without a readable response for which exactly one record exists
    closed_automatically: int = 0
    recoveries: dict[str, list[float]] = field(default_factory=dict)

    def recovered(self, what: str, seconds: float) -> None:
        """Record the seconds from the return of what was missing until the right work was under way."""
        self.recoveries.setdefault(what, []).append(seconds)

    @property
    def share(self) -> float:
        """Of the ambiguous attempts with one record, the share closed automatically."""
        return self.closed_automatically / self.ambiguous if self.ambiguous else 1.0

    def missed(self) -> list[str]:
        """The targets that were missed, whatever else the machine was doing."""
        never = {
            "double debits": self.double_debits,
            "wrong closures": self.wrong_closures,
            "open cases without a reason": self.open_without_reason,
        }
        missed = [f"{number} {what}" for what, number in never.items() if number]
        if self.share < CLOSED_AT_LEAST:
            missed.append(
                f"closed automatically: {100 * self.share:.1f} %, not {100 * CLOSED_AT_LEAST:.0f} %"
            )
        return missed

    def late(self) -> list[str]:
        """The faults after which recovery is too slow.

        The median is judged: one slow recovery may be due to a busy machine, more than half of them are due
        to the product.
        """
        middle = {what: median(all_) for what, all_ in self.recoveries.items() if len(all_) >= ENOUGH}
        return [
            f"{what}: recovers in {seconds:.1f} s, not {RECOVERS_WITHIN:.0f} s"
            for what, seconds in sorted(middle.items())
            if seconds > RECOVERS_WITHIN
        ]

    def lines(self) -> list[str]:
        """The lines of the table."""
        share = f"{100 * self.share:.1f} %" if self.ambiguous else "none came up"
        return [
            f"cells run                                   {self.cells.total()}",
            *(f"  {part:<41} {number}" for part, number in sorted(self.cells.items())),
            f"double debits                               {self.double_debits}",
            f"wrong closures                              {self.wrong_closures}",
            f"open cases without a reason                 {self.open_without_reason}",
            f"ambiguous, one record: closed automatically  {self.closed_automatically} of {self.ambiguous} ({share})",
            f"recovery, median and worst                  at most {RECOVERS_WITHIN:.0f} s in the median",
            *(
                f"  {what:<41} {median(seconds):.1f} s, {max(seconds):.1f} s"
                for what, seconds in sorted(self.recoveries.items())
            ),
        ]


FIGURES = CampaignFigures()


def compare_with_provider(sandbox: HasLedger, part: str, figures: CampaignFigures = FIGURES) -> None:
    """Compare every operation of the database with what the provider did. Counts one case each; fails at the
    first difference.
    """
    ledger = sandbox.ledger()
    assert ledger["differences"] == []
    sent_there = [one for one in Operation.objects.all() if not isinstance(KINDS[one.kind], LocalKind)]
    paired = [(operation, records_of(operation, ledger)) for operation in sent_there]
    for operation, records in paired:
        figures.cells[part] += 1
        _count(operation, records, figures)
    for operation, records in paired:
        _check(operation, records, ledger)
    known = sum(len(records) for _, records in paired)
    assert known == len(ledger["orders"]) + len(ledger["payments"]), "The service did what nobody asked for"


def records_of(operation: Operation, ledger: Any) -> list[Any]:
    """What the provider did for this operation: every amount, or reference, belongs to one operation only."""
    if operation.kind == "payment":
        reference = operation.payload["reference"]
        return [record for record in ledger["payments"] if record["reference"] == reference]
    return [
        record
        for record in ledger["orders"]
        if (record["kind"], record["currency"], Decimal(record["amount"]))
        == (operation.kind, operation.currency, operation.amount)
    ]


def _count(operation: Operation, records: list[Any], figures: CampaignFigures) -> None:
    figures.double_debits += len(records) > 1
    figures.wrong_closures += not _is_rightly_closed(operation, records)
    figures.open_without_reason += not _has_a_reason(operation)
    if len(records) == 1 and _was_ambiguous(operation):
        figures.ambiguous += 1
        figures.closed_automatically += operation.is_closed


def reported_status(operation: Operation, ledger: Any) -> str:
    """One operation by our record and by the provider's, for the report of a failed test."""
    attempts = list(
        operation.attempts.values_list(
            "number", "outcome", "responses", "check_result", "check_parameters", "next_check_at"
        )
    )
    return f"{operation} is {operation.status}; {attempts}; the service has {records_of(operation, ledger)}"


def _check(operation: Operation, records: list[Any], ledger: Any) -> None:
    seen = reported_status(operation, ledger)
    assert len(records) <= 1, seen
    assert _is_rightly_closed(operation, records), seen
    assert _has_a_reason(operation), seen


def _is_rightly_closed(operation: Operation, records: list[Any]) -> bool:
    """Succeeded with its own record only; failed without a record that debited anything."""
    if operation.status == Status.FAILED:
        return all(record["status"] == "failed" for record in records)
    if operation.status != Status.SUCCEEDED:
        return operation.status not in {Status.APPROVED, Status.EXPIRED} or records == []
    ours = operation.attempts.get(outcome=Outcome.SUCCEEDED).provider_transaction_id
    return len(records) == 1 and (operation.kind == "payment" or records[0]["transactionId"] == ours)


def _has_a_reason(operation: Operation) -> bool:
    """An open operation that was sent has a next check at a known time, or asks for people with a reason."""
    attempt = operation.attempts.filter(closed_at__isnull=True).first()
    if attempt is None:
        return operation.status != Status.SENDING
    if operation.status == Status.SENDING:
        return attempt.deadline_at is not None
    if operation.status == Status.REVIEW:
        return bool(attempt.check_result)
    return attempt.next_check_at is not None and bool(attempt.responses)


def _was_ambiguous(operation: Operation) -> bool:
    """There was no readable response, and the provider's list shows this kind."""
    return (
        isinstance(KINDS[operation.kind], MoneyKind)
        and Attempt.objects.filter(operation=operation, response_status__isnull=True)
        .exclude(responses__0__code__startswith="accepted")
        .exists()
    )
