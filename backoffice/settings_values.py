"""How the values of settings are made where a plain type does not do, and the defaults that are for development."""

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from environ import Env

from payments_gateway.money import CURRENCIES

# Public, so they are refused outside the sandbox.
DEVELOPMENT_SECRET = "development-only-" + "0" * 48
DEVELOPMENT_ENCRYPTION_KEY = "A" * 43 + "="
SANDBOX_API_KEY = "sandbox-key-of-the-simulation"

DEFAULT_APPROVAL_LIMITS = {"NGN": Decimal(10_000_000), "USD": Decimal(10_000), "USDT": Decimal(10_000)}
# Those to which apprise sends for the services of `notifications.channels.chat` that have servers of their own.
DEFAULT_CHAT_HOSTS = [
    *("hooks.slack.com", "slack.com", "discord.com", "chat.googleapis.com", "api.telegram.org", "ntfy.sh"),
    *("*.webhook.office.com", "outlook.office.com", "*.logic.azure.com", "*.api.powerplatform.com"),
    *("webexapis.com", "api.ciscospark.com", "*.zulipchat.com", "api.pushover.net", "api.pushbullet.com"),
    *("api.opsgenie.com", "api.eu.opsgenie.com", "events.pagerduty.com", "events.eu.pagerduty.com"),
]
_APPROVAL_LIMITS_SETTING = "COUNTERSIGN_SECOND_APPROVAL_ABOVE"
_APPROVAL_LIMIT = re.compile(r"(\w+)=([0-9]+(?:\.[0-9]+)?)", re.ASCII)


KINDS_THAT_PAY = ("withdrawal", "transfer", "wallet_transfer", "payment")
MOST_COOLING_HOURS = 8760  # a year
_KINDS_OF_FILES = ("exports", "archives")


def allow_listed_kinds(written: Iterable[str]) -> frozenset[str]:
    """These kinds. Raises ImproperlyConfigured for any other name, so that no kind that was meant is left open."""
    names = frozenset(filter(None, (item.strip() for item in written)))
    if not names <= set(KINDS_THAT_PAY):
        raise ImproperlyConfigured(f"COUNTERSIGN_ALLOW_LIST: any of {', '.join(KINDS_THAT_PAY)}")
    return names


def cooling_hours(hours: int) -> int:
    """These hours. Raises ImproperlyConfigured for fewer than 0 or more than a year."""
    if not 0 <= hours <= MOST_COOLING_HOURS:
        raise ImproperlyConfigured(f"COUNTERSIGN_RECIPIENT_COOLING_HOURS: 0 to {MOST_COOLING_HOURS}")
    return hours


Value = TypeVar("Value")
ENCODING = (
    "In a password write %25 for %, %2F for /, %23 for #, %3F for ?, %40 for @, %3A for : and %5B for [."
)


def database(setting: str, address: str) -> dict[str, Any]:
    """Django's settings of a database. Raises ImproperlyConfigured, without a part of the address."""
    found = _read(lambda: dict(Env.db_url_config(address)))
    if found is None or not str(found.get("ENGINE", "")).startswith("django.db.backends."):
        raise ImproperlyConfigured(
            f"{setting} cannot be read: set an address such as postgres://user:password@host:5432/name. {ENCODING}"
        )
    return found


def broker(setting: str, address: str) -> str:
    """The address. Raises ImproperlyConfigured, without a part of it, if it has none of its parts."""
    if _read(lambda: urlsplit(address).port or 0) is None or "://" not in address:
        raise ImproperlyConfigured(
            f"{setting} cannot be read: set an address such as rediss://user:password@host:6379/0. {ENCODING}"
        )
    return address


def mail(setting: str, address: str) -> dict[str, Any]:
    """Django's settings of the mail server. Raises ImproperlyConfigured, without a part of the address."""
    found = _read(lambda: dict(Env.email_url_config(address)))
    if found is None:
        raise ImproperlyConfigured(
            f"{setting} cannot be read: set an address such as smtp+tls://user:password@host:587. {ENCODING}"
        )
    return found


def _read(parse: Callable[[], Value]) -> Value | None:
    """None if it cannot be read. Errors and warnings of parsers repeat what they cannot read, such as a password."""
    with warnings.catch_warnings(), suppress(ValueError, ImproperlyConfigured):
        warnings.simplefilter("ignore")
        return parse()
    return None


def hash_list(setting: str, path: str) -> str:
    """The path of a file whose first line begins with a SHA-1 hash, or nothing. Raises ImproperlyConfigured."""
    if path:
        try:
            with open(path, "rb") as file:
                begins = file.read(41)
        except OSError as exc:
            raise ImproperlyConfigured(f"{setting} cannot be read: {exc.strerror}") from exc
        if not re.fullmatch(rb"[0-9A-Fa-f]{40}[:\r\n]?", begins):
            raise ImproperlyConfigured(f"{setting}: each line must begin with a SHA-1 hash, sorted")
    return path


def is_installed(package: str) -> bool:
    """Whether an optional package can be imported."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


def approval_limits(written: Iterable[str]) -> dict[str, Decimal]:
    """The limit of every currency: as configured (`NGN=10000000`), or the default.

    Raises ImproperlyConfigured for anything else, so that no limit that was meant to be set is ignored.
    """
    return {**DEFAULT_APPROVAL_LIMITS, **amounts_by_currency(_APPROVAL_LIMITS_SETTING, written)}


def amounts_by_currency(setting: str, written: Iterable[str]) -> dict[str, Decimal]:
    """The amounts that this setting names, such as `NGN=50000,USD=100`.

    Raises ImproperlyConfigured for anything else.
    """
    limits: dict[str, Decimal] = {}
    for item in written:
        found = _APPROVAL_LIMIT.fullmatch(item.strip())
        if found is None or found[1] not in CURRENCIES or found[1] in limits:
            raise ImproperlyConfigured(
                f"{setting} must be like NGN=10000000,USD=10000: "
                f"each of {', '.join(CURRENCIES)} at most once, "
                "digits and one point only"
            )
        limits[found[1]] = Decimal(found[2])
    return limits


def file_stores(folder: Path, bucket: Mapping[str, str], *, prefix: str) -> dict[str, dict[str, Any]]:
    """A store for each kind of files, for `STORAGES`: in the bucket if it is named, otherwise in a folder of this name.

    `bucket` holds options of the S3 backend of django-storages; those that are empty are left to its defaults.
    """
    if not bucket["bucket_name"]:
        return {kind: _store_in_folder(folder / kind) for kind in _KINDS_OF_FILES}
    return {kind: _store_in_bucket(bucket, f"{prefix}/{kind}".lstrip("/")) for kind in _KINDS_OF_FILES}


def _store_in_folder(location: Path) -> dict[str, Any]:
    modes = {"file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}
    return {
        "BACKEND": "backoffice.core.storage.files.PrivateFolder",
        "OPTIONS": {"location": location, "base_url": None, **modes},
    }


def _store_in_bucket(bucket: Mapping[str, str], location: str) -> dict[str, Any]:
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
