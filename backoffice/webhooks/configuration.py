"""The receiver as this deployment configures it: the secret part of its address, and the service's public keys."""

import re
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.utils.crypto import constant_time_compare

from payments_gateway.deliveries import MOST_KEYS, PublicKey, load_public_key

_SECRET = re.compile(r"[A-Za-z0-9_-]{32,}")
_PEM = re.compile(rb"-----BEGIN [^-]+-----.*?-----END [^-]+-----", re.DOTALL)


def is_on() -> bool:
    """Whether deliveries are received at all: not without a secret, and not with one that can be guessed."""
    return _SECRET.fullmatch(settings.WEBHOOK_SECRET) is not None


def is_secret(told: str) -> bool:
    """Whether this is the secret part of our address; how long that takes to say tells nothing of it."""
    return constant_time_compare(told, settings.WEBHOOK_SECRET) and is_on()


def public_keys() -> tuple[PublicKey, ...]:
    """The one or two keys that the service signs with; none where none are configured.

    The file is read again when it changes, so that new keys need no restart. Raises ValueError that says what is wrong.
    """
    if not settings.WEBHOOK_KEYS:
        return ()
    try:
        file = Path(settings.WEBHOOK_KEYS)
        return _read(file, file.stat().st_mtime_ns)
    except OSError as exc:
        raise ValueError(f"{settings.WEBHOOK_KEYS} cannot be read: {exc.strerror}.") from exc


@lru_cache(maxsize=4)
def _read(file: Path, _changed: int) -> tuple[PublicKey, ...]:
    found = _PEM.findall(file.read_bytes())
    if not 1 <= len(found) <= MOST_KEYS:
        raise ValueError(f"{file} holds {len(found)} keys in PEM, and must hold one or {MOST_KEYS}.")
    return tuple(map(load_public_key, found))
