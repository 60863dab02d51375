"""Encryption of the few secrets that must be stored: AES-256-GCM, bound to the row they belong to.

Keys come from `ENCRYPTION_KEYS` as `id:base64`, newest first. The first one encrypts; all of them decrypt. So a
key is rotated by putting a new one in front, running `manage.py reencryptsecrets`, and dropping the old one.
`EncryptedRow` is the base of every model that stores a secret for longer than a key may live.
"""

import base64
import binascii
import os
from functools import cache
from typing import ClassVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import models

_NONCE_BYTES = 12


class DecryptionError(Exception):
    """The sealed text is not ours, belongs to another row, or its key is gone."""


def encrypt(plaintext: str, *, bound_to: str) -> bytes:
    """Encrypt a text so that it can only be opened with the same `bound_to`.

    Shape: key id, a zero byte, 12 bytes of nonce, ciphertext with tag.
    """
    key_id = newest_key_id()
    key, nonce = _keys(tuple(settings.ENCRYPTION_KEYS))[key_id], os.urandom(_NONCE_BYTES)
    return key_id.encode() + b"\0" + nonce + key.encrypt(nonce, plaintext.encode(), bound_to.encode())


def decrypt(sealed: bytes, *, bound_to: str) -> str:
    """The text that was sealed. Raises VaultError; its message holds nothing of the content."""
    rest = bytes(sealed).partition(b"\0")[2]
    key = _keys(tuple(settings.ENCRYPTION_KEYS)).get(key_id_of(sealed))
    if key is None:
        raise DecryptionError("The key that sealed this is not among the configured keys")
    try:
        return key.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], bound_to.encode()).decode()
    except (InvalidTag, ValueError) as exc:  # ValueError: cut off within the nonce
        raise DecryptionError("This was not sealed for this row, or it was altered") from exc


def newest_key_id() -> str:
    """The id of the key that seals."""
    return next(iter(_keys(tuple(settings.ENCRYPTION_KEYS))))


def key_id_of(sealed: bytes) -> str:
    """The id of the key that this was sealed under."""
    return bytes(sealed).partition(b"\0")[0].decode(errors="replace")


def check_encryption_keys() -> None:
    """Raise ImproperlyConfigured, which names no key, if the configured keys cannot be used."""
    _keys(tuple(settings.ENCRYPTION_KEYS))


@cache
def _keys(configured: tuple[str, ...]) -> dict[str, AESGCM]:
    pairs = [_key(item.strip()) for item in configured]
    keys = dict(pairs)
    if not keys or len(keys) != len(pairs):
        raise ImproperlyConfigured(
            "COUNTERSIGN_ENCRYPTION_KEYS: at least one key, each with an id of its own"
        )
    return keys


def _key(item: str) -> tuple[str, AESGCM]:
    key_id, _, encoded = item.partition(":")
    try:
        raw = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        raw = b""
    if not key_id or len(raw) != 32:
        raise ImproperlyConfigured("COUNTERSIGN_ENCRYPTION_KEYS: each key is `id:` and 32 bytes in base64")
    return key_id, AESGCM(raw)


class EncryptedRow(models.Model):
    """A row with one sealed secret that outlives encryption keys. `manage.py reencryptsecrets` finds every such model."""

    SEALED: ClassVar[str]  # the column

    class Meta:
        abstract = True

    @property
    def bound_to(self) -> str:
        """What the secret is sealed to: it opens in this row only."""
        raise NotImplementedError

    @property
    def owner(self) -> str:
        """Whose secret it is, for people who must be told that it is lost."""
        raise NotImplementedError

    @property
    def sealed_under(self) -> str:
        """The id of the key that the secret is sealed under."""
        return key_id_of(bytes(getattr(self, self.SEALED)))

    def seal(self, plaintext: str) -> None:
        """Put a secret into the row. Nothing is saved."""
        setattr(self, self.SEALED, encrypt(plaintext, bound_to=self.bound_to))

    def unsealed(self) -> str:
        """The secret in the clear. Raises VaultError."""
        return decrypt(bytes(getattr(self, self.SEALED)), bound_to=self.bound_to)

    def reseal(self) -> None:
        """Seal the same secret under the newest key, unless the row has changed meanwhile. Raises VaultError."""
        before = bytes(getattr(self, self.SEALED))
        self.seal(self.unsealed())
        type(self)._default_manager.filter(pk=self.pk, **{self.SEALED: before}).update(
            **{self.SEALED: getattr(self, self.SEALED)}
        )
