"""An operation as approval policies see it: described as it was when it was prepared, however late it is described.

So an operation has the same description when it is prepared, approved, sent, and replayed months later, but for the
preparer's roles and groups: they are not stored with it, so rules about them see those of now. An operation that waits
still needs the levels it was prepared under, so leaving a group does not reduce what is needed. Earlier operations
count in a total while they may still be executed: those that ended unsent count until they ended.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Min

from backoffice.core.fields import EXACT
from backoffice.operations.kinds.base import Debit, LocalKind, OperationKind, Payload
from backoffice.operations.kinds.batch import BatchKind, BatchPayload
from backoffice.operations.kinds.registry import AnyKind, read_content
from backoffice.operations.models.batches import IS_WAITING_ROW, BatchRow, PayoutFileRow
from backoffice.operations.models.operations import Operation
from backoffice.operations.permissions import APPROVE
from backoffice.operations.selectors import IS_EXECUTED
from backoffice.operations.states import NOT_EXECUTED
from backoffice.policies.document import PolicyDocument, RecipientIs, TotalOf, Window
from backoffice.policies.evaluator import DescribedOperation, Person, RecipientFacts, Totals
from backoffice.policies.people import read_people
from backoffice.recipients.keys import USER_PREFIX
from backoffice.recipients.look_alikes import similar_keys
from backoffice.recipients.models import RecipientState, RecipientVersion
from backoffice.recipients.register import approval_history

_LENGTHS = {Window.DAY: timedelta(hours=24), Window.WEEK: timedelta(days=7)}
LONGEST_WINDOW = max(_LENGTHS.values())
_NEVER = datetime(9999, 1, 1, tzinfo=UTC)
_Group = tuple[TotalOf, str, object]  # currency, and the preparer or recipient


@dataclass(frozen=True)
class Subject:
    """What is described: content that somebody prepares, stored already or not.

    `own` is what earlier operations include of it: nothing until it is stored.
    """

    operation_id: UUID
    kind: AnyKind
    payload: Payload
    preparer_id: int
    preparer_name: str
    at: datetime
    own: Debit | None = None
    rows: int = 1
    is_stored: bool = False

    @property
    def counts_until(self) -> datetime:
        """Until when operations were prepared that count in its totals: of one that is prepared now, all of them, also
        those from before the database's clock was set back.
        """
        return self.at if self.is_stored else _NEVER

    @property
    def recipient_key(self) -> str:
        return self.kind.recipient(self.payload).key

    @property
    def network(self) -> str:
        return str(getattr(self.payload, "network", "") or "")

    @property
    def amounts(self) -> list[Debit]:
        """The amounts that are compared with limits."""
        return self.kind.limited_amounts(self.payload)


@dataclass(frozen=True)
class StoredSubject(Subject):
    """A stored operation, described from its columns: its payload is read only where these do not suffice."""

    key: str = ""
    stored: Mapping[str, Any] = field(default_factory=dict)

    @property
    def recipient_key(self) -> str:
        return self.key

    @property
    def network(self) -> str:
        return str(self.stored.get("network") or "")

    @property
    def amounts(self) -> list[Debit]:
        if type(self.kind).limited_amounts is OperationKind.limited_amounts:
            return [self.own] if self.own else []
        return self.kind.limited_amounts(self.kind.read(dict(self.stored)))


def subject_of(operation: Operation) -> Subject:
    """A stored operation. Raises ContentUnreadableError. Needs `preparer`; reads the batch of a row."""
    kind, payload = read_content(operation)
    own = Debit(operation.currency, operation.amount) if operation.amount is not None else None
    batch = batch_of(operation)
    return Subject(
        operation.pk,
        kind,
        payload,
        operation.preparer_id,
        str(operation.preparer),
        operation.prepared_at,
        own,
        int(batch.payload.get("count", 1)) if batch else 1,
        is_stored=True,
    )


def batch_of(operation: Operation) -> Operation | None:
    """The batch of whose rows this is one, if it is."""
    if operation.prepared_from_id is None:
        return None
    batches = Operation.objects.filter(pk=operation.prepared_from_id, kind=BatchKind.name)
    return batches.select_related("preparer").first() if operation.kind != BatchKind.name else None


@dataclass
class _Movements:
    """Amounts of one group in the order of their preparation, with running sums, and those that ended unsent."""

    times: list[datetime] = field(default_factory=list)
    sums: list[Decimal] = field(default_factory=lambda: [Decimal(0)])
    unsent_times: list[datetime] = field(default_factory=list)
    unsent: list[tuple[datetime, Decimal]] = field(default_factory=list)

    def add(self, at: datetime, amount: Decimal, unsent_at: datetime | None) -> None:
        self.times.append(at)
        self.sums.append(EXACT.add(self.sums[-1], amount))
        if unsent_at is not None:
            self.unsent_times.append(at)
            self.unsent.append((unsent_at, amount))

    def total(self, after: datetime, until: datetime) -> Decimal:
        """What was prepared after the one time, until the other, and had not ended unsent by then."""
        start, end = bisect_right(self.times, after), bisect_right(self.times, until)
        total = EXACT.subtract(self.sums[end], self.sums[start])
        first, last = bisect_right(self.unsent_times, after), bisect_right(self.unsent_times, until)
        for unsent_at, amount in self.unsent[first:last]:
            if unsent_at <= until:
                total = EXACT.subtract(total, amount)
        return total


class History:
    """What rules depend on about recipients, preparers and earlier operations; only what this document needs is read.

    `with_recipients` reads recipients in any case.
    """

    def __init__(
        self,
        document: PolicyDocument,
        subjects: Collection[Subject],
        *,
        rows: Iterable["RowFacts"] = (),
        with_recipients: bool = False,
    ) -> None:
        when = [rule.when for rule in document.rules]
        self._keys = {subject.recipient_key for subject in subjects} | {row.recipient_key for row in rows}
        self._first_paid: dict[str, datetime] = {}
        self._approvals: dict[str, list[RecipientVersion]] = {}
        self._similar: dict[str, set[str]] = {}
        if with_recipients or any(each.recipient for each in when):
            self._read_recipients({each.recipient for each in when})
        self._people: dict[int, Person] = {}
        if any(each.preparer for each in when):
            found = read_people(APPROVE, {subject.preparer_id for subject in subjects})
            self._people = {person.id: person for person in found}
        self._movements: dict[_Group, _Movements] = defaultdict(_Movements)
        self._uses_totals = document.uses_totals
        if self._uses_totals and subjects:
            self._read_movements(subjects, {each.total.of for each in when if each.total})

    def _read_recipients(self, asked: Collection[RecipientIs | None]) -> None:
        keys = self._keys - {""}
        to_them = Operation.objects.filter(IS_EXECUTED, recipient_key__isnull=False)
        if len(keys) <= _NAMED_AT_MOST:
            to_them = to_them.filter(recipient_key__in=keys)
        first = to_them.order_by().values("recipient_key").annotate(first=Min("closed_at"))
        self._first_paid = {str(row["recipient_key"]): row["first"] for row in first}
        if RecipientIs.LOOK_ALIKE in asked:
            self._similar = similar_keys(keys)
        self._approvals = approval_history(keys.union(*self._similar.values()))

    def _read_movements(self, subjects: Collection[Subject], of: set[TotalOf]) -> None:
        """Operations, and the rows of batches that wait, prepared from a week before the first of the subjects."""
        since = min(subject.at for subject in subjects) - LONGEST_WINDOW
        until = max(subject.counts_until for subject in subjects)
        new = {subject.operation_id for subject in subjects if not subject.is_stored}
        moved = Operation.objects.filter(
            prepared_at__gt=since, prepared_at__lte=until, amount__isnull=False
        ).exclude(pk__in=new)
        columns = ("prepared_at", "currency", "amount", "preparer", "recipient_key", "status", "closed_at")
        found = list(moved.order_by().values_list(*columns))
        waiting = BatchRow.objects.filter(
            IS_WAITING_ROW, batch__prepared_at__gt=since, batch__prepared_at__lte=until
        ).exclude(batch__in=new)
        of_batch = ("batch__prepared_at", "currency", "amount", "batch__preparer", "recipient_key")
        found += list(waiting.values_list(*of_batch, "batch__status", "batch__closed_at"))
        for at, currency, amount, preparer, key, status, closed_at in sorted(found, key=lambda row: row[0]):
            unsent_at = closed_at if status in NOT_EXECUTED else None
            for group in _groups(of, currency, preparer, key or ""):
                self._movements[group].add(at, amount, unsent_at)

    def person(self, subject: Subject) -> Person:
        return self._people.get(subject.preparer_id) or Person(subject.preparer_id, subject.preparer_name)

    def recipient(self, key: str, network: str, at: datetime) -> RecipientFacts | None:
        """What was known of this recipient at this time; None for nobody."""
        if not key:
            return None
        first = self._first_paid.get(key)
        approved = self._approved(key, at)
        is_saved = approved is not None and approved.is_payable_on(network)
        similar = self._similar.get(key, ())
        return RecipientFacts(
            key=key,
            is_new=first is None or first > at,
            is_saved=is_saved,
            is_look_alike=approved is None and any(self._approved(one, at) for one in similar),
            is_provider_user=key.startswith(USER_PREFIX),
            network=network,
        )

    def _approved(self, key: str, at: datetime) -> RecipientVersion | None:
        """The version that the register had of it at this time, if it was approved then."""
        before = [version for version in self._approvals.get(key, ()) if version.since <= at]
        return before[-1] if before and before[-1].state == RecipientState.APPROVED else None

    def totals(self, subject: Subject, debit: Debit, key: str, in_batch: Decimal | None = None) -> Totals:
        """The totals with this amount. `in_batch` is the sum of the batch's rows to the same recipient."""
        if not self._uses_totals:
            return {}
        found: dict[tuple[Window, TotalOf], Decimal] = {}
        for window, length in _LENGTHS.items():
            for group in _groups(TotalOf, debit.currency, subject.preparer_id, key):
                movements = self._movements.get(group)
                earlier = (
                    movements.total(subject.at - length, subject.counts_until) if movements else Decimal(0)
                )
                amount = in_batch if in_batch is not None and group[0] == TotalOf.RECIPIENT else debit.amount
                others = max(EXACT.subtract(earlier, _own(subject, debit, amount)), Decimal(0))
                found[window, group[0]] = EXACT.add(others, amount)
        return found


def _own(subject: Subject, debit: Debit, amount: Decimal) -> Decimal:
    """What earlier operations include of the subject itself; of a stored batch, all of its rows."""
    if isinstance(subject.kind, BatchKind):
        return amount if subject.is_stored else Decimal(0)
    return subject.own.amount if subject.own and subject.own.currency == debit.currency else Decimal(0)


_NAMED_AT_MOST = 500
"""With more recipients than that, a query reads those of all operations instead of naming these."""


def _groups(of: Iterable[TotalOf], currency: str, preparer: int, key: str) -> Iterator[_Group]:
    whose: dict[TotalOf, object] = {
        TotalOf.PREPARER: preparer,
        TotalOf.RECIPIENT: key,
        TotalOf.CURRENCY: None,
    }
    return ((each, currency, whose[each]) for each in of if each != TotalOf.RECIPIENT or key)


@dataclass(frozen=True)
class RowFacts:
    """A row of a batch: its amount, and whom it pays."""

    currency: str
    amount: Decimal
    recipient_key: str
    network: str


def batch_rows(batch_id: UUID) -> list[RowFacts]:
    """The rows of a batch; of one that is not submitted yet, those of its file without errors."""
    columns = ("currency", "amount", "recipient_key", "payload")
    rows = BatchRow.objects.filter(batch=batch_id).order_by("number").values_list(*columns)
    in_file = (
        PayoutFileRow.objects.filter(file=batch_id, has_errors=False).order_by("number").values_list(*columns)
    )
    return [
        RowFacts(currency, amount, key, str(payload.get("network") or ""))
        for currency, amount, key, payload in list(rows) or list(in_file)
        if amount is not None and payload is not None
    ]


def describe(document: PolicyDocument, subject: Subject) -> list[DescribedOperation]:
    """What the rules decide about, of which the strictest decision counts: each amount of the content."""
    if isinstance(subject.payload, BatchPayload):
        rows = batch_rows(subject.operation_id)
        return describe_batch(subject, subject.payload, rows, History(document, [subject], rows=rows))
    return describe_with(subject, History(document, [subject]))


def describe_with(subject: Subject, history: History) -> list[DescribedOperation]:
    """The same of an operation that is no batch, when the history of many is read already."""
    kind, key = subject.kind, subject.recipient_key
    base = DescribedOperation(
        kind=kind.name,
        preparer=history.person(subject),
        at=subject.at,
        recipient=history.recipient(key, subject.network, subject.at),
        rows=subject.rows,
        refusable=not isinstance(kind, LocalKind),
    )
    described = [
        replace(
            base,
            currency=debit.currency,
            amount=debit.amount,
            totals=history.totals(subject, debit, key),
        )
        for debit in subject.amounts
    ] or [base]
    return [replace(one, kind=name) for one in described for name in (kind.name, *kind.ruled_as_well_as)]


def describe_batch(
    subject: Subject, payload: BatchPayload, rows: Collection[RowFacts], history: History
) -> list[DescribedOperation]:
    """The total of each currency and each row, both as a batch and as the kind of its rows.

    The total is described once for each sort of recipient among the rows, as if it were paid to that one.
    """
    found: dict[Any, DescribedOperation] = {}
    by_recipient: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for row in rows:
        by_recipient[row.currency, row.recipient_key] += row.amount
    totals = {total.currency: Debit(total.currency, total.amount) for total in payload.totals}
    base = DescribedOperation(
        kind=BatchKind.name, preparer=history.person(subject), at=subject.at, rows=payload.count
    )
    for total in payload.totals:
        whole = Debit(total.currency, total.amount)
        for amount in (total.amount, total.largest):
            described = replace(
                base, currency=total.currency, amount=amount, totals=history.totals(subject, whole, "")
            )
            found[total.currency, amount] = described
    for row in rows:
        recipient = history.recipient(row.recipient_key, row.network, subject.at)
        whole = totals[row.currency]
        sums = history.totals(
            subject, whole, row.recipient_key, by_recipient[row.currency, row.recipient_key]
        )
        for amount in (row.amount, whole.amount):
            described = replace(base, currency=row.currency, amount=amount, recipient=recipient, totals=sums)
            found[row.currency, amount, recipient, tuple(sums.values())] = described
    return [
        replace(one, kind=kind)
        for one in list(found.values()) or [base]
        for kind in (BatchKind.name, payload.row_kind)
    ]
