"""Removes files whose time is over, and what killed runners left."""

import time
from datetime import timedelta
from pathlib import Path

from django.db import transaction

from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.reports.models import ExportJob, folder
from backoffice.reports.services.moves import move
from backoffice.reports.states import State

FORGOTTEN_AFTER = timedelta(hours=2)  # longer than anybody writes at one file


def tidy_exports() -> int:
    """Expire what is due and remove what belongs to no export; how many files went."""
    expired = ExportJob.objects.filter(state=State.DONE, expires_at__lte=clock.now())
    return sum(map(_expire, expired)) + sum(map(_forget, _left_behind()))


def _expire(job: ExportJob) -> bool:
    """The state first: a file without a state that names it is removed in any case."""
    path = job.file
    with transaction.atomic():
        is_ours = move(job, State.EXPIRED, stored_as="")
        if is_ours:
            audit.record(Action.EXPORT_EXPIRED, actor=None, target=str(job), export=str(job.pk))
    if is_ours:
        path.unlink(missing_ok=True)
    return is_ours


def _left_behind() -> list[Path]:
    oldest = time.time() - FORGOTTEN_AFTER.total_seconds()
    forgotten = [path for path in folder().iterdir() if path.is_file() and path.stat().st_mtime < oldest]
    if not forgotten:
        return []
    names = [path.name for path in forgotten]
    kept = set(ExportJob.objects.filter(stored_as__in=names).values_list("stored_as", flat=True))
    return [path for path in forgotten if path.name not in kept]


def _forget(path: Path) -> bool:
    path.unlink(missing_ok=True)
    return True
