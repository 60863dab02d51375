"""Releases: the order to send an approved operation, with its one-time code, until a worker claims it.

A release is created, expires or is withdrawn here; `delivery.send` consumes it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TypeAlias
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Coalesce
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.canonical import storable_text
from backoffice.core import background, clock, encryption, fault_points
from backoffice.core.gateway import OtpMode, otp_mode
from backoffice.core.leases import is_held
from backoffice.operations import policy, seals
from backoffice.operations.delivery import balance_queue
from backoffice.operations.delivery import otp as one_time_codes
from backoffice.operations.delivery.expected_wait import release_lifetime
from backoffice.operations.errors import (
    AlreadyReleasedError,
    AlteredRecordError,
    HolderChangedError,
    HolderReasonMissingError,
    LookAlikeError,
    LookAlikeReasonMissingError,
    OperationError,
    OtpMissingError,
    PaymentsPausedError,
    SecondFactorStaleError,
)
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.lifecycle import incidents
from backoffice.operations.lifecycle.transitions import OperationAction, audit_refusals, record_refusal
from backoffice.operations.models.holds import LookAlike
from backoffice.operations.models.monitoring import is_paused
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import Blocker, IncidentKind, RecordFault
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Outcome, Status

SEND_TASK = "operations.send"
MOST_CODES = 3  # managed codes that are tried one after the other


@dataclass(frozen=True)
class AnotherPayment:
    """A person's declaration that similar transactions at the provider are not this operation."""

    transaction_ids: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class ConfirmedHolder:
    """A person's confirmation that an account is right although the bank names another holder than was approved."""

    names: tuple[str, ...]
    reason: str


Statement: TypeAlias = AnotherPayment | ConfirmedHolder
"""What the person who releases again states about what stopped the release before."""


@dataclass(frozen=True)
class OrderTerms:
    """What a sealed order of several releases allows each of them: how long it may wait to be sent, and how old the
    second factor of the order may be when the release is made.
    """

    lifetime: timedelta
    second_factor_within: timedelta


@audit_refusals(OperationAction.RELEASE)
@transaction.atomic
def release_operation(
    operation_id: UUID,
    *,
    actor: User,
    digest: str,
    second_factor_at: datetime | None,
    otp: SecretStr | None = None,
    statement: Statement | None = None,
    terms: OrderTerms | None = None,
) -> Operation:
    """Release an approved operation; a worker sends it when its turn at the balance comes.

    If an earlier release was stopped by look-alikes, `statement` has to declare that each of them is a
    different payment; if the bank named another holder, it has to confirm the account. Never both at once, since a
    release is stopped by one of them, and the next one settles it.

    The provider's one-time code is stored encrypted and bound to this content while it is valid; a
    release without a code lasts at least `RELEASE_LIFETIME_MINUTES`, longer behind a long queue. `terms` are those of
    an order of several releases. Raises PermissionMissingError, AccountRestrictedError, SelfApprovalError,
    WrongStatusError, ExpiredError, ContentChangedError, SecondFactorStaleError, ApprovalsMissingError,
    BatchPausedError, BatchCancelledError, PaymentsPausedError, OtpMissingError, OtpUsedError, AlreadyReleasedError,
    LookAlikeError, LookAlikeReasonMissingError, HolderChangedError, HolderReasonMissingError, OperationError for what
    may be paid already, as `allow_list.check_payable`, and AlteredRecordError, with an incident.
    """
    return add_release(operation_id, actor, digest, second_factor_at, otp, statement, terms)


@transaction.atomic
def expire_release(operation_id: UUID) -> bool:
    """Delete a release past its expiry; the operation stays approved. False if there was none."""
    return _expire_if_late(Operation.objects.get_locked(operation_id))


@transaction.atomic
def withdraw_release(release: Release, reason: OperationError) -> bool:
    """Delete exactly this release, audit why it must not be sent, and enqueue the next of its balance.

    Rows that were not made with Countersign raise an incident, whatever else is wrong with them. False if the
    release was already deleted or replaced.
    """
    operation = Operation.objects.get_locked(release.operation_id)
    stored = Release.objects.filter(pk=release.pk, released_at=release.released_at).first()
    if stored is None:
        if isinstance(reason, AlteredRecordError):
            incidents.raise_altered(operation, reason)
        return False
    found = _alteration(operation, stored) or reason
    record_refusal(operation.pk, OperationAction.SEND, None, found, notified=[stored.released_by_id])
    stored.delete()
    enqueue_next(release.balance)
    return True


@transaction.atomic
def delete_unchecked_release(pk: UUID, reason: OperationError, *, error: str) -> None:
    """Delete a release that cannot be withdrawn, with the same audit entry and the exception that kept it from being
    checked.

    Reads only plain columns, so that it succeeds where the operation or its content cannot be read.
    """
    waiting = Release.objects.filter(pk=pk)
    notified = list(waiting.values_list("released_by", flat=True))
    deleted, _ = waiting.delete()
    if not deleted:
        return
    operation = Operation.objects.only("reference", "sentence", "status").filter(pk=pk).first()
    audit.record(
        Action.OPERATION_ACTION_REFUSED,
        actor=None,
        target=operation or str(pk),
        attempted=OperationAction.SEND,
        refusal=reason.refusal,
        status=operation.status if operation else "",
        notified=notified,
        not_checked=error,
    )


@transaction.atomic
def stop_if_altered(operation_id: UUID) -> bool:
    """Raise an incident and withdraw the release if the operation does not pass `seals.check_record`; True if so."""
    operation = Operation.objects.get_locked(operation_id)
    release = Release.objects.filter(operation=operation).first()
    altered = _alteration(operation, release)
    if altered and release:
        withdraw_release(release, altered)
    elif altered:
        incidents.raise_altered(operation, altered)
    return altered is not None


def _alteration(operation: Operation, release: Release | None) -> AlteredRecordError | None:
    try:
        seals.check_record(operation, list(operation.approvals.all()), release)
    except AlteredRecordError as exc:
        return exc
    return None


def record_blocker(operation_id: UUID, blocker: Blocker | None, **parameters: str) -> None:
    """Record what blocks this release and since when, for the pages; None once nothing blocks it.

    The parameters are stored and shown, so they must hold no secret.
    """
    waiting = Release.objects.filter(pk=operation_id)
    if blocker is None:
        blocked = waiting.exclude(blocker=None)
        blocked.update(blocker=None, blocker_parameters={}, blocked_since=None)
        return
    since = Coalesce("blocked_since", clock.now())
    texts = {name: storable_text(text)[:250] for name, text in parameters.items()}
    waiting.update(blocker=blocker, blocker_parameters=texts, blocked_since=since)


def enqueue_next(balance: str | None) -> None:
    """Enqueue the sending of the release at the head of this balance's queue, after commit.

    No message is needed while a process sends that queue.
    """
    if balance is None or _is_queue_being_sent(balance):
        return
    head = balance_queue.queue_head(balance, clock.now())
    if head:
        background.enqueue_on_commit(SEND_TASK, head)


def _is_queue_being_sent(balance: str) -> bool:
    return is_held(balance_queue.sending_lease(balance))


def add_release(
    operation_id: UUID,
    actor: User,
    digest: str,
    second_factor_at: datetime | None,
    otp: SecretStr | None,
    statement: Statement | None = None,
    terms: OrderTerms | None = None,
) -> Operation:
    """Release inside the caller's transaction. Raises as `release_operation`."""
    operation = Operation.objects.get_locked(operation_id)
    policy.check_may_release(
        actor,
        operation,
        digest=digest,
        second_factor_at=second_factor_at,
        within=terms.second_factor_within if terms else None,
    )
    _expire_if_late(operation)
    if is_paused():
        raise PaymentsPausedError
    if Release.objects.filter(operation=operation).exists():
        raise AlreadyReleasedError
    kind, payload = read_content(operation)
    if kind.asks_for_otp and not (otp and otp.get_secret_value().strip()):
        raise OtpMissingError
    _declare_look_alikes(
        operation, actor, second_factor_at, statement if isinstance(statement, AnotherPayment) else None
    )
    _confirm_holder(
        operation, actor, second_factor_at, statement if isinstance(statement, ConfirmedHolder) else None
    )
    declared, holders = _statements(operation)
    debit, now = kind.debit(payload), clock.now()
    release = Release(
        operation=operation,
        released_by=actor,
        released_at=now,
        expires_at=_expiry(operation, now, terms),
        balance=debit.currency if debit else None,
        look_alikes=list(declared),
        holder_names=list(holders) or None,
        attempt_number=operation.attempts.count() + 1,
    )
    code = otp.get_secret_value().strip() if otp is not None and kind.asks_for_otp else None
    _add_code(release, code)
    release.make_seal()
    release.save(force_insert=True)
    detail = {"other_payments": declared} if declared else {}
    detail |= {"confirmed_holders": holders} if holders else {}
    audit.record(Action.OPERATION_RELEASED, actor=actor, target=operation, digest=digest, **detail)
    # Again: audit entries follow one another, so a pause that was recorded before this one is seen now.
    if is_paused():
        raise PaymentsPausedError
    _use_up(code, release)
    transaction.on_commit(lambda: fault_points.reach("release.committed"))
    if release.balance is None or not _is_queue_being_sent(release.balance):
        background.enqueue_on_commit(SEND_TASK, operation_id)
    return operation


def _expiry(operation: Operation, now: datetime, terms: OrderTerms | None = None) -> datetime:
    """When a release without a code expires: after the usual time, or later behind a long queue, but then not later
    than its operation.
    """
    lifetime = terms.lifetime if terms else release_lifetime({(operation.currency, operation.kind): 1})
    usual = timedelta(minutes=settings.RELEASE_LIFETIME_MINUTES)
    return now + min(lifetime, max(usual, operation.expires_at - now))


def _add_code(release: Release, code: str | None) -> None:
    """Keep the code, if one was entered, encrypted and as long as it is valid."""
    if code is None:
        return
    release.expires_at = one_time_codes.valid_until(release.released_at)
    release.encrypted_otp = encryption.encrypt(code, bound_to=release.bound_to)


def _use_up(code: str | None, release: Release) -> None:
    """Record that the entered code is used. Raises OtpUsedError.

    Call it after the audit entry, as an approval with a release does: both locks are then always taken in one order.
    """
    if code is not None:
        one_time_codes.remember_entered(code, release.operation, release.expires_at)


def renew_release(operation: Operation, attempt: Attempt) -> None:
    """Release an operation again whose managed code the provider refused, in the transaction that records it.

    A refused code proves that nothing was executed. After `MOST_CODES` in a row it stays approved, with an incident.
    """
    releaser = attempt.released_by
    if otp_mode() != OtpMode.MANAGED or operation.status != Status.APPROVED or releaser is None:
        return
    refused = _codes_refused_in_a_row(operation)
    if refused % MOST_CODES == 0:
        evidence = {"attempt": attempt.number, "responses": attempt.responses}
        incidents.raise_incident(operation, kind=IncidentKind.MANAGED_CODES_REFUSED, evidence=evidence)
        return
    try:
        declared, holders = _statements(operation)
    except AlteredRecordError as exc:
        incidents.raise_altered(operation, exc)
        return
    now = clock.now()
    release = Release(
        operation=operation,
        released_by=releaser,
        released_at=now,
        expires_at=_expiry(operation, now),
        balance=attempt.balance,
        look_alikes=list(declared),
        holder_names=list(holders) or None,
        attempt_number=operation.attempts.count() + 1,
    )
    release.make_seal()
    release.save(force_insert=True)
    audit.record(
        Action.OPERATION_RELEASE_RENEWED,
        actor=None,
        target=operation,
        digest=operation.digest,
        released_by=str(releaser),
    )
    background.enqueue_on_commit(SEND_TASK, operation.pk)


def _statements(operation: Operation) -> tuple[dict[str, str], dict[str, str]]:
    """What people stated: the reasons by declared transaction, and by confirmed name of the holder.

    Raises AlteredRecordError for a statement that nobody made with Countersign.
    """
    look_alikes = list(operation.look_alikes.filter(declared_at__isnull=False))
    changes = list(operation.holder_changes.filter(confirmed_at__isnull=False))
    if any(one.is_altered for one in (*look_alikes, *changes)):
        raise AlteredRecordError(Refusal.SEAL_INVALID, [RecordFault.HOLD_SEAL])
    return {one.transaction_id: one.reason for one in look_alikes}, {one.name: one.reason for one in changes}


def _codes_refused_in_a_row(operation: Operation) -> int:
    outcomes = operation.attempts.order_by("-number").values_list("outcome", flat=True)
    return sum(1 for _ in takewhile(lambda outcome: outcome == Outcome.OTP_REJECTED, outcomes))


def _declare_look_alikes(
    operation: Operation,
    actor: User,
    second_factor_at: datetime | None,
    another_payment: AnotherPayment | None,
) -> None:
    """Record why each look-alike found is another payment.

    Exactly those that the person saw are declared, with a second factor confirmed after they were found.
    """
    found = list(operation.look_alikes.filter(declared_at__isnull=True))
    found_at = {one.transaction_id: one.found_at for one in found}
    if not found_at:
        return
    if another_payment is None or set(another_payment.transaction_ids) != set(found_at):
        raise LookAlikeError(found_at)
    if not another_payment.reason.strip():
        raise LookAlikeReasonMissingError
    if second_factor_at is None or second_factor_at < max(found_at.values()):
        raise SecondFactorStaleError
    for one in found:
        one.declared_by, one.declared_at, one.reason = actor, clock.now(), another_payment.reason.strip()
        one.make_seal()
    fields = ["declared_by", "declared_at", "reason", "seal"]
    LookAlike.objects.bulk_update(found, fields, batch_size=500)


def _confirm_holder(
    operation: Operation,
    actor: User,
    second_factor_at: datetime | None,
    confirmed_holder: ConfirmedHolder | None,
) -> None:
    """Record why the account is right although the bank names another holder.

    Exactly those names are confirmed that the person saw, with a second factor confirmed after they were found.
    """
    changes = list(operation.holder_changes.filter(confirmed_at__isnull=True))
    if not changes:
        return
    if confirmed_holder is None or set(confirmed_holder.names) != {one.name for one in changes}:
        raise HolderChangedError(changes[-1].approved_name, changes[-1].name)
    if not confirmed_holder.reason.strip():
        raise HolderReasonMissingError
    if second_factor_at is None or second_factor_at < max(one.found_at for one in changes):
        raise SecondFactorStaleError
    for one in changes:
        one.confirmed_by, one.confirmed_at, one.reason = actor, clock.now(), confirmed_holder.reason.strip()
        one.make_seal()
        one.save(update_fields=["confirmed_by", "confirmed_at", "reason", "seal"])


def _expire_if_late(operation: Operation) -> bool:
    expired = Release.objects.filter(operation=operation, expires_at__lte=clock.now()).first()
    if expired is None:
        return False
    expired.delete()
    notified = [expired.released_by_id]
    audit.record(Action.OPERATION_RELEASE_EXPIRED, actor=None, target=operation, notified=notified)
    return True
