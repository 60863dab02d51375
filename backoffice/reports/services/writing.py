"""Writes a file that is either whole or not there."""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from backoffice.core import fault_points, stopping
from backoffice.reports.csv_encoding import Chunk
from backoffice.reports.services.lease import Lease
from backoffice.reports.services.room import check_disk


@dataclass(frozen=True)
class Written:
    """A file on disk, still under a name for which nobody looks."""

    path: Path
    rows: int
    size: int
    sha256: str

    def keep(self, name: str) -> Path:
        """Give it its final name, in one step."""
        final = self.path.rename(self.path.with_name(name))
        folder = os.open(final.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return final


def write(chunks: Iterable[Chunk], path: Path, lease: Lease) -> Written:
    """Write all of it, durably, for nobody else to read. What did not come to its end is removed.

    Raises LeaseLostError, StoppedError, NoRoomError, and what the chunks raise.
    """
    try:
        return _written(chunks, path, lease)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _written(chunks: Iterable[Chunk], path: Path, lease: Lease) -> Written:
    digest, size = hashlib.sha256(), 0
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        for chunk in chunks:
            lease.check()
            stopping.check()
            check_disk()
            size += file.write(chunk.content)
            digest.update(chunk.content)
            lease.rows += chunk.rows
            fault_points.reach("export.writing")
        file.flush()
        os.fsync(file.fileno())
    fault_points.reach("export.written")
    lease.check()
    return Written(path, lease.rows, size, digest.hexdigest())
