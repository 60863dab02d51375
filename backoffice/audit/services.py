"""Appends to the log. There is no other way in, and no way to change what is in it."""

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import connection, models
from django.utils import timezone

from backoffice.audit.actions import Action
from backoffice.audit.canonical import plain, storable
from backoffice.audit.errors import ChainMovedError, OutsideTransactionError
from backoffice.audit.models import ChainHead, Entry
from backoffice.core import context

SYSTEM = "Countersign"
STRANGER = "Someone not signed in"


def record(
    action: Action,
    *,
    actor: AbstractBaseUser | None,
    target: models.Model | str | None = None,
    **detail: object,
) -> Entry:
    """Append one entry in the caller's transaction: both are kept, or neither is.

    Call it last in a service, since the head of the chain stays locked until the commit. `actor` is None
    where nobody is signed in or the program itself acts; `target` is a row, or the name of a thing that has
    none ("the operations report"). Raises OutsideTransactionError, ChainMovedError, and NotRecordableError
    for a detail without a stable form.
    """
    if not connection.in_atomic_block:
        raise OutsideTransactionError(f"{action} must be recorded in the transaction of the change")
    details = plain(detail)
    head = ChainHead.objects.select_for_update().get(pk=1)
    entry = Entry(
        position=head.position + 1,
        at=timezone.now(),
        actor_id=None if actor is None else actor.pk,
        actor_label=_actor_label(actor),
        address=storable(context.address() or ""),
        request_id=storable(context.request_id()),
        action=action.value,
        detail=details,
        previous_hash=head.hash,
        **_target_members(target),
    )
    entry.hash = entry.digest()
    _move(head, entry)
    entry.save(force_insert=True)
    return entry


def _move(head: ChainHead, entry: Entry) -> None:
    """Compare and set: on an engine without row locks two writers must not both follow the same entry."""
    moved = ChainHead.objects.filter(pk=head.pk, position=head.position, hash=head.hash).update(
        position=entry.position, hash=entry.hash
    )
    if moved != 1:
        raise ChainMovedError(f"Another entry took position {entry.position}")


def _actor_label(actor: AbstractBaseUser | None) -> str:
    if actor is not None:
        return storable(str(actor))
    return STRANGER if context.address() else SYSTEM


def _target_members(target: models.Model | str | None) -> dict[str, str]:
    if not isinstance(target, models.Model):
        return {"target_label": storable(target or "")}
    return {
        "target_type": target._meta.label_lower,
        "target_id": str(target.pk),
        "target_label": storable(str(target)),
    }
