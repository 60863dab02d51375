"""Stops all sending at once, and lets it go on after two people have signed."""

from django.db import IntegrityError, transaction

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.operations import pause, permissions, policy
from backoffice.operations.errors import AlreadyPausedError, NotPausedError, ReasonMissingError, Refusal
from backoffice.operations.kinds.resume import ResumePayload
from backoffice.operations.models import Operation
from backoffice.operations.pause import Pause


@transaction.atomic
def pause_sending(*, actor: User, reason: str) -> Pause:
    """Let nothing be sent from this moment on, until two people sign that it goes on.

    What has left already is followed to its end. Raises NotAllowedError, ReasonMissingError, AlreadyPausedError.
    """
    policy.check_permission(actor, permissions.PAUSE)
    if not reason.strip():
        raise ReasonMissingError(Refusal.PAUSE_REASON_MISSING)
    pulled = Pause(paused_by=actor, paused_at=clock.now(), reason=reason.strip())
    _stand(pulled)
    audit.record(Action.SENDING_PAUSED, actor=actor, target=pulled, reason=pulled.reason)
    transaction.on_commit(pause.forget)
    return pulled


@transaction.atomic
def resume_sending(resumption: Operation, payload: ResumePayload, actor: User) -> None:
    """End exactly this pause, in the transaction of the last countersignature. Raises NotPausedError."""
    now = clock.now()
    standing = Pause.objects.filter(pk=payload.pause, ended_at__isnull=True)
    if standing.update(ended_at=now, ended_by=resumption) != 1:
        raise NotPausedError
    target = Pause.objects.get(pk=payload.pause)
    audit.record(Action.SENDING_RESUMED, actor=actor, target=target, by=resumption.reference)
    transaction.on_commit(pause.forget)


def _stand(pulled: Pause) -> None:
    """Insert it; the unique index decides between two people who pull at the same moment."""
    try:
        with transaction.atomic():
            pulled.save(force_insert=True)
    except IntegrityError:
        standing = pause.standing_pause()
        raise AlreadyPausedError(str(standing.paused_by) if standing else "") from None
