"""Celery broker without a server: messages are files in folders under DATA_DIR, written atomically.

kombu's filesystem transport creates a message under its final name and fills it afterwards. A reader in
between gets an empty text, fails to parse it, and the worker process ends. The same is true for its tables of
bindings. Here both appear under their final names complete, in one step.
"""

import logging
import os
import time
import uuid
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import filesystem
from kombu.utils.json import dumps, loads

logger = logging.getLogger(__name__)


class Channel(filesystem.Channel):
    """Writes and reads whole messages; each message is read by one reader."""

    def _put(self, queue: str, payload: Any, **_kwargs: object) -> None:  # type: ignore[override] # as its parent
        name = f"{time.monotonic_ns():020}_{uuid.uuid4()}.{queue}.msg"
        _write(Path(self.data_folder_out), dumps(payload)).replace(Path(self.data_folder_out, name))

    def _get(self, queue: str, _timeout: float | None = None) -> Any:
        """The oldest message of the queue. Raises queue.Empty. A damaged message is dropped with a warning."""
        for name in sorted(os.listdir(self.data_folder_in)):
            if name.partition(".")[2] != f"{queue}.msg":
                continue
            text = _take(Path(self.data_folder_in, name))
            try:
                if text is not None:
                    return loads(text)
            except ValueError:
                logger.warning("Dropped the damaged message %s; the sweeper will do its work", name)
        raise Empty

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str | None, queue: str) -> None:
        table: Path = self._exchange_file(exchange)  # type: ignore[attr-defined] # unknown to its stubs
        if not table.exists():
            # The base class would create it empty; it locks an existing one to change it.
            _create(table, "[]")
        super()._queue_bind(exchange, routing_key, pattern, queue)


class LocalBrokerTransport(filesystem.Transport):
    """The transport registered for `filesystem://` in backoffice/celery.py."""

    Channel = Channel


def _write(folder: Path, text: str) -> Path:
    """Write the text to a file with a name that readers ignore."""
    file = folder / f"{uuid.uuid4()}.part"
    file.write_text(text)
    return file


def _take(message: Path) -> bytes | None:
    """Read and delete a message; None if another reader was faster."""
    taken = message.with_name(f"{message.name}.taken")
    try:
        message.rename(taken)
    except FileNotFoundError:
        return None
    content = taken.read_bytes()
    taken.unlink()
    return content


def _create(file: Path, text: str) -> None:
    """Create the file with the text in one step, unless it exists."""
    complete = _write(file.parent, text)
    try:
        file.hardlink_to(complete)
    except FileExistsError:
        return
    finally:
        complete.unlink()
