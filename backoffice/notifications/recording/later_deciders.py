"""People who can decide an operation only since a policy, a right or a delegation changed are notified of it once.

Whoever could decide when it was prepared or approved is notified of that entry of the audit log. This finds the others,
who have no message about the operation yet; whoever has no authenticator is left out. An operation is evaluated again
only after people or policies have changed. Rows of batches are left out.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef

from backoffice.accounts.roles import people_not_set_up, users_with_permission
from backoffice.core import clock
from backoffice.notifications.events import Group, Notice
from backoffice.notifications.models import Message
from backoffice.notifications.recording.audit_feed import is_behind
from backoffice.notifications.recording.outbox import Happening, Outbox
from backoffice.operations.approval.escalation import answers, with_approvals
from backoffice.operations.approval.waiting import is_sent
from backoffice.operations.models.operations import Approval, Operation
from backoffice.operations.permissions import APPROVE, APPROVE_GOVERNANCE, RELEASE
from backoffice.operations.states import BEFORE_SENDING, Status
from backoffice.policies.delegations import leaves_of
from backoffice.policies.models import PolicyVersion
from backoffice.policies.people import Staff, read_staff

OPERATIONS_AT_ONCE = 300  # the newest
# Until then, the entry of the audit log may not have been read that notifies whoever can decide at once.
SETTLED_AFTER = timedelta(minutes=1)


@dataclass
class _Evaluated:
    """What this process evaluated last: under which people and policy, and each operation in which state."""

    under: object = None
    states: dict[UUID, tuple[str, int]] = field(default_factory=dict)


_evaluated = _Evaluated()


def notify_later_deciders(now: datetime) -> int:
    """Store the messages of those who can decide now and were not notified; returns how many."""
    operations = [] if is_behind() else list(_open(now))
    if not operations:
        return 0
    staff = {name: read_staff(name) for name in (APPROVE, APPROVE_GOVERNANCE)}
    releasers = frozenset(users_with_permission(RELEASE).order_by().values_list("pk", flat=True))
    not_set_up = frozenset(people_not_set_up().order_by().values_list("pk", flat=True))
    under = _inputs(staff, releasers, not_set_up)
    if under != _evaluated.under:
        _evaluated.under, _evaluated.states = under, {}
    states = {one.pk: (one.status, len(one.approvals.all())) for one in operations}
    new = [one for one in operations if _evaluated.states.get(one.pk) != states[one.pk]]
    deciders = {pk: people - not_set_up for pk, people in _deciders(new, staff, releasers)}
    stored = _notify(new, deciders, now) if new else 0
    _evaluated.states = states
    return stored


def _open(now: datetime) -> Sequence[Operation]:
    recent = Approval.objects.filter(operation=OuterRef("pk"), approved_at__gt=now - SETTLED_AFTER)
    waiting = Operation.objects.filter(
        ~Exists(recent),
        status__in=BEFORE_SENDING,
        expires_at__gt=now,
        prepared_at__lte=now - SETTLED_AFTER,
        release__isnull=True,
        batch_row__isnull=True,
    )
    return list(with_approvals(waiting.order_by("-prepared_at"))[:OPERATIONS_AT_ONCE])


def _inputs(staff: Mapping[str, Staff], releasers: frozenset[int], not_set_up: frozenset[int]) -> object:
    """What the answers depend on besides the operations."""
    newest = PolicyVersion.objects.order_by("-number").values_list("number", flat=True).first()
    people = [(one.people, leaves_of(one.delegations, clock.recent())) for one in staff.values()]
    return newest, people, releasers, not_set_up


def _deciders(
    operations: Sequence[Operation], staff: Mapping[str, Staff], releasers: Collection[int]
) -> Iterator[tuple[UUID, set[int]]]:
    """Who can approve each of these now, or send it."""
    sent = set(
        Operation.objects.filter(is_sent(), pk__in=[one.pk for one in operations]).values_list(
            "pk", flat=True
        )
    )
    for operation, _, found in answers(operations, staff):
        if operation.status == Status.PENDING or not found.progress.is_complete:
            yield operation.pk, {person.id for person, _ in found.able}
        elif operation.pk in sent:
            yield operation.pk, set(releasers) - {operation.preparer_id}


@transaction.atomic
def _notify(operations: Sequence[Operation], deciders: Mapping[UUID, set[int]], now: datetime) -> int:
    notified: dict[UUID, set[int]] = defaultdict(set)
    messages = Message.objects.filter(
        created_at__gte=min(one.prepared_at for one in operations),  # has an index
        operation__in=deciders,
        notice=Notice.WAITS,
        dropped_at=None,
    )
    for operation, person in messages.filter(person__isnull=False).values_list("operation", "person"):
        if operation and person:
            notified[operation].add(person)
    outbox = Outbox()
    for one in operations:
        for person in sorted(deciders.get(one.pk, set()) - notified[one.pk]):
            event = f"operation:{one.pk}:{person}:{Notice.WAITS}"
            page = one.get_absolute_url()
            outbox.add(
                Happening(event, Notice.WAITS, Group.WAITING, now, page, {person}, one.pk, is_personal=True)
            )
    return outbox.store()
