"""Put a version of a recipient into effect, in the transaction of the last approval."""

import uuid

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.core.leases import lock_until_commit
from backoffice.operations.kinds.recipient import RecipientChange, RecipientPayload, check_applicable
from backoffice.operations.models.operations import Operation
from backoffice.recipients.models import RecipientState, RecipientVersion
from backoffice.recipients.register import version_in_effect

_ACTIONS = {
    RecipientChange.ADD: Action.RECIPIENT_ADDED,
    RecipientChange.CHANGE: Action.RECIPIENT_CHANGED,
    RecipientChange.RETIRE: Action.RECIPIENT_RETIRED,
}


def lock_recipient(key: str) -> None:
    """Let no other transaction change this recipient before this one ends."""
    lock_until_commit(f"registered recipient:{key}")


def apply_recipient(operation: Operation, payload: RecipientPayload, actor: User) -> None:
    """Make this the newest version of the recipient. The caller holds `lock_recipient`.

    Raises OperationError if the register has changed since it was prepared.
    """
    check_applicable(payload)
    newest = version_in_effect(payload.key)
    now = clock.now()
    is_cooled = newest is not None and newest.number > 0 and not payload.changes_payment
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
    RecipientVersion.objects.filter(key=payload.key, is_newest=True).update(is_newest=False)
    version.save(force_insert=True)
    audit.record(
        _ACTIONS[payload.change],
        actor=actor,
        target=version,
        operation=operation.reference,
        version=version.number,
    )
