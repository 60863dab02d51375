"""The store of files in a bucket of a real S3-compatible server on loopback."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer
from pytest_django import Settings

KEYS = {"aws_access_key_id": "test-access-key", "aws_secret_access_key": "test-secret-key"}
BUCKET = "countersign-files"


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """Address of a server that speaks the protocol of S3, with an empty private bucket."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    _s3(address).create_bucket(Bucket=BUCKET)
    yield address
    server.stop()


def _s3(address: str) -> Any:
    connect: Any = boto3.resource
    return connect("s3", endpoint_url=address, region_name="us-east-1", **KEYS)


def bucket_options(address: str, kind: str, *, name: str = BUCKET) -> dict[str, object]:
    return {
        "BACKEND": "backoffice.core.storage.bucket.PrivateBucket",
        "OPTIONS": {
            "bucket_name": name,
            "location": f"tests/{kind}",
            "endpoint_url": address,
            "region_name": "us-east-1",
            "access_key": KEYS["aws_access_key_id"],
            "secret_key": KEYS["aws_secret_access_key"],
            "addressing_style": "path",
            "signature_version": "s3v4",
            "default_acl": None,
            "file_overwrite": False,
        },
    }


def environment_of_bucket(address: str) -> dict[str, str]:
    """The variables of a process that keeps its files in the same bucket."""
    return {
        "COUNTERSIGN_FILES_BUCKET": BUCKET,
        "COUNTERSIGN_FILES_PREFIX": "tests",
        "COUNTERSIGN_FILES_ENDPOINT": address,
        "COUNTERSIGN_FILES_ACCESS_KEY": KEYS["aws_access_key_id"],
        "COUNTERSIGN_FILES_SECRET_KEY": KEYS["aws_secret_access_key"],
    }


@pytest.fixture
def bucket(s3_server: str, settings: Settings) -> str:
    """All files are kept in the bucket; the address of its server."""
    _s3(s3_server).Bucket(BUCKET).objects.all().delete()
    stores = {kind: bucket_options(s3_server, kind) for kind in ("exports", "archives")}
    settings.STORAGES = {**settings.STORAGES, **stores}
    return s3_server
