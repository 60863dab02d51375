"""Files that every machine reads: finished exports and archives, in a folder or in an S3-compatible object store.

`STORAGES` says where. A file is written once, under a name that is never used again, and is read by the product
only: a store gives no address of a file, since an address would get around the checks of who may read it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn, Protocol, Self, cast

from botocore.exceptions import BotoCoreError, ClientError
from django.core.files.storage import FileSystemStorage, storages
from storages.backends.s3 import S3Storage

EXPORTS, ARCHIVES = "exports", "archives"
_GONE = frozenset({"404", "NoSuchKey", "NotFound"})


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

    def put(self, path: Path, name: str) -> None:
        """Move a synced file to its final name, atomically and durably."""
        self._prepare()
        path.chmod(0o600)
        path.rename(self.path(name))
        _sync_folder(Path(self.path(name)).parent)

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


class PrivateBucket(S3Storage):
    """A bucket of an S3-compatible object store; objects have no access list, so they are as private as the bucket."""

    location: str

    def put(self, path: Path, name: str) -> None:
        """Upload the file, and delete it on this machine. Raises FileStoreError; then the file is still here."""
        with _store_errors():
            self._object(name).upload_file(str(path), ExtraArgs={"ContentType": "application/octet-stream"})
        path.unlink()

    def read(self, name: str) -> ReadableFile:
        """The object as a stream, in constant memory. Raises FileNotFoundError, FileStoreError."""
        with _store_errors():
            return _Stream(self._object(name).get()["Body"])

    def all_files(self) -> Iterator[StoredFile]:
        prefix = f"{self.location}/"
        with _store_errors():
            for summary in self.bucket.objects.filter(Prefix=prefix):
                yield StoredFile(summary.key.removeprefix(prefix), summary.last_modified)

    def delete(self, name: str) -> None:
        with _store_errors():
            self._object(name).delete()

    def url(self, *_arguments: object, **_options: object) -> NoReturn:
        raise NotImplementedError("Files are read through the product only")

    def _object(self, name: str) -> Any:
        return self.bucket.Object(f"{self.location}/{name}")


FileStore = PrivateFolder | PrivateBucket


def file_store(kind: str) -> FileStore:
    """The store of this kind of files, `EXPORTS` or `ARCHIVES`."""
    return cast("FileStore", storages[kind])


def is_shared() -> bool:
    """Whether every machine reads the same files without sharing a folder."""
    return isinstance(file_store(EXPORTS), PrivateBucket)


class _Stream:
    """The body of an object; a connection that breaks is a FileStoreError."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def read(self, size: int = -1, /) -> bytes:
        with _store_errors():
            content: bytes = self._body.read(None if size < 0 else size)
            return content

    def close(self) -> None:
        self._body.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


@contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except ClientError as exc:
        code = str(exc.response.get("Error", {}).get("Code", ""))
        if code in _GONE:
            raise FileNotFoundError("The object store has no such file") from exc
        raise FileStoreError(f"The object store refused the request: {code[:100]}") from exc
    except BotoCoreError as exc:
        raise FileStoreError(f"The object store cannot be used: {type(exc).__name__}") from exc


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
