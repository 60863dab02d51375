"""Find the events that have no audit entry, each once: what expires soon or waits too long, keys that expire, missing
webhooks, batches that have ended or of which payments failed, and who can decide only now. A job of the sweeper.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q
from django.urls import reverse

from backoffice.api_keys.models import KnownKey
from backoffice.core import clock
from backoffice.core.database.queries import batched
from backoffice.core.leases import acquire_lease
from backoffice.notifications.events import Audience, Group, Notice
from backoffice.notifications.models import Occurrence
from backoffice.notifications.recording.audiences import Concerned, People
from backoffice.notifications.recording.later_deciders import notify_later_deciders
from backoffice.notifications.recording.outbox import Happening, Outbox
from backoffice.operations.kinds.batch import BatchKind
from backoffice.operations.models.batches import IS_WAITING_ROW, BatchRow
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.states import BEFORE_SENDING, Status
from backoffice.webhooks.deliveries import missing_deliveries

INTERVAL = timedelta(minutes=1)
EXPIRES_SOON = timedelta(hours=6)  # or a quarter of the operation's lifetime, if that is shorter
_BATCHES_FROM = timedelta(days=60)
_SETTLED_AFTER = timedelta(minutes=5)  # since the last outcome of a row: until then more may fail
_KEY_NOTICES = (
    (timedelta(days=1), Notice.KEY_EXPIRES_1),
    (timedelta(days=7), Notice.KEY_EXPIRES_7),
    (timedelta(days=30), Notice.KEY_EXPIRES_30),
)
_AT_ONCE = 500


def find_occurrences_due() -> int:
    """Store the messages of what was found for the first time, every minute; returns how many."""
    if not acquire_lease("notifications", INTERVAL):
        return 0
    now = clock.now()
    found = list(chain.from_iterable(find(now) for find in _FINDERS))
    stored = sum(map(_store, batched(found, _AT_ONCE)))
    return stored + notify_later_deciders(now)


@transaction.atomic
def _store(found: Iterable[Happening]) -> int:
    """Insert the messages of what was not found before, and record that it was found, in one commit."""
    by_key = {f"{one.event}:{one.notice}": one for one in found}
    known = set(Occurrence.objects.filter(pk__in=by_key).values_list("pk", flat=True))
    new = {key: one for key, one in by_key.items() if key not in known}
    if not new:
        return 0
    Occurrence.objects.bulk_create(
        [Occurrence(key=key, at=one.at) for key, one in new.items()], ignore_conflicts=True
    )
    people = People(one.operation for one in new.values() if one.operation)
    outbox = Outbox()
    for key, happening in new.items():
        outbox.add(replace(happening, event=key, people=_notified(people, happening)))
    return outbox.store()


_NOTIFIED = {
    Notice.EXPIRES_SOON: Audience.DECIDERS,
    Notice.OWN_EXPIRES_SOON: Audience.OWNERS,
    Notice.ESCALATED: Audience.ADMINISTRATORS,
    Notice.BATCH_FINISHED: Audience.OWNERS,
    Notice.ROWS_FAILED: Audience.OWNERS,
}


def _notified(people: People, happening: Happening) -> Collection[int]:
    operation = people.operations.get(happening.operation) if happening.operation else None
    found = people.notified(
        _NOTIFIED.get(happening.notice, Audience.ADMINISTRATORS), Concerned(operation=operation)
    )
    return {*found, *_releasers(operation)} if happening.notice == Notice.ROWS_FAILED and operation else found


def _releasers(batch: Operation) -> Collection[int]:
    """Who released rows of this batch that failed."""
    attempts = Attempt.objects.filter(
        operation__batch_row__batch=batch, operation__status=Status.FAILED, released_by__isnull=False
    )
    return attempts.order_by().values_list("released_by", flat=True).distinct()


def _expiring(now: datetime) -> Iterator[Happening]:
    """Operations that wait for a decision and expire soon: to who can decide, and to the preparer."""
    waiting = Operation.objects.filter(
        status__in=BEFORE_SENDING,
        expires_at__gt=now,
        expires_at__lte=now + EXPIRES_SOON,
        release__isnull=True,
        batch_row__isnull=True,
    )
    for operation in waiting.only("prepared_at", "expires_at"):
        if operation.expires_at - now <= (operation.expires_at - operation.prepared_at) / 4:
            yield _about(operation, Notice.EXPIRES_SOON, Group.WAITING, now)
            yield _about(operation, Notice.OWN_EXPIRES_SOON, Group.DECISIONS, now)


def _waiting_long(now: datetime) -> Iterator[Happening]:
    """Approved operations that wait to be sent for longer than the deployment allows: to the administrators.

    What waits for an approval is escalated to the next level (`operations.approval.escalation`).
    """
    if not settings.NOTIFY_ESCALATE_HOURS:
        return
    long_ago = now - timedelta(hours=settings.NOTIFY_ESCALATE_HOURS)
    waiting = Operation.objects.filter(
        status=Status.APPROVED, decided_at__lte=long_ago, release__isnull=True, batch_row__isnull=True
    )
    for operation in waiting.only("pk"):
        yield _about(operation, Notice.ESCALATED, Group.WAITING, now)


def _finished_batches(now: datetime) -> Iterator[Happening]:
    """Batches of which every row has ended: to the preparer."""
    rows = BatchRow.objects.filter(batch=OuterRef("pk"))
    unended = rows.filter(operation__closed_at__isnull=True, operation__isnull=False)
    batches = Operation.objects.filter(
        ~Exists(rows.filter(IS_WAITING_ROW)),
        ~Exists(unended),
        kind=BatchKind.name,
        status=Status.SUCCEEDED,
        prepared_at__gte=now - _BATCHES_FROM,
    )
    for batch in batches.only("pk"):
        yield _about(batch, Notice.BATCH_FINISHED, Group.FILES, now)


def _failed_rows(now: datetime) -> Iterator[Happening]:
    """Batches of which rows failed, once none is being sent: to the preparer, and who released these rows. Again if
    further rows fail.
    """
    rows = BatchRow.objects.filter(batch=OuterRef("pk"))
    is_moving = rows.filter(
        Q(operation__status=Status.SENDING)
        | Q(operation__status=Status.APPROVED, operation__release__expires_at__gt=now)
        | Q(operation__closed_at__gt=now - _SETTLED_AFTER)
    )
    is_open = rows.filter(operation__closed_at__isnull=True)
    batches = Operation.objects.filter(
        Exists(rows.filter(operation__status=Status.FAILED)),
        ~Exists(is_moving) | ~Exists(is_open),
        kind=BatchKind.name,
        status=Status.SUCCEEDED,
        prepared_at__gte=now - _BATCHES_FROM,
    )
    failed = Count("rows", filter=Q(rows__operation__status=Status.FAILED))
    for batch in batches.annotate(failed=failed).only("pk"):
        found = _about(batch, Notice.ROWS_FAILED, Group.OUTCOMES, now)
        yield replace(found, event=f"{found.event}:{vars(batch)['failed']}")


def _expiring_keys(now: datetime) -> Iterator[Happening]:
    """Keys that expire within 30, 7 and 1 days, each once: to the administrators."""
    keys = KnownKey.objects.filter(
        ended_at=None, expires_at__gt=now, expires_at__lte=now + _KEY_NOTICES[-1][0]
    )
    for key in keys:
        if key.expires_at is not None:
            notice = next(notice for limit, notice in _KEY_NOTICES if key.expires_at - now <= limit)
            event = f"key:{key.short_hash}:{key.expires_at:%Y%m%d}"[:150]
            yield Happening(event, notice, Group.KEYS, now, reverse("api_keys:keys"), ())


def _silent_webhooks(now: datetime) -> Iterator[Happening]:
    """Expected webhooks did not arrive: to the administrators, once for each silence."""
    missing = missing_deliveries()
    if missing is not None:
        since = missing.last_at.isoformat() if missing.last_at else "never"
        page = reverse("webhooks:deliveries")
        yield Happening(f"webhooks:{since}", Notice.WEBHOOKS_SILENT, Group.PROBLEMS, now, page, ())


def _about(operation: Operation, notice: Notice, group: Group, now: datetime) -> Happening:
    page = operation.get_absolute_url()
    return Happening(f"operation:{operation.pk}", notice, group, now, page, (), operation.pk)


_FINDERS: tuple[Callable[[datetime], Iterator[Happening]], ...] = (
    _expiring,
    _waiting_long,
    _finished_batches,
    _failed_rows,
    _expiring_keys,
    _silent_webhooks,
)
