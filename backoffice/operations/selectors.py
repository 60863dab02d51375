"""Which operations a person may see, which are open or waiting for that person, which match a typed text."""

import re
from collections.abc import Collection

from django.db.models import Case, Count, Exists, OuterRef, Prefetch, Q, QuerySet, When, Window
from django.db.models.functions import Now

from backoffice.accounts.models import User
from backoffice.accounts.staff import users_with_permission
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Approval, Attempt, Operation
from backoffice.operations.permissions import APPROVE, PREPARE, PROPOSE, RELEASE, VIEW
from backoffice.operations.states import NEEDS_ATTENTION, Status

NEWEST_FIRST = ("-prepared_at", "-id")


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
    entitled = users_with_permission(APPROVE).filter(pk=OuterRef("approver"))
    approvals = Approval.objects.select_related("approver").annotate(still_entitled=Exists(entitled))
    return (
        visible_operations(user)
        .annotate(maker_still_entitled=_preparer_is_entitled())
        .select_related("maker", "release", "prepared_from", "secret__belongs_to")
        .prefetch_related(
            Prefetch("approvals", approvals),
            Prefetch("attempts", Attempt.objects.select_related("released_by", "resolution")),
            Prefetch("incidents", Incident.objects.select_related("seen_by")),
        )
    )


def _preparer_is_entitled() -> Case:
    """By the permission that the operation's kind asks of whoever prepares it."""
    changes = [kind.name for kind in KINDS.values() if kind.permission == PROPOSE]
    proposes, prepares = (
        Exists(users_with_permission(permission).filter(pk=OuterRef("maker")))
        for permission in (PROPOSE, PREPARE)
    )
    return Case(When(kind__in=changes, then=proposes), default=prepares)


def operations_by_transaction(user: User, transaction_ids: Collection[str]) -> dict[str, Operation]:
    """Those of the service's transactions that operations of ours caused, by the service's id."""
    attempts = Attempt.objects.filter(
        service_transaction_id__in=transaction_ids, operation__in=visible_operations(user)
    ).select_related("operation")
    return {attempt.service_transaction_id or "": attempt.operation for attempt in attempts}


_LETTERS = "0-9A-HJKMNP-TV-Z"
_REFERENCE_PREFIX = re.compile(rf"[A-Z]-[{_LETTERS}]{{2,6}}")
_WITHOUT_HYPHEN = re.compile(rf"([A-Z])([{_LETTERS}]{{6}})")


def matches_text(text: str) -> Q:
    """Every operation that has to do with the text in any of these ways."""
    by_id = Attempt.objects.filter(operation=OuterRef("pk"), service_transaction_id=text)
    return matches_reference_or_account(text) | matches_words(text) | Q(Exists(by_id))


def matches_reference_or_account(text: str) -> Q:
    """By the account that is paid, or the beginning of the reference.

    The beginning is a range: both engines read it from the index. No letter of a reference is behind Z, in the order of
    any language.
    """
    named, reference = Q(beneficiary_account=normalise_account(text)), parse_reference(text)
    if reference:
        named |= Q(reference__gte=reference, reference__lte=reference.ljust(12, "Z"))
    return named


def matches_words(text: str) -> Q:
    """By the words in its sentence, or in what is said of the other end."""
    return (
        Q(counterparty__icontains=text) | Q(counterparty_detail__icontains=text) | Q(sentence__icontains=text)
    )


def parse_reference(text: str) -> str:
    """The reference, or at least three characters of its beginning; empty if the text is none."""
    written = text.upper()
    if whole := _WITHOUT_HYPHEN.fullmatch(written):
        return "-".join(whole.groups())
    return written if _REFERENCE_PREFIX.fullmatch(written) else ""


def normalise_account(text: str) -> str:
    """Account numbers are often written in groups."""
    return re.sub(r"[\s-]", "", text).lower() if re.fullmatch(r"[\d\s-]+", text) else text.lower()
