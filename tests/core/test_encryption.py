"""Encryption: a value is decrypted for its row, under its key, unaltered, or not at all."""

import base64
import traceback

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from backoffice.core import encryption

SECRET = "canary: a seed, 482913, ₦ and \N{ELEPHANT}"
BINDING = "release:1:digest"


def key(name: str, byte: bytes) -> str:
    return f"{name}:{base64.b64encode(byte * 32).decode()}"


OLD, NEW = key("2025", b"o"), key("2026", b"n")


@pytest.fixture
def encrypted(settings: Settings) -> bytes:
    settings.ENCRYPTION_KEYS = [OLD]
    return encryption.encrypt(SECRET, bound_to=BINDING)


@pytest.mark.parametrize("text", ["", "x", SECRET, "long " * 10_000])
def test_encrypted_text_decrypts(text: str) -> None:
    assert encryption.decrypt(encryption.encrypt(text, bound_to=BINDING), bound_to=BINDING) == text


def test_the_same_text_encrypts_differently_each_time(encrypted: bytes) -> None:
    again = encryption.encrypt(SECRET, bound_to=BINDING)
    assert again != encrypted
    assert b"canary" not in encrypted + again


@pytest.mark.parametrize("other", ["", "release:2:digest", "release:1:digesT", "release:1:digest "])
def test_a_ciphertext_is_bound_to_its_row(encrypted: bytes, other: str) -> None:
    with pytest.raises(encryption.DecryptionError, match="not encrypted for this row"):
        encryption.decrypt(encrypted, bound_to=other)


def test_an_altered_byte_is_detected(encrypted: bytes) -> None:
    for place in range(len(encrypted)):
        altered = encrypted[:place] + bytes([encrypted[place] ^ 1]) + encrypted[place + 1 :]
        with pytest.raises(encryption.DecryptionError):
            encryption.decrypt(altered, bound_to=BINDING)


def test_truncated_or_foreign_ciphertexts_are_refused(encrypted: bytes) -> None:
    for rest in (
        *(encrypted[:length] for length in range(len(encrypted))),
        encrypted + b"\0",
        b"\xff\0",
        b"plain text",
    ):
        with pytest.raises(encryption.DecryptionError):
            encryption.decrypt(rest, bound_to=BINDING)


def test_an_error_reveals_neither_content_nor_key(encrypted: bytes) -> None:
    with pytest.raises(encryption.DecryptionError) as caught:
        encryption.decrypt(encrypted, bound_to="another row")
    traceback_text = "".join(traceback.format_exception(caught.value))
    assert "canary" not in traceback_text
    assert OLD.partition(":")[2] not in traceback_text


def test_the_first_key_encrypts_and_older_keys_decrypt(settings: Settings, encrypted: bytes) -> None:
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    assert encryption.decrypt(encrypted, bound_to=BINDING) == SECRET
    newly_encrypted = encryption.encrypt(SECRET, bound_to=BINDING)
    settings.ENCRYPTION_KEYS = [NEW]
    assert encryption.decrypt(newly_encrypted, bound_to=BINDING) == SECRET
    with pytest.raises(encryption.DecryptionError, match="not among the configured keys"):
        encryption.decrypt(encrypted, bound_to=BINDING)


def test_another_key_with_the_same_id_does_not_decrypt(settings: Settings, encrypted: bytes) -> None:
    settings.ENCRYPTION_KEYS = [key("2025", b"?")]
    with pytest.raises(encryption.DecryptionError):
        encryption.decrypt(encrypted, bound_to=BINDING)


@pytest.mark.parametrize(
    "malformed",
    [
        [],
        [""],
        ["no-colon"],
        [f":{OLD.partition(':')[2]}"],
        ["short:" + base64.b64encode(b"k" * 16).decode()],
        ["long:" + base64.b64encode(b"k" * 33).decode()],
        ["cut:" + "k" * 43],
        ["url-safe:" + "-_" * 21 + "k="],
        ["spaced:" + OLD.partition(":")[2][:20] + " " + OLD.partition(":")[2][20:]],
        [OLD, "2026:broken"],
        [NEW, NEW],
        [key("2026", b"a"), key("2026", b"b")],
    ],
    ids=lambda keys: ",".join(item[:9] for item in keys) or "none",
)
def test_invalid_keys_prevent_startup_without_being_shown(settings: Settings, malformed: list[str]) -> None:
    settings.ENCRYPTION_KEYS = malformed
    with pytest.raises(ImproperlyConfigured, match="COUNTERSIGN_ENCRYPTION_KEYS") as caught:
        apps.get_app_config("core").ready()
    assert not [item for item in malformed if len(item) > 20 and item.partition(":")[2] in str(caught.value)]


def test_whitespace_around_a_key_is_ignored(settings: Settings, encrypted: bytes) -> None:
    settings.ENCRYPTION_KEYS = [f" {NEW}", f"{OLD}\n"]
    assert encryption.decrypt(encrypted, bound_to=BINDING) == SECRET
