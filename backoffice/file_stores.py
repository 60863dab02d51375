"""The stores of files for Django's `STORAGES`, without Django: settings are read before it is set up."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

KINDS = ("exports", "archives")


def file_stores(folder: Path, bucket: Mapping[str, str], *, prefix: str) -> dict[str, dict[str, Any]]:
    """A store for each kind of files: in the bucket if it is named, otherwise in a folder of this name.

    `bucket` holds options of the S3 backend of django-storages; those that are empty are left to its defaults.
    """
    if not bucket["bucket_name"]:
        return {kind: _folder(folder / kind) for kind in KINDS}
    return {kind: _bucket(bucket, f"{prefix}/{kind}".lstrip("/")) for kind in KINDS}


def _folder(location: Path) -> dict[str, Any]:
    modes = {"file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}
    return {
        "BACKEND": "backoffice.core.storage.files.PrivateFolder",
        "OPTIONS": {"location": location, "base_url": None, **modes},
    }


def _bucket(bucket: Mapping[str, str], location: str) -> dict[str, Any]:
    return {
        "BACKEND": "backoffice.core.storage.bucket.PrivateBucket",
        "OPTIONS": {
            **{name: value for name, value in bucket.items() if value},
            "location": location,
            "addressing_style": "path" if bucket["endpoint_url"] else "auto",
            "signature_version": "s3v4",
            "default_acl": None,  # objects are as private as the bucket
            "querystring_auth": True,
            "file_overwrite": False,
        },
    }
