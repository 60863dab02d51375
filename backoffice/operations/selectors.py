"""Reads operations for lists, pages and reports. Never writes."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Case, Count, Exists, OuterRef, Prefetch, Q, QuerySet, Subquery, When, Window
from django.db.models.functions import Now

from backoffice.accounts.models import User
from backoffice.accounts.selectors import people_who_may
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.operations.kinds import KINDS, Debit, Kind, Payload
from backoffice.operations.mentions import mentioning
from backoffice.operations.models import Approval, Attempt, List, Operation, SavedFilter, content_key
from backoffice.operations.oversight import Incident
from backoffice.operations.permissions import APPROVE, PREPARE, PROPOSE, RELEASE, VIEW
from backoffice.operations.states import CAME_TO_NOTHING, NEEDS_ATTENTION, OUTCOME_UNKNOWN, Status

NEWEST_FIRST = ("-prepared_at", "-id")
REPEATED_WITHIN = timedelta(hours=24)
IS_OPEN = Q(closed_at__isnull=True)
"""Not in a final state: a constraint keeps the two alike, and an index holds these rows in their order."""


def is_waiting_for(user: User) -> Q:
    """Whether this person, and not its maker, can move it on now: countersign, or send what is countersigned."""
    can = Q(pk__in=[])
    if user.has_perm(APPROVE):
        signed = Approval.objects.filter(operation=OuterRef("pk"), approver=user)
        can |= Q(~Exists(signed), status=Status.PENDING)
    if user.has_perm(RELEASE):
        stands_still = Q(release__isnull=True) | Q(release__expires_at__lte=Now())
        can |= Q(stands_still, status=Status.APPROVED)
    return can & ~Q(maker=user) & IS_OPEN


EVERYTHING = "all"
TABS: dict[str, tuple[str, Callable[[User], Q]]] = {
    "waiting": ("Waiting for me", is_waiting_for),
    "open": ("Open", lambda _user: IS_OPEN),
    "done": ("Done", lambda _user: ~IS_OPEN),
    EVERYTHING: ("All", lambda _user: Q()),
}


@dataclass(frozen=True)
class OperationFilter:
    """What a list or a report of operations is narrowed to; empty means everything."""

    kind: str = ""
    status: str = ""
    currency: str = ""
    maker: User | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str = ""
    beneficiary_of: str = ""
    within: Q = field(default_factory=Q)

    def apply(self, operations: QuerySet[Operation]) -> QuerySet[Operation]:
        """The operations that match all of it; times are of the preparation, `until` excluded."""
        chosen = {
            "kind": self.kind,
            "status": self.status,
            "currency": self.currency,
            "maker": self.maker,
            "prepared_at__gte": self.since,
            "prepared_at__lt": self.until,
        }
        operations = operations.filter(
            self.within, **{name: value for name, value in chosen.items() if value}
        )
        if self.beneficiary_of:
            operations = operations.filter(beneficiary_key=_beneficiary_of(self.beneficiary_of))
        return operations.filter(mentioning(self.text)) if self.text else operations


def _beneficiary_of(reference: str) -> Subquery:
    """Whom this operation pays: links name it instead of an account number, which would stand in logs."""
    return Subquery(Operation.objects.filter(reference=reference).values("beneficiary_key"))


def visible_operations(user: User) -> QuerySet[Operation]:
    """What this person may see: everything, or nothing."""
    if not user.has_perm(VIEW):
        return Operation.objects.none()
    return Operation.objects.select_related("maker")


def operations_waiting_for(user: User) -> QuerySet[Operation]:
    """What this person can move on now, the newest first."""
    return visible_operations(user).filter(is_waiting_for(user))


def first_waiting_for(user: User, limit: int) -> tuple[list[Operation], int]:
    """The newest operations that this person can move on now, and how many there are in all, in one query."""
    counted = operations_waiting_for(user).annotate(in_all=Window(Count("pk")))
    first = list(counted[:limit])
    return [*first], first[0].in_all if first else 0


def operations_needing_attention(user: User) -> QuerySet[Operation]:
    """Operations whose outcome nobody knows yet."""
    return visible_operations(user).filter(status__in=NEEDS_ATTENTION)


def operation_page(user: User) -> QuerySet[Operation]:
    """Operations with everything that their page shows, in four queries.

    Each countersignature says as `still_entitled` whether its person may give it to this day, and the operation as
    `maker_still_entitled` whether its maker may prepare the like.
    """
    entitled = people_who_may(APPROVE).filter(pk=OuterRef("approver"))
    approvals = Approval.objects.select_related("approver").annotate(still_entitled=Exists(entitled))
    return (
        visible_operations(user)
        .annotate(maker_still_entitled=_maker_is_entitled())
        .select_related("maker", "release", "prepared_from", "secret__belongs_to")
        .prefetch_related(
            Prefetch("approvals", approvals),
            Prefetch("attempts", Attempt.objects.select_related("released_by", "resolution")),
            Prefetch("incidents", Incident.objects.select_related("seen_by")),
        )
    )


def _maker_is_entitled() -> Case:
    """By the permission that the operation's kind asks of whoever prepares it."""
    changes = [kind.name for kind in KINDS.values() if kind.permission == PROPOSE]
    proposes, prepares = (
        Exists(people_who_may(permission).filter(pk=OuterRef("maker"))) for permission in (PROPOSE, PREPARE)
    )
    return Case(When(kind__in=changes, then=proposes), default=prepares)


def chosen_operations(user: User, references: Collection[str]) -> list[Operation]:
    """The operations of these references that this person may see, the newest first, with their countersignatures."""
    found = visible_operations(user).filter(reference__in=references)
    return list(found.prefetch_related("approvals").order_by(*NEWEST_FIRST))


def saved_filters(user: User, of: List) -> QuerySet[SavedFilter]:
    """This person's own of one list, and what people who are still here share; own first."""
    shared = Q(is_shared=True, person__is_active=True)
    found = SavedFilter.objects.filter(Q(person=user) | shared, of=of).select_related("person")
    return found.annotate(is_own=Q(person=user)).order_by("-is_own", "name", "pk")


def paid_before(beneficiary_key: str, debit: Debit | None) -> QuerySet[Operation]:
    """Operations that pay the same amount to the same beneficiary, the newest first: all that are open, however long
    they have been waiting, and those that were sent within the last day. Those that came to nothing do not count."""
    if not beneficiary_key or debit is None:
        return Operation.objects.none()
    lately = Attempt.objects.filter(operation=OuterRef("pk"), started_at__gt=clock.now() - REPEATED_WITHIN)
    alike = Operation.objects.filter(
        IS_OPEN | Q(Exists(lately)),
        beneficiary_key=beneficiary_key,
        currency=debit.currency,
        amount=debit.amount,
    )
    return alike.exclude(status__in=CAME_TO_NOTHING).order_by("-prepared_at")


def in_doubt_alike(kind: Kind[Any], payload: Payload) -> QuerySet[Operation]:
    """Operations that are the same as this, were sent, and of which nobody knows whether they happened."""
    return Operation.objects.filter(_is_same(kind, payload), status__in=OUTCOME_UNKNOWN).order_by(
        *NEWEST_FIRST
    )


def settled_alike(kind: Kind[Any], payload: Payload) -> Operation | None:
    """The last one that is the same as this and was sent, if two people settled that it did not happen."""
    by_people = Attempt.objects.filter(resolution__isnull=False).values("operation")
    alike = Operation.objects.filter(_is_same(kind, payload))
    settled = alike.filter(pk__in=by_people, status=Status.FAILED).order_by(*NEWEST_FIRST).first()
    if settled is None:
        return None
    sent = Exists(Attempt.objects.filter(operation=OuterRef("pk")))
    return None if alike.filter(sent, prepared_at__gt=settled.prepared_at).exists() else settled


def _is_same(kind: Kind[Any], payload: Payload) -> Q:
    """They pay the same amount to the same beneficiary; or, whoever is paid, they have the same content."""
    stake, key = kind.at_stake(payload), kind.counterparty(payload).key
    same = Q(content_key=content_key(kind.name, payload.compared()))
    if stake is not None and key:
        same |= Q(beneficiary_key=key, currency=stake.currency, amount=stake.amount)
    return same


def submitted_before(user: User, submission: UUID, digest: str) -> Operation | None:
    """What this person prepared by this very form with this content; None for another content or another person."""
    operation = Operation.objects.filter(pk=submission, maker=user).first()
    return operation if operation is not None and operation.digest == digest else None


def operations_by_transaction(user: User, transaction_ids: Collection[str]) -> dict[str, Operation]:
    """Those of the service's transactions that operations of ours caused, by the service's id."""
    attempts = Attempt.objects.filter(
        service_transaction_id__in=transaction_ids, operation__in=visible_operations(user)
    ).select_related("operation")
    return {attempt.service_transaction_id or "": attempt.operation for attempt in attempts}


def timeline(operation: Operation) -> list[Entry]:
    """The audit entries of one operation, oldest first, each with its actor's name as it was then."""
    return list(
        Entry.objects.filter(target_type=operation._meta.label_lower, target_id=str(operation.pk)).order_by(
            "position"
        )
    )
