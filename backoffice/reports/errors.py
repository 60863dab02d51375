"""Why an export or a schedule was refused or failed: a code, which is stored, and the sentence shown for it."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from django.db.models import TextChoices

from backoffice.core.web.formatting import code_sentence

Failure: TypeAlias = dict[str, Any]
"""A `FailureCode` or `DeliveryObstacle` under `code`, and its parameters beside it, as stored in JSON."""


class FailureCode(TextChoices):
    """The label is the sentence, with its parameters in braces."""

    REPORT_NOT_ALLOWED = "report_not_allowed", "{person} may not read this report."
    NOT_OWNER = "not_owner", "Only its owner changes a schedule."
    INVALID_FILTER = "invalid_filter", "A filter no longer makes sense. {errors}"
    TOO_MANY_TRIES = "too_many_tries", "It was broken off {tries} times."
    PROVIDER_UNREADABLE = "provider_unreadable", "{error}"
    INTERNAL_ERROR = (
        "internal_error",
        "The rows could not be read or written. Whoever runs this installation finds the reason in its log.",
    )
    DISK_FULL = (
        "disk_full",
        "The disk of this installation is full. Nothing of the file was kept; whoever runs it has to make room.",
    )
    DISK_RESERVE = (
        "disk_reserve",
        "Less than {reserve} of this installation's disk are free, and so much is kept for its other work. "
        "Nothing of the file was kept; whoever runs it has to make room.",
    )
    CELL_TOO_LONG = (
        "cell_too_long",
        "A cell has more than {limit:,} characters, which Excel has no room for. Take the CSV.",
    )
    QUOTA_OF_PERSON = (
        "quota_of_person",
        "{limit} exports of one person may wait or be kept at once, and so many do. "
        "Remove one under Exports, or wait until its seven days are over.",
    )
    QUOTA_TOTAL = (
        "quota_total",
        "{limit} exports of all people together may wait or be kept at once, and so many do. "
        "Remove those that you no longer need under Exports, and ask your colleagues to.",
    )
    QUOTA_SCHEDULED = (
        "quota_scheduled",
        "{limit} files of schedules may wait or be kept for one person at once, and so many do. "
        "Its recipient removes some under Exports, or waits until their seven days are over.",
    )
    DOWNLOADS_BUSY = "downloads_busy", "Other files are being sent just now."
    UNDER_WAY = "under_way", "It is still being made."
    ENDED_BEFORE = "ended_before", "It had ended before."
    NOTHING_TO_REMOVE = "nothing_to_remove", "There is no file to remove."
    NO_FILE = "no_file", "There is no file to take away."
    RECIPIENT_MISSING = "recipient_missing", "Choose at least one person who receives it."
    NO_DAYS = "no_days", "This report has no days to choose."
    NO_PUBLIC_URL = (
        "no_public_url",
        "Nobody has told Countersign its own public address, so a message could not say where the file is. "
        "Whoever runs this installation sets COUNTERSIGN_PUBLIC_URL.",
    )


class DeliveryObstacle(TextChoices):
    """Why a recipient of a schedule got no file. The label is the sentence, with its parameters in braces."""

    REPORT_GONE = "report_gone", "there is no such report any more"
    OWNER_NOT_ALLOWED = (
        "owner_not_allowed",
        "{owner}, who made the schedule, may no longer read the report",
    )
    DEACTIVATED = "deactivated", "the account was deactivated"
    NOT_ALLOWED = "not_allowed", "may no longer read the report"


def failure_sentence(failure: Mapping[str, Any]) -> str:
    """A stored failure in words."""
    return code_sentence(FailureCode, failure)


def obstacle_sentence(obstacle: Mapping[str, Any]) -> str:
    """`Femi Ade: the account was deactivated`: a recipient (`person`) with the obstacle in words."""
    reason = code_sentence(DeliveryObstacle, obstacle)
    return f"{obstacle['person']}: {reason}"


class ReportError(Exception):
    """Nothing was changed. `failure` holds the code and its parameters; the message can be shown."""

    def __init__(self, code: FailureCode, **parameters: str | int) -> None:
        self.failure: Failure = {"code": code.value, **parameters}
        super().__init__(failure_sentence(self.failure))


class ReportNotAllowedError(ReportError):
    """The person may not, or may no longer, read the report."""


class FileTooLongError(ReportError):
    """The data exceeds a limit of the file format."""


class ExportGoneError(ReportError):
    """The export's state does not permit the action."""


class QuotaExceededError(ReportError):
    """A quota of exports, or the reserve of disk space, is used up."""


class DownloadsBusyError(ReportError):
    """All slots for concurrent downloads are in use."""


class ScheduleError(ReportError):
    """The schedule's settings are invalid."""
