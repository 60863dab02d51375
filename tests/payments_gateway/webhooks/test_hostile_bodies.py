"""What bodies can do to the reader of deliveries: nothing, whatever is in them."""

import base64
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_gateway.money import dumps
from payments_gateway.webhooks import MAX_BODY_BYTES, SignatureStatus, verify_webhook
from tests.payments_gateway.vectors.make_vectors import RECORD, delivery, signed, written
from tests.payments_gateway.vectors.public_keys import BOTH, KEYS

SIGNATURE = signed(RECORD)


def test_bodies_are_read_up_to_the_size_limit() -> None:
    frame = len(delivery(b'{"a":""}'))
    fits = b'{"a":"%s"}' % (b"x" * (MAX_BODY_BYTES - frame))
    assert verify_webhook(delivery(fits), BOTH).signature_status is SignatureStatus.VALID
    longer = verify_webhook(delivery(fits + b" "), BOTH)
    assert (longer.signature_status, longer.event) == (SignatureStatus.MALFORMED, "")


@pytest.mark.parametrize(
    "body",
    [
        b"[" * MAX_BODY_BYTES,
        b'{"data":' * 7_000,
        b'{"event":"x","data":{"a":' + b"9" * 65_000 + b"}}",
        b'{"event":"x","data":{"a":1.' + b"9" * 65_000 + b"}}",
        b'{"event":"x","data":{"a":1e' + b"9" * 65_000 + b"}}",
        b" " * MAX_BODY_BYTES,
        b'{"' + b"\\" * 65_000,
        b"{" + b'"a":0,' * 9_000,
        b"{" + b",".join(b'"%d":0' % name for name in range(5_000)) + b"}",
        b"\xff" * MAX_BODY_BYTES,
        b"\0" * 5_000_000,
        b'{"event":"x","data":{},"signature":"' + b"A" * 5_000_000 + b'"}',
    ],
    ids=lambda body: f"{body[:20]!r} of {len(body)}",
)
def test_bodies_that_exhaust_the_parser_are_malformed(body: bytes) -> None:
    assert verify_webhook(body, BOTH).signature_status is SignatureStatus.MALFORMED


def test_an_oversized_signature_is_invalid() -> None:
    assert verify_webhook(written(b"{}", b"A" * 60_000), BOTH).signature_status is SignatureStatus.INVALID


NUMBERS = st.integers(-(10**30), 10**30) | st.decimals(
    allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=8
)

JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)
DATA = st.dictionaries(st.text(), JSON, max_size=6)


@settings(deadline=None, max_examples=60)
@given(DATA, st.sampled_from(["current", "previous"]), st.sampled_from([0, 20, 32, 222]), st.text())
def test_any_signed_data_verifies(data: dict[str, Any], key: str, salt: int, event: str) -> None:
    text = dumps(data).encode()
    quoted = json.dumps(event).encode()
    signature = base64.b64encode(signed(text, key, salt))
    found = verify_webhook(b'{"event":%s,"data":%s,"signature":"%s"}' % (quoted, text, signature), BOTH)
    assert (found.signature_status, found.key) == (SignatureStatus.VALID, KEYS[key])
    assert dumps(found.data) == dumps(
        json.loads(dumps(data).replace("\\u0000", "\\ufffd"), parse_float=Decimal)
    )


@settings(deadline=None, max_examples=200)
@given(DATA, st.data())
def test_one_changed_byte_of_data_is_never_valid(data: dict[str, Any], draw: st.DataObject) -> None:
    text = dumps(data).encode()
    at = draw.draw(st.integers(0, len(text) - 1))
    byte = draw.draw(st.integers(0, 255).filter(lambda other: other != text[at]))
    signature = signed(text, salt=0)
    changed = text[:at] + bytes([byte]) + text[at + 1 :]
    assert verify_webhook(delivery(changed, signature), BOTH).signature_status in {
        SignatureStatus.INVALID,
        SignatureStatus.MALFORMED,
    }


@settings(deadline=None, max_examples=500)
@given(st.binary())
def test_arbitrary_bytes_never_raise(body: bytes) -> None:
    assert verify_webhook(body, BOTH).signature_status is SignatureStatus.MALFORMED


@settings(deadline=None, max_examples=500)
@given(
    st.lists(st.sampled_from([*'{}[]:,"\\ \n\0', '"data"', '"event"', '"signature"', "1", "null", "\ud800"]))
)
def test_arbitrary_pieces_of_json_never_raise(pieces: list[str]) -> None:
    body = "".join(pieces).encode("utf-8", "surrogatepass")
    assert verify_webhook(body, BOTH).signature_status in {
        SignatureStatus.MALFORMED,
        SignatureStatus.UNSIGNED,
        SignatureStatus.INVALID,
    }


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_a_delivery_with_one_changed_byte_never_proves_other_data(draw: st.DataObject) -> None:
    whole = delivery(signature=SIGNATURE)
    at = draw.draw(st.integers(0, len(whole) - 1))
    body = whole[:at] + draw.draw(st.binary(max_size=3)) + whole[at + 1 :]
    found = verify_webhook(body, BOTH)
    assert (
        found.signature_status is not SignatureStatus.VALID or found.data == verify_webhook(whole, BOTH).data
    )
