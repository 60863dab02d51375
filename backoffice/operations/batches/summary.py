"""What is shown of a batch: before its approval the rows to check first, once it is applied the statuses of its rows.

Its own status then says only that its rows are operations. Also why a row was not paid, for reports and retries.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from itertools import islice, zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.db.models import Case, Count, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.db.models.lookups import Exact
from django.utils import timezone, translation
from django.utils.translation import gettext, ngettext, pgettext_lazy

from backoffice.accounts.models import User
from backoffice.accounts.roles import may_now
from backoffice.operations import permissions
from backoffice.operations.kinds.batch import BatchKind
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.batches import ATTENTION, BatchRow, RowFlag
from backoffice.operations.models.operations import Approval, Attempt, Operation
from backoffice.operations.states import CLOSED, IN_FLIGHT, NEEDS_ATTENTION, Status

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


SHOWN_FIRST = 10
SENT = (Status.SUCCEEDED, Status.FAILED, *IN_FLIGHT)
"""The statuses of rows that were sent or are being sent; every other row counts as not sent, even without one."""


_NEARLY_ALL = Decimal("0.9")


@dataclass(frozen=True)
class CommonReasons:
    """How many rows of a batch have each reason that may be common. What nearly all have distinguishes no row."""

    counts: dict[RowFlag, int]
    rows: int

    @property
    def flags(self) -> set[RowFlag]:
        """Those of `counts` that nearly all rows have."""
        least = max(Decimal(SHOWN_FIRST + 1), _NEARLY_ALL * self.rows)
        return {flag for flag, count in self.counts.items() if count >= least}

    @property
    def sentences(self) -> list[str]:
        texts = {
            RowFlag.NEW_RECIPIENT: (
                gettext("All {rows} rows pay a recipient for the first time."),
                gettext("{count} of {rows} rows pay a recipient for the first time."),
            ),
            RowFlag.REPEATED: (
                gettext("All {rows} rows repeat a payment of the last 30 days."),
                gettext("{count} of {rows} rows repeat a payment of the last 30 days."),
            ),
        }
        found = self.flags
        return [
            of_all.format(rows=self.rows)
            if count == self.rows
            else of_most.format(count=count, rows=self.rows)
            for flag, (of_all, of_most) in texts.items()
            if flag in found
            for count in [self.counts[flag]]
        ]

    def stands_out(self) -> Q:
        """Which rows are to be checked first for another reason, or repeat a payment for a reason of their own."""
        weight = sum(weight for flag, weight in ATTENTION.items() if flag not in self.flags)
        rest = Q(Exact(F("attention").bitand(weight), 0))
        has_reason = ~Q(payload__duplicate_reason="") & Q(payload__duplicate_reason__isnull=False)
        return ~rest | has_reason


def common_reasons(operation: Operation) -> CommonReasons:
    """Those of this batch. One query."""
    may_be_common = (RowFlag.NEW_RECIPIENT, RowFlag.REPEATED)
    marks = F("attention")
    found = BatchRow.objects.filter(batch=operation).aggregate(
        rows=Count("pk"),
        **{
            flag.value: Count("pk", filter=~Q(Exact(marks.bitand(ATTENTION[flag]), 0)))
            for flag in may_be_common
        },
    )
    return CommonReasons({flag: found[flag.value] for flag in may_be_common}, found["rows"])


@dataclass(frozen=True)
class RowsToCheck:
    """Some of the rows that the approver should check first with the reasons, the number of all, and what nearly every
    row has in common.
    """

    rows: Sequence[tuple[BatchRow, list[str]]]
    total: int
    common: Sequence[str]


def rows_to_check(operation: Operation) -> RowsToCheck | None:
    """Those of a batch that waits for approval, if it has any. At most three queries; none for other operations.

    Each reason has its turn, so that a frequent one hides no other: every row of a payroll repeats a payment.
    """
    if operation.kind != BatchKind.name or operation.status != Status.PENDING:
        return None
    common = common_reasons(operation)
    order = ("-attention", "number")
    flagged = BatchRow.objects.filter(common.stands_out(), batch=operation, attention__gt=0).order_by(*order)
    flags = dict(flagged.values_list("pk", "flags"))
    by_reason = [[pk for pk, found in flags.items() if flag in found] for flag in ATTENTION]
    in_turn = dict.fromkeys(pk for turn in zip_longest(*by_reason) for pk in turn if pk)
    if not in_turn and not common.flags:
        return None
    shown = flagged.filter(pk__in=list(islice(in_turn, SHOWN_FIRST)))
    rows = [
        (row, [str(RowFlag(flag).label) for flag in row.flags if flag not in common.flags]) for row in shown
    ]
    return RowsToCheck(rows, len(in_turn), common.sentences)


NOT_CREATED = "not_created"


@dataclass(frozen=True)
class RowWithoutOperation:
    """A row of a batch that became no operation, with what a report has of an operation."""

    batch_row: BatchRow
    reference: str = ""
    status: str = NOT_CREATED
    decided_at: datetime | None = None
    closed_at: datetime | None = None
    attempts: QuerySet[Attempt] = field(default_factory=Attempt.objects.none)
    approvals: QuerySet[Approval] = field(default_factory=Approval.objects.none)

    @property
    def reason(self) -> str:
        """Why it became none, or that it is still to become one."""
        row = self.batch_row
        if row.duplicate_of:
            text = gettext(
                "{reference} has the same content and was waiting or being sent. No operation was created."
            )
            return text.format(reference=row.duplicate_of.reference)
        if row.batch.closed_at is None:
            return gettext("No operation has been created yet.")
        text = gettext("No operation was created. Status of the batch: {status}.")
        return text.format(status=row.batch.get_status_display())

    @property
    def sentence(self) -> str:
        """In the language in which the sentences of operations are stored."""
        kind = KINDS[self.kind]
        with translation.override(settings.LANGUAGE_CODE):
            return kind.sentence(kind.read(self.payload))

    @property
    def kind(self) -> str:
        return self.batch_row.kind

    @property
    def currency(self) -> str:
        return self.batch_row.currency

    @property
    def amount(self) -> Decimal:
        amount: Decimal = self.batch_row.amount
        return amount

    @property
    def recipient(self) -> str:
        return self.batch_row.recipient

    @property
    def recipient_detail(self) -> str:
        return self.batch_row.recipient_detail

    @property
    def payload(self) -> dict[str, Any]:
        payload: dict[str, Any] = self.batch_row.payload
        return payload

    @property
    def digest(self) -> str:
        return self.batch_row.digest

    @property
    def preparer(self) -> User:
        return self.batch_row.batch.preparer

    @property
    def prepared_at(self) -> datetime:
        return self.batch_row.batch.prepared_at

    @property
    def approvals_needed(self) -> int:
        return self.batch_row.batch.approvals_needed


def outcome_sentence(operation: Operation) -> str:
    """Why an operation was not paid, or what is known while its outcome is unknown; empty for all others."""
    match Status(operation.status):
        case Status.CANCELLED:
            return gettext("Cancelled. It was not sent.")
        case Status.EXPIRED:
            return gettext("Expired. It was not sent.")
        case Status.UNKNOWN:
            text = gettext("The outcome is unknown. {response}")
        case Status.REVIEW:
            text = gettext("The outcome is unknown, and two people must resolve it. {response}")
        case _:
            return operation.reason
    last = max(operation.attempts.all(), key=attrgetter("number"), default=None)
    return text.format(response=last.response if last else "").strip()


@dataclass(frozen=True)
class ShownStatus:
    """The badge of an operation: its tone, and what it says."""

    tone: str
    label: "StrOrPromise"


@dataclass(frozen=True)
class BatchProgress:
    """How many rows of a batch are operations in each status, are none yet, or are another operation's duplicate."""

    by_status: dict[Status, int]
    waiting: int
    duplicates: int

    @property
    def rows(self) -> int:
        return sum(self.by_status.values()) + self.waiting + self.duplicates

    @property
    def closed(self) -> int:
        """How many rows need nothing more."""
        return self.duplicates + sum(self.by_status.get(status, 0) for status in CLOSED)

    @property
    def unsent(self) -> int:
        return self.by_status.get(Status.APPROVED, 0)

    @property
    def in_flight(self) -> int:
        return sum(self.by_status.get(status, 0) for status in IN_FLIGHT)

    @property
    def fingerprint(self) -> str:
        counts = (f"{status.value}{count}" for status, count in self.by_status.items())
        return ".".join([*counts, str(self.waiting), str(self.duplicates)])


def batch_progress(batch: Operation) -> BatchProgress:
    """The progress of this batch. One query."""
    counted = BatchRow.objects.filter(batch=batch).order_by()
    found = counted.values_list("operation__status").annotate(n=Count("pk"), twice=Count("duplicate_of"))
    counts = {status: (count, twice) for status, count, twice in found}
    none, duplicates = counts.pop(None, (0, 0))
    by_status = {status: counts[status][0] for status in Status if status in counts}
    return BatchProgress(by_status, none - duplicates, duplicates)


_READY = ShownStatus(Status.APPROVED, pgettext_lazy("batch", "Ready to send"))
_IN_PROGRESS = ShownStatus(Status.SENDING, pgettext_lazy("batch", "In progress"))
_COMPLETED = ShownStatus(Status.SUCCEEDED, pgettext_lazy("batch", "Completed"))
_CANCELLED = ShownStatus(Status.CANCELLED, pgettext_lazy("batch", "Cancelled"))
_EXPIRED = ShownStatus(Status.EXPIRED, pgettext_lazy("batch", "Expired"))


@dataclass(frozen=True)
class BatchSummary:
    """What became of the rows of an applied batch."""

    progress: BatchProgress
    released: int = 0  # not sent yet, but someone has sent them: they wait for their turn
    paused_at: datetime | None = None
    cancelled_at: datetime | None = None

    @property
    def sent(self) -> int:
        return self._count(*SENT)

    @property
    def is_started(self) -> bool:
        """Whether someone has sent rows, even if they still wait for their turn."""
        return self.sent > 0 or self.released > 0

    @property
    def is_paused(self) -> bool:
        """Whether a pause keeps rows from being sent."""
        return bool(self.paused_at and self.progress.unsent and not self.cancelled_at)

    @property
    def is_stopped(self) -> bool:
        """Whether no further row is sent, at least until a pause ends."""
        return bool(self.paused_at or self.cancelled_at)

    @property
    def to_send(self) -> int:
        """How many rows someone can send now."""
        return 0 if self.is_stopped else max(self.progress.unsent - self.released, 0)

    @cached_property
    def status(self) -> ShownStatus:
        """In one word, as in lists."""
        if self.cancelled_at:
            return _CANCELLED
        if self.progress.unsent:
            return _IN_PROGRESS if self.is_started else _READY
        if self._count(Status.SENDING, Status.PROCESSING):
            return _IN_PROGRESS
        if self.sent:
            return ShownStatus("warn", self._completed_label) if self._open_ends else _COMPLETED
        return _EXPIRED if self._count(Status.EXPIRED) else _CANCELLED

    @property
    def _open_ends(self) -> list[str]:
        """How many rows were not paid, and of how many that is not known. A duplicate is paid with the other one."""
        unknown = self._count(*NEEDS_ATTENTION)
        unpaid = self.progress.rows - self.progress.duplicates - self._count(Status.SUCCEEDED) - unknown
        texts = (
            (unpaid, ngettext("{count} unpaid row", "{count} unpaid rows", unpaid)),
            (unknown, ngettext("{count} unknown outcome", "{count} unknown outcomes", unknown)),
        )
        return [text.format(count=count) for count, text in texts if count]

    @property
    def _completed_label(self) -> str:
        return ", ".join((str(_COMPLETED.label), *self._open_ends))

    @property
    def status_with_counts(self) -> ShownStatus:
        status, sent = self.status, {"sent": self.sent, "count": self.progress.rows}
        if self.is_paused:
            return ShownStatus("warn", gettext("Paused: {sent} of {count} sent").format(**sent))
        if status is _READY:
            return status
        if status is _IN_PROGRESS:
            label = gettext("{sent} of {count} sent").format(**sent)
        else:
            word = _COMPLETED.label if status.tone == "warn" else status.label
            label = gettext("{status}: {counts}").format(status=word, counts=self.counts)
        return ShownStatus(status.tone, label)

    @property
    def counts(self) -> str:
        """`494 succeeded, 5 failed, 1 unknown`: each row is counted once."""
        succeeded, failed = self._count(Status.SUCCEEDED), self._count(Status.FAILED)
        unknown, moving = self._count(*NEEDS_ATTENTION), self._count(Status.SENDING, Status.PROCESSING)
        unsent = self.progress.rows - self.sent
        texts = (
            (succeeded, ngettext("{count} succeeded", "{count} succeeded", succeeded)),
            (failed, ngettext("{count} failed", "{count} failed", failed)),
            (unknown, ngettext("{count} unknown outcome", "{count} unknown outcomes", unknown)),
            (moving, ngettext("{count} in progress", "{count} in progress", moving)),
            (unsent, ngettext("{count} not sent", "{count} not sent", unsent)),
        )
        return ", ".join(text.format(count=count) for count, text in texts if count)

    @property
    def fingerprint(self) -> str:
        """Changes whenever what is shown of it does."""
        marks = "".join("x" if mark else "-" for mark in (self.paused_at, self.cancelled_at))
        return f"{self.progress.fingerprint}.{self.released}.{marks}"

    @property
    def is_moving(self) -> bool:
        """Whether rows can still be sent, or their outcomes are open."""
        return bool(self.progress.unsent or self.progress.in_flight)

    def _count(self, *statuses: Status) -> int:
        return sum(self.progress.by_status.get(status, 0) for status in statuses)


def is_applied_batch(operation: Operation) -> bool:
    """Whether its rows are operations, whose statuses are shown in place of its own."""
    return operation.kind == BatchKind.name and operation.status == Status.SUCCEEDED


def batch_summaries(operations: Iterable[Operation]) -> dict[UUID, BatchSummary]:
    """The summaries of the applied batches among these operations. One query; none without such a batch."""
    batches = [operation.pk for operation in operations if is_applied_batch(operation)]
    if not batches:
        return {}
    groups = BatchRow.objects.filter(batch__in=batches).order_by()
    counted = groups.values_list(
        "batch", "operation__status", "batch__batch__paused_at", "batch__batch__cancelled_at"
    ).annotate(
        n=Count("pk"),
        twice=Count("duplicate_of"),
        released=Count("pk", filter=Q(operation__release__expires_at__gt=timezone.now())),
    )
    found = defaultdict(list)
    for batch, *row in counted:
        found[batch].append(row)
    return {batch: _summary(rows) for batch, rows in found.items()}


def _summary(rows: list[list[Any]]) -> BatchSummary:
    counts = {status: count for status, _paused, _cancelled, count, _twice, _released in rows}
    duplicates, none = sum(row[4] for row in rows), counts.pop(None, 0)
    by_status = {status: counts[status] for status in Status if status in counts}
    released = sum(row[5] for row in rows if row[0] == Status.APPROVED)
    return BatchSummary(
        BatchProgress(by_status, none - duplicates, duplicates), released, rows[0][1], rows[0][2]
    )


SHOWN_LABELS = {one.tone: one.label for one in (_READY, _IN_PROGRESS, _COMPLETED)}
"""What a batch is called in a status, where that differs from other operations."""


def shown_status() -> Case:
    """The status on the badge of an operation in a list, as `BatchSummary.status` has it, to filter by it."""
    rows = BatchRow.objects.filter(batch=OuterRef("pk"))

    def has(*statuses: Status, **conditions: Any) -> Q:
        return Q(Exists(rows.filter(operation__status__in=statuses, **conditions)))

    is_sent = has(*SENT)
    is_started = is_sent | has(Status.APPROVED, operation__release__expires_at__gt=timezone.now())
    return Case(
        When(~Q(kind=BatchKind.name, status=Status.SUCCEEDED), then=F("status")),
        When(batch__cancelled_at__isnull=False, then=Value(Status.CANCELLED)),
        When(has(Status.APPROVED) & ~is_started, then=Value(Status.APPROVED)),
        When(has(Status.APPROVED, Status.SENDING, Status.PROCESSING), then=Value(Status.SENDING)),
        When(is_sent, then=Value(Status.SUCCEEDED)),
        When(has(Status.EXPIRED), then=Value(Status.EXPIRED)),
        default=Value(Status.CANCELLED),
    )


def has_open_rows() -> Q:
    """Batches that are applied, and of which rows are open: they count as open themselves."""
    is_open = {"operation__isnull": False, "operation__closed_at__isnull": True}
    rows = BatchRow.objects.filter(batch=OuterRef("pk"), **is_open)
    return Q(Exists(rows), kind=BatchKind.name, status=Status.SUCCEEDED)


def batch_summary(operation: Operation) -> BatchSummary | None:
    """The summary of an applied batch, otherwise None."""
    return batch_summaries([operation]).get(operation.pk)


def status_of(operation: Operation, summary: BatchSummary | None) -> ShownStatus:
    """The badge of an operation on its own page: that of an applied batch has the counts of its rows."""
    return summary.status_with_counts if summary else _own_status(operation)


def statuses_in_list(
    operations: Iterable[Operation],
) -> list[tuple[Operation, ShownStatus, BatchSummary | None]]:
    """Each operation with its badge in a list, an applied batch with its summary. At most one query."""
    listed = list(operations)
    summaries = batch_summaries(listed)
    return [
        (one, summary.status if summary else _own_status(one), summary)
        for one in listed
        for summary in [summaries.get(one.pk)]
    ]


def _own_status(operation: Operation) -> ShownStatus:
    return ShownStatus(operation.status, status_label(operation.kind, operation.status))


def status_label(kind: str, status: str) -> "StrOrPromise":
    """What the status of an operation of this kind is called; as it is stored, if this version does not know it.

    `get_status_display` translates every status at each call, which took 7 % of a list's time.
    """
    of_success = KINDS[kind].success_label if kind in KINDS and status == Status.SUCCEEDED else None
    return of_success or (Status(status).label if status in Status else status)


def may_send_rows(person: User, operation: Operation, summary: BatchSummary | None) -> bool:
    """Whether this user may send rows of this batch now. Only once all are operations: "Send" has to mean the whole."""
    return (
        summary is not None
        and summary.to_send > 0
        and person != operation.preparer
        and may_now(person, permissions.RELEASE)
    )
