"""Why an export or a schedule was refused or failed: a code, which is stored, and the sentence shown for it."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from django.db.models import TextChoices
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext_lazy as _

from backoffice.core.web.formatting import code_sentence

Failure: TypeAlias = dict[str, Any]
"""A `FailureCode` or `DeliveryObstacle` under `code`, and its parameters beside it, as stored in JSON."""


class FailureCode(TextChoices):
    """The label is the sentence, with its parameters in braces."""

    REPORT_NOT_ALLOWED = "report_not_allowed", _("{person} does not have permission for this report.")
    NOT_OWNER = "not_owner", _("Only the owner can change a schedule.")
    INVALID_FILTER = "invalid_filter", _("A filter is no longer valid. {errors}")
    TOO_MANY_TRIES = "too_many_tries", _("The export was interrupted {tries} times.")
    PROVIDER_UNREADABLE = "provider_unreadable", _("The provider's data could not be read: {error}")
    INTERNAL_ERROR = (
        "internal_error",
        _("The file could not be written. Export it again; if it still fails, contact the operator."),
    )
    DISK_FULL = (
        "disk_full",
        _("The disk is full, so no file was kept. Contact the operator."),
    )
    DISK_RESERVE = (
        "disk_reserve",
        _("Less than {reserve} of disk space is free, so no file was kept. Contact the operator."),
    )
    STORE_UNAVAILABLE = (
        "store_unavailable",
        _("File storage is not available at the moment. Try again later, or contact the operator."),
    )
    CELL_TOO_LONG = (
        "cell_too_long",
        _("A cell has more than {limit} characters, the limit of Excel. Export as CSV."),
    )
    QUOTA_OF_PERSON = (
        "quota_of_person",
        _(
            "You have reached the limit of {limit} exports. Delete one under “Background exports”, then try again."
        ),
    )
    QUOTA_TOTAL = (
        "quota_total",
        _(
            "This installation has reached the limit of {limit} exports. Delete exports that are no longer needed."
        ),
    )
    QUOTA_SCHEDULED = (
        "quota_scheduled",
        _("The recipient has reached the limit of {limit} scheduled files and must delete some first."),
    )
    DOWNLOADS_BUSY = "downloads_busy", _("Too many downloads are in progress.")
    UNDER_WAY = "under_way", _("This export is still in progress.")
    ENDED_BEFORE = "ended_before", _("This export has already ended.")
    NOTHING_TO_REMOVE = "nothing_to_remove", _("There is no file to delete.")
    NO_FILE = "no_file", _("There is no file to download.")
    RECIPIENT_MISSING = "recipient_missing", _("Select at least one recipient.")
    NO_DAYS = "no_days", _("This report cannot be restricted to a period.")
    NO_PUBLIC_URL = (
        "no_public_url",
        _("Emails cannot link to the file. Ask the operator to set COUNTERSIGN_PUBLIC_URL."),
    )


class DeliveryObstacle(TextChoices):
    """Why a recipient of a schedule got no file. The label is the sentence, with its parameters in braces."""

    REPORT_GONE = "report_gone", _("{person}: the report no longer exists")
    OWNER_NOT_ALLOWED = (
        "owner_not_allowed",
        _("{person}: the owner, {owner}, no longer has permission for the report"),
    )
    DEACTIVATED = "deactivated", _("{person}: the account is deactivated")
    NOT_ALLOWED = "not_allowed", _("{person}: this person no longer has permission for the report")


def failure_sentence(failure: Mapping[str, Any]) -> str:
    """A stored failure in words. A reserve of disk space is a number of bytes; older rows have it as text."""
    reserve = failure.get("reserve")
    if isinstance(reserve, int):
        failure = {**failure, "reserve": filesizeformat(reserve)}
    return code_sentence(FailureCode, failure)


def obstacle_sentence(obstacle: Mapping[str, Any]) -> str:
    """`Femi Ade: the account is deactivated`: a recipient (`person`) with the obstacle in words."""
    return code_sentence(DeliveryObstacle, obstacle)


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


class StoreUnavailableError(ReportError):
    """The store of files cannot be reached, or refused the request."""


class QuotaExceededError(ReportError):
    """A quota of exports, or the reserve of disk space, is used up."""


class DownloadsBusyError(ReportError):
    """All slots for concurrent downloads are in use."""


class ScheduleError(ReportError):
    """The schedule's settings are invalid."""
