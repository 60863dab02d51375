"""How much may wait, be made and be kept, and how much of the disk stays free for everything else."""

import errno
import shutil

from django.conf import settings
from django.db.models import QuerySet
from django.template.defaultfilters import filesizeformat

from backoffice.accounts.models import User
from backoffice.core import locks
from backoffice.reports.errors import NoRoomError
from backoffice.reports.models import ExportJob, folder
from backoffice.reports.states import UNDER_WAY, State

EXPORTS = "exports"
"""The name under which people and schedules take turns to ask for one, before they hold the log."""
_MEGABYTE = 1024 * 1024
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
DISK_FULL = (
    "The disk of this installation is full. Nothing of the file was kept; whoever runs it has to make room."
)


def check_room(person: User) -> None:
    """Raises NoRoomError where no further export may be asked for; others wait for this transaction's end.

    What schedules make counts apart: it keeps nobody from asking, and they keep no schedule from running.
    """
    locks.hold(EXPORTS)
    check_disk()
    taken = _taken().filter(due_at=None)
    if taken.filter(person=person).count() >= settings.EXPORTS_PER_PERSON:
        raise NoRoomError(
            f"{settings.EXPORTS_PER_PERSON} exports of one person may wait or be kept at once, and so many do. "
            "Remove one under Exports, or wait until its seven days are over."
        )
    if taken.count() >= settings.EXPORTS_IN_ALL:
        raise NoRoomError(
            f"{settings.EXPORTS_IN_ALL} exports of all people together may wait or be kept at once, and so many do. "
            "Remove those that you no longer need under Exports, and ask your colleagues to."
        )


def check_room_of_schedules(person: User) -> None:
    """The same for what schedules make for this person: each person has room of their own."""
    locks.hold(EXPORTS)
    check_disk()
    if _taken().filter(due_at__isnull=False, person=person).count() >= settings.EXPORTS_OF_SCHEDULES:
        raise NoRoomError(
            f"{settings.EXPORTS_OF_SCHEDULES} files of schedules may wait or be kept for one person at once, and so "
            "many do. Its recipient removes some under Exports, or waits until their seven days are over."
        )


def _taken() -> QuerySet[ExportJob]:
    return ExportJob.objects.filter(state__in=UNDER_WAY | {State.DONE})


def check_disk() -> None:
    """Raises NoRoomError where so little of the disk is free that nothing more may be written."""
    reserve = settings.EXPORT_DISK_RESERVE_MB * _MEGABYTE
    if shutil.disk_usage(folder()).free < reserve:
        raise NoRoomError(
            f"Less than {filesizeformat(reserve)} of this installation's disk are free, and so much is kept for its "
            "other work. Nothing of the file was kept; whoever runs it has to make room."
        )


def is_full(error: BaseException) -> bool:
    """Whether it says that the disk, or the share of this program, is full."""
    return isinstance(error, OSError) and error.errno in _FULL
