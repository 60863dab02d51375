"""Queries for operations: visible to a user, open, waiting for a user, and matching a search text."""

import re
from collections.abc import Collection

from django.db.models import Case, Exists, OuterRef, Prefetch, Q, QuerySet, When
from django.db.models.functions import Now

from backoffice.accounts.models import User
from backoffice.accounts.staff import users_with_permission
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Approval, Attempt, Operation
from backoffice.operations.permissions import APPROVE, PREPARE, PROPOSE, RELEASE, VIEW
from backoffice.operations.states import Status

NEWEST_FIRST = ("-prepared_at", "-id")


IS_OPEN = Q(closed_at__isnull=True)
"""Not in a final state: a constraint keeps the two equal, and a partial index holds these rows in order."""


def is_waiting_for(user: User) -> Q:
    """Whether this user, not being the preparer, can approve it or release it now."""
    can = Q(pk__in=[])
    if user.restricted_until:
        return can
    if user.has_perm(APPROVE):
        signed = Approval.objects.filter(operation=OuterRef("pk"), approver=user)
        can |= Q(~Exists(signed), status=Status.PENDING)
    if user.has_perm(RELEASE):
        stands_still = Q(release__isnull=True) | Q(release__expires_at__lte=Now())
        can |= Q(stands_still, status=Status.APPROVED)
    return can & ~Q(preparer=user) & IS_OPEN


def visible_operations(user: User) -> QuerySet[Operation]:
    """What this user may see: everything, or nothing."""
    if not user.has_perm(VIEW):
        return Operation.objects.none()
    return Operation.objects.select_related("preparer")


def operations_waiting_for(user: User) -> QuerySet[Operation]:
    """What this user can approve or release now, the newest first."""
    return visible_operations(user).filter(is_waiting_for(user))


def operation_page(user: User) -> QuerySet[Operation]:
    """Operations with everything that their page shows, in four queries.

    Each approval has `still_entitled`: whether the approver still has the permission. The operation has
    `preparer_still_entitled`: the same for the preparer.
    """
    entitled = users_with_permission(APPROVE).filter(pk=OuterRef("approver"))
    approvals = Approval.objects.select_related("approver").annotate(still_entitled=Exists(entitled))
    return (
        visible_operations(user)
        .annotate(preparer_still_entitled=_preparer_is_entitled())
        .select_related("preparer", "release", "prepared_from", "secret__viewer")
        .prefetch_related(
            Prefetch("approvals", approvals),
            Prefetch("attempts", Attempt.objects.select_related("released_by", "resolution")),
            Prefetch("incidents", Incident.objects.select_related("acknowledged_by")),
        )
    )


def _preparer_is_entitled() -> Case:
    """Whether the preparer has the permission that the operation's kind requires."""
    changes = [kind.name for kind in KINDS.values() if kind.permission == PROPOSE]
    proposes, prepares = (
        Exists(users_with_permission(permission).filter(pk=OuterRef("preparer")))
        for permission in (PROPOSE, PREPARE)
    )
    return Case(When(kind__in=changes, then=proposes), default=prepares)


def operations_by_transaction(user: User, transaction_ids: Collection[str]) -> dict[str, Operation]:
    """The operations that caused these transactions of the provider, by transaction id."""
    attempts = Attempt.objects.filter(
        provider_transaction_id__in=transaction_ids, operation__in=visible_operations(user)
    ).select_related("operation")
    return {attempt.provider_transaction_id or "": attempt.operation for attempt in attempts}


_LETTERS = "0-9A-HJKMNP-TV-Z"
_REFERENCE_PREFIX = re.compile(rf"[A-Z]-[{_LETTERS}]{{2,6}}")
_WITHOUT_HYPHEN = re.compile(rf"([A-Z])([{_LETTERS}]{{6}})")


def matches_text(text: str) -> Q:
    """Operations that match the text by reference, account, words or transaction id."""
    by_id = Attempt.objects.filter(operation=OuterRef("pk"), provider_transaction_id=text)
    return matches_reference_or_account(text) | matches_words(text) | Q(Exists(by_id))


def matches_reference_or_account(text: str) -> Q:
    """By the recipient's account, or the beginning of the reference.

    The beginning is a range, which both engines read from the index. No character of a reference sorts after
    Z in any collation.
    """
    named, reference = Q(recipient_account=normalise_account(text)), parse_reference(text)
    if reference:
        named |= Q(reference__gte=reference, reference__lte=reference.ljust(12, "Z"))
    return named


def matches_words(text: str) -> Q:
    """By words in the sentence or the recipient."""
    return Q(recipient__icontains=text) | Q(recipient_detail__icontains=text) | Q(sentence__icontains=text)


def parse_reference(text: str) -> str:
    """The reference, or at least three characters of its beginning; empty if the text is none."""
    written = text.upper()
    if match := _WITHOUT_HYPHEN.fullmatch(written):
        return "-".join(match.groups())
    return written if _REFERENCE_PREFIX.fullmatch(written) else ""


def normalise_account(text: str) -> str:
    """Without spaces and hyphens, since account numbers are often written in groups."""
    return re.sub(r"[\s-]", "", text).lower() if re.fullmatch(r"[\d\s-]+", text) else text.lower()
