"""Deliveries: what their signature proves, and what bodies can do to the reader of them."""

import base64
import json
import string
from decimal import Decimal
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_gateway import Dialect, EventKind, PaymentNews, TransactionNews
from payments_gateway._raw_members import LARGEST_BODY
from payments_gateway.deliveries import (
    Delivery,
    Verdict,
    load_public_key,
    verify,
)
from payments_gateway.money import dumps
from tests.payments_gateway.vectors.make_vectors import FOLDER, RECORD, delivery, private_key, signed, written

VECTORS = json.loads((FOLDER / "deliveries.json").read_text())
KEYS = {name: load_public_key((FOLDER / f"{name}.pub.pem").read_bytes()) for name in ("current", "previous")}
BOTH = list(KEYS.values())
SIGNATURE = signed(RECORD)


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_every_vector_gets_its_verdict(vector: dict[str, Any]) -> None:
    body = vector["body"].encode() if "body" in vector else base64.b64decode(vector["body_base64"])
    found = verify(body, [KEYS[name] for name in vector["keys"]])
    assert found.verdict is Verdict(vector["verdict"])
    assert found.event == vector["event"]
    assert found.key == KEYS.get(vector["signed_by"])
    assert bool(found.problem) is (found.verdict is not Verdict.VALID)


def test_the_vectors_hold_every_verdict() -> None:
    assert {vector["verdict"] for vector in VECTORS} == {verdict.value for verdict in Verdict}


def test_numbers_are_handed_over_exactly() -> None:
    found = verify(delivery(b'{"amount":0.1,"fee":100.00,"total":12345678901234567890.12,"count":3}'), BOTH)
    assert found.data == {
        "amount": Decimal("0.1"),
        "fee": Decimal("100.00"),
        "total": Decimal("12345678901234567890.12"),
        "count": 3,
    }
    assert str(found.data["fee"]) == "100.00"
    assert not any(isinstance(value, float) for value in found.data.values())


def test_texts_are_handed_over_fit_to_be_stored() -> None:
    assert verify(delivery(rb'{"sender":"a\u0000b\ud800"}'), BOTH).data == {"sender": "a\ufffdb\ufffd"}


def test_what_could_be_read_is_handed_over_although_it_is_not_valid() -> None:
    forged = verify(written(b'{"amount":1}', b"AAAA"), BOTH)
    assert (forged.verdict, forged.data, forged.key) == (Verdict.INVALID, {"amount": 1}, None)


@pytest.mark.parametrize("count", [0, 3])
def test_one_or_two_keys_are_needed(count: int) -> None:
    with pytest.raises(ValueError, match="one or 2 public keys"):
        verify(delivery(), [KEYS["current"]] * count)


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ("Transaction updated", EventKind.TRANSACTION_UPDATED),
        ("TRANSACTION UPDATED", EventKind.TRANSACTION_UPDATED),
        ("payment Created", EventKind.PAYMENT_CREATED),
        ("Payment updated", EventKind.PAYMENT_UPDATED),
        ("Deposit", EventKind.DEPOSIT),
        ("convert", EventKind.CONVERT),
        ("Transfer", EventKind.TRANSFER),
        ("Withdrawal", EventKind.WITHDRAWAL),
        ("ONRAMP", EventKind.ONRAMP),
        (" Offramp ", EventKind.OFFRAMP),
        ("Chargeback", None),
        ("", None),
    ],
)
def test_kinds_are_compared_without_case_and_unknown_ones_are_kept(
    event: str, kind: EventKind | None
) -> None:
    found = verify(delivery(event=event.encode()), BOTH)
    assert (found.event, found.kind) == (event, kind)


def test_news_of_a_transaction() -> None:
    data = b'{"transactionId":"65f1","amount":"10.50","status":"failed","failureReason":"closed","newMember":[1]}'
    news = verify(delivery(data), BOTH).news()
    assert isinstance(news, TransactionNews)
    assert (news.transaction_id, news.amount, news.failure_reason) == ("65f1", Decimal("10.50"), "closed")
    assert (news.session_id, news.reference) == ("", "")
    assert news.model_extra == {"newMember": [1]}


OTHER_NAMES = Dialect().overridden(
    {
        "delivery_event_member": "type",
        "delivery_data_member": "payload",
        "delivery_signature_member": "sig",
        "event_kinds": {"txn.changed": "transaction updated", "order.new": "payment created"},
        "news_session_members": ["session"],
        "news_reference_members": ["ref"],
        "news_failure_members": ["reason", "failureReason"],
        "news_resolution_members": ["resolution"],
    }
)


def renamed(body: bytes) -> bytes:
    names = ((b'"event"', b'"type"'), (b'"data"', b'"payload"'), (b'"signature"', b'"sig"'))
    for theirs, other in names:
        body = body.replace(theirs, other)
    return body


def test_the_members_of_a_delivery_and_the_kinds_of_event_are_open_points() -> None:
    data = b'{"transactionId":"65f1","amount":1,"session":"S1","ref":"R1","reason":"closed"}'
    found = verify(renamed(delivery(data, event=b"TXN.changed")), BOTH, OTHER_NAMES)
    assert (found.verdict, found.kind) == (Verdict.VALID, EventKind.TRANSACTION_UPDATED)
    news = found.news()
    assert isinstance(news, TransactionNews)
    assert (news.session_id, news.reference, news.failure_reason) == ("S1", "R1", "closed")
    paid = b'{"ref":"INV-1","resolution":"r1"}'
    about = verify(renamed(delivery(paid, event=b"order.new")), BOTH, OTHER_NAMES).news()
    assert isinstance(about, PaymentNews)
    assert (about.reference, about.resolve_id) == ("INV-1", "r1")


def test_a_delivery_in_other_words_than_the_dialect_s_is_not_taken_for_one() -> None:
    assert verify(delivery(), BOTH, OTHER_NAMES).verdict is Verdict.MALFORMED
    assert verify(renamed(delivery()), BOTH).verdict is Verdict.MALFORMED
    unknown = verify(renamed(delivery()), BOTH, OTHER_NAMES)
    assert (unknown.verdict, unknown.event, unknown.kind) == (Verdict.VALID, "Transaction updated", None)


def test_a_changed_byte_is_found_under_any_name_of_the_data() -> None:
    body = renamed(delivery()).replace(b"250000.5", b"250000.6")
    assert verify(body, BOTH, OTHER_NAMES).verdict is Verdict.INVALID


def test_news_of_a_payment() -> None:
    data = b'{"reference":"INV-1","state":"completed","resolveId":"r1","incomingAmount":1.5}'
    news = verify(delivery(data, event=b"Payment updated"), BOTH).news()
    assert isinstance(news, PaymentNews)
    assert (news.reference, news.state, news.resolve_id) == ("INV-1", "completed", "r1")
    assert (news.incoming_amount, news.outgoing_amount) == (Decimal("1.5"), None)


@pytest.mark.parametrize(
    ("event", "data"),
    [
        (b"Transaction updated", b"{}"),
        (b"Transaction updated", b'{"transactionId":{},"amount":1}'),
        (b"Payment created", b'{"reference":""}'),
        (b"Deposit", b'{"transactionId":"65f1","amount":1}'),
    ],
)
def test_there_is_no_news_of_another_kind_or_another_shape(event: bytes, data: bytes) -> None:
    found = verify(delivery(data, event=event), BOTH)
    assert (found.verdict, found.news()) == (Verdict.VALID, None)


def test_a_body_of_the_largest_size_is_read_and_a_larger_one_is_not() -> None:
    frame = len(delivery(b'{"a":""}'))
    fits = b'{"a":"%s"}' % (b"x" * (LARGEST_BODY - frame))
    assert verify(delivery(fits), BOTH).verdict is Verdict.VALID
    longer = verify(delivery(fits + b" "), BOTH)
    assert (longer.verdict, longer.event) == (Verdict.MALFORMED, "")


@pytest.mark.parametrize(
    "body",
    [
        b"[" * LARGEST_BODY,
        b'{"data":' * 7_000,
        b'{"event":"x","data":{"a":' + b"9" * 65_000 + b"}}",
        b'{"event":"x","data":{"a":1.' + b"9" * 65_000 + b"}}",
        b'{"event":"x","data":{"a":1e' + b"9" * 65_000 + b"}}",
        b" " * LARGEST_BODY,
        b'{"' + b"\\" * 65_000,
        b"{" + b'"a":0,' * 9_000,
        b"{" + b",".join(b'"%d":0' % name for name in range(5_000)) + b"}",
        b"\xff" * LARGEST_BODY,
        b"\0" * 5_000_000,
        b'{"event":"x","data":{},"signature":"' + b"A" * 5_000_000 + b'"}',
    ],
    ids=lambda body: f"{body[:20]!r} of {len(body)}",
)
def test_bodies_made_to_exhaust_the_reader_are_malformed(body: bytes) -> None:
    assert verify(body, BOTH).verdict is Verdict.MALFORMED


def test_a_signature_longer_than_any_is_invalid() -> None:
    assert verify(written(b"{}", b"A" * 60_000), BOTH).verdict is Verdict.INVALID


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
def test_any_data_verifies_as_it_was_signed(data: dict[str, Any], key: str, salt: int, event: str) -> None:
    text = dumps(data).encode()
    quoted = json.dumps(event).encode()
    signature = base64.b64encode(signed(text, key, salt))
    found = verify(b'{"event":%s,"data":%s,"signature":"%s"}' % (quoted, text, signature), BOTH)
    assert (found.verdict, found.key) == (Verdict.VALID, KEYS[key])
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
    assert verify(delivery(changed, signature), BOTH).verdict in {Verdict.INVALID, Verdict.MALFORMED}


@settings(deadline=None, max_examples=500)
@given(st.binary())
def test_arbitrary_bytes_never_raise(body: bytes) -> None:
    assert verify(body, BOTH).verdict is Verdict.MALFORMED


@settings(deadline=None, max_examples=500)
@given(
    st.lists(st.sampled_from([*'{}[]:,"\\ \n\0', '"data"', '"event"', '"signature"', "1", "null", "\ud800"]))
)
def test_arbitrary_pieces_of_json_never_raise(pieces: list[str]) -> None:
    body = "".join(pieces).encode("utf-8", "surrogatepass")
    assert verify(body, BOTH).verdict in {Verdict.MALFORMED, Verdict.UNSIGNED, Verdict.INVALID}


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_a_delivery_with_one_changed_byte_never_proves_other_data(draw: st.DataObject) -> None:
    whole = delivery(signature=SIGNATURE)
    at = draw.draw(st.integers(0, len(whole) - 1))
    body = whole[:at] + draw.draw(st.binary(max_size=3)) + whole[at + 1 :]
    found = verify(body, BOTH)
    assert found.verdict is not Verdict.VALID or found.data == verify(whole, BOTH).data


def public_pem(key: Any) -> bytes:
    raw = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert isinstance(raw, bytes)
    return raw


def test_a_key_is_shown_by_the_fingerprint_of_its_der_form() -> None:
    key = load_public_key((FOLDER / "current.pub.pem").read_text())
    assert key == KEYS["current"]
    assert len(key.fingerprint) == 64
    assert set(key.fingerprint) <= set(string.hexdigits.lower())
    assert KEYS["current"].fingerprint != KEYS["previous"].fingerprint


def test_a_key_in_the_older_form_of_pem_is_the_same_key() -> None:
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
def test_a_key_that_will_not_do_is_refused_in_words(pem: str | bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        load_public_key(pem)


def test_an_honest_delivery_has_no_problem() -> None:
    assert verify(delivery(), BOTH) == Delivery(
        Verdict.VALID, "Transaction updated", verify(delivery(), BOTH).data, KEYS["current"]
    )
