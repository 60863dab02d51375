"""Prepare an operation, and find its duplicates: same content pending, same recipient and amount within a
day, same operation with an unknown outcome.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import translation

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.core.leases import lock_until_commit
from backoffice.operations import policy
from backoffice.operations.approval import requirements
from backoffice.operations.descriptions import Subject
from backoffice.operations.errors import (
    DuplicatePaymentError,
    DuplicatePendingError,
    DuplicateUnknownError,
    NotPreparedTogetherError,
    OperationError,
    ReferenceUsedError,
    RetriedInBatchError,
    SubmissionReusedError,
)
from backoffice.operations.kinds.base import Debit, OperationKind, Payload
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.lifecycle.otp_secret import keep_until_decided
from backoffice.operations.lifecycle.transitions import OperationAction, audit_refusals, record_refusal
from backoffice.operations.models.batches import IS_WAITING_ROW, BatchRow
from backoffice.operations.models.operations import (
    Attempt,
    Operation,
    content_digest,
    content_key,
    new_reference,
)
from backoffice.operations.models.otp import TotpSecret
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.selectors import IS_OPEN, NEWEST_FIRST, retry_of_payment
from backoffice.operations.states import NOT_EXECUTED, OUTCOME_UNKNOWN, TO_SEND, Status
from backoffice.policies.document import stored_levels

DUPLICATE_WINDOW = timedelta(hours=24)
TOTALS_LOCK = "policy totals"
RECIPIENTS_LOCK = "recipients"
"""Held shared while one operation is prepared, and alone while a batch is."""


def duplicate_payments(recipient_key: str, debit: Debit | None) -> QuerySet[Operation]:
    """Operations that pay the same amount to the same recipient, the newest first.

    Counts all that are open, however old, and those sent within `DUPLICATE_WINDOW`; not those that were not
    executed.
    """
    if not recipient_key or debit is None:
        return Operation.objects.none()
    lately = Attempt.objects.filter(operation=OuterRef("pk"), started_at__gt=clock.now() - DUPLICATE_WINDOW)
    duplicates = Operation.objects.filter(
        IS_OPEN | Q(Exists(lately)),
        recipient_key=recipient_key,
        currency=debit.currency,
        amount=debit.amount,
    )
    return duplicates.exclude(status__in=NOT_EXECUTED).order_by("-prepared_at")


def batches_paying(recipient_key: str, debit: Debit | None) -> QuerySet[Operation]:
    """Open batches with a row for the same amount and recipient that is not an operation of its own yet."""
    if not recipient_key or debit is None:
        return Operation.objects.none()
    rows = BatchRow.objects.filter(
        IS_WAITING_ROW, recipient_key=recipient_key, currency=debit.currency, amount=debit.amount
    )
    return Operation.objects.filter(IS_OPEN, pk__in=rows.values("batch"))


def duplicates_with_unknown_outcome(kind: OperationKind[Any], payload: Payload) -> QuerySet[Operation]:
    """Duplicates of this content that were sent and whose outcome is unknown."""
    return Operation.objects.filter(_is_duplicate(kind, payload), status__in=OUTCOME_UNKNOWN).order_by(
        *NEWEST_FIRST
    )


def resolved_duplicate(kind: OperationKind[Any], payload: Payload) -> Operation | None:
    """The last duplicate that was sent, if two people resolved it as not executed."""
    by_people = Attempt.objects.filter(resolution__isnull=False).values("operation")
    duplicates = Operation.objects.filter(_is_duplicate(kind, payload))
    resolved = duplicates.filter(pk__in=by_people, status=Status.FAILED).order_by(*NEWEST_FIRST).first()
    if resolved is None:
        return None
    sent = Exists(Attempt.objects.filter(operation=OuterRef("pk")))
    return None if duplicates.filter(sent, prepared_at__gt=resolved.prepared_at).exists() else resolved


def _is_duplicate(kind: OperationKind[Any], payload: Payload) -> Q:
    """Operations with the same amount and recipient, or with the same content."""
    stake, key = kind.exposure(payload), kind.recipient(payload).key
    same = Q(content_key=content_key(kind.name, payload.identity()))
    if stake is not None and key:
        same |= Q(recipient_key=key, currency=stake.currency, amount=stake.amount)
    return same


def earlier_submission(user: User, submission: UUID, digest: str) -> Operation | None:
    """What this user prepared with this form and content; None for other content or another user."""
    operation = Operation.objects.filter(pk=submission, preparer=user).first()
    return operation if operation is not None and operation.digest == digest else None


@audit_refusals(OperationAction.PREPARE)
@transaction.atomic
def prepare_operation(
    operation_id: UUID,
    *,
    actor: User,
    kind: str,
    payload: Payload,
    prepared_from: UUID | None = None,
    otp_secret: TotpSecret | None = None,
) -> Operation:
    """Store a pending operation for others to approve. Nothing is sent.

    The id comes with the form, so a form sent twice finds the same operation. Raises PermissionMissingError,
    SubmissionReusedError if the id has other content, DuplicatePendingError if another operation with the
    same content is pending or approved, DuplicateUnknownError if a duplicate is being sent or its outcome is unknown,
    DuplicatePaymentError if the same was paid within a day and no reason is given, RetriedInBatchError if a later batch
    retries what it is prepared from, ReferenceUsedError if another operation has its reference at the provider, as
    `policy.check_proposal`, and PolicyRefusedError if an approval policy refuses it.
    A duplicate that was resolved as not executed is linked as `prepared_from`. `otp_secret` is the authenticator secret
    that the content has only a fingerprint of.
    """
    operation, entry = _store(
        operation_id,
        actor=actor,
        kind=kind,
        payload=payload,
        prepared_from=prepared_from,
        otp_secret=otp_secret,
    )
    if entry is not None:
        audit.record_all([entry])
    return operation


def _store(
    operation_id: UUID,
    *,
    actor: User,
    kind: str,
    payload: Payload,
    prepared_from: UUID | None = None,
    otp_secret: TotpSecret | None = None,
) -> tuple[Operation, audit.NewEntry | None]:
    """The stored operation and its entry for the audit log, which is recorded last; no entry if it was prepared before.

    Raises as `prepare_operation`.
    """
    policy.check_may_prepare(actor, kind)
    policy.check_proposal(actor, operation_id, kind, payload)
    digest = content_digest(operation_id, kind, payload.stored())
    resolved = _resolved_duplicate(KINDS[kind], payload, but=operation_id)
    _check_not_duplicate(operation_id, KINDS[kind], payload)
    # Under the lock of recipients, which a batch takes alone before it retries rows.
    if prepared_from is not None:
        check_not_retried(Operation.objects.get(pk=prepared_from))
    _check_reference_unused(operation_id, KINDS[kind], payload)
    source = prepared_from or (resolved.pk if resolved else None)
    # Without this lock, two concurrent operations would not see each other and both stay below a limit for totals.
    lock_until_commit(TOTALS_LOCK)
    subject = Subject(operation_id, KINDS[kind], payload, actor.pk, str(actor), clock.now())
    requirement = requirements.approval_requirement(subject)
    requirements.check_not_refused(requirement)
    with translation.override(
        settings.LANGUAGE_CODE
    ):  # what is stored is in one language, whoever prepares it
        operation = draft_operation(subject, actor, requirement, source)
    operation.make_seal()
    if not _insert_once(operation):
        return _existing_submission(operation_id, actor, digest), None
    if otp_secret is not None:
        keep_until_decided(operation, otp_secret)
    detail = {
        "digest": digest,
        "kind": kind,
        "rule": operation.rule,
        "policy_version": operation.policy_version,
        "levels": operation.levels,
    }
    return operation, audit.NewEntry(Action.OPERATION_PREPARED, actor, operation, detail)


def prepare_together(drafts: Mapping[UUID, Payload], *, actor: User, kind: str) -> list[Operation]:
    """Prepare one operation of this kind for each draft, or none. The keys are the ids, as in `prepare_operation`.

    Raises NotPreparedTogetherError for the first that is refused.
    """
    try:
        with transaction.atomic():
            stored = [_store_one_of_several(pk, actor, kind, payload) for pk, payload in drafts.items()]
            if new := [entry for _, entry in stored if entry is not None]:
                audit.record_all(new)
            return [operation for operation, _ in stored]
    except NotPreparedTogetherError as exc:
        record_refusal(exc.operation_id, OperationAction.PREPARE, actor, exc.reason)
        raise


def _store_one_of_several(
    operation_id: UUID, actor: User, kind: str, payload: Payload
) -> tuple[Operation, audit.NewEntry | None]:
    try:
        return _store(operation_id, actor=actor, kind=kind, payload=payload)
    except OperationError as exc:
        raise NotPreparedTogetherError(operation_id, exc) from exc


def _existing_submission(operation_id: UUID, actor: User, digest: str) -> Operation:
    existing = Operation.objects.get(pk=operation_id)
    if (existing.preparer_id, existing.digest) != (actor.pk, digest):
        raise SubmissionReusedError
    return existing


def _resolved_duplicate(kind: OperationKind[Any], payload: Payload, *, but: UUID) -> Operation | None:
    """The last duplicate that was resolved as not executed. Raises DuplicateUnknownError."""
    unknown = duplicates_with_unknown_outcome(kind, payload).exclude(pk=but).first()
    if unknown is not None:
        raise DuplicateUnknownError(unknown.reference, unknown.pk)
    return resolved_duplicate(kind, payload)


def _check_not_duplicate(operation_id: UUID, kind: OperationKind[Any], payload: Payload) -> None:
    """Raise DuplicatePaymentError if the same payment is open or was made within a day, and no reason is given."""
    recipient_key = kind.recipient(payload).key
    # Without these locks, two concurrent duplicates would not see each other and both be stored. A batch pays many
    # recipients, and takes the first lock alone.
    lock_until_commit(RECIPIENTS_LOCK, shared=True)
    lock_until_commit(f"recipient:{recipient_key}")
    stake = kind.exposure(payload)
    duplicates = duplicate_payments(recipient_key, stake).exclude(pk=operation_id)
    in_batches = batches_paying(recipient_key, stake)
    if not payload.duplicate_reason and (duplicates.exists() or in_batches.exists()):
        raise DuplicatePaymentError


def check_not_retried(original: Operation) -> None:
    """Raise RetriedInBatchError if a later batch retries the row that this operation pays, so that it is not copied."""
    retry = retry_of_payment(original)
    if retry is not None:
        raise RetriedInBatchError(retry.reference, retry.pk)


def _check_reference_unused(operation_id: UUID, kind: OperationKind[Any], payload: Payload) -> None:
    """Raise ReferenceUsedError if another operation of the kind has the same reference at the provider."""
    reference = kind.provider_reference(payload)
    if not reference:
        return
    # Without this lock, two concurrent operations would not see each other and both have it.
    lock_until_commit(f"reference:{kind.name}:{reference.casefold()}")
    others = Operation.objects.holding_reference(kind.name, reference).exclude(pk=operation_id)
    if (other := others.first()) is not None:
        raise ReferenceUsedError(other.reference, reference)


def draft_operation(
    subject: Subject,
    actor: User,
    requirement: requirements.ApprovalRequirement,
    prepared_from: UUID | None,
    *,
    reference: str = "",
) -> Operation:
    """The pending operation under this requirement, neither sealed nor stored yet."""
    operation_id, kind, payload, now = subject.operation_id, subject.kind, subject.payload, subject.at
    stake, recipient = kind.exposure(payload), kind.recipient(payload)
    stored = payload.stored()
    return Operation(
        id=operation_id,
        reference=reference or unused_references(kind.letter, 1)[0],
        kind=kind.name,
        payload=stored,
        digest=content_digest(operation_id, kind.name, stored),
        content_key=content_key(kind.name, payload.identity()),
        sentence=kind.sentence(payload),
        currency=stake.currency if stake else "",
        amount=stake.amount if stake else None,
        recipient=recipient.name,
        recipient_detail=recipient.detail,
        recipient_key=recipient.key or None,
        recipient_account=recipient.account or None,
        approvals_needed=requirement.approvals,
        rule=requirement.rule,
        policy_version=requirement.version,
        levels=stored_levels(requirement.levels),
        preparer=actor,
        prepared_from_id=prepared_from,
        prepared_at=now,
        expires_at=now + kind.lifetime,
    )


def _insert_once(operation: Operation) -> bool:
    """Insert the operation; False if its id exists already, also when a concurrent request inserts it."""
    try:
        with transaction.atomic():
            operation.save(force_insert=True)
    except IntegrityError:
        if Operation.objects.filter(pk=operation.pk).exists():
            return False
        duplicate = Operation.objects.filter(content_key=operation.content_key, status__in=TO_SEND).first()
        if duplicate is None:
            raise
        if duplicate.status == Status.SENDING:
            raise DuplicateUnknownError(duplicate.reference, duplicate.pk) from None
        is_same = _chosen(duplicate) == _chosen(operation)
        raise DuplicatePendingError(duplicate.reference, duplicate.pk, is_same_content=is_same) from None
    return True


def _chosen(operation: Operation) -> dict[str, Any]:
    """The stored content without what was only observed."""
    observed = KINDS[operation.kind].payload_type.OBSERVED
    return {name: value for name, value in operation.payload.items() if name not in observed}


def unused_references(letter: str, count: int) -> list[str]:
    """This many references that are not in use; the unique constraint decides in the end. Raises OperationError if too
    few are found.
    """
    found: set[str] = set()
    for _ in range(20):
        new = {new_reference(letter) for _ in range(count - len(found))}
        used = Operation.objects.filter(reference__in=new).values_list("reference", flat=True)
        found |= new - set(used)
        if len(found) == count:
            return list(found)
    raise OperationError(Refusal.NO_FREE_REFERENCE)
