"""Deliveries: what their signature proves, and what is read from one."""

import base64
import json
from decimal import Decimal
from typing import Any

import pytest

from payments_gateway import EventKind, PaymentUpdate, ProviderProfile, TransactionUpdate
from payments_gateway.webhooks import ReceivedWebhook, SignatureStatus, verify_webhook, webhook_identity
from tests.payments_gateway.vectors.make_vectors import FOLDER, delivery, written
from tests.payments_gateway.vectors.public_keys import BOTH, KEYS

VECTORS = json.loads((FOLDER / "deliveries.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_every_vector_has_its_verdict(vector: dict[str, Any]) -> None:
    body = vector["body"].encode() if "body" in vector else base64.b64decode(vector["body_base64"])
    found = verify_webhook(body, [KEYS[name] for name in vector["keys"]])
    assert found.signature_status is SignatureStatus(vector["verdict"])
    assert found.event == vector["event"]
    assert found.key == KEYS.get(vector["signed_by"])
    assert bool(found.error) is (found.signature_status is SignatureStatus.MALFORMED)
    assert found.identity == webhook_identity(body)


def test_the_vectors_cover_every_verdict() -> None:
    assert {vector["verdict"] for vector in VECTORS} == {verdict.value for verdict in SignatureStatus}


def test_deliveries_are_deduplicated_by_data_and_signature() -> None:
    body = delivery()
    same = (
        body + b"\n",
        body.replace(b'"event"', b'"x":1,"event"'),
        body.replace(b"Transaction", b"Payment"),
    )
    assert {webhook_identity(other) for other in same} == {webhook_identity(body)}
    another_salt, unsigned = delivery(), written(b"{}", b"")
    assert (
        len({webhook_identity(one) for one in (body, another_salt, unsigned, unsigned + b" ", b"", b" ")})
        == 6
    )


def test_numbers_are_kept_exactly() -> None:
    found = verify_webhook(
        delivery(b'{"amount":0.1,"fee":100.00,"total":12345678901234567890.12,"count":3}'), BOTH
    )
    assert found.data == {
        "amount": Decimal("0.1"),
        "fee": Decimal("100.00"),
        "total": Decimal("12345678901234567890.12"),
        "count": 3,
    }
    assert str(found.data["fee"]) == "100.00"
    assert not any(isinstance(value, float) for value in found.data.values())


def test_texts_are_made_storable() -> None:
    assert verify_webhook(delivery(rb'{"sender":"a\u0000b\ud800"}'), BOTH).data == {
        "sender": "a\ufffdb\ufffd"
    }


def test_readable_parts_of_an_invalid_delivery_are_returned() -> None:
    forged = verify_webhook(written(b'{"amount":1}', b"AAAA"), BOTH)
    assert (forged.signature_status, forged.data, forged.key) == (
        SignatureStatus.INVALID,
        {"amount": 1},
        None,
    )


@pytest.mark.parametrize("count", [0, 3])
def test_one_or_two_keys_are_needed(count: int) -> None:
    with pytest.raises(ValueError, match="one or 2 public keys"):
        verify_webhook(delivery(), [KEYS["current"]] * count)


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
    found = verify_webhook(delivery(event=event.encode()), BOTH)
    assert (found.event, found.kind) == (event, kind)


def test_a_transaction_event_has_typed_data() -> None:
    data = b'{"transactionId":"65f1","amount":"10.50","status":"failed","failureReason":"closed","newMember":[1]}'
    data_of = verify_webhook(delivery(data), BOTH).typed_data()
    assert isinstance(data_of, TransactionUpdate)
    assert (data_of.transaction_id, data_of.amount, data_of.failure_reason) == (
        "65f1",
        Decimal("10.50"),
        "closed",
    )
    assert (data_of.session_id, data_of.reference) == ("", "")
    assert data_of.model_extra == {"newMember": [1]}


OTHER_NAMES = ProviderProfile().overridden(
    {
        "delivery_event_member": "type",
        "delivery_data_member": "payload",
        "delivery_signature_member": "sig",
        "event_kinds": {"txn.changed": "transaction updated", "order.new": "payment created"},
        "delivery_session_members": ["session"],
        "delivery_reference_members": ["ref"],
        "delivery_failure_members": ["reason", "failureReason"],
        "delivery_resolution_members": ["resolution"],
    }
)


def renamed(body: bytes) -> bytes:
    names = ((b'"event"', b'"type"'), (b'"data"', b'"payload"'), (b'"signature"', b'"sig"'))
    for theirs, other in names:
        body = body.replace(theirs, other)
    return body


def test_field_names_and_event_kinds_come_from_the_profile() -> None:
    data = b'{"transactionId":"65f1","amount":1,"session":"S1","ref":"R1","reason":"closed"}'
    found = verify_webhook(renamed(delivery(data, event=b"TXN.changed")), BOTH, OTHER_NAMES)
    assert (found.signature_status, found.kind) == (SignatureStatus.VALID, EventKind.TRANSACTION_UPDATED)
    data_of = found.typed_data()
    assert isinstance(data_of, TransactionUpdate)
    assert (data_of.session_id, data_of.reference, data_of.failure_reason) == ("S1", "R1", "closed")
    paid = b'{"ref":"INV-1","resolution":"r1"}'
    about = verify_webhook(renamed(delivery(paid, event=b"order.new")), BOTH, OTHER_NAMES).typed_data()
    assert isinstance(about, PaymentUpdate)
    assert (about.reference, about.resolve_id) == ("INV-1", "r1")


def test_an_event_name_unknown_to_the_profile_is_not_recognised() -> None:
    assert verify_webhook(delivery(), BOTH, OTHER_NAMES).signature_status is SignatureStatus.MALFORMED
    assert verify_webhook(renamed(delivery()), BOTH).signature_status is SignatureStatus.MALFORMED
    unknown = verify_webhook(renamed(delivery()), BOTH, OTHER_NAMES)
    assert (unknown.signature_status, unknown.event, unknown.kind) == (
        SignatureStatus.VALID,
        "Transaction updated",
        None,
    )


def test_a_changed_byte_is_detected_under_any_name_of_the_data() -> None:
    body = renamed(delivery()).replace(b"250000.5", b"250000.6")
    assert verify_webhook(body, BOTH, OTHER_NAMES).signature_status is SignatureStatus.INVALID


def test_a_payment_event_has_typed_data() -> None:
    data = b'{"reference":"INV-1","state":"completed","resolveId":"r1","incomingAmount":1.5}'
    data_of = verify_webhook(delivery(data, event=b"Payment updated"), BOTH).typed_data()
    assert isinstance(data_of, PaymentUpdate)
    assert (data_of.reference, data_of.state, data_of.resolve_id) == ("INV-1", "completed", "r1")
    assert (data_of.incoming_amount, data_of.outgoing_amount) == (Decimal("1.5"), None)


@pytest.mark.parametrize(
    ("event", "data"),
    [
        (b"Transaction updated", b"{}"),
        (b"Transaction updated", b'{"transactionId":{},"amount":1}'),
        (b"Payment created", b'{"reference":""}'),
        (b"Deposit", b'{"transactionId":"65f1","amount":1}'),
    ],
)
def test_other_kinds_and_shapes_have_no_typed_data(event: bytes, data: bytes) -> None:
    found = verify_webhook(delivery(data, event=event), BOTH)
    assert (found.signature_status, found.typed_data()) == (SignatureStatus.VALID, None)


def test_a_valid_delivery_has_no_problem() -> None:
    assert verify_webhook(delivery(), BOTH) == ReceivedWebhook(
        SignatureStatus.VALID, "Transaction updated", verify_webhook(delivery(), BOTH).data, KEYS["current"]
    )
