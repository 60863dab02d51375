"""The few places for files that are sent while somebody waits: each holds a thread of this web process."""

from threading import BoundedSemaphore

from django.conf import settings

from backoffice.reports.errors import BusyError

_places = BoundedSemaphore(settings.EXPORT_STREAMS)


class Place:
    """One of them, until it is left. Raises BusyError at once where all are taken."""

    def __init__(self) -> None:
        if not _places.acquire(blocking=False):
            raise BusyError("Other files are being sent just now.")
        self._is_held = True

    def leave(self) -> None:
        """Give it back; once is enough."""
        if self._is_held:
            self._is_held = False
            _places.release()
