"""Holds an export for as long as somebody makes it, however long the next row takes."""

import logging
import threading
from datetime import timedelta
from types import TracebackType
from typing import Self

from django.db import DatabaseError, connection

from backoffice.core import clock
from backoffice.reports.models import ExportJob
from backoffice.reports.states import State

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
RENEWED_EVERY = 2.0  # seconds; also how often the rows written so far are told


class LeaseLostError(Exception):
    """Somebody cancelled the export, or another runner holds it."""


class Lease:
    """Renews in a thread of its own, which dies and freezes with its process, and tells how many rows are written."""

    def __init__(self, job: ExportJob) -> None:
        self.rows = 0
        self._job = job
        self._is_lost = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"lease-{job.pk}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def check(self) -> None:
        """Raises LeaseLostError as soon as it is known to be lost."""
        if self._is_lost:
            raise LeaseLostError

    def _keep(self) -> None:
        try:
            while not self._is_lost and not self._stop.wait(RENEWED_EVERY):
                self._renew()
        finally:
            connection.close()

    def _renew(self) -> None:
        held = ExportJob.objects.filter(pk=self._job.pk, state=State.RUNNING, runner=self._job.runner)
        try:
            self._is_lost = not held.update(lease_until=clock.now() + LEASE, rows=self.rows)
        except DatabaseError:  # the next turn tries again; until the lease ends nobody else begins
            logger.warning("The lease of the export %s could not be renewed", self._job.pk, exc_info=True)
