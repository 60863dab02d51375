"""Keeps the reconciliation: what changed since the last round is judged anew, and once a day everything is.

What can change a verdict is told by four feeds, each in the order of its commits: new rows of the mirror, its history
of changes, the audit log (whatever happens to an operation stands there in the same commit), and what was too early to
tell. So a round costs as much as has happened, whatever is kept. Any number may run: one compares at a time, and what
is compared twice comes out the same.
"""

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Max, Q, QuerySet

from backoffice.audit.models import Entry
from backoffice.core import clock, locks
from backoffice.ledger.mirrored import Mirror, Transaction, TransactionChange
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.reconciled import MAY_TURN_UP, Comparison, Reconciliation, ReconciliationResult
from backoffice.operations.reconciling import INCOMING, judged_attempt, judged_movement
from backoffice.operations.services.verdicts import Judged, keep, tell_people

EVERY = timedelta(seconds=10)
EVERYTHING_EVERY = timedelta(days=1)
TURN = 5.0  # seconds: so long one call compares, and so long it tells people, while there is more
AT_ONCE = 500  # of each feed in one transaction
STRETCH = 20_000  # rows of the mirror that one step passes over
_OPERATION = Operation._meta.label_lower


@dataclass
class Scope:
    """What is judged anew in one step: ids of attempts and of the mirror's rows. `is_cut`: more is waiting."""

    attempts: set[int] = field(default_factory=set)
    rows: set[int] = field(default_factory=set)
    is_cut: bool = False

    def take(self, kept: QuerySet[Comparison]) -> None:
        """What these are about."""
        for attempt, row in kept.values_list("attempt_id", "transaction_id"):
            self.attempts |= set() if attempt is None else {attempt}
            self.rows |= set() if row is None else {row}


def reconcile_due() -> int:
    """Compare what is new, if nobody has for some seconds; 1 if this call did it."""
    last = Reconciliation.objects.filter(pk=1).values_list("at", flat=True).first()
    if last is not None and last > clock.now() - EVERY:
        return 0
    reconcile()
    return 1


def reconcile() -> None:
    """Compare whatever is new, and go on with the walk through everything, up to the end or for some seconds.

    Then tell people in the same way, whatever is left to compare.
    """
    until = time.monotonic() + TURN
    while _step() and time.monotonic() < until:
        pass
    until, told_to = time.monotonic() + TURN, tell_people(AT_ONCE, behind=0)
    while told_to is not None and time.monotonic() < until:
        told_to = tell_people(AT_ONCE, behind=told_to)


@transaction.atomic(durable=True)
def _step() -> bool:
    """Judge one stretch of every feed; whether there is more."""
    locks.hold("reconciliation")
    state = _state()
    mirror = Mirror.objects.filter(pk=1).first() or Mirror()  # read first: see `judged_attempt`
    if state.begins_at is None:
        state.begins_at = _first_preparation()
    scope = _scope(state, mirror)
    state.at, state.mirror_as_of = clock.now(), mirror.as_of
    state.save()
    _judge(scope, state.begins_at, mirror)
    return scope.is_cut


def _state() -> Reconciliation:
    """As it stands; the first time, everything that is here is left to the walk."""
    state = Reconciliation.objects.filter(pk=1).first()
    if state is None:
        state = Reconciliation(
            pk=1,
            rows_to=_newest(Transaction.objects.all()),
            changes_to=_newest(TransactionChange.objects.all()),
            entries_to=_newest(Entry.objects.all()),
        )
    now = clock.now()
    if state.walk_begun_at is None or state.walk_begun_at <= now - EVERYTHING_EVERY:
        state.walk_begun_at, state.walk_attempts_to, state.walk_rows_to = now, 0, 0
    return state


def _newest(rows: QuerySet[Any]) -> int:
    return rows.aggregate(newest=Max("pk"))["newest"] or 0


def _first_preparation() -> datetime | None:
    return Operation.objects.order_by("prepared_at").values_list("prepared_at", flat=True).first()


def _scope(state: Reconciliation, mirror: Mirror) -> Scope:
    """The next stretch of each feed; the state then stands behind it."""
    scope = Scope()
    state.rows_to = _read_rows(scope, state.rows_to, state.begins_at)
    state.changes_to = _read_changes(scope, state.changes_to)
    state.entries_to = _read_entries(scope, state.entries_to)
    if state.walk_attempts_to is not None:
        found, state.walk_attempts_to = _next(scope, Attempt.objects.all(), state.walk_attempts_to)
        scope.attempts.update(found)
    if state.walk_rows_to is not None:
        state.walk_rows_to = _walk_rows(scope, state.walk_rows_to, state)
    _walk_what_is_open(scope, state, mirror)
    return scope


def _read_rows(scope: Scope, behind: int, begins_at: datetime | None) -> int:
    """Rows that did not come in, of our time; where the next stretch begins."""
    newest = _newest(Transaction.objects.all())
    stretch = Transaction.objects.filter(pk__gt=behind).order_by("pk").values_list("pk", flat=True)
    to = min([newest, *stretch[STRETCH - 1 : STRETCH]])  # so many rows, not ids: those may have wide gaps
    found: list[int] = []
    if begins_at is not None and to > behind:
        rows = Transaction.objects.filter(pk__gt=behind, pk__lte=to, occurred_at__gte=begins_at)
        outgoing = rows.exclude(direction=INCOMING).order_by("pk").values_list("pk", flat=True)
        found = list(outgoing[:AT_ONCE])
    if len(found) == AT_ONCE:
        to = found[-1]
    scope.rows.update(found)
    scope.is_cut |= to < newest
    return max(to, behind)


def _read_changes(scope: Scope, behind: int) -> int:
    changes = TransactionChange.objects.filter(pk__gt=behind).order_by("pk")
    found = list(changes.values_list("pk", "transaction_id")[:AT_ONCE])
    scope.rows.update(row for _, row in found)
    scope.is_cut |= len(found) == AT_ONCE
    return found[-1][0] if found else behind


def _read_entries(scope: Scope, behind: int) -> int:
    """Attempts of the operations to which something happened."""
    entries = Entry.objects.filter(position__gt=behind).order_by("position")
    found = list(entries.values_list("position", "target_type", "target_id")[:AT_ONCE])
    touched = {UUID(target) for _, kind, target in found if kind == _OPERATION}
    scope.attempts.update(Attempt.objects.filter(operation__in=touched).values_list("pk", flat=True))
    scope.is_cut |= len(found) == AT_ONCE
    return found[-1][0] if found else behind


def _next(scope: Scope, rows: QuerySet[Any], behind: int | None) -> tuple[list[int], int | None]:
    """The next of these, and where those after them begin; None behind the last one."""
    following = rows.filter(pk__gt=behind or 0).order_by("pk")
    found = list(following.values_list("pk", flat=True)[:AT_ONCE])
    is_cut = len(found) == AT_ONCE
    scope.is_cut |= is_cut
    return found, found[-1] if is_cut else None


def _walk_rows(scope: Scope, behind: int, state: Reconciliation) -> int | None:
    """The next rows of all, with what has a verdict among them; None behind the last one that is no news."""
    to = _read_rows(scope, behind, state.begins_at)
    judged = Comparison.objects.filter(transaction__gt=behind, transaction__lte=to)
    scope.rows.update(judged.values_list("transaction_id", flat=True))
    return to if to < state.rows_to else None


def _walk_what_is_open(scope: Scope, state: Reconciliation, mirror: Mirror) -> None:
    """The next of what time alone decides, of what may turn up yet, and of attempts that got a transaction and go on.

    Of those no feed tells: what turns up may claim to be from before our time, or to have come in. Attempts wait for
    the mirror to have moved since the last walk through them began, since before the first load all of them may be too
    early.
    """
    early_rows = Comparison.objects.filter(verdict=ReconciliationResult.PENDING, attempt__isnull=True)
    kept, state.early_rows_to = _next(scope, early_rows, state.early_rows_to)
    has_moved = mirror.loaded_at is not None and mirror.as_of != state.may_turn_up_as_of
    if state.may_turn_up_to is not None or has_moved:
        if state.may_turn_up_to is None:
            state.may_turn_up_as_of = mirror.as_of
        attempts = Comparison.objects.filter(MAY_TURN_UP, attempt__isnull=False)
        found, state.may_turn_up_to = _next(scope, attempts, state.may_turn_up_to)
        kept += found
    scope.take(Comparison.objects.filter(pk__in=kept))
    going_on = Attempt.objects.filter(closed_at__isnull=True, service_transaction_id__isnull=False)
    found, state.going_on_to = _next(scope, going_on, state.going_on_to)
    scope.attempts.update(found)


def _judge(scope: Scope, begins_at: datetime | None, mirror: Mirror) -> None:
    """Give everything in the scope, and what hangs together with it, the verdict that it deserves now."""
    scope.take(_kept(scope.attempts, scope.rows))
    rows = Transaction.objects.in_bulk(scope.rows)
    in_doubt = _in_doubt()
    attempts = _attempts(scope.attempts, {row.transaction_id for row in rows.values()})
    named = {one.service_transaction_id for one in attempts if one.service_transaction_id}
    listed = {row.transaction_id: row for row in Transaction.objects.filter(transaction_id__in=named)}
    verdicts: list[Judged] = []
    for one in attempts:
        own = listed.get(one.service_transaction_id or "")
        verdicts.append((one, own, judged_attempt(one, own, mirror)))
    others = [row for row in rows.values() if row.transaction_id not in named]
    verdicts += [(None, row, judged_movement(row, begins_at, in_doubt)) for row in others]
    concerned = {row.pk for row in (*rows.values(), *listed.values())}
    keep(_kept({one.pk for one in attempts}, concerned), verdicts)


def _in_doubt() -> list[Attempt]:
    """Open, and not named by the service: what was only taken for theirs may be another's while theirs may come."""
    may_come = Q(started_at__gt=clock.now() - Attempt.MAY_TAKE - Attempt.SKEW)
    unnamed = Attempt.objects.filter(
        Q(service_transaction_id__isnull=True) | may_come,
        closed_at__isnull=True,
        named_at__isnull=True,
        balance__isnull=False,
    )
    return list(unnamed.select_related("operation"))


def _attempts(pks: Collection[int], transaction_ids: Iterable[str]) -> list[Attempt]:
    chosen = Q(pk__in=pks) | Q(service_transaction_id__in=transaction_ids)
    return list(Attempt.objects.filter(chosen).select_related("operation"))


def _kept(attempts: Collection[int], rows: Collection[int]) -> QuerySet[Comparison]:
    return Comparison.objects.filter(Q(attempt__in=attempts) | Q(transaction__in=rows))
