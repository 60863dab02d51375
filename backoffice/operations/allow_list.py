"""Who may be paid, as the approval policies and the settings require (`requirements_for`).

Kinds with an allow-list pay only approved recipients of the register. Whatever the kind, a payment to an approved
recipient that was added or changed recently can be prepared and approved, but is sent only once cooling has ended.
Where that is permitted, it is sent earlier within a ceiling, or with one more approval.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, Max, OuterRef, Q
from django.db.models.functions import Now
from django.utils.translation import gettext

from backoffice.core import clock
from backoffice.core.leases import lock_until_commit
from backoffice.core.web.formatting import exact_time, format_amount
from backoffice.operations.errors import (
    PolicyAlteredError,
    RecipientAlteredError,
    RecipientCoolingError,
    RecipientCurrencyError,
    RecipientNetworkError,
    RecipientNotApprovedError,
    RecipientUsernameError,
)
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.batch import BatchPayload
from backoffice.operations.kinds.registry import AnyKind, read_content
from backoffice.operations.models.batches import BatchRow
from backoffice.operations.models.operations import Operation
from backoffice.operations.selectors import current_policy
from backoffice.operations.states import NOT_EXECUTED
from backoffice.policies.document import Ceiling, Cooling, RecipientRequirements
from backoffice.policies.models import AlteredPolicyError, PolicyInEffect, PolicyVersion
from backoffice.recipients.keys import USER_PREFIX
from backoffice.recipients.models import (
    AlteredRecipientError,
    RecipientState,
    RecipientType,
    RecipientVersion,
)
from backoffice.recipients.register import newest_versions, versions_in_effect
from backoffice.settings_values import MOST_COOLING_HOURS


class Paid(NamedTuple):
    """The key of a recipient, and how it is paid. The network is empty for all but addresses, the username, exactly as
    it is sent, for all but users.
    """

    key: str
    currency: str
    network: str
    username: str = ""


def paid_by(kind: AnyKind, payload: Payload) -> Paid:
    """The recipient of a payment; the key is empty if there is none."""
    network = str(getattr(payload, "network", "") or "")
    recipient = kind.recipient(payload)
    username = recipient.name if recipient.key.startswith(USER_PREFIX) else ""
    return Paid(recipient.key, kind.paid_currency(payload), network, username)


def demanded_by_deployment() -> RecipientRequirements:
    """What the settings require of recipients, whatever the approval policies say."""
    ceilings = settings.RECIPIENT_COOLING_CEILINGS.items()
    cooling = (
        Cooling(
            hours=settings.RECIPIENT_COOLING_HOURS,
            ceilings=tuple(Ceiling(currency=code, amount=amount) for code, amount in ceilings if amount),
            extra_approval=settings.RECIPIENT_COOLING_EXTRA_APPROVAL,
        )
        if settings.RECIPIENT_COOLING_HOURS
        else None
    )
    return RecipientRequirements(approved_only=tuple(settings.ALLOW_LIST), cooling=cooling)


def requirements_for(policy: PolicyInEffect, operation: Operation | None = None) -> RecipientRequirements:
    """What is required of the recipient of this operation, or of what is prepared now: the strictest of what the
    deployment demands, the policy in effect, and the version under which the operation was prepared.

    So a loosened policy does not apply to what waits, and a tightened one does. Raises PolicyAlteredError if versions
    are missing or altered.
    """
    required = demanded_by_deployment().stricter(policy.document.recipients)
    number = policy.number if operation is None else operation.policy_version
    if number is None or number == policy.number:
        return required
    return required.stricter(_required_by_versions({number})[number])


def _required_by_versions(numbers: Collection[int]) -> dict[int, RecipientRequirements]:
    """What these versions require. Raises PolicyAlteredError if one is missing or altered."""
    found = PolicyVersion.objects.in_bulk(numbers)
    if found.keys() != set(numbers):
        raise PolicyAlteredError
    try:
        return {number: version.read().recipients for number, version in found.items()}
    except AlteredPolicyError as exc:
        raise PolicyAlteredError from exc


def is_allow_listed(kind: str) -> bool:
    """Whether this kind, if it is prepared now, pays approved recipients only; also if the policies were altered."""
    try:
        return kind in requirements_for(current_policy()).approved_only
    except PolicyAlteredError:
        return True


def check_recipients(operation_id: UUID, kind: AnyKind, payload: Payload) -> None:
    """Raises RecipientNotApprovedError for a recipient that is not approved, if the kind pays approved ones only.

    RecipientCurrencyError for one that is paid in another currency, RecipientNetworkError for an address on another
    network, RecipientUsernameError for another spelling of a username, RecipientAlteredError for an altered register,
    PolicyAlteredError.
    """
    _check_where_listed(operation_id, kind, payload, requirements_for(current_policy()))


def check_recipients_of(operation: Operation) -> None:
    """The same of a stored operation."""
    kind, payload = read_content(operation)
    _check_where_listed(operation.pk, kind, payload, requirements_for(current_policy(), operation))


def check_payable(operation: Operation) -> None:
    """The same of a stored operation that is about to be sent, and RecipientCoolingError before cooling has ended.

    Where one more approval may take the place of cooling, `approval.requirements.required_levels` requires it instead.
    """
    required = requirements_for(current_policy(), operation)
    kind, payload = read_content(operation)
    _check_where_listed(operation.pk, kind, payload, required)
    hold = cooling_hold(operation, required)
    if hold is not None and not hold.extra_approval:
        raise RecipientCoolingError(hold.until)


class CoolingHold(NamedTuple):
    """When the cooling that holds a payment ends, and whether one more approval may take its place."""

    until: datetime
    extra_approval: bool


def cooling_hold(operation: Operation, required: RecipientRequirements) -> CoolingHold | None:
    """The hold that cooling puts on this operation; None if it puts none.

    There is none while the amount and all that was sent to the recipient since cooling began stay within the ceiling.
    Raises RecipientAlteredError and ContentUnreadableError.
    """
    cooling = required.cooling
    if cooling is None:
        return None
    key = paid_by(*read_content(operation)).key  # empty for a batch, whose operations have recipients
    try:
        found = versions_in_effect({key} - {""})
    except AlteredRecipientError as exc:
        raise RecipientAlteredError from exc
    versions = [version for version in found.values() if is_cooling(version, cooling)]
    sent = _sent_to(versions) if cooling.ceilings else []
    held = (version for version in versions if not _is_within_ceiling(operation, version, cooling, sent))
    return next((CoolingHold(cooling_end(one, cooling), cooling.extra_approval) for one in held), None)


def lock_ceiling(operation: Operation) -> None:
    """Let no other payment to its recipient be claimed before this transaction ends.

    Without this lock, two claims at the same moment would not see each other and both stay below the ceiling.
    """
    if operation.recipient_key:
        lock_until_commit(f"cooling:{operation.recipient_key}")


def demands_extra_approval() -> bool | None:
    """Whether one more approval may take the place of cooling, by the settings; None if the policies say so."""
    demanded = demanded_by_deployment().cooling
    return None if demanded is None else demanded.extra_approval


def may_need_one_more() -> Q:
    """The payments to recipients that may be cooling, if one more approval may take the place of cooling.

    `need_one_more` decides for each of them. Depends on `demands_extra_approval` alone.
    """
    demanded = demands_extra_approval()
    if demanded is False:
        return Q(pk__in=[])
    longest = timedelta(hours=MOST_COOLING_HOURS)
    approved = newest_versions().filter(state=RecipientState.APPROVED)
    is_new = Q(Exists(approved.filter(key=OuterRef("recipient_key"), details_since__gt=Now() - longest)))
    if demanded:
        return is_new
    permits = PolicyVersion.objects.filter(document__recipients__cooling__extra_approval=True)
    return is_new & Q(Exists(permits))


def need_one_more(operations: Collection[Operation]) -> set[UUID]:
    """Those of these payments that need one more approval in place of cooling, for lists. Four queries at most."""
    payments = [one for one in operations if one.recipient_key]
    if not payments:
        return set()
    try:
        coolings = _coolings_of(payments)
    except PolicyAlteredError:  # then nothing is sent
        return set()
    keys = {one.recipient_key for one in payments if one.pk in coolings}
    versions = {one.key: one for one in newest_versions().filter(key__in=keys)} if keys else {}
    now = clock.recent()
    cooling = [
        (one, version, of_it)
        for one in payments
        if (of_it := coolings.get(one.pk)) and (version := versions.get(one.recipient_key or ""))
        if is_cooling(version, of_it, now)
    ]
    sent = _sent_to([version for _, version, of_it in cooling if of_it.ceilings])
    return {one.pk for one, version, of_it in cooling if not _is_within_ceiling(one, version, of_it, sent)}


def _coolings_of(operations: Collection[Operation]) -> dict[UUID, Cooling]:
    """The cooling of each of these operations in whose place one more approval may be given."""
    policy = current_policy()
    in_effect = requirements_for(policy)
    numbers = {number for one in operations if (number := one.policy_version) and number != policy.number}
    earlier = _required_by_versions(numbers) if numbers else {}
    required = {
        one.pk: in_effect.stricter(earlier.get(one.policy_version or 0, RecipientRequirements()))
        for one in operations
    }
    return {pk: each.cooling for pk, each in required.items() if each.cooling and each.cooling.extra_approval}


@dataclass(frozen=True)
class _Sent:
    """A payment that was sent, or is under way, and when its last attempt began."""

    operation: UUID
    key: str
    currency: str
    amount: Decimal
    at: datetime


def _sent_to(versions: Collection[RecipientVersion]) -> list[_Sent]:
    """What was sent to these recipients since the first of them was changed."""
    if not versions:
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


def _is_within_ceiling(
    operation: Operation, version: RecipientVersion, cooling: Cooling, sent: Collection[_Sent]
) -> bool:
    ceiling = cooling.ceiling(operation.currency)
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
    RecipientUsernameError,
    RecipientAlteredError,
)


def problem_of_row(kind: str, paid: Paid, required: RecipientRequirements) -> str:
    """Why the row of a file would be refused; empty if it would not."""
    if kind not in required.approved_only:
        return ""
    try:
        _check({paid})
    except _REFUSALS as exc:
        return str(exc)
    return ""


def cooling_end(version: RecipientVersion, cooling: Cooling) -> datetime:
    """When the recipient can be paid."""
    return version.details_since + timedelta(hours=cooling.hours)


def is_cooling(version: RecipientVersion, cooling: Cooling, now: datetime | None = None) -> bool:
    """Whether the recipient is approved, and was added or changed too recently to be paid like others."""
    return version.state == RecipientState.APPROVED and cooling_end(version, cooling) > (now or clock.now())


def cools_until(version: RecipientVersion) -> datetime | None:
    """Until when a recipient cools for payments that are prepared now; None if it does not.

    Also if the policies were altered: then nothing is paid, and every refusal says so.
    """
    with suppress(PolicyAlteredError):
        cooling = requirements_for(current_policy()).cooling
        return cooling_end(version, cooling) if cooling and is_cooling(version, cooling) else None
    return None


def recipient_warnings(
    operation_id: UUID, kind: AnyKind, payload: Payload, required: RecipientRequirements
) -> list[str]:
    """The cautions that a recipient cannot be paid yet, and that an address is approved on other networks only."""
    cooling = required.cooling
    if isinstance(payload, BatchPayload) and cooling is None:
        return []
    paid = _paid_by(operation_id, kind, payload)
    if cooling is None and not any(one.network for one in paid):
        return []
    try:
        versions = versions_in_effect({one.key for one in paid} - {""})
    except AlteredRecipientError:
        return []
    of_networks = [] if isinstance(payload, BatchPayload) else _network_warnings(paid, versions)
    of_cooling = _cooling_warning(paid, versions.values(), cooling) if cooling else []
    return [*of_cooling, *of_networks]


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


def _cooling_warning(
    paid: Collection[Paid], versions: Collection[RecipientVersion], cooling: Cooling
) -> list[str]:
    """Until when a recipient cannot be paid, and what can be before; empty if all can, or must not at all."""
    ends = (cooling_end(version, cooling) for version in versions if is_cooling(version, cooling))
    latest = max(ends, default=None)
    if latest is None:
        return []
    texts = [
        gettext("The recipient was added or changed recently, and can be paid from {time}.").format(
            time=exact_time(latest)
        )
    ]
    currencies = {one.currency for one in paid}
    texts += [
        gettext("Before that, {amount} in total can be paid.").format(
            amount=f"{one.currency} {format_amount(one.amount, one.currency)}"
        )
        for one in cooling.ceilings
        if one.currency in currencies
    ]
    if cooling.extra_approval:
        texts.append(gettext("With one more approval the operation can be sent at once."))
    return [" ".join(texts)]


def _check_where_listed(
    operation_id: UUID, kind: AnyKind, payload: Payload, required: RecipientRequirements
) -> None:
    if _paying_kind(kind, payload) in required.approved_only:
        _check(_paid_by(operation_id, kind, payload))


def _paying_kind(kind: AnyKind, payload: Payload) -> str:
    """The kind of the payments that this operation makes: of a batch, that of its rows."""
    return payload.row_kind if isinstance(payload, BatchPayload) else kind.name


def _paid_by(operation_id: UUID, kind: AnyKind, payload: Payload) -> set[Paid]:
    """Everybody whom it pays: of a batch, each row."""
    if isinstance(payload, BatchPayload):
        rows = BatchRow.objects.filter(batch=operation_id).order_by()
        columns = ("recipient_key", "currency", "payload__network", "payload__receiver_username")
        found = rows.values_list(*columns).distinct()
        return {Paid(key, currency, network or "", user or "") for key, currency, network, user in found}
    return {paid_by(kind, payload)}


def _check(paid: Collection[Paid]) -> None:
    try:
        versions = versions_in_effect({one.key for one in paid})
    except AlteredRecipientError as exc:
        raise RecipientAlteredError from exc
    for key, currency, network, username in sorted(paid):
        version = versions.get(key)
        if version is None or version.state != RecipientState.APPROVED:
            raise RecipientNotApprovedError
        if version.currency and currency and version.currency != currency:
            raise RecipientCurrencyError(version.currency)
        if not version.is_payable_on(network):
            raise RecipientNetworkError(version.network)
        # Compared exactly: the key ignores case, so that look-alikes share one, but the provider may not ignore it.
        if version.type == RecipientType.USER and version.account != username:
            raise RecipientUsernameError(version.account)
