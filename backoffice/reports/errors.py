"""Errors of exports and schedules. The message is shown to the person."""


class ReportError(Exception):
    """Base of the errors below. Nothing was changed."""


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
