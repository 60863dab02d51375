"""Webhooks over real HTTP: what is announced, how it is signed, what happens when nobody takes it."""

import json
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import SecretStr

from payments_gateway import GatewayConfig, PaymentsGateway, PaymentUpdate, TransactionUpdate
from payments_gateway.money import dumps, loads
from payments_gateway.sandbox import BUSINESS_ID
from payments_gateway.webhooks import SignatureStatus, verify_webhook
from tests.payments_gateway import stub
from tests.payments_gateway.situations import closed_port
from tests.payments_gateway.stub import Behaviour, Stub
from tests.sandbox.conftest import ACCOUNT, FAILING, SandboxClient
from tests.sandbox.webhook_receiver import (
    TAKEN,
    Receive,
    arrived,
    eventually,
    faults,
    in_state,
    judged,
    keys,
    point_to,
    tried,
)
from tests.sandbox_process import SandboxProcess


def test_a_withdrawal_and_its_settlement_are_delivered(provider: SandboxClient, receive: Receive) -> None:
    receiver = receive()
    transaction_id = provider.withdraw().json()["data"]["transactionId"]
    accepted, settled = judged(provider.process, arrived(receiver, 2))
    assert [accepted.signature_status, settled.signature_status] == [
        SignatureStatus.VALID,
        SignatureStatus.VALID,
    ]
    assert (accepted.event, settled.event) == ("Transaction updated", "Transaction updated")
    assert (accepted.data["status"], settled.data["status"]) == ("processing", "fullfiled")
    assert settled.data == provider.record(transaction_id)


def test_a_failed_withdrawal_delivers_its_reversal(provider: SandboxClient, receive: Receive) -> None:
    receiver = receive()
    provider.withdraw(**FAILING)
    found = judged(provider.process, arrived(receiver, 3))
    assert sorted((str(each.data["type"]), str(each.data["status"])) for each in found) == [
        ("deposit", "fullfiled"),
        ("withdrawal", "failed"),
        ("withdrawal", "processing"),
    ]


def test_a_delivery_is_compact_json_in_wire_order(provider: SandboxClient, receive: Receive) -> None:
    receiver = receive()
    provider.process.deposit("NGN", "1000.50", "Adé “Bello”, Ltd: a b")
    (body,) = arrived(receiver, 1)
    request = receiver.requests[0]
    assert (request.method, request.target) == ("POST", "/v2")
    assert request.header("Content-Type") == "application/json"
    members = loads(body)
    assert isinstance(members, dict)
    assert list(members) == ["event", "data", "signature"]
    written = json.dumps(json.loads(body, parse_float=str), separators=(",", ":"))
    assert body.decode() == written.replace('"1000.5"', "1000.5")
    assert members["data"]["sender"] == "Adé “Bello”, Ltd: a b"


def test_the_client_sets_and_reads_the_callback_url(provider: SandboxClient) -> None:
    process = provider.process
    config = GatewayConfig(
        base_url=process.url,
        base_url_v4=process.url.replace("/v2", "/v4"),
        api_key=SecretStr(process.api_key),
        api_user=process.api_user,
    )
    with PaymentsGateway(config) as gateway:
        assert gateway.callbacks.url() == ""
        gateway.callbacks.set_url("http://127.0.0.1:9/hook")
        assert gateway.callbacks.url() == "http://127.0.0.1:9/hook"


def test_no_delivery_is_stored_without_a_callback_url(provider: SandboxClient) -> None:
    provider.withdraw()
    provider.process.deposit("NGN", "10")
    assert provider.process.deliveries() == []


def test_refused_requests_are_not_delivered(provider: SandboxClient, receive: Receive) -> None:
    receive()
    assert provider.withdraw(token="wrong").status_code == 400
    assert provider.withdraw(amount="999999999999").status_code == 422
    assert provider.process.deliveries() == []


@pytest.mark.parametrize(
    "failure",
    [
        stub.answer(500, {}),
        stub.answer(404, {}),
        stub.answer(302, {}, ("Location: /elsewhere",)),
        stub.reset_after_accept,
        stub.reset_after_request,
        stub.reset_in_answer,
        stub.raw(b"nonsense\r\n\r\n"),
    ],
    ids=["500", "404", "redirect", "reset at once", "reset after", "reset in answer", "nonsense"],
)
def test_a_failed_delivery_is_retried(provider: SandboxClient, receive: Receive, failure: Behaviour) -> None:
    receiver = receive(failure, TAKEN)
    provider.process.deposit("NGN", "10")
    (delivery,) = in_state(provider.process, "delivered")
    assert [attempt["status"] for attempt in delivery["attempts"]][1:] == [200]
    first, second = delivery["attempts"]
    assert first["status"] or first["reason"]
    assert second["at"] > first["at"]
    assert {request.body for request in receiver.requests} == {delivery["body"].encode()}
    assert {request.target for request in receiver.requests} == {"/v2"}


def test_a_receiver_timeout_is_a_failed_delivery(provider: SandboxClient, receive: Receive) -> None:
    receive(stub.silent, TAKEN)
    provider.process.deposit("NGN", "10")
    (delivery,) = in_state(provider.process, "delivered")
    assert [attempt["status"] for attempt in delivery["attempts"]] == [None, 200]
    assert delivery["attempts"][0]["reason"] == "no complete response arrived in time"


def test_a_refused_connection_is_recorded(provider: SandboxClient) -> None:
    with closed_port() as port:
        point_to(provider.process, f"http://127.0.0.1:{port}/v2")
        provider.process.deposit("NGN", "10")
        delivery = tried(provider.process)
    assert delivery["state"] == "waiting"
    assert delivery["attempts"][0] | {"at": ""} == {
        "at": "",
        "status": None,
        "reason": "the connection failed",
    }


def test_a_delivery_is_abandoned_after_six_attempts(provider: SandboxClient, receive: Receive) -> None:
    receiver = receive(stub.answer(500, {}))
    provider.process.deposit("NGN", "10")
    for tries, pause in enumerate((1, 5, 30, 120, 600), start=1):
        tried(provider.process, tries)
        provider.process.advance(pause)
    (delivery,) = in_state(provider.process, "given up")
    assert delivery["reason"] == "no success in 6 tries"
    assert [attempt["status"] for attempt in delivery["attempts"]] == [500] * 6
    arrived(receiver, 6)


def test_a_failed_delivery_does_not_delay_the_next(provider: SandboxClient, receive: Receive) -> None:
    receive(stub.answer(500, {}), TAKEN)
    provider.process.deposit("NGN", "1")
    tried(provider.process)
    provider.process.deposit("NGN", "2")
    second, first = in_state(provider.process, "delivered", 2)
    assert (len(first["attempts"]), len(second["attempts"])) == (2, 1)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/hook",
        "http://192.0.2.1/",
        "http://10.0.0.1:8000/",
        "http://127.0.0.1.example.com/",
        "http://127.1/",
        "http://[2001:db8::1]/",
        "http://localhost.example.com/",
    ],
)
def test_deliveries_go_to_loopback_only(provider: SandboxClient, url: str) -> None:
    point_to(provider.process, url)
    provider.process.deposit("NGN", "10")
    (delivery,) = in_state(provider.process, "not delivered")
    assert "sends nothing elsewhere" in delivery["reason"]
    assert delivery["attempts"] == []


def test_localhost_is_loopback(provider: SandboxClient, receive: Receive) -> None:
    receiver = receive()
    point_to(provider.process, receiver.url.replace("127.0.0.1", "localhost"))
    provider.process.deposit("NGN", "10")
    arrived(receiver, 1)


def test_a_delivery_goes_to_the_callback_url_at_creation(provider: SandboxClient, receive: Receive) -> None:
    first = receive(stub.answer(500, {}), TAKEN)
    provider.process.deposit("NGN", "1")
    tried(provider.process)
    second = receive()
    in_state(provider.process, "delivered")
    arrived(first, 2)
    assert second.requests == []


def test_a_reset_clears_deliveries_faults_and_callback_url(provider: SandboxClient, receive: Receive) -> None:
    receiver = receive(stub.answer(500, {}))
    process = provider.process
    process.webhook_fault("delay", seconds=5, deliveries=3)
    process.webhook_fault("reorder", deliveries=2)
    process.deposit("NGN", "1")
    before = keys(process)
    assert len(process.deliveries()) == 1
    process.reset()
    assert process.deliveries() == []
    assert {kind: fault["left"] for kind, fault in faults(process).items()} == dict.fromkeys(
        ("duplicate", "reorder", "delay", "forge"), 0
    )
    assert {fault["applied"] for fault in faults(process).values()} == {0}
    process.deposit("NGN", "1")
    assert process.deliveries() == []
    assert receiver.requests == []
    assert keys(process) == before


def test_pending_deliveries_are_sent_after_a_restart_with_the_same_key(tmp_path: Path) -> None:
    database = tmp_path / "sandbox.sqlite3"
    with Stub(stub.answer(500, {}), TAKEN) as receiver:
        with SandboxProcess(database=database) as first:
            point_to(first, receiver.url)
            first.deposit("NGN", "10")
            tried(first)
            before = keys(first)
        with SandboxProcess(database=database) as second:
            (delivery,) = in_state(second, "delivered")
            assert keys(second) == before
            assert verify_webhook(delivery["body"].encode(), before).signature_status is SignatureStatus.VALID


def test_an_internal_error_does_not_end_deliveries(tmp_path: Path) -> None:
    with SandboxProcess(database=tmp_path / "sandbox.sqlite3") as process, Stub(TAKEN) as receiver:
        with process.books() as books:
            books.execute("ALTER TABLE sandbox_delivery RENAME TO taken_away")
        eventually(lambda: "no such table: sandbox_delivery" in process.output())
        with process.books() as books:
            books.execute("ALTER TABLE taken_away RENAME TO sandbox_delivery")
        point_to(process, receiver.url)
        process.deposit("NGN", "10")
        arrived(receiver, 1)


def test_concurrent_first_uses_create_one_key(tmp_path: Path) -> None:
    with SandboxProcess(database=tmp_path / "sandbox.sqlite3") as process, ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda _: keys(process), range(6)))
        assert found == [keys(process)] * 6


def test_deliveries_parse_as_webhook_events(provider: SandboxClient, receive: Receive) -> None:
    receiver = receive()
    transaction_id = provider.process.deposit("NGN", "1000.50")
    (found,) = judged(provider.process, arrived(receiver, 1))
    typed = found.typed_data()
    assert isinstance(typed, TransactionUpdate)
    assert (typed.transaction_id, typed.amount) == (transaction_id, Decimal("1000.5"))
    assert typed.created_at is not None


def test_payments_are_delivered_on_creation_and_change(provider: SandboxClient, receive: Receive) -> None:
    receiver = receive()
    body = {
        "businessId": BUSINESS_ID,
        "reference": "INV-77",
        "incomingCurrency": "USDT",
        "outgoingCurrency": "NGN",
        "incomingAmount": 25,
        "customerEmail": "ada@example.com",
        "paymentType": "bank",
        "country": "NG",
        **ACCOUNT,
    }
    answer = provider.post("/payment", body)
    assert answer.status_code == 200, answer.text
    provider.process.pay_in("INV-77")
    eventually(lambda: len(receiver.requests) >= 2)
    created, changed = judged(provider.process, [request.body for request in receiver.requests[:2]])
    assert (created.event, changed.event) == ("Payment created", "Payment updated")
    assert "_id" not in created.data
    typed = changed.typed_data()
    assert isinstance(typed, PaymentUpdate)
    assert (typed.reference, typed.incoming_amount) == ("INV-77", Decimal(25))


def test_signing_keeps_the_digits_of_amounts(provider: SandboxClient, receive: Receive) -> None:
    receiver = receive()
    provider.process.deposit("USDT", "0.000001")
    (found,) = judged(provider.process, arrived(receiver, 1))
    assert '"amount": 0.000001' in dumps(found.data)
