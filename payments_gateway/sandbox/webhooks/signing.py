"""Sign deliveries: RSASSA-PSS with SHA-256, MGF1 and maximum salt length, over the JSON text of `data`.

The first key is created on first use and stored in the database. After a rotation either of the two newest
keys may sign until `OVERLAP` has passed on the provider's clock. The body is {"event", "data", "signature"},
compact, in this order; correct, or forged as requested.
"""

import base64
import json
import re
import secrets
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import lru_cache

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from django.db.transaction import atomic

from payments_gateway.money import dumps, loads
from payments_gateway.sandbox import clock
from payments_gateway.sandbox.models import Forgery, SigningKey

OVERLAP = timedelta(hours=1)
"""How long after a rotation the previous key may still sign, by the provider's clock."""

_KEY_BITS = 2048


def public_keys() -> list[dict[str, str]]:
    """The keys that may sign now, newest first: one, or two for a while after a rotation.

    Each is {"pem": …, "madeAt": …}: the key that a merchant would be given, and when it was created.
    """
    return [
        {"pem": _public_pem(key.private_pem), "madeAt": clock.iso_timestamp(key.made_at)}
        for key in signing_keys()
    ]


def rotate_key() -> list[dict[str, str]]:
    """Create a new key and return the public keys.

    The previous key signs half of the deliveries until `OVERLAP` has passed.
    """
    signing_keys()  # ensure that there is a previous key
    SigningKey.objects.create(private_pem=_new_pem(), made_at=clock.now())
    return public_keys()


@atomic
def forget_rotations() -> None:
    """Delete all keys but the newest."""
    newest = SigningKey.objects.order_by("-id").first()
    if newest is not None:
        SigningKey.objects.exclude(id=newest.id).delete()


def signing_keys() -> list[SigningKey]:
    """The keys that may sign now, newest first; creates the first key."""
    keys = list(SigningKey.objects.order_by("-id")[:2]) or [_first_key(_new_pem())]
    return keys[:1] if clock.now() - keys[0].made_at >= OVERLAP else keys


def key_for(number: int) -> rsa.RSAPrivateKey:
    """The key for the delivery with this number."""
    keys = signing_keys()
    return _load_key(keys[number % len(keys)].private_pem)


def new_key() -> rsa.RSAPrivateKey:
    """Generate a key without storing it."""
    return rsa.generate_private_key(public_exponent=65_537, key_size=_KEY_BITS)


def sign(data: bytes, key: rsa.RSAPrivateKey) -> bytes:
    """Sign the JSON text of `data` exactly as it appears in the body."""
    pss = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.MAX_LENGTH)
    return key.sign(data, pss, hashes.SHA256())


def _new_pem() -> str:
    # Slow (a good part of a second), so it never runs while the database is locked.
    return new_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@atomic
def _first_key(private_pem: str) -> SigningKey:
    """Store this key, unless another thread has stored one meanwhile."""
    found = SigningKey.objects.order_by("-id").first()
    return found or SigningKey.objects.create(private_pem=private_pem, made_at=clock.now())


@lru_cache(maxsize=4)
def _load_key(private_pem: str) -> rsa.RSAPrivateKey:
    key = load_pem_private_key(private_pem.encode(), password=None)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise TypeError("The signing keys of the simulation are RSA keys.")
    return key


def _public_pem(private_pem: str) -> str:
    public = _load_key(private_pem).public_key()
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


_TEXT_OR_SPACE = re.compile(r'("(?:[^"\\]|\\.)*")| ')
_SWAPPED_EVENTS = ("Transaction updated", "Payment updated")


def compact_json(value: object) -> str:
    """The value as exact JSON in ASCII, without optional spaces."""
    return _TEXT_OR_SPACE.sub(r"\1", dumps(value))


def signed_body(event: str, data: str, key: rsa.RSAPrivateKey, forgery: str = "") -> str:
    """The JSON text to send. `data` is JSON text and is inserted unchanged.

    Signatures are salted, so two calls differ: callers that repeat a delivery must store its body.
    """
    return _FORGERIES.get(forgery, _correct)(event, data, key)


def _correct(event: str, data: str, key: rsa.RSAPrivateKey) -> str:
    return _body_text(event, data, sign(data.encode(), key))


def _wrong_signature(event: str, data: str, key: rsa.RSAPrivateKey) -> str:
    return _body_text(event, data, secrets.token_bytes(key.key_size // 8))


def _signed_by_stranger(event: str, data: str, key: rsa.RSAPrivateKey) -> str:
    return _correct(event, data, new_key())


def _unsigned(event: str, data: str, key: rsa.RSAPrivateKey) -> str:
    return f'{{"event":{json.dumps(event)},"data":{data}}}'


def _malformed(event: str, data: str, key: rsa.RSAPrivateKey) -> str:
    delivery = _correct(event, data, key)
    return delivery[: len(delivery) // 2]


def _tampered_data(event: str, data: str, key: rsa.RSAPrivateKey) -> str:
    members = loads(data)
    changed = compact_json({**(members if isinstance(members, dict) else {}), "amount": 1_000_000})
    return _body_text(event, changed, sign(data.encode(), key))


def _tampered_event(event: str, data: str, key: rsa.RSAPrivateKey) -> str:
    other = next(each for each in _SWAPPED_EVENTS if each != event)
    return _correct(other, data, key)


def _body_text(event: str, data: str, signed: bytes) -> str:
    return f'{{"event":{json.dumps(event)},"data":{data},"signature":"{base64.b64encode(signed).decode()}"}}'


_FORGERIES: Mapping[str, Callable[[str, str, rsa.RSAPrivateKey], str]] = {
    Forgery.WRONG_SIGNATURE: _wrong_signature,
    Forgery.STRANGER: _signed_by_stranger,
    Forgery.UNSIGNED: _unsigned,
    Forgery.MALFORMED: _malformed,
    Forgery.TAMPERED_DATA: _tampered_data,
    Forgery.TAMPERED_EVENT: _tampered_event,
}
