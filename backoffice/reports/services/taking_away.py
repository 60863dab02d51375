"""A finished export on its way to its person."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from backoffice.accounts.models import User
from backoffice.reports.csv_encoding import CHUNK_BYTES
from backoffice.reports.services.requesting import hand_out
from backoffice.reports.services.streaming import AT_MOST, Sending

SLOWEST = 128_000  # bytes a second, over the whole of a big file


class TakenAway(Sending):
    """Its file, which is on record as taken away before the first byte leaves."""

    def __init__(self, pk: UUID, *, actor: User, hang_up: Callable[[], object] = lambda: None) -> None:
        """Raises BusyError where all places are taken, NotAllowedError, GoneError."""
        super().__init__(f"the export {pk}", hang_up)
        try:
            self.job, self._file = hand_out(pk, actor=actor)
        except BaseException:
            self._place.leave()
            raise
        self._at_most = AT_MOST + timedelta(seconds=(self.job.size or 0) / SLOWEST)
        self._watched()

    def _piece(self) -> bytes | None:
        return self._file.read(CHUNK_BYTES) or None

    def _close_source(self) -> None:
        self._file.close()
