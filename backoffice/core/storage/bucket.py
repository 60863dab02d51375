"""Files in a bucket of an S3-compatible object store. Needs the extra `s3`; imported only if a bucket is named."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, Self

from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import BotoCoreError, ClientError
from storages.backends.s3 import S3Storage

from backoffice.core.storage.files import FileStoreError, ReadableFile, StoredFile

_GONE = frozenset({"404", "NoSuchKey", "NotFound"})


class PrivateBucket(S3Storage):
    """A bucket of an S3-compatible object store; objects have no access list, so they are as private as the bucket."""

    is_shared = True
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
        if _code(exc) in _GONE:
            raise FileNotFoundError("The object store has no such file") from exc
        raise FileStoreError(f"The object store refused the request: {_code(exc)}") from exc
    except S3UploadFailedError as exc:  # a ClientError during an upload; only its context has the code
        raise FileStoreError(f"The object store refused the request: {_code(exc.__context__)}") from exc
    except BotoCoreError as exc:
        raise FileStoreError(f"The object store cannot be used: {type(exc).__name__}") from exc


def _code(refusal: BaseException | None) -> str:
    """The code of the refusal, such as AccessDenied."""
    error = refusal.response.get("Error", {}) if isinstance(refusal, ClientError) else {}
    return str(error.get("Code", ""))[:100]
