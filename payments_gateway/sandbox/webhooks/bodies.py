"""The body of a delivery: {"event", "data", "signature"}, compact, in this order; honest, or forged as asked."""

import base64
import json
import re
import secrets
from collections.abc import Callable, Mapping

from cryptography.hazmat.primitives.asymmetric import rsa

from payments_gateway.money import dumps, loads
from payments_gateway.sandbox.webhooks.models import Forgery
from payments_gateway.sandbox.webhooks.signing import new_key, signature

_TEXT_OR_SPACE = re.compile(r'("(?:[^"\\]|\\.)*")| ')
_EVENTS = ("Transaction updated", "Payment updated")


def compact(value: object) -> str:
    """The value as exact JSON in ASCII, without a space outside of texts."""
    return _TEXT_OR_SPACE.sub(r"\1", dumps(value))


def body(event: str, data: str, key: rsa.RSAPrivateKey, forgery: str = "") -> str:
    """The JSON text that goes out. `data` is JSON text already, and stands in the body as it is.

    Signatures are salted, so two calls differ: whoever repeats a delivery keeps its body.
    """
    return _FORGERIES.get(forgery, _honest)(event, data, key)


def _honest(event: str, data: str, key: rsa.RSAPrivateKey) -> str:
    return _written(event, data, signature(data.encode(), key))


def _wrong_signature(event: str, data: str, key: rsa.RSAPrivateKey) -> str:
    return _written(event, data, secrets.token_bytes(key.key_size // 8))


def _stranger(event: str, data: str, key: rsa.RSAPrivateKey) -> str:
    return _honest(event, data, new_key())


def _unsigned(event: str, data: str, key: rsa.RSAPrivateKey) -> str:
    return f'{{"event":{json.dumps(event)},"data":{data}}}'


def _malformed(event: str, data: str, key: rsa.RSAPrivateKey) -> str:
    whole = _honest(event, data, key)
    return whole[: len(whole) // 2]


def _tampered_data(event: str, data: str, key: rsa.RSAPrivateKey) -> str:
    members = loads(data)
    changed = compact({**(members if isinstance(members, dict) else {}), "amount": 1_000_000})
    return _written(event, changed, signature(data.encode(), key))


def _tampered_event(event: str, data: str, key: rsa.RSAPrivateKey) -> str:
    other = next(each for each in _EVENTS if each != event)
    return _honest(other, data, key)


def _written(event: str, data: str, signed: bytes) -> str:
    return f'{{"event":{json.dumps(event)},"data":{data},"signature":"{base64.b64encode(signed).decode()}"}}'


_FORGERIES: Mapping[str, Callable[[str, str, rsa.RSAPrivateKey], str]] = {
    Forgery.WRONG_SIGNATURE: _wrong_signature,
    Forgery.STRANGER: _stranger,
    Forgery.UNSIGNED: _unsigned,
    Forgery.MALFORMED: _malformed,
    Forgery.TAMPERED_DATA: _tampered_data,
    Forgery.TAMPERED_EVENT: _tampered_event,
}
