"""Errors of exports and schedules. The message is shown to the person."""


class ReportError(Exception):
    """Base of everything below. Nothing was changed."""


class ReportNotAllowedError(ReportError):
    """The person may not read the report (any longer)."""


class FileTooLongError(ReportError):
    """More rows than this kind of file can hold, or than one file may take."""


class ExportGoneError(ReportError):
    """The export is not in a state in which this can be done."""


class QuotaExceededError(ReportError):
    """So much waits or is kept, or so little of the disk is free, that no more may come."""


class DownloadsBusyError(ReportError):
    """All places for files that are sent while somebody waits are taken."""


class ScheduleError(ReportError):
    """The schedule cannot be what was asked for."""
