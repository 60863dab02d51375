"""Encryption of the few secrets that must be stored, and seals of rows that must not be altered outside the program.

Secrets are encrypted with AES-256-GCM, bound to the row that holds them. A seal is an HMAC-SHA256 over a row's
content, under a key derived from an encryption key: who has the database alone cannot make one.

Keys come from `ENCRYPTION_KEYS` as `id:base64`, newest first. The first one encrypts and seals; all of them
decrypt and verify. To rotate: append a new key and restart every process, so that each can verify its seals; move
it to the front and restart again; run `manage.py reencrypt_secrets`; then drop the old one.
`EncryptedRow` and `SealedRow` are the bases of every model whose secret or seal may outlive an encryption key.
"""

import base64
import binascii
import hmac
import json
import os
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from typing import ClassVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import models

_NONCE_BYTES = 12
_SEAL_PURPOSE = b"countersign seal v1"  # a key derived for another purpose cannot make a valid seal


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


def keyed_hashes(text: str, *, purpose: str) -> list[str]:
    """The hash of a text under each configured key, the newest first: equal for equal texts, and useless without
    the key, also for texts that can be guessed.
    """
    return [
        hmac.digest(key, text.encode(), "sha256").hex()
        for key in _derived_keys(
            tuple(settings.ENCRYPTION_KEYS), f"countersign hash of {purpose} v1".encode()
        ).values()
    ]


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


class SealState(StrEnum):
    """The result of verifying a seal."""

    VALID = "valid"
    MISSING = "missing"
    WRONG = "wrong"  # the content was altered, or the seal was made for another row or without the key
    KEY_UNKNOWN = "key_unknown"  # its key is not among the configured keys


class SealedRow(models.Model):
    """A row with a seal over its content. `manage.py reencrypt_secrets` finds every model of this kind.

    The seal is null if the row was stored outside the program. It is not protected by a trigger, since no one
    can make another valid one without the key.
    """

    seal = models.TextField(null=True, editable=False)  # noqa: DJ001 - `key id:hexadecimal`, null for none

    class Meta:
        abstract = True

    def sealed_content(self) -> Mapping[str, object]:
        """What the seal covers, as JSON members; different for every row and every kind of row."""
        raise NotImplementedError

    @property
    def owner(self) -> str:
        """What the row belongs to, for the message that its seal is wrong."""
        raise NotImplementedError

    def make_seal(self) -> None:
        """Seal the content as it is now with the newest key, without saving it."""
        self.seal = seal_of(self.sealed_content())

    def seal_state(self) -> SealState:
        """Whether the seal was made for the content as it is now."""
        if not self.seal:
            return SealState.MISSING
        key_id, _, mac = self.seal.rpartition(":")
        if key_id not in _sealing_keys(tuple(settings.ENCRYPTION_KEYS)):
            return SealState.KEY_UNKNOWN
        is_right = hmac.compare_digest(mac.encode(), _mac(key_id, self.sealed_content()).encode())
        return SealState.VALID if is_right else SealState.WRONG

    @property
    def is_genuine(self) -> bool:
        """Whether this program stored the content as it is now."""
        return self.seal_state() == SealState.VALID

    def reseal(self) -> bool:
        """Seal the row with the newest key, unless it was changed meanwhile; False if its seal is not valid."""
        if self.seal_state() != SealState.VALID:
            return False
        before = self.seal
        self.make_seal()
        type(self)._default_manager.filter(pk=self.pk, seal=before).update(seal=self.seal)
        return True


def seal_of(content: Mapping[str, object]) -> str:
    """The seal of this content, made with the newest key."""
    key_id = newest_key_id()
    return f"{key_id}:{_mac(key_id, content)}"


def _mac(key_id: str, content: Mapping[str, object]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hmac.digest(_sealing_keys(tuple(settings.ENCRYPTION_KEYS))[key_id], text.encode(), "sha256").hex()


def _sealing_keys(configured: tuple[str, ...]) -> dict[str, bytes]:
    return _derived_keys(configured, _SEAL_PURPOSE)


@cache
def _derived_keys(configured: tuple[str, ...], purpose: bytes) -> dict[str, bytes]:
    keys = parse_keys(configured, setting="COUNTERSIGN_ENCRYPTION_KEYS")
    return {key_id: HKDF(SHA256(), 32, salt=None, info=purpose).derive(raw) for key_id, raw in keys.items()}
