"""Put versions of recipients into effect, one or those of a file, in the transaction of the last approval."""

import uuid
from datetime import datetime

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.core.leases import lock_until_commit
from backoffice.operations.kinds.recipient import RecipientChange, RecipientPayload, check_applicable
from backoffice.operations.kinds.recipient_import import (
    RecipientImportPayload,
    check_all_applicable,
    imported_rows,
)
from backoffice.operations.models.operations import Operation
from backoffice.recipients.models import RecipientState, RecipientVersion
from backoffice.recipients.register import version_in_effect, versions_in_effect

_REGISTER_LOCK = "register of recipients"
_AT_ONCE = 500
_ACTIONS = {
    RecipientChange.ADD: Action.RECIPIENT_ADDED,
    RecipientChange.CHANGE: Action.RECIPIENT_CHANGED,
    RecipientChange.RETIRE: Action.RECIPIENT_RETIRED,
}


def lock_recipient(key: str) -> None:
    """Let no other transaction change this recipient, and no import add recipients, before this one ends."""
    lock_until_commit(_REGISTER_LOCK, shared=True)
    lock_until_commit(f"registered recipient:{key}")


def lock_register() -> None:
    """Let no other transaction change the register before this one ends."""
    lock_until_commit(_REGISTER_LOCK)


def apply_recipient(operation: Operation, payload: RecipientPayload, actor: User) -> None:
    """Make this the newest version of the recipient. The caller holds `lock_recipient`.

    Raises OperationError if the register has changed since it was prepared.
    """
    check_applicable(payload)
    version = _next_version(operation, payload, version_in_effect(payload.key), actor, clock.now())
    RecipientVersion.objects.filter(key=payload.key, is_newest=True).update(is_newest=False)
    version.save(force_insert=True)
    audit.record(
        _ACTIONS[payload.change],
        actor=actor,
        target=version,
        operation=operation.reference,
        version=version.number,
    )


def apply_import(operation: Operation, payload: RecipientImportPayload, actor: User) -> None:
    """Add all recipients of the file, in the transaction of the last approval. The caller holds `lock_register`.

    Raises OperationError if the register has changed since the file was checked: then none is added.
    """
    added = [row for _, row in imported_rows(operation)]
    check_all_applicable(added)
    newest, now = versions_in_effect({row.key for row in added}), clock.now()
    versions = [_next_version(operation, row, newest.get(row.key), actor, now) for row in added]
    before = [version.pk for version in newest.values()]
    for start in range(0, len(before), _AT_ONCE):
        RecipientVersion.objects.filter(pk__in=before[start : start + _AT_ONCE]).update(is_newest=False)
    for version in versions:
        version.set_derived()
    RecipientVersion.objects.bulk_create(versions, batch_size=_AT_ONCE)
    audit.record(
        Action.RECIPIENTS_IMPORTED,
        actor=actor,
        target=operation,
        count=payload.count,
        rows=payload.recipients_digest,
    )


def _next_version(
    operation: Operation,
    payload: RecipientPayload,
    newest: RecipientVersion | None,
    actor: User,
    now: datetime,
) -> RecipientVersion:
    """The sealed version that follows the newest one, not stored yet."""
    is_cooled = (
        newest is not None
        and newest.number > 0
        and newest.network == payload.network
        and not payload.changes_payment
    )
    version = RecipientVersion(
        recipient=newest.recipient if newest else uuid.uuid4(),
        number=(newest.number if newest else 0) + 1,
        state=RecipientState.RETIRED if payload.change == RecipientChange.RETIRE else RecipientState.APPROVED,
        type=payload.type,
        key=payload.key,
        account=payload.account,
        network=payload.network,
        bank_code=payload.bank_code,
        bank=payload.bank,
        **payload.details.model_dump(),
        operation=operation.pk,
        proposed_by=operation.preparer,
        approved_by=actor,
        since=now,
        details_since=newest.details_since if newest and is_cooled else now,
    )
    version.make_seal()
    return version
