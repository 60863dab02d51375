"""Encryption of the few secrets that must be stored: AES-256-GCM, bound to the row they belong to.

Keys come from `ENCRYPTION_KEYS` as `id:base64`, newest first. The first one encrypts; all of them decrypt,
so a key is rotated by putting a new one in front and dropping the old one once nothing needs it.
"""

import base64
import os
from functools import cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

_NONCE_BYTES = 12


class VaultError(Exception):
    """The sealed text is not ours, belongs to another row, or its key is gone."""


def seal(plaintext: str, *, bound_to: str) -> bytes:
    """Encrypt a text so that it can only be opened with the same `bound_to`.

    Shape: key id, a zero byte, 12 bytes of nonce, ciphertext with tag.
    """
    key_id, key = next(iter(_keys(tuple(settings.ENCRYPTION_KEYS)).items()))
    nonce = os.urandom(_NONCE_BYTES)
    return key_id.encode() + b"\0" + nonce + key.encrypt(nonce, plaintext.encode(), bound_to.encode())


def open_sealed(sealed: bytes, *, bound_to: str) -> str:
    """The text that was sealed. Raises VaultError; its message holds nothing of the content."""
    key_id, _, rest = bytes(sealed).partition(b"\0")
    key = _keys(tuple(settings.ENCRYPTION_KEYS)).get(key_id.decode(errors="replace"))
    if key is None:
        raise VaultError("The key that sealed this is not among the configured keys")
    try:
        return key.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], bound_to.encode()).decode()
    except InvalidTag as exc:
        raise VaultError("This was not sealed for this row, or it was altered") from exc


@cache
def _keys(configured: tuple[str, ...]) -> dict[str, AESGCM]:
    keys = {}
    for item in configured:
        key_id, _, encoded = item.partition(":")
        raw = base64.b64decode(encoded)
        if not key_id or len(raw) != 32:
            raise ImproperlyConfigured(
                "COUNTERSIGN_ENCRYPTION_KEYS: each key is `id:` and 32 bytes in base64"
            )
        keys[key_id] = AESGCM(raw)
    return keys
