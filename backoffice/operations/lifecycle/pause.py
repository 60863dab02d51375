"""Pause all payments (one person) and resume them (two people), with a cached read for the pages."""

from datetime import datetime, timedelta

from django.conf import settings
from django.core.cache import cache
from django.db import IntegrityError, transaction
from django.db.models import Min, QuerySet, TextField
from django.db.models.functions import Cast

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.core.cached_reads import cached_in_process
from backoffice.operations import permissions, policy, seals
from backoffice.operations.errors import (
    AlreadyPausedError,
    NotPausedError,
    OperationError,
    PauseChangedError,
    ReasonMissingError,
)
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.kinds.resume import ResumePayload
from backoffice.operations.lifecycle import incidents
from backoffice.operations.models import monitoring
from backoffice.operations.models.monitoring import Incident, Pause, current_pause
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.models.reason_codes import IncidentKind, PauseCause
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Status

CACHED_SECONDS = 1.0
_CACHE_KEY = "pause"


def cached_pause() -> Pause | None:
    """The current pause for display on every page, at most one second old. Sending never uses it."""
    return cached_in_process(_CACHE_KEY, current_pause, CACHED_SECONDS)


def clear_pause_cache() -> None:
    """Make the next page of this process read the pause again."""
    cache.delete(_CACHE_KEY)


@transaction.atomic
def pause_payments(*, actor: User, reason: str) -> Pause:
    """Stop all sending from this moment on, until two people resume.

    Operations already sent are still followed to their end. Raises PermissionMissingError,
    ReasonMissingError, AlreadyPausedError.
    """
    policy.check_permission(actor, permissions.PAUSE)
    if not reason.strip():
        raise ReasonMissingError(Refusal.PAUSE_REASON_MISSING)
    pause = Pause(paused_by=actor, paused_at=clock.now(), reason=reason.strip())
    _insert(pause)
    audit.record(Action.PAYMENTS_PAUSED, actor=actor, target=pause, reason=pause.reason)
    transaction.on_commit(clear_pause_cache)
    return pause


def pause_because_of(cause: PauseCause) -> Pause:
    """Stop all sending inside the caller's transaction; returns the pause in effect if there is one already."""
    pause = Pause(cause=cause, paused_at=clock.now())
    try:
        with transaction.atomic():
            pause.save(force_insert=True)
    except IntegrityError:
        # A resumption needs an audit entry, so the pause cannot end before the caller's transaction has committed.
        audit.lock()
        if (current := monitoring.current_pause()) is None:
            raise
        return current
    audit.record(Action.PAYMENTS_PAUSED, actor=None, target=pause, reason=cause.value)
    transaction.on_commit(clear_pause_cache)
    return pause


@transaction.atomic
def resume_payments(resumption: Operation, payload: ResumePayload, actor: User) -> None:
    """End exactly this pause, in the transaction of the last approval.

    Raises NotPausedError; PauseChangedError if something was found during the pause after the proposal.
    """
    # Locked first: what is being found now is committed with an incident of this pause before it can end.
    target = Pause.objects.select_for_update().filter(pk=payload.pause, ended_at__isnull=True).first()
    if target is None:
        raise NotPausedError
    if Incident.objects.filter(pause=target, at__gt=resumption.prepared_at).exists():
        raise PauseChangedError
    target.ended_at, target.ended_by = clock.now(), resumption
    target.save(update_fields=["ended_at", "ended_by"])
    audit.record(Action.PAYMENTS_RESUMED, actor=actor, target=target, by=resumption.reference)
    _expire_old_releases(target.ended_at)
    transaction.on_commit(clear_pause_cache)


def _expire_old_releases(now: datetime) -> None:
    """Expire the releases that are older than `RELEASE_LIFETIME_MINUTES`, each with its audit entry: after a long
    pause a person has to release again.

    Those that another transaction is expiring are left to it.
    """
    until = now - timedelta(minutes=settings.RELEASE_LIFETIME_MINUTES)
    old = Release.objects.select_for_update(skip_locked=True, of=("self",)).filter(released_at__lte=until)
    released_by = {release.operation: release.released_by_id for release in old.select_related("operation")}
    Release.objects.filter(operation__in=released_by).delete()
    audit.record_all(
        [
            audit.NewEntry(Action.OPERATION_RELEASE_EXPIRED, None, operation, {"notified": [person]})
            for operation, person in released_by.items()
        ]
    )


def is_pause_altered() -> bool:
    """Whether the newest pause was ended or deleted outside Countersign.

    Anyone who has the database can end a pause, but cannot seal the resumption that two people have to make.
    """
    return _altered_pause() is not None


def pause_if_altered() -> bool:
    """Pause payments again, with an incident, if the newest pause was ended or deleted outside Countersign."""
    evidence = _altered_pause()
    if evidence is None:
        return False
    with transaction.atomic():
        pause = pause_because_of(PauseCause.ALTERED_PAUSE)
        if not Incident.objects.filter(pause=pause, kind=IncidentKind.ALTERED_PAUSE).exists():
            incidents.raise_for_pause(pause, evidence=evidence, kind=IncidentKind.ALTERED_PAUSE)
    return True


def _altered_pause() -> dict[str, object] | None:
    """Which pause was ended or deleted outside Countersign, as evidence; None if none was."""
    # The log is read first: a pause that begins meanwhile is in neither query, or in the second only. The newest is
    # the one that was logged last for the first time: a second entry about an earlier pause hides nothing.
    logged = Entry.objects.filter(action=Action.PAYMENTS_PAUSED).values("target_id")
    last = logged.annotate(first=Min("position")).order_by("-first").first()
    newest = Pause.objects.select_related("ended_by").order_by("-pk").first()
    if last and not pauses_with_logged_id(last["target_id"]).exists():
        return {"pause": last["target_id"]}
    if newest is None or newest.ended_at is None or was_resumed(newest):
        return None
    return {"pause": str(newest.pk), "resumption": newest.ended_by and newest.ended_by.reference}


def pauses_with_logged_id(target_id: str) -> QuerySet[Pause]:
    """The pause that an entry of the audit log names, compared as text: a forged entry may have any text."""
    return Pause.objects.alias(text=Cast("pk", TextField())).filter(text=target_id)


def was_resumed(pause: Pause) -> bool:
    """Whether the resumption of this pause has its seals and enough people approved it."""
    resumption = pause.ended_by
    if resumption is None or resumption.status != Status.SUCCEEDED:
        return False
    approvals = list(resumption.approvals.all())
    try:
        seals.check_record(resumption, approvals, None)
        _, payload = read_content(resumption)
    except OperationError:
        return False
    people = {approval.approver_id for approval in approvals} - {resumption.preparer_id}
    return (
        isinstance(payload, ResumePayload)
        and payload.pause == pause.pk
        and len(people) >= resumption.approvals_needed
    )


def _insert(pause: Pause) -> None:
    """Insert the pause; the unique index decides between two people who pause at the same moment."""
    try:
        with transaction.atomic():
            pause.save(force_insert=True)
    except IntegrityError:
        current = monitoring.current_pause()
        raise AlreadyPausedError(current.by if current else "") from None
