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
"""Lock that serialises the quota checks of people and schedules. It is taken before the audit log's lock."""
_MEGABYTE = 1024 * 1024
_DISK_FULL_CODES = frozenset({errno.ENOSPC, errno.EDQUOT})
DISK_FULL = (
    "The disk of this installation is full. Nothing of the file was kept; whoever runs it has to make room."
)


def check_export_quota(person: User) -> None:
    """Raise QuotaExceededError if the person may not request another export.

    Holds `QUOTA_LOCK` until commit.

    Exports made by schedules are counted separately, so that neither kind blocks the other.
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
    """The same for exports made by schedules; each recipient has a separate quota."""
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
    """Raise QuotaExceededError if less disk space is free than the configured reserve."""
    reserve = settings.EXPORT_DISK_RESERVE_MB * _MEGABYTE
    if shutil.disk_usage(export_folder()).free < reserve:
        raise QuotaExceededError(
            f"Less than {filesizeformat(reserve)} of this installation's disk are free, and so much is kept for its "
            "other work. Nothing of the file was kept; whoever runs it has to make room."
        )


def is_disk_full(error: BaseException) -> bool:
    """Whether the error means that the disk, or this user's disk quota, is full."""
    return isinstance(error, OSError) and error.errno in _DISK_FULL_CODES
