"""The desk of unknown outcomes: each open case, what we sent beside what the service shows. It proves nothing."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now
from pydantic import BaseModel, TypeAdapter

from backoffice.core import clock
from backoffice.core.gateway import PATIENCE_OF_A_PAGE, gateway
from backoffice.ledger import selectors as ledger
from backoffice.ledger.told import Question, Told, last_told_of
from backoffice.operations.errors import UnreadableContentError
from backoffice.operations.kinds import KINDS, AnyKind, ChangeKind, MoneyKind, Trait, content_of
from backoffice.operations.kinds.resolution import ResolutionKind
from backoffice.operations.kinds.resolution_case import may_be_settled
from backoffice.operations.kinds.traits import traits_of_attempt
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.states import NEEDS_ATTENTION, Status
from payments_gateway import TransactionRecord

LONG = timedelta(hours=1)  # so long the service may work on something before people look at it
SHOWN = 4  # transactions beside each case
DIFFERING = 2  # in so many traits a transaction may differ and still be shown
OLDEST_FIRST = ("started_at", "pk")


class Evidence(BaseModel):
    """What the service told about one case. `is_done` is of kinds that its list does not show."""

    records: list[TransactionRecord] = []
    is_whole: bool = True
    balance: Decimal | None = None
    is_done: bool | None = None


@dataclass(frozen=True)
class Candidate:
    """A transaction that can be the one, trait by trait; `claimed_by` is the operation that it belongs to."""

    record: TransactionRecord
    traits: list[Trait]
    claimed_by: Operation | None = None

    @property
    def differing(self) -> int:
        """How many traits differ."""
        return sum(trait.fits is False for trait in self.traits)


@dataclass(frozen=True)
class Case:
    """One attempt whose outcome is open, with what is known of it."""

    attempt: Attempt
    told: Told[Evidence]
    in_list: bool
    candidates: list[Candidate] = field(default_factory=list)
    waiting: list[Operation] = field(default_factory=list)
    behind: int = 0
    fresh: bool = False
    now: datetime = field(kw_only=True)

    @property
    def operation(self) -> Operation:
        return self.attempt.operation

    @property
    def holds(self) -> str | None:
        """The balance that nothing else leaves before this is settled."""
        return _held(self.attempt)

    @property
    def is_shown_nowhere(self) -> bool:
        """Whether no read of the service can tell what became of it."""
        return not self.in_list and self.told.value is not None and self.told.value.is_done is None

    @property
    def may_be_settled(self) -> bool:
        """Whether people may say what became of it."""
        return may_be_settled(self.operation, self.attempt)

    @property
    def may_be_absent(self) -> bool:
        """Whether it can be said by now that it did not happen. The form looks again."""
        return self.now >= self.attempt.may_come_until


def open_cases(operations: QuerySet[Operation]) -> QuerySet[Attempt]:
    """The open attempts of these operations that people have to look at."""
    lasts_long = Q(operation__status=Status.PROCESSING, started_at__lt=Now() - LONG)
    return Attempt.objects.filter(
        Q(operation__status__in=NEEDS_ATTENTION) | lasts_long,
        operation__in=operations,
        closed_at__isnull=True,
    ).select_related("operation__maker", "released_by")


def cases_as_known(attempts: Iterable[Attempt]) -> list[Case]:
    """The cases with what the service told last, in five queries. Asks nobody."""
    attempts = list(attempts)
    told = last_told_of([_question(attempt) for attempt in attempts])
    return _cases([(attempt, told[_question(attempt).text]) for attempt in attempts], fresh=False)


def case_now(attempt: Attempt) -> Case:
    """The case with what the service tells now, or told last."""
    return _cases([(attempt, _question(attempt).told_now(_asking(attempt)))], fresh=True)[0]


def _question(attempt: Attempt) -> Question[Evidence]:
    return Question(f"evidence:{attempt.pk}", TypeAdapter(Evidence))


def _asking(attempt: Attempt) -> Callable[[], Evidence]:
    operation = attempt.operation
    kind, payload = _content(operation)
    if isinstance(kind, ChangeKind):
        return lambda: Evidence(is_done=kind.is_done(gateway(deadline=PATIENCE_OF_A_PAGE), payload))

    def ask() -> Evidence:
        listed = ledger.transactions_since(operation.currency, attempt.sought_from)
        balance = ledger.current_balance(operation.currency) if operation.currency else None
        near = [candidate.record for candidate in _nearest(attempt, listed.records)]
        return Evidence(records=near, is_whole=listed.is_whole, balance=balance)

    return ask


def _cases(told: list[tuple[Attempt, Told[Evidence]]], *, fresh: bool) -> list[Case]:
    now = clock.now()
    owners = _owners([record for _, one in told if one.value for record in one.value.records])
    waiting = _waiting([attempt for attempt, _ in told])
    behind = _behind({held for attempt, _ in told if (held := _held(attempt))})
    return [
        Case(
            attempt,
            one,
            in_list=isinstance(_content(attempt.operation)[0], MoneyKind),
            candidates=_candidates(attempt, one.value.records if one.value else [], owners),
            waiting=[r for r in waiting if r.payload["operation"] == str(attempt.operation_id)],
            behind=behind.get(_held(attempt) or "", 0),
            fresh=fresh,
            now=now,
        )
        for attempt, one in told
    ]


def _nearest(attempt: Attempt, records: list[TransactionRecord]) -> list[Candidate]:
    """The transactions that differ least, the nearest first; those that differ much are left out."""
    kind, payload = _content(attempt.operation)
    if not isinstance(kind, MoneyKind):
        return []
    found = [
        Candidate(record, [*kind.traits(payload, record), *traits_of_attempt(attempt, record)])
        for record in records
        if attempt.is_new_since(record.transaction_id)
    ]
    near = [candidate for candidate in found if candidate.differing <= DIFFERING]
    return sorted(near, key=lambda candidate: candidate.differing)[:SHOWN]


def _candidates(
    attempt: Attempt, records: list[TransactionRecord], owners: dict[str, Operation]
) -> list[Candidate]:
    """The same with whose they are; one that belongs to this very operation is its own."""
    others = {pk: owner for pk, owner in owners.items() if owner != attempt.operation}
    return [
        replace(candidate, claimed_by=others.get(candidate.record.transaction_id))
        for candidate in _nearest(attempt, records)
    ]


def _owners(records: list[TransactionRecord]) -> dict[str, Operation]:
    """The operations that transactions belong to already."""
    ids = {record.transaction_id for record in records}
    if not ids:
        return {}
    bound = Attempt.objects.filter(service_transaction_id__in=ids).select_related("operation")
    return {attempt.service_transaction_id or "": attempt.operation for attempt in bound}


def _waiting(attempts: list[Attempt]) -> list[Operation]:
    """Resolutions of these that wait for their countersignature."""
    about = [str(attempt.operation_id) for attempt in attempts]
    pending = Operation.objects.filter(kind=ResolutionKind.name, status=Status.PENDING)
    return list(pending.filter(payload__operation__in=about).select_related("maker")) if about else []


def _held(attempt: Attempt) -> str | None:
    return None if attempt.service_transaction_id else attempt.balance


def _behind(balances: set[str]) -> dict[str, int]:
    """How many countersigned operations wait to leave each of these balances."""
    if not balances:
        return {}
    debiting = [kind.name for kind in KINDS.values() if isinstance(kind, MoneyKind)]
    approved = Operation.objects.filter(status=Status.APPROVED, kind__in=debiting, currency__in=balances)
    return dict(approved.values_list("currency").annotate(Count("pk")).order_by())


def _content(operation: Operation) -> tuple[AnyKind | None, Any]:
    try:
        return content_of(operation)
    except UnreadableContentError:
        return None, None
