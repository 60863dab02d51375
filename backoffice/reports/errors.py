"""What goes wrong with exports and schedules. The message is what a person reads."""


class ExportError(Exception):
    """Base of everything below. Nothing was changed."""


class NotAllowedError(ExportError):
    """The person may not read the report (any longer)."""


class TooLongError(ExportError):
    """More rows than this kind of file can hold, or than one file may take."""


class GoneError(ExportError):
    """The export is not in a state in which this can be done."""


class NoRoomError(ExportError):
    """So much waits or is kept, or so little of the disk is free, that no more may come."""


class BusyError(ExportError):
    """All places for files that are sent while somebody waits are taken."""


class ScheduleError(ExportError):
    """The schedule cannot be what was asked for."""
