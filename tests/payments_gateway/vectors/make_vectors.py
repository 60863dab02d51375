"""Makes `deliveries.json` anew: python -m tests.payments_gateway.vectors.make_vectors"""

import base64
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

FOLDER = Path(__file__).parent
LONGEST = padding.PSS.MAX_LENGTH
EVENT = "Transaction updated"
RECORD = (
    b'{"transactionId":"65f1c2d9a1","currency":"NGN","type":"withdrawal","status":"fullfiled",'
    b'"amount":250000.5,"fee":50,"createdAt":"2026-03-01T09:30:00.000Z"}'
)
DATA_IN_EVERY_SPELLING = {
    "spaces inside of data": b'{ "amount" : 1 ,\n\t"fee":0 }',
    "numbers in every spelling": b'{"a":1.0,"b":1.00,"c":1e2,"d":1E+2,"e":-0.0,"f":100}',
    "text that is not ASCII": '{"sender":"Adébáyò ₦ 李 🙂"}'.encode(),
    "text in escapes": rb'{"sender":"Ad\u00e9b\u00e1y\u00f2 \ud83d\ude42 \/ \u0022}"}',
    "half of a surrogate pair": rb'{"sender":"\ud800"}',
    "NUL in an escape": rb'{"sender":"a\u0000b"}',
    "members called data inside of data": b'{"data":{"data":{}},"signature":"none"}',
    "text that looks like the end": rb'{"memo":"},\"data\":{\"amount\":1},\"signature\":\"\""}',
    "an empty object": b"{}",
    "the same name with the same value": b'{"amount":1,"amount":1}',
}


@cache
def private_key(name: str) -> rsa.RSAPrivateKey:
    """One of the fixed keys: current, previous, stranger."""
    key = load_pem_private_key((FOLDER / f"{name}.pem").read_bytes(), password=None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key


def signed(data: bytes, key: str = "current", salt: Any = LONGEST) -> bytes:
    """The signature of `data`, as it comes out of RSA."""
    pss = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=salt)
    return private_key(key).sign(data, pss, hashes.SHA256())


def written(data: bytes, signature: bytes, event: bytes = EVENT.encode()) -> bytes:
    """A compact body in the order of the wire, with this text for a signature."""
    return b'{"event":"%s","data":%s,"signature":"%s"}' % (event, data, signature)


def delivery(data: bytes = RECORD, signature: bytes | None = None, event: bytes = EVENT.encode()) -> bytes:
    """A body that is signed by the current key, unless another signature is given."""
    return written(data, base64.b64encode(signed(data) if signature is None else signature), event)


def valid() -> Mapping[str, bytes]:
    """Signed by the current key, wherever `data` is and however its JSON is spelled."""
    text, event = base64.b64encode(signed(RECORD)), EVENT.encode()
    spaced = b' \r\n{\t"event" : "%s" ,\n "data" :  %s  , "signature":"%s"\n}\n'
    extra = b'{"version":2,"data":%s,"event":"%s","signature":"%s","meta":{"data":{"amount":1}}}'
    return {
        "the longest salt": delivery(),
        "no salt": delivery(signature=signed(RECORD, salt=0)),
        "a salt of 32 bytes": delivery(signature=signed(RECORD, salt=32)),
        "members in another order": b'{"signature":"%s","data":%s,"event":"%s"}' % (text, RECORD, event),
        "spaces around the members": spaced % (event, RECORD, text),
        "members that nobody knows": extra % (RECORD, event, text),
        "names in escapes": delivery().replace(b'"data"', rb'"d\u0061t\u0061"'),
        **{name: delivery(data) for name, data in DATA_IN_EVERY_SPELLING.items()},
    }


def tampered() -> Mapping[str, bytes]:
    """Data that was changed after it was signed."""
    signature = signed(RECORD)
    moved = b'{"currency":"NGN","transactionId":"65f1c2d9a1",' + RECORD.partition(b'"NGN",')[2]
    return {
        "tampered data": delivery(RECORD.replace(b"50,", b"51,"), signature),
        "the same number in another spelling": delivery(RECORD.replace(b".5,", b".50,"), signature),
        "data written anew with a space": delivery(RECORD.replace(b",", b", "), signature),
        "members of data in another order": delivery(moved, signature),
    }


def badly_signed() -> Mapping[str, bytes]:
    """Signatures that are of another key, another scheme or other bytes, or that are damaged."""
    signature = signed(RECORD)
    text = base64.b64encode(signature)
    pkcs1 = private_key("current").sign(RECORD, padding.PKCS1v15(), hashes.SHA256())
    sha1 = padding.PSS(mgf=padding.MGF1(hashes.SHA1()), salt_length=LONGEST)  # noqa: S303 - to be refused
    mixed = private_key("current").sign(RECORD, sha1, hashes.SHA256())
    complete = b'{"event":"%s","data":%s}' % (EVENT.encode(), RECORD)
    return {
        "a stranger's key": delivery(signature=signed(RECORD, "stranger")),
        "a truncated signature": delivery(signature=signature[:-1]),
        "a signature with a byte more": delivery(signature=signature + b"\0"),
        "a signature of zeros": delivery(signature=bytes(256)),
        "a signature of ones": delivery(signature=b"\xff" * 256),
        "PKCS #1 v1.5 instead of PSS": delivery(signature=pkcs1),
        "MGF1 of SHA-1": delivery(signature=mixed),
        "signed over the whole body": delivery(signature=signed(complete)),
        "not base64": written(RECORD, b"(signature)"),
        "base64 without its padding": written(RECORD, text.rstrip(b"=")),
        "base64 with a space": written(RECORD, text[:20] + b" " + text[20:]),
        "a signature that is not ASCII": written(RECORD, "é".encode() * 20),
    }


def unsigned() -> Mapping[str, bytes]:
    """Nothing where the signature should be."""
    plain = b'{"event":"%s","data":%s' % (EVENT.encode(), RECORD)
    return {
        "no signature": plain + b"}",
        "an empty signature": plain + b',"signature":""}',
        "null for a signature": plain + b',"signature":null}',
        "a signature inside of data only": b'{"event":"%s","data":{"signature":"x"}}' % EVENT.encode(),
    }


def malformed() -> Mapping[str, bytes]:
    """Bodies that are not what they should be; where they are signed, then well."""
    complete = delivery()
    again = complete.removesuffix(b"}")
    return {
        **{
            f"no JSON object: {body.decode()!r}": body
            for body in (b"", b"[]", b'"data"', b"null", b"{", b"{}")
        },
        "cut in the middle": complete[: len(complete) // 2],
        "something after the end": complete + b"{}",
        "a comma before the end": again + b",}",
        "a name without quotes": complete.replace(b'"event"', b"event"),
        "a number for a name": complete.replace(b'"event"', b"1"),
        "single quotes": complete.replace(b'"', b"'"),
        "data given twice": again + b',"data":{"amount":1}}',
        "the same data given twice": again + b',"data":%s}' % RECORD,
        "data given twice, once in escapes": again + rb',"d\u0061ta":{"amount":1}}',
        "signature given twice": again + b',"signature":""}',
        "event given twice": again + b',"event":"Deposit"}',
        "no event": complete.replace(b'"event"', b'"kind"'),
        "a number for an event": complete.replace(b'"Transaction updated"', b"7"),
        "no data": complete.replace(b'"data"', b'"Data"'),
        "a list for data": delivery(b"[1]"),
        "a text for data": delivery(b'"65f1c2d9a1"'),
        "null for data": delivery(b"null"),
        "a number for a signature": b'{"event":"%s","data":{},"signature":1}' % EVENT.encode(),
        "bad UTF-8": delivery(b'{"sender":"\xff\xfe"}'),
        "UTF-16": complete.decode().encode("utf-16"),
        "NUL inside of a text": delivery(b'{"sender":"a\0b"}'),
        "NUL between the members": complete.replace(b",", b",\0", 1),
        "NaN": delivery(b'{"amount":NaN}'),
        "Infinity outside of data": again + b',"x":-Infinity}',
        "an exponent out of all proportion": delivery(b'{"amount":1e999999999}'),
        "ten thousand digits": delivery(b'{"amount":%s}' % (b"9" * 10_000)),
        "a number with a leading zero": delivery(b'{"amount":01}'),
        "one name with two values in data": delivery(b'{"amount":1,"amount":2}'),
        "nested too deeply": delivery(b'{"a":' + b"[" * 60 + b"]" * 60 + b"}"),
    }


def cases() -> Iterator[dict[str, object]]:
    """All vectors, in the order of the file."""
    for name, body in valid().items():
        yield case(name, body, "valid", signed_by="current")
    previous = delivery(signature=signed(RECORD, "previous"))
    yield case("the key before", previous, "valid", signed_by="previous")
    yield case("the key before, no longer known", previous, "invalid", keys=["current"])
    yield case("the new key alone", delivery(), "valid", signed_by="current", keys=["current"])
    for event in ("Deposit", "Chargeback", ""):
        body = delivery(event=event.encode())
        yield case(f"a tampered event: {event!r}", body, "valid", signed_by="current", event=event)
    for name, body in {**tampered(), **badly_signed()}.items():
        yield case(name, body, "invalid")
    for name, body in unsigned().items():
        yield case(name, body, "unsigned")
    for name, body in malformed().items():
        yield case(name, body, "malformed", event="")


def case(name: str, body: bytes, verdict: str, **changes: object) -> dict[str, object]:
    """One vector: what to verify with which keys, and what must come of it."""
    expected = {"verdict": verdict, "signed_by": None, "event": EVENT, "keys": ["current", "previous"]}
    try:
        text = {"body": body.decode()}
    except UnicodeDecodeError:
        text = {"body_base64": base64.b64encode(body).decode()}
    return {"name": name, **expected, **changes, **text}


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(each) for each in cases())
    (FOLDER / "deliveries.json").write_text(f"[\n{lines}\n]\n")
