"""Files that every machine reads: finished exports and archives, in a folder or in an S3-compatible object store.

`STORAGES` says where. A file is written once, under a name that is never used again, and is read by the product
only: a store gives no address of a file, since an address would get around the checks of who may read it.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Protocol, Self, cast

from django.core.files.storage import FileSystemStorage, storages

EXPORTS, ARCHIVES = "exports", "archives"


class FileStoreError(OSError):
    """The object store cannot be reached, or refused the request. The message holds no address and no key."""


@dataclass(frozen=True)
class StoredFile:
    """A file in the store, with the time of its last change by the clock of the store."""

    name: str
    changed_at: datetime


class ReadableFile(Protocol):
    """An open file, to be read from its beginning to its end."""

    def read(self, size: int = -1, /) -> bytes: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_error: Any) -> None: ...


class PrivateFolder(FileSystemStorage):
    """A folder that only this system user reads: files are 0600, folders 0700."""

    is_shared = False

    def put(self, path: Path, name: str) -> None:
        """Move a synced file to its final name, atomically and durably."""
        self._prepare()
        path.chmod(0o600)
        path.rename(self.path(name))
        sync_folder(Path(self.path(name)).parent)

    def read(self, name: str) -> ReadableFile:
        """The file, opened. Raises FileNotFoundError."""
        return Path(self.path(name)).open("rb")

    def all_files(self) -> Iterator[StoredFile]:
        self._prepare()
        for name in self.listdir("")[1]:
            yield StoredFile(name, self.get_modified_time(name))

    def url(self, name: str | None) -> NoReturn:
        raise NotImplementedError("Files are read through the product only")

    def _prepare(self) -> None:
        Path(self.location).mkdir(mode=0o700, parents=True, exist_ok=True)


class FileStore(Protocol):
    """Where files of one kind are."""

    is_shared: ClassVar[bool]
    """Whether every machine reads the same files without sharing a folder."""

    def put(self, path: Path, name: str) -> None:
        """Move a synced file of this machine into the store. Raises FileStoreError; then the file is still here."""

    def read(self, name: str) -> ReadableFile:
        """The file, opened. Raises FileNotFoundError, FileStoreError."""

    def all_files(self) -> Iterator[StoredFile]: ...

    def delete(self, name: str) -> None: ...

    def exists(self, name: str) -> bool: ...

    def url(self, name: str | None) -> NoReturn:
        """Raises NotImplementedError: an address would get around the checks of who may read the file."""

    def path(self, name: str) -> str:
        """Where it is on this machine. Raises NotImplementedError if it is not."""


def file_store(kind: str) -> FileStore:
    """The store of this kind of files, `EXPORTS` or `ARCHIVES`."""
    return cast("FileStore", storages[kind])


def is_shared() -> bool:
    """Whether every machine reads the same files without sharing a folder."""
    return file_store(EXPORTS).is_shared


def sync_folder(folder: Path) -> None:
    """Write the folder's entries to the disk, so that a new or renamed file is there after a power failure.

    Raises OSError.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
