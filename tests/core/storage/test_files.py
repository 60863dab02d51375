"""Files that every machine reads: in a folder, and in a bucket of an S3-compatible server."""

from datetime import timedelta
from pathlib import Path

import pytest
import requests
from django.utils import timezone
from pytest_django import Settings

from backoffice.core.storage.bucket import PrivateBucket
from backoffice.core.storage.files import EXPORTS, FileStoreError, file_store, is_shared
from tests.object_store import BUCKET, bucket_options


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path, settings: Settings) -> str:
    """Each kind of store in turn."""
    if request.param == "bucket":
        request.getfixturevalue("bucket")
    else:
        options = {"location": tmp_path / "store", "file_permissions_mode": 0o600}
        backend = "backoffice.core.storage.files.PrivateFolder"
        settings.STORAGES = {**settings.STORAGES, EXPORTS: {"BACKEND": backend, "OPTIONS": options}}
    return str(request.param)


def put(folder: Path, name: str, content: bytes = b"a,b\r\n") -> None:
    made = folder / "made.part"
    made.write_bytes(content)
    file_store(EXPORTS).put(made, name)
    assert not made.exists()


def test_a_file_is_read_as_it_was_written_and_deleted(store: str, tmp_path: Path) -> None:
    content = bytes(range(256)) * 4096
    put(tmp_path, "one", content)
    with file_store(EXPORTS).read("one") as file:
        assert file.read(1000) + b"".join(iter(lambda: file.read(100_000), b"")) == content
    assert [one.name for one in file_store(EXPORTS).all_files()] == ["one"]
    file_store(EXPORTS).delete("one")
    file_store(EXPORTS).delete("one")  # a second time, nothing happens
    assert list(file_store(EXPORTS).all_files()) == []
    with pytest.raises(FileNotFoundError):
        file_store(EXPORTS).read("one")


def test_the_time_of_a_file_is_known(store: str, tmp_path: Path) -> None:
    put(tmp_path, "dated")
    [file] = file_store(EXPORTS).all_files()
    assert abs(timezone.now() - file.changed_at) < timedelta(minutes=5)
    file_store(EXPORTS).delete("dated")


def test_no_store_gives_an_address_of_a_file(store: str, tmp_path: Path) -> None:
    put(tmp_path, "secret")
    with pytest.raises(NotImplementedError):
        file_store(EXPORTS).url("secret")
    file_store(EXPORTS).delete("secret")


def test_files_of_a_folder_are_readable_by_this_user_only(tmp_path: Path, settings: Settings) -> None:
    backend, folder = "backoffice.core.storage.files.PrivateFolder", tmp_path / "store"
    settings.STORAGES = {**settings.STORAGES, EXPORTS: {"BACKEND": backend, "OPTIONS": {"location": folder}}}
    put(tmp_path, "one")
    assert (folder.stat().st_mode & 0o777, (folder / "one").stat().st_mode & 0o777) == (0o700, 0o600)
    assert not is_shared()


def test_an_object_has_no_grant_for_everyone(bucket: str, tmp_path: Path) -> None:
    put(tmp_path, "private")
    store = file_store(EXPORTS)
    assert isinstance(store, PrivateBucket)
    grants = store.bucket.Object("tests/exports/private").Acl().grants
    assert [grant["Grantee"]["Type"] for grant in grants] == ["CanonicalUser"]
    assert requests.get(f"{bucket}/{BUCKET}/tests/exports/private", timeout=10).status_code == 403
    assert is_shared()
    file_store(EXPORTS).delete("private")


@pytest.mark.parametrize("size", [1, 9 * 1024 * 1024], ids=["at once", "in parts"])
def test_a_refused_upload_is_an_error_and_the_file_stays(
    bucket: str, tmp_path: Path, settings: Settings, size: int
) -> None:
    settings.STORAGES = {**settings.STORAGES, EXPORTS: bucket_options(bucket, EXPORTS, name="no-such-bucket")}
    made = tmp_path / "made.part"
    made.write_bytes(bytes(size))
    with pytest.raises(FileStoreError, match=r"^The object store refused the request: NoSuchBucket$"):
        file_store(EXPORTS).put(made, "one")
    assert made.exists()


def test_a_store_that_is_away_is_an_error_and_the_file_stays(tmp_path: Path, settings: Settings) -> None:
    away = bucket_options("http://127.0.0.1:9", EXPORTS)
    settings.STORAGES = {**settings.STORAGES, EXPORTS: away}
    made = tmp_path / "made.part"
    made.write_bytes(b"x")
    with pytest.raises(FileStoreError):
        file_store(EXPORTS).put(made, "one")
    assert made.exists()
    with pytest.raises(FileStoreError):
        file_store(EXPORTS).read("one")
