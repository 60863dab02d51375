"""Begin a delegation, in the transaction of the last approval; and end it early, by either of its two people alone."""

from django.db import transaction

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.core.encryption import SealState
from backoffice.core.leases import lock_until_commit
from backoffice.operations.errors import OperationError, PermissionMissingError
from backoffice.operations.kinds.delegation import DelegationPayload, check_delegation
from backoffice.operations.models.operations import Operation
from backoffice.operations.refusals.codes import Refusal
from backoffice.policies.delegations import Delegation, locked_delegation

_LOCK = "delegations"


def lock_delegations() -> None:
    """Let no other delegation begin before this transaction ends."""
    lock_until_commit(_LOCK)


def start_delegation(operation: Operation, payload: DelegationPayload, actor: User) -> None:
    """Store the delegation, sealed. The caller holds `lock_delegations`.

    Raises OperationError if it could not be proposed any more.
    """
    check_delegation(payload)
    if actor.pk in {payload.person, payload.stand_in}:
        raise OperationError(Refusal.OWN_RIGHTS)
    delegation = Delegation(
        person_id=payload.person,
        stand_in_id=payload.stand_in,
        group_id=payload.group,
        starts_at=payload.starts_at,
        ends_at=payload.ends_at,
        agreed_at=clock.now(),
        operation=operation.pk,
    )
    delegation.make_seal()
    delegation.save(force_insert=True)
    audit.record(
        Action.DELEGATION_AGREED,
        actor=actor,
        target=delegation,
        person=payload.person,
        stand_in=payload.stand_in,
        first_day=payload.first_day.isoformat(),
        last_day=payload.last_day.isoformat(),
        operation=operation.reference,
    )


@transaction.atomic
def end_delegation(pk: int, *, actor: User) -> Delegation:
    """End it now; what the stand-in approved until now keeps counting.

    Raises PermissionMissingError for anybody but its two people, and OperationError if it has ended.
    """
    lock_delegations()
    delegation = locked_delegation(pk)
    if actor.pk not in {delegation.person_id, delegation.stand_in_id}:
        raise PermissionMissingError
    now = clock.now()
    if now >= delegation.ends:
        raise OperationError(Refusal.DELEGATION_OVER)
    is_as_agreed = delegation.seal_state() == SealState.VALID
    delegation.ended_at, delegation.ended_by = now, actor
    if is_as_agreed:  # otherwise its wrong seal stays, as evidence
        delegation.make_seal()
    delegation.save(update_fields=["ended_at", "ended_by", "seal"])
    audit.record(
        Action.DELEGATION_ENDED,
        actor=actor,
        target=delegation,
        person=delegation.person_id,
        stand_in=delegation.stand_in_id,
    )
    return delegation
