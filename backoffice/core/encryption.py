"""Encryption of the few secrets that must be stored: AES-256-GCM, bound to the row that holds them.

Keys come from `ENCRYPTION_KEYS` as `id:base64`, newest first. The first one encrypts; all of them decrypt. To
rotate: put a new key in front, run `manage.py reencrypt_secrets`, then drop the old one. `EncryptedRow` is the
base of every model whose secret may outlive an encryption key.
"""

import base64
import binascii
import os
from collections.abc import Iterable
from functools import cache
from typing import ClassVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import models

_NONCE_BYTES = 12


class DecryptionError(Exception):
    """The ciphertext is malformed, altered, bound to another row, or its key is not configured."""


def encrypt(plaintext: str, *, bound_to: str) -> bytes:
    """Encrypt a text so that it can be decrypted only with the same `bound_to` (the associated data).

    Format: key id, a zero byte, 12 bytes of nonce, ciphertext with tag.
    """
    key_id, key = next(iter(_keys(tuple(settings.ENCRYPTION_KEYS)).items()))
    nonce = os.urandom(_NONCE_BYTES)
    return key_id.encode() + b"\0" + nonce + key.encrypt(nonce, plaintext.encode(), bound_to.encode())


def decrypt(encrypted: bytes, *, bound_to: str) -> str:
    """The plaintext. Raises DecryptionError, whose message contains nothing of the content."""
    key_id, _, rest = bytes(encrypted).partition(b"\0")
    key = _keys(tuple(settings.ENCRYPTION_KEYS)).get(key_id.decode(errors="replace"))
    if key is None:
        raise DecryptionError("The key that encrypted this is not among the configured keys")
    try:
        return key.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], bound_to.encode()).decode()
    except (InvalidTag, ValueError) as exc:  # ValueError: shorter than the nonce
        raise DecryptionError("This was not encrypted for this row, or it was altered") from exc


def newest_key_id() -> str:
    """The id of the key that encrypts."""
    return key_ids()[0]


def key_ids() -> list[str]:
    """The ids of the configured keys, newest first."""
    return list(_keys(tuple(settings.ENCRYPTION_KEYS)))


def check_encryption_keys() -> None:
    """Raises ImproperlyConfigured, without the key in its message, if the configured keys cannot be used."""
    _keys(tuple(settings.ENCRYPTION_KEYS))


@cache
def _keys(configured: tuple[str, ...]) -> dict[str, AESGCM]:
    keys = parse_keys(configured, setting="COUNTERSIGN_ENCRYPTION_KEYS")
    return {key_id: AESGCM(raw) for key_id, raw in keys.items()}


def parse_keys(configured: Iterable[str], *, setting: str) -> dict[str, bytes]:
    """The 32 bytes of each configured key (`id:base64`) by its id, in their order.

    Raises ImproperlyConfigured, without a key in its message, unless there is a key and each id is unique.
    """
    pairs = [_parse_key(item.strip(), setting) for item in configured]
    keys = dict(pairs)
    if not keys or len(keys) != len(pairs):
        raise ImproperlyConfigured(f"{setting}: at least one key, each with an id of its own")
    return keys


def _parse_key(item: str, setting: str) -> tuple[str, bytes]:
    key_id, _, encoded = item.partition(":")
    try:
        raw = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        raw = b""
    if not key_id or len(raw) != 32:
        raise ImproperlyConfigured(f"{setting}: each key is `id:` and 32 bytes in base64")
    return key_id, raw


class EncryptedRow(models.Model):
    """A row with one encrypted secret. `manage.py reencrypt_secrets` finds every model of this kind."""

    ENCRYPTED_FIELD: ClassVar[str]  # name of the column with the ciphertext

    class Meta:
        abstract = True

    @property
    def bound_to(self) -> str:
        """The associated data of the encryption, different for every row."""
        raise NotImplementedError

    @property
    def owner(self) -> str:
        """Whose secret it is, for the message that it can no longer be decrypted."""
        raise NotImplementedError

    @property
    def encryption_key_id(self) -> str:
        """The id of the key with which the secret is encrypted."""
        return bytes(getattr(self, self.ENCRYPTED_FIELD)).partition(b"\0")[0].decode(errors="replace")

    def encrypt(self, plaintext: str) -> None:
        """Encrypt a secret into the row, without saving it."""
        setattr(self, self.ENCRYPTED_FIELD, encrypt(plaintext, bound_to=self.bound_to))

    def decrypted(self) -> str:
        """The plaintext. Raises DecryptionError."""
        return decrypt(bytes(getattr(self, self.ENCRYPTED_FIELD)), bound_to=self.bound_to)

    def reencrypt(self) -> None:
        """Encrypt the same secret with the newest key, unless the row was changed meanwhile. Raises
        DecryptionError.
        """
        before = bytes(getattr(self, self.ENCRYPTED_FIELD))
        self.encrypt(self.decrypted())
        type(self)._default_manager.filter(pk=self.pk, **{self.ENCRYPTED_FIELD: before}).update(
            **{self.ENCRYPTED_FIELD: getattr(self, self.ENCRYPTED_FIELD)}
        )
