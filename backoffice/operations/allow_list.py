"""Who may be paid: by the kinds of `COUNTERSIGN_ALLOW_LIST`, approved recipients of the register only.

A payment to a recipient that was added or changed recently can be prepared and approved. It is sent once cooling has
ended, or before within a ceiling, or with one more approval, as the settings permit.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, Max, OuterRef, Q
from django.utils.translation import gettext

from backoffice.core import clock
from backoffice.core.leases import lock_until_commit
from backoffice.core.web.formatting import exact_time, format_amount
from backoffice.operations.errors import (
    RecipientAlteredError,
    RecipientCoolingError,
    RecipientCurrencyError,
    RecipientNotApprovedError,
)
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.batch import BatchPayload
from backoffice.operations.kinds.registry import AnyKind, read_content
from backoffice.operations.models.batches import BatchRow
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import NOT_EXECUTED
from backoffice.recipients.models import AlteredRecipientError, RecipientState, RecipientVersion
from backoffice.recipients.register import newest_versions, versions_in_effect

_Paid = tuple[str, str]  # the key of a recipient, and the currency that it is paid in


def is_allow_listed(kind: str) -> bool:
    """Whether this kind pays approved recipients only."""
    return kind in settings.ALLOW_LIST


def check_recipients(operation_id: UUID, kind: AnyKind, payload: Payload) -> None:
    """Raises RecipientNotApprovedError for a recipient that two people did not agree on, where they have to be.

    RecipientCurrencyError for one that is paid in another currency, RecipientAlteredError for an altered register.
    """
    _check(_paid_by(operation_id, kind, payload))


def check_payable(operation: Operation) -> None:
    """The same of a stored operation that is about to be paid, and RecipientCoolingError before cooling has ended.

    Where one more approval may take the place of cooling, `approval.requirements.required_levels` requires it instead.
    """
    kind, payload = read_content(operation)
    _check(_paid_by(operation.pk, kind, payload))
    until = held_until(operation)
    if until is not None and not settings.RECIPIENT_COOLING_EXTRA_APPROVAL:
        raise RecipientCoolingError(until)


def held_until(operation: Operation) -> datetime | None:
    """When cooling ends for the recipient of this operation, if it holds it; None if nothing does.

    It does not hold what stays, with all that was sent to the recipient since cooling began, within the ceiling.
    """
    if not settings.RECIPIENT_COOLING_HOURS or not is_allow_listed(operation.kind):
        return None
    kind, payload = read_content(operation)
    try:
        found = versions_in_effect({key for key, _ in _paid_by(operation.pk, kind, payload)})
    except AlteredRecipientError as exc:
        raise RecipientAlteredError from exc
    cooling = [version for version in found.values() if cooling_until(version) > clock.now()]
    sent = _sent_to(cooling)
    held = (version for version in cooling if not _is_within_ceiling(operation, version, sent))
    return next((cooling_until(version) for version in held), None)


def lock_ceiling(operation: Operation) -> None:
    """Let no other payment to its recipient be claimed before this transaction ends.

    Without this lock, two claims at the same moment would not see each other and both stay below the ceiling.
    """
    if settings.RECIPIENT_COOLING_HOURS and is_allow_listed(operation.kind):
        lock_until_commit(f"cooling:{operation.recipient_key}")


def may_need_one_more() -> Q:
    """The payments to recipients that are cooling, if one more approval may take the place of the time."""
    if not settings.RECIPIENT_COOLING_HOURS or not settings.RECIPIENT_COOLING_EXTRA_APPROVAL:
        return Q(pk__in=[])
    since = clock.recent() - timedelta(hours=settings.RECIPIENT_COOLING_HOURS)
    cooling = newest_versions().filter(key=OuterRef("recipient_key"), details_since__gt=since)
    return Q(Exists(cooling), kind__in=settings.ALLOW_LIST)


def need_one_more(operations: Collection[Operation]) -> set[UUID]:
    """Those of these payments that need one more approval in place of cooling, for lists. Two queries at most."""
    if not settings.RECIPIENT_COOLING_HOURS or not settings.RECIPIENT_COOLING_EXTRA_APPROVAL:
        return set()
    payments = [one for one in operations if is_allow_listed(one.kind) and one.recipient_key]
    if not payments:
        return set()
    versions = newest_versions().filter(key__in={one.recipient_key for one in payments})
    cooling = {one.key: one for one in versions if cooling_until(one) > clock.recent()}
    sent = _sent_to(cooling.values())
    of_cooling = [(one, cooling[key]) for one in payments if (key := one.recipient_key or "") in cooling]
    return {one.pk for one, version in of_cooling if not _is_within_ceiling(one, version, sent)}


@dataclass(frozen=True)
class _Sent:
    """A payment that was sent, or is under way, and when its last attempt began."""

    operation: UUID
    key: str
    currency: str
    amount: Decimal
    at: datetime


def _sent_to(versions: Collection[RecipientVersion]) -> list[_Sent]:
    """What was sent to these recipients since the first of them was changed, if there are ceilings."""
    if not versions or not settings.RECIPIENT_COOLING_CEILINGS:
        return []
    since = min(version.details_since for version in versions)
    sent = Operation.objects.filter(
        recipient_key__in={version.key for version in versions},
        amount__isnull=False,
        attempts__started_at__gte=since,
    )
    found = sent.exclude(status__in=NOT_EXECUTED).order_by().annotate(at=Max("attempts__started_at"))
    rows = found.values_list("pk", "recipient_key", "currency", "amount", "at")
    return [
        _Sent(operation, key, currency, amount, at)
        for operation, key, currency, amount, at in rows
        if key is not None and amount is not None
    ]


def _is_within_ceiling(operation: Operation, version: RecipientVersion, sent: Collection[_Sent]) -> bool:
    ceiling = settings.RECIPIENT_COOLING_CEILINGS.get(operation.currency)
    if ceiling is None or operation.amount is None:
        return False
    others = [
        one.amount
        for one in sent
        if (one.key, one.currency) == (version.key, operation.currency)
        and one.operation != operation.pk
        and one.at >= version.details_since
    ]
    return bool(sum(others, operation.amount) <= ceiling)


def problem_of_row(kind: str, paid: _Paid) -> str:
    """Why the row of a file would be refused; empty if it would not."""
    if not is_allow_listed(kind):
        return ""
    try:
        _check({paid})
    except (RecipientNotApprovedError, RecipientCurrencyError, RecipientAlteredError) as exc:
        return str(exc)
    return ""


def cooling_until(version: RecipientVersion) -> datetime:
    """When the recipient can be paid."""
    return version.details_since + timedelta(hours=settings.RECIPIENT_COOLING_HOURS)


def cooling_warning(operation_id: UUID, kind: AnyKind, payload: Payload) -> list[str]:
    """The caution that a recipient cannot be paid yet, and what can be before; empty if all can, or must not at all."""
    paid = _paid_by(operation_id, kind, payload)
    try:
        versions = versions_in_effect({key for key, _ in paid})
    except AlteredRecipientError:
        return []
    latest = max((cooling_until(version) for version in versions.values()), default=None)
    if latest is None or latest <= clock.now():
        return []
    texts = [
        gettext("The recipient was added or changed recently, and can be paid from {time}.").format(
            time=exact_time(latest)
        )
    ]
    ceilings = settings.RECIPIENT_COOLING_CEILINGS
    texts += [
        gettext("Before that, {amount} in total can be paid.").format(
            amount=f"{currency} {format_amount(ceilings[currency], currency)}"
        )
        for currency in sorted({currency for _, currency in paid if currency in ceilings})
    ]
    if settings.RECIPIENT_COOLING_EXTRA_APPROVAL:
        texts.append(gettext("With one more approval the operation can be sent at once."))
    return [" ".join(texts)]


def _paid_by(operation_id: UUID, kind: AnyKind, payload: Payload) -> set[_Paid]:
    """Whom it pays of those who must be approved; nobody if its kind pays everybody."""
    if isinstance(payload, BatchPayload):
        if not is_allow_listed(payload.row_kind):
            return set()
        rows = BatchRow.objects.filter(batch=operation_id).order_by()
        return set(rows.values_list("recipient_key", "currency").distinct())
    if not is_allow_listed(kind.name):
        return set()
    debit = kind.debit(payload)
    return {(kind.recipient(payload).key, debit.currency if debit else "")}


def _check(paid: Collection[_Paid]) -> dict[str, RecipientVersion]:
    """The versions in effect of those who are paid."""
    try:
        versions = versions_in_effect({key for key, _ in paid})
    except AlteredRecipientError as exc:
        raise RecipientAlteredError from exc
    for key, currency in sorted(paid):
        version = versions.get(key)
        if version is None or version.state != RecipientState.APPROVED:
            raise RecipientNotApprovedError
        if version.currency and currency and version.currency != currency:
            raise RecipientCurrencyError(version.currency)
    return versions
