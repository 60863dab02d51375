"""The queue of released operations at each balance: one is sent at a time, in the order of release.
Read-only.

While the transaction of an attempt is not known, a new transaction of its balance and amount can only be its own. So
operations with the same amount wait until that attempt is closed or the provider has named its transaction. Those
with other amounts are sent before them, once no request is under way (`Attempt.objects.holding`).
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext, ngettext

from backoffice.core.database.queries import Argument
from backoffice.operations.errors import ContentUnreadableError
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.models.operations import IS_UNMATCHED, Attempt, Operation, Release
from backoffice.operations.states import BEFORE_SENDING


@dataclass(frozen=True)
class QueuePosition:
    """What is ahead of an operation at its balance: how many releases and requests under way, and what blocks it.

    `blocked_by` is an operation that was sent, and whose transaction is not known yet and could be mistaken for this
    one's.
    """

    balance: str
    ahead: int
    blocked_by: Operation | None

    @property
    def is_next(self) -> bool:
        return self.ahead == 0 and self.blocked_by is None

    def __str__(self) -> str:
        """A sentence for the screen; empty if nothing is ahead."""
        before = self.ahead + (self.blocked_by is not None)
        if not before:
            return ""
        ahead = ngettext(
            "{count} operation is ahead of this one for the {balance} balance.",
            "{count} operations are ahead of this one for the {balance} balance.",
            before,
        ).format(count=before, balance=self.balance)
        if self.blocked_by is None:
            return ahead
        blocked = gettext("{reference} was sent, and its transaction is not known yet.")
        return f"{ahead} {blocked.format(reference=self.blocked_by.reference)}"


class QueuedRelease(NamedTuple):
    """An operation in the queue of a balance, and the amount by which its transaction will be matched."""

    operation: UUID
    amount: Decimal | None


def with_queue(operations: QuerySet[Operation], now: datetime | Argument) -> QuerySet[Operation]:
    """Annotate each operation with `is_balance_busy`: whether anything else may be ahead of it at its balance."""
    same = {"balance": OuterRef("currency")}
    released = queued_releases(now).filter(**same).exclude(operation=OuterRef("pk"))
    return operations.annotate(
        is_balance_busy=Exists(Attempt.objects.filter(IS_UNMATCHED, **same)) | Exists(released)
    )


def queue_position(operation: Operation) -> QueuePosition | None:
    """The position of an approved operation, or the one it would get if it was released now.

    None if it does not debit a balance or is not waiting to be sent. No query if `with_queue` has found the
    balance free.
    """
    balance = _debited_balance(operation)
    if operation.status not in BEFORE_SENDING or balance is None:
        return None
    if not getattr(operation, "is_balance_busy", True):
        return QueuePosition(balance, 0, None)
    release = getattr(operation, "release", None)
    now = timezone.now()
    before = _queued_before(release, now) if release else queued_releases(now).filter(balance=balance)
    if not settings.STRICT_BALANCE_ORDER:
        before = before.filter(~_is_amount_held() | Q(operation__amount=operation.amount))
    holding = list(Attempt.objects.holding(balance, operation.amount).select_related("operation"))
    blocked_by = next((attempt.operation for attempt in holding if not attempt.is_under_way), None)
    under_way = sum(attempt.is_under_way for attempt in holding)
    return QueuePosition(balance, before.exclude(pk=operation.pk).count() + under_way, blocked_by)


def _debited_balance(operation: Operation) -> str | None:
    try:
        kind, payload = read_content(operation)
    except ContentUnreadableError:
        return None
    debit = kind.debit(payload)
    return debit.currency if debit else None


def is_next(release: Release, now: datetime) -> bool:
    """Whether no released operation is ahead at this balance and no attempt there holds this one back."""
    if release.balance is None:
        return True
    holding = Attempt.objects.holding(release.balance, release.operation.amount)
    return not (holding.exists() or _releases_ahead(release, now).exists())


def queue_heads(now: datetime) -> QuerySet[Release]:
    """The head of each balance, and the releases that debit none, in the order of release."""
    queued = queued_releases(now)
    balances = queued.order_by("balance").values_list("balance", flat=True).distinct()
    heads = [queue_head(balance, now) for balance in balances if balance]
    return queued.filter(Q(balance__isnull=True) | Q(pk__in=heads)).order_by(*Release.QUEUE_ORDER)


def queue_head(balance: str, now: datetime) -> UUID | None:
    """The operation that is released first at this balance and whose amount is not held."""
    return next((first.operation for first in first_in_queue(balance, now, 1)), None)


def first_in_queue(balance: str, now: datetime, count: int) -> list[QueuedRelease]:
    """The first operations at this balance whose amount is not held, in the order of release."""
    queue = queued_releases(now).filter(~_is_amount_held(), balance=balance).order_by(*Release.QUEUE_ORDER)
    return [QueuedRelease(*values) for values in queue.values_list("pk", "operation__amount")[:count]]


def sending_lease(balance: str) -> str:
    """The lease of the process that sends the queue of this balance (`send_queue`)."""
    return f"sending from {balance}"


def newest_attempt_id(balance: str | None) -> int | None:
    """The newest attempt at this balance; compare two reads to see whether another was opened."""
    attempts = Attempt.objects.filter(balance=balance, balance__isnull=False)
    return attempts.order_by("-pk").values_list("pk", flat=True).first()


def _releases_ahead(release: Release, now: datetime) -> QuerySet[Release]:
    """Those that are sent before this one; not those whose own amount is held."""
    return _queued_before(release, now).filter(~_is_amount_held())


def _is_amount_held() -> Exists:
    """Whether a release waits for the transaction of an attempt that could be mistaken for its own."""
    return Exists(Attempt.objects.holding_amount(OuterRef("balance"), OuterRef("operation__amount")))


def _queued_before(release: Release, now: datetime) -> QuerySet[Release]:
    same_moment = Q(released_at=release.released_at, pk__lt=release.pk)
    return queued_releases(now).filter(
        Q(released_at__lt=release.released_at) | same_moment, balance=release.balance
    )


def queued_releases(now: datetime | Argument) -> QuerySet[Release]:
    """Releases that are in the queue: not expired, and not skipped for a while after an internal error."""
    in_order = Q(skipped_until__isnull=True) | Q(skipped_until__lte=now)
    return Release.objects.filter(in_order, expires_at__gt=now)
