"""Removes files whose time is over, and what killed runners left."""

import shutil
import time
from datetime import timedelta
from pathlib import Path

from django.db import transaction
from django.db.models import Min

from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.reports.models import ExportJob, folder
from backoffice.reports.services.moves import move
from backoffice.reports.states import State
from backoffice.reports.xlsx import ROOM

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
    """Nothing of an export that is being made, however long that takes: all that came since it began stays."""
    begun = ExportJob.objects.filter(state=State.RUNNING).aggregate(first=Min("started_at"))["first"]
    oldest = min(begun or clock.now(), clock.now()) - FORGOTTEN_AFTER
    forgotten = [
        path for path in folder().iterdir() if _is_ours(path) and _written_at(path) < oldest.timestamp()
    ]
    if not forgotten:
        return []
    names = [path.name for path in forgotten]
    kept = set(ExportJob.objects.filter(stored_as__in=names).values_list("stored_as", flat=True))
    return [path for path in forgotten if path.name not in kept]


def _is_ours(path: Path) -> bool:
    return path.is_file() or path.name.startswith(ROOM)


def _written_at(path: Path) -> float:
    """A folder is as old as what was written last in it. What went meanwhile is as new as can be."""
    try:
        return max(one.stat().st_mtime for one in (path, *path.glob("*")))
    except FileNotFoundError:
        return time.time()


def _forget(path: Path) -> bool:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
    return True
