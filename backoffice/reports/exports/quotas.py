"""Quotas: how many exports may wait or be kept, per person and in all, and how much disk space stays free."""

import errno
import shutil

from django.conf import settings
from django.db.models import QuerySet
from django.template.defaultfilters import filesizeformat

from backoffice.accounts.models import User
from backoffice.core import leases
from backoffice.reports.errors import QuotaExceededError
from backoffice.reports.models import ACTIVE_STATES, ExportJob, ExportState, export_folder

QUOTA_LOCK = "exports"
"""The name under which people and schedules take turns to ask for one, before they hold the log."""
_MEGABYTE = 1024 * 1024
_DISK_FULL_CODES = frozenset({errno.ENOSPC, errno.EDQUOT})
DISK_FULL = (
    "The disk of this installation is full. Nothing of the file was kept; whoever runs it has to make room."
)


def check_export_quota(person: User) -> None:
    """Raises NoRoomError where no further export may be asked for; others wait for this transaction's end.

    What schedules make counts apart: it keeps nobody from asking, and they keep no schedule from running.
    """
    leases.lock_until_commit(QUOTA_LOCK)
    check_disk_space()
    taken = _counted_exports().filter(due_at=None)
    if taken.filter(person=person).count() >= settings.EXPORTS_PER_PERSON:
        raise QuotaExceededError(
            f"{settings.EXPORTS_PER_PERSON} exports of one person may wait or be kept at once, and so many do. "
            "Remove one under Exports, or wait until its seven days are over."
        )
    if taken.count() >= settings.EXPORTS_IN_ALL:
        raise QuotaExceededError(
            f"{settings.EXPORTS_IN_ALL} exports of all people together may wait or be kept at once, and so many do. "
            "Remove those that you no longer need under Exports, and ask your colleagues to."
        )


def check_schedule_quota(person: User) -> None:
    """The same for what schedules make for this person: each person has room of their own."""
    leases.lock_until_commit(QUOTA_LOCK)
    check_disk_space()
    if (
        _counted_exports().filter(due_at__isnull=False, person=person).count()
        >= settings.EXPORTS_OF_SCHEDULES
    ):
        raise QuotaExceededError(
            f"{settings.EXPORTS_OF_SCHEDULES} files of schedules may wait or be kept for one person at once, and so "
            "many do. Its recipient removes some under Exports, or waits until their seven days are over."
        )


def _counted_exports() -> QuerySet[ExportJob]:
    return ExportJob.objects.filter(state__in=ACTIVE_STATES | {ExportState.DONE})


def check_disk_space() -> None:
    """Raises NoRoomError where so little of the disk is free that nothing more may be written."""
    reserve = settings.EXPORT_DISK_RESERVE_MB * _MEGABYTE
    if shutil.disk_usage(export_folder()).free < reserve:
        raise QuotaExceededError(
            f"Less than {filesizeformat(reserve)} of this installation's disk are free, and so much is kept for its "
            "other work. Nothing of the file was kept; whoever runs it has to make room."
        )


def is_disk_full(error: BaseException) -> bool:
    """Whether it says that the disk, or the share of this program, is full."""
    return isinstance(error, OSError) and error.errno in _DISK_FULL_CODES
