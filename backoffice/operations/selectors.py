"""Queries for operations: visible to a user, open, with all that their page shows, and matching a search text.

Also the policy in effect, the warning of a first payment, the fees charged last, and saved views. What waits for
whom is in `approval/waiting.py`.
"""

import re
from collections import defaultdict
from collections.abc import Collection
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import (
    Case,
    Count,
    Exists,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
    When,
    prefetch_related_objects,
)
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce
from django.utils.translation import gettext

from backoffice.accounts.models import User
from backoffice.accounts.restrictions import restriction_times
from backoffice.accounts.roles import users_with_permission
from backoffice.core.database.queries import composed_once
from backoffice.core.web.formatting import searched_amount
from backoffice.ledger.models import Balance
from backoffice.operations.errors import PolicyAlteredError
from backoffice.operations.kinds.payment import PaymentKind
from backoffice.operations.kinds.registry import (
    KINDS,
    kinds_approved_with,
)
from backoffice.operations.models.batches import NEVER_APPROVED, BatchRow
from backoffice.operations.models.holds import HolderChange, LookAlike
from backoffice.operations.models.monitoring import Incident, LostAttempt
from backoffice.operations.models.operations import Approval, Attempt, Operation
from backoffice.operations.models.saved_views import FilteredList, SavedView
from backoffice.operations.permissions import APPROVE, APPROVE_GOVERNANCE, PREPARE, VIEW
from backoffice.operations.states import BEFORE_SENDING, IN_FLIGHT, Status
from backoffice.policies.models import AlteredPolicyError, PolicyInEffect, policy_in_effect

NEWEST_FIRST = ("-prepared_at", "-id")


IS_OPEN = Q(closed_at__isnull=True)
"""Not in a final state: a constraint keeps the two equal, and a partial index holds these rows in order."""


def current_policy() -> PolicyInEffect:
    """The policy in effect. Raises PolicyAlteredError."""
    try:
        return policy_in_effect()
    except AlteredPolicyError as exc:
        raise PolicyAlteredError from exc


def visible_operations(user: User) -> QuerySet[Operation]:
    """What this user may see: everything, or nothing."""
    return all_operations() if user.has_perm(VIEW) else Operation.objects.none()


def all_operations() -> QuerySet[Operation]:
    """With what lists show of them. The caller has checked that the user may see them."""
    return Operation.objects.select_related("preparer")


# An off-ramp payment that succeeded was created: whether its customer ever paid is not known here.
IS_EXECUTED = Q(status=Status.SUCCEEDED) & ~Q(kind=PaymentKind.name)
_CREATED = Q(status=Status.SUCCEEDED, kind=PaymentKind.name)
_IN_PROGRESS = Q(status__in=IN_FLIGHT)


def first_payment_warning(recipient_key: str) -> str:
    """The warning if no payment to this recipient has succeeded; empty if one has, or without a recipient."""
    to_recipient = Operation.objects.filter(recipient_key=recipient_key)
    if not recipient_key or to_recipient.filter(IS_EXECUTED).exists():
        return ""
    return _first_payment_text(
        to_recipient.filter(_IN_PROGRESS).count(), to_recipient.filter(_CREATED).count()
    )


def with_first_payment(operations: QuerySet[Operation]) -> QuerySet[Operation]:
    """The same, each with what `first_payment_text` needs, for operations that are not sent yet.

    Reads an index for each row.
    """
    to_recipient = Operation.objects.filter(recipient_key=OuterRef("recipient_key")).order_by()
    of_recipient = to_recipient.values("recipient_key").annotate(n=Count("pk")).values("n")
    return operations.annotate(
        is_first_payment=Q(~Exists(to_recipient.filter(IS_EXECUTED)), recipient_key__isnull=False),
        payments_in_progress=Subquery(of_recipient.filter(_IN_PROGRESS)),
        payments_created=Subquery(of_recipient.filter(_CREATED)),
    )


def first_payment_text(operation: Operation) -> str:
    """The warning of `first_payment_warning` for an operation of `with_first_payment`."""
    if not getattr(operation, "is_first_payment", False):
        return ""
    counts = (vars(operation)[name] or 0 for name in ("payments_in_progress", "payments_created"))
    return _first_payment_text(*counts)


def _first_payment_text(in_progress: int, created: int) -> str:
    """What is known of this recipient, of whom no payment has succeeded."""
    parts = [gettext("Recipient not paid before.")]
    if in_progress:
        parts.append(gettext("Payments in progress: {count}.").format(count=in_progress))
    if created:
        text = gettext("Off-ramp payments created, payout not known: {count}.")
        parts.append(text.format(count=created))
    return " ".join(parts)


def operations_with_history(user: User) -> QuerySet[Operation]:
    """Operations with their approvals, attempts, incidents, lost attempts and what holds them, in seven queries."""
    found = visible_operations(user).select_related("release", "prepared_from", "secret__viewer")
    return found.prefetch_related(
        *(Prefetch(name, rows.all()) for name, rows in _history(restriction_times()).items())
    )


def operation_page() -> QuerySet[Operation]:
    """Operations with what their page shows, for `fetch_history`.

    Each has `preparer_still_entitled`: whether the preparer still has the permission; and the balance of its
    currency as last reported: `balance_amount` and `balance_as_of`, both None if none was ever read. One that is not
    sent yet has the fee of the last time too: `last_fee` and `last_fee_at`. See also `with_first_payment` and
    `with_paid_row`.
    """
    balance = Balance.objects.filter(currency=OuterRef("currency"))
    charged = _charged_attempts(OuterRef(OuterRef("kind"))).filter(
        operation__currency=OuterRef("currency"), network=OuterRef("network")
    )
    last_charged = charged.order_by("-started_at", "-pk")
    has_history = {
        f"has_{name}": Exists(rows.filter(operation=OuterRef("pk")))
        for name, rows in _history(restriction_times()).items()
    }
    return (
        with_paid_row(with_first_payment(Operation.objects.all()))
        .alias(network=_network("payload"))
        .annotate(
            preparer_still_entitled=_preparer_is_entitled(),
            balance_amount=Subquery(balance.values("amount")),
            balance_as_of=Subquery(balance.values("as_of")),
            last_fee=_before_sending(Subquery(last_charged.values("fee")[:1])),
            last_fee_at=_before_sending(Subquery(last_charged.values("started_at")[:1])),
            **has_history,
        )
        .select_related("preparer", "release", "prepared_from__batch__paused_by", "secret__viewer")
    )


def with_paid_row(operations: QuerySet[Operation]) -> QuerySet[Operation]:
    """The same, each with `pays_row`: if that is False, `retry_of_payment` needs no query."""
    return operations.annotate(pays_row=Exists(_rows_paid_by(OuterRef("pk"), OuterRef("prepared_from"))))


def retry_of_payment(operation: Operation) -> Operation | None:
    """The operation of a later batch that retries the row of this one, or that batch until there is one.

    None if no batch does, or only one that was never approved. The row is the one that this operation pays or copies,
    or for which no operation was created because this one was equal: it is retried once (`batches.retried_rows`).
    """
    if not getattr(operation, "pays_row", True):
        return None
    for row in _rows_paid_by(operation.pk, operation.prepared_from_id):
        retries = BatchRow.objects.filter(batch__batch__retry_of=row.batch_id, retried_number=row.number)
        retry = retries.exclude(NEVER_APPROVED).select_related("operation", "batch").first()
        if retry is not None:
            return retry.operation or retry.batch
    return None


def _rows_paid_by(operation_id: UUID | OuterRef, copied_id: UUID | OuterRef | None) -> QuerySet[BatchRow]:
    """The rows of batches that became this operation or the one it copies, or none because of it."""
    paid = Q(operation=operation_id) | Q(duplicate_of=operation_id)
    if copied_id is not None:
        paid |= Q(operation=copied_id) | Q(duplicate_of=copied_id)
    return BatchRow.objects.filter(paid)


def fetch_history(operation: Operation) -> None:
    """Fetch what belongs to one operation, with a query for each kind of row of which there are any.

    Each approval has `still_entitled`: whether the approver still has the permission.
    """
    history = _history(restriction_times())
    found = [name for name in history if getattr(operation, f"has_{name}")]
    prefetch_related_objects([operation], *(Prefetch(name, history[name].all()) for name in found))
    # To prefetch `none()` takes Django as long as a query: a fifth of the time of the page.
    prefetched = vars(operation).setdefault("_prefetched_objects_cache", {})
    prefetched.update((name, rows) for name, rows in _no_history().items() if name not in found)


@composed_once
def _no_history() -> dict[str, QuerySet[Any]]:
    """For each kind of row that belongs to operations: none of them, already read."""
    nothing = {
        name: rows.model._default_manager.none() for name, rows in _history(restriction_times()).items()
    }
    for rows in nothing.values():
        len(rows)
    return nothing


@composed_once
def _history(_times: tuple[timedelta, ...]) -> dict[str, QuerySet[Any]]:
    """The rows that belong to operations, with what their page shows of them."""
    entitled, of_governance = (
        Exists(users_with_permission(permission).filter(pk=OuterRef("approver")))
        for permission in (APPROVE, APPROVE_GOVERNANCE)
    )
    still_entitled = Case(
        When(operation__kind__in=kinds_approved_with(APPROVE_GOVERNANCE), then=of_governance),
        default=entitled,
    )
    return {
        "approvals": Approval.objects.select_related("approver", "on_behalf_of", "delegation").annotate(
            still_entitled=still_entitled
        ),
        "attempts": Attempt.objects.select_related("released_by", "resolution"),
        "incidents": Incident.objects.select_related("acknowledged_by"),
        "holder_changes": HolderChange.objects.select_related("confirmed_by"),
        "look_alikes": LookAlike.objects.select_related("declared_by"),
        "lost_attempts": LostAttempt.objects.select_related("attempt__resolution"),
    }


def _preparer_is_entitled() -> Case:
    """Whether the preparer has the permission that the operation's kind requires."""
    by_permission: dict[str, list[str]] = defaultdict(list)
    for kind in KINDS.values():
        by_permission[kind.permission].append(kind.name)
    return Case(
        *(
            When(kind__in=kinds, then=Exists(users_with_permission(name).filter(pk=OuterRef("preparer"))))
            for name, kinds in by_permission.items()
            if name != PREPARE
        ),
        default=Exists(users_with_permission(PREPARE).filter(pk=OuterRef("preparer"))),
    )


def operations_by_transaction(user: User, transaction_ids: Collection[str]) -> dict[str, Operation]:
    """The operations that caused these transactions of the provider, by transaction id."""
    attempts = Attempt.objects.filter(
        provider_transaction_id__in=transaction_ids, operation__in=visible_operations(user)
    ).select_related("operation")
    return {attempt.provider_transaction_id or "": attempt.operation for attempt in attempts}


_FEES_READ = 200  # operations


def last_fees(kind_name: str) -> dict[tuple[str, str], Decimal]:
    """The fee that the provider charged last for this kind, by currency and, for crypto, network.

    Of its newest operations that succeeded; empty before the first. Fees are charged on top of the amount.
    """
    rows = _charged_attempts(kind_name).order_by("started_at", "pk")
    found = rows.values_list("operation__currency", "network", "fee")
    return {(currency, network): fee for currency, network, fee in found if fee is not None}


def _charged_attempts(kind: str | OuterRef) -> QuerySet[Any]:
    """The attempts whose fee the provider reported, of the newest operations of one kind that succeeded.

    Each has its `network`, on which the fee depends; empty for what is not sent on one.
    """
    newest = Operation.objects.filter(kind=kind, status=Status.SUCCEEDED).order_by(*NEWEST_FIRST)
    return Attempt.objects.filter(operation__in=newest.values("pk")[:_FEES_READ], fee__isnull=False).annotate(
        network=_network("operation__payload")
    )


def _network(payload: str) -> Coalesce:
    return Coalesce(KeyTextTransform("network", payload), Value(""), output_field=TextField())


def _before_sending(value: Subquery) -> Case:
    """The value for an operation that is not sent yet; null, and not computed, for any other."""
    return Case(When(status__in=sorted(BEFORE_SENDING), then=value))


def saved_views_for(user: User, of: FilteredList) -> QuerySet[SavedView]:
    """This user's own of one list, and those that active colleagues share; own first."""
    shared = Q(is_shared=True, person__is_active=True)
    found = SavedView.objects.filter(Q(person=user) | shared, list_name=of).select_related("person")
    return found.annotate(is_own=Q(person=user)).order_by("-is_own", "name", "pk")


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
    """By words in the sentence, the recipient, the memo or a payment's reference; a number also by the amount."""
    named = Q(recipient__icontains=text) | Q(recipient_detail__icontains=text) | Q(sentence__icontains=text)
    amount = searched_amount(text)
    named |= Q(payload__memo__icontains=text) | Q(kind=PaymentKind.name, payload__reference__icontains=text)
    return named | (Q() if amount is None else Q(amount=amount))


def parse_reference(text: str) -> str:
    """The reference, or its beginning with at least two characters after the hyphen; empty if the text is neither."""
    written = text.upper()
    if match := _WITHOUT_HYPHEN.fullmatch(written):
        return "-".join(match.groups())
    return written if _REFERENCE_PREFIX.fullmatch(written) else ""


def normalise_account(text: str) -> str:
    """Without spaces and hyphens, since account numbers are often written in groups."""
    return re.sub(r"[\s-]", "", text).lower() if re.fullmatch(r"[\d\s-]+", text) else text.lower()
