"""The public keys of deliveries: by which fingerprint they are shown, and which will not do."""

import string
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from payments_gateway.webhooks import load_public_key
from tests.payments_gateway.vectors.make_vectors import FOLDER, private_key
from tests.payments_gateway.vectors.public_keys import KEYS


def public_pem(key: Any) -> bytes:
    raw = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert isinstance(raw, bytes)
    return raw


def test_the_fingerprint_of_a_key_is_over_its_der_form() -> None:
    key = load_public_key((FOLDER / "current.pub.pem").read_text())
    assert key == KEYS["current"]
    assert len(key.fingerprint) == 64
    assert set(key.fingerprint) <= set(string.hexdigits.lower())
    assert KEYS["current"].fingerprint != KEYS["previous"].fingerprint


def test_a_key_in_pkcs_1_pem_is_the_same_key() -> None:
    older = private_key("current").public_key().public_bytes(Encoding.PEM, PublicFormat.PKCS1)
    assert load_public_key(older) == KEYS["current"]


CURRENT = (FOLDER / "current.pub.pem").read_bytes()
PRIVATE = private_key("current").private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
SMALL = rsa.generate_private_key(public_exponent=65_537, key_size=1024)  # noqa: S505 - to be refused


@pytest.mark.parametrize(
    ("pem", "problem"),
    [
        (b"", "exactly one public key"),
        (b"nonsense", "exactly one public key"),
        ("schlüssel", "exactly one public key"),
        (CURRENT + CURRENT, "exactly one public key"),
        (PRIVATE, "private key"),
        ((FOLDER / "current.pem").read_text(), "private key"),
        (CURRENT.replace(b"M", b"!", 3), "damaged"),
        (CURRENT[:200], "damaged"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "damaged"),
        (public_pem(ec.generate_private_key(ec.SECP256R1())), "another kind"),
        (public_pem(SMALL), "1024 bits"),
    ],
)
def test_an_unusable_key_is_refused_with_an_explanation(pem: str | bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        load_public_key(pem)
