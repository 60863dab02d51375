"""Who may be paid: by the kinds of `COUNTERSIGN_ALLOW_LIST`, approved recipients of the register only.

By every kind, a payment to an approved recipient that was added or changed recently can be prepared and approved. It is
sent once cooling has ended, or before within a ceiling, or with one more approval, as the settings permit.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple
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
    RecipientNetworkError,
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


class Paid(NamedTuple):
    """The key of a recipient, and how it is paid. The network is empty for all but addresses."""

    key: str
    currency: str
    network: str


def paid_by(kind: AnyKind, payload: Payload) -> Paid:
    """The recipient of a payment; the key is empty if there is none."""
    debit = kind.debit(payload)
    network = str(getattr(payload, "network", "") or "")
    return Paid(kind.recipient(payload).key, debit.currency if debit else "", network)


def is_allow_listed(kind: str) -> bool:
    """Whether this kind pays approved recipients only."""
    return kind in settings.ALLOW_LIST


def check_recipients(operation_id: UUID, kind: AnyKind, payload: Payload) -> None:
    """Raises RecipientNotApprovedError for a recipient that two people did not agree on, where they have to be.

    RecipientCurrencyError for one that is paid in another currency, RecipientNetworkError for an address on another
    network, RecipientAlteredError for an altered register.
    """
    if is_allow_listed(_paying_kind(kind, payload)):
        _check(_paid_by(operation_id, kind, payload))


def check_payable(operation: Operation) -> None:
    """The same of a stored operation that is about to be paid, and RecipientCoolingError before cooling has ended.

    Where one more approval may take the place of cooling, `approval.requirements.required_levels` requires it instead.
    """
    kind, payload = read_content(operation)
    check_recipients(operation.pk, kind, payload)
    until = held_until(operation)
    if until is not None and not settings.RECIPIENT_COOLING_EXTRA_APPROVAL:
        raise RecipientCoolingError(until)


def held_until(operation: Operation) -> datetime | None:
    """When cooling ends for the recipient of this operation, if it holds it; None if nothing does.

    It does not hold what stays, with all that was sent to the recipient since cooling began, within the ceiling.
    """
    if not settings.RECIPIENT_COOLING_HOURS:
        return None
    key = paid_by(*read_content(operation)).key  # empty for a batch, whose operations have recipients
    try:
        found = versions_in_effect({key} - {""})
    except AlteredRecipientError as exc:
        raise RecipientAlteredError from exc
    cooling = [version for version in found.values() if is_cooling(version)]
    sent = _sent_to(cooling)
    held = (version for version in cooling if not _is_within_ceiling(operation, version, sent))
    return next((cooling_until(version) for version in held), None)


def lock_ceiling(operation: Operation) -> None:
    """Let no other payment to its recipient be claimed before this transaction ends.

    Without this lock, two claims at the same moment would not see each other and both stay below the ceiling.
    """
    if settings.RECIPIENT_COOLING_HOURS and operation.recipient_key:
        lock_until_commit(f"cooling:{operation.recipient_key}")


def may_need_one_more() -> Q:
    """The payments to recipients that are cooling, if one more approval may take the place of the time."""
    if not settings.RECIPIENT_COOLING_HOURS or not settings.RECIPIENT_COOLING_EXTRA_APPROVAL:
        return Q(pk__in=[])
    since = clock.recent() - timedelta(hours=settings.RECIPIENT_COOLING_HOURS)
    approved = newest_versions().filter(state=RecipientState.APPROVED)
    return Q(Exists(approved.filter(key=OuterRef("recipient_key"), details_since__gt=since)))


def need_one_more(operations: Collection[Operation]) -> set[UUID]:
    """Those of these payments that need one more approval in place of cooling, for lists. Two queries at most."""
    if not settings.RECIPIENT_COOLING_HOURS or not settings.RECIPIENT_COOLING_EXTRA_APPROVAL:
        return set()
    payments = [one for one in operations if one.recipient_key]
    if not payments:
        return set()
    versions = newest_versions().filter(key__in={one.recipient_key for one in payments})
    cooling = {one.key: one for one in versions if is_cooling(one, clock.recent())}
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


_REFUSALS = (
    RecipientNotApprovedError,
    RecipientCurrencyError,
    RecipientNetworkError,
    RecipientAlteredError,
)


def problem_of_row(kind: str, paid: Paid) -> str:
    """Why the row of a file would be refused; empty if it would not."""
    if not is_allow_listed(kind):
        return ""
    try:
        _check({paid})
    except _REFUSALS as exc:
        return str(exc)
    return ""


def cooling_until(version: RecipientVersion) -> datetime:
    """When the recipient can be paid."""
    return version.details_since + timedelta(hours=settings.RECIPIENT_COOLING_HOURS)


def is_cooling(version: RecipientVersion, now: datetime | None = None) -> bool:
    """Whether the recipient is approved, and was added or changed too recently to be paid like others."""
    return version.state == RecipientState.APPROVED and cooling_until(version) > (now or clock.now())


def recipient_warnings(operation_id: UUID, kind: AnyKind, payload: Payload) -> list[str]:
    """The cautions that a recipient cannot be paid yet, and that an address is approved on other networks only."""
    if isinstance(payload, BatchPayload) and not settings.RECIPIENT_COOLING_HOURS:
        return []
    paid = _paid_by(operation_id, kind, payload)
    if not settings.RECIPIENT_COOLING_HOURS and not any(one.network for one in paid):
        return []
    try:
        versions = versions_in_effect({one.key for one in paid} - {""})
    except AlteredRecipientError:
        return []
    of_networks = [] if isinstance(payload, BatchPayload) else _network_warnings(paid, versions)
    return [*_cooling_warning(paid, versions.values()), *of_networks]


def network_warning(paid: Paid) -> str:
    """The caution that an approved address is paid on a network that it is not approved for; empty if it is not."""
    if not paid.network:
        return ""
    try:
        return "".join(_network_warnings({paid}, versions_in_effect({paid.key})))
    except AlteredRecipientError:
        return ""


def _network_warnings(paid: Collection[Paid], versions: Mapping[str, RecipientVersion]) -> list[str]:
    return [
        gettext(
            "This address is approved on {approved} only, and this payment is on {network}. If the recipient cannot "
            "use {network}, the money is lost."
        ).format(approved=version.network, network=one.network)
        for one in sorted(paid)
        if (version := versions.get(one.key)) is not None
        and version.state == RecipientState.APPROVED
        and not version.is_payable_on(one.network)
    ]


def _cooling_warning(paid: Collection[Paid], versions: Collection[RecipientVersion]) -> list[str]:
    """Until when a recipient cannot be paid, and what can be before; empty if all can, or must not at all."""
    latest = max((cooling_until(version) for version in versions if is_cooling(version)), default=None)
    if latest is None:
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
        for currency in sorted({one.currency for one in paid if one.currency in ceilings})
    ]
    if settings.RECIPIENT_COOLING_EXTRA_APPROVAL:
        texts.append(gettext("With one more approval the operation can be sent at once."))
    return [" ".join(texts)]


def _paying_kind(kind: AnyKind, payload: Payload) -> str:
    """The kind of the payments that this operation makes: of a batch, that of its rows."""
    return payload.row_kind if isinstance(payload, BatchPayload) else kind.name


def _paid_by(operation_id: UUID, kind: AnyKind, payload: Payload) -> set[Paid]:
    """Everybody whom it pays: of a batch, each row."""
    if isinstance(payload, BatchPayload):
        rows = BatchRow.objects.filter(batch=operation_id).order_by()
        found = rows.values_list("recipient_key", "currency", "payload__network").distinct()
        return {Paid(key, currency, network or "") for key, currency, network in found}
    return {paid_by(kind, payload)}


def _check(paid: Collection[Paid]) -> None:
    try:
        versions = versions_in_effect({one.key for one in paid})
    except AlteredRecipientError as exc:
        raise RecipientAlteredError from exc
    for key, currency, network in sorted(paid):
        version = versions.get(key)
        if version is None or version.state != RecipientState.APPROVED:
            raise RecipientNotApprovedError
        if version.currency and currency and version.currency != currency:
            raise RecipientCurrencyError(version.currency)
        if not version.is_payable_on(network):
            raise RecipientNetworkError(version.network)
