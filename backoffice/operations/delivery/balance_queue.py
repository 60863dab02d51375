"""The queue of released operations at each balance: one is sent at a time, in the order of release.
Read-only.

While the transaction of an attempt is not known, a new transaction at its balance can only be its own. So the
next operation waits until that attempt is closed or the provider has named its transaction.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext, ngettext

from backoffice.operations.errors import ContentUnreadableError
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.models.operations import UNMATCHED, Attempt, Operation, Release
from backoffice.operations.states import BEFORE_SENDING, Status


@dataclass(frozen=True)
class QueuePosition:
    """What is ahead of an operation at its balance: how many releases, and what blocks them.

    `blocked_by` is an operation that was sent and whose transaction is not known yet.
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


def with_queue(operations: QuerySet[Operation]) -> QuerySet[Operation]:
    """Annotate each operation with `is_balance_busy`: whether anything else may be ahead of it at its balance."""
    same = {"balance": OuterRef("currency")}
    released = queued_releases(timezone.now()).filter(**same).exclude(operation=OuterRef("pk"))
    return operations.annotate(
        is_balance_busy=Exists(Attempt.objects.filter(UNMATCHED, **same)) | Exists(released)
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
    before = _releases_ahead(release, now) if release else queued_releases(now).filter(balance=balance)
    unmatched = Attempt.objects.unmatched(balance)
    ahead = Operation.objects.filter(
        Q(pk__in=unmatched.values("operation")) | Q(pk__in=before.exclude(pk=operation.pk).values("pk"))
    )
    found = list(ahead)
    blocked_by = next((one for one in found if one.status != Status.APPROVED), None)
    return QueuePosition(balance, len(found) - (blocked_by is not None), blocked_by)


def _debited_balance(operation: Operation) -> str | None:
    try:
        kind, payload = read_content(operation)
    except ContentUnreadableError:
        return None
    debit = kind.debit(payload)
    return debit.currency if debit else None


def is_next(release: Release, now: datetime) -> bool:
    """Whether no released operation is ahead at this balance and no attempt there lacks its transaction."""
    if release.balance is None:
        return True
    return not (Attempt.objects.unmatched(release.balance).exists() or _releases_ahead(release, now).exists())


def queue_heads_first(now: datetime) -> QuerySet[Release]:
    """All queued releases, the head of each balance first, then in the order of release.

    A caller that takes a limited number is thus not blocked by a long queue at one balance.
    """
    same_moment = Q(released_at=OuterRef("released_at"), pk__lt=OuterRef("pk"))
    before = queued_releases(now).filter(
        Q(released_at__lt=OuterRef("released_at")) | same_moment, balance=OuterRef("balance")
    )
    return queued_releases(now).order_by(Exists(before), *Release.QUEUE_ORDER)


def newest_attempt_id(balance: str | None) -> int | None:
    """The newest attempt at this balance; compare two reads to see whether another was opened."""
    attempts = Attempt.objects.filter(balance=balance, balance__isnull=False)
    return attempts.order_by("-pk").values_list("pk", flat=True).first()


def _releases_ahead(release: Release, now: datetime) -> QuerySet[Release]:
    same_moment = Q(released_at=release.released_at, pk__lt=release.pk)
    return queued_releases(now).filter(
        Q(released_at__lt=release.released_at) | same_moment, balance=release.balance
    )


def queued_releases(now: datetime) -> QuerySet[Release]:
    """Releases that are in the queue: not expired, and not skipped for a while after an internal error."""
    in_order = Q(skipped_until__isnull=True) | Q(skipped_until__lte=now)
    return Release.objects.filter(in_order, expires_at__gt=now)
