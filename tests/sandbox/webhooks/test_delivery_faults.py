"""Faults of deliveries on demand, and the change of the signing key."""

from typing import Any

import pytest
import requests

from payments_gateway.webhooks import SignatureStatus, verify_webhook
from tests.payments_gateway import stub
from tests.sandbox.conftest import SandboxClient
from tests.sandbox.webhook_receiver import Receive, arrived, faults, in_state, judged, keys


def amounts(provider: SandboxClient, bodies: list[bytes]) -> list[Any]:
    return [found.data["amount"] for found in judged(provider.process, bodies)]


def deposit(provider: SandboxClient, *given: int) -> None:
    for amount in given:
        provider.process.deposit("NGN", str(amount))


def test_duplicates_have_the_same_bytes(provider: SandboxClient, receive: Receive) -> None:
    receiver = receive()
    provider.process.webhook_fault("duplicate", copies=3)
    deposit(provider, 1, 2)
    second, first = in_state(provider.process, "delivered", 2)
    bodies = arrived(receiver, 5)
    assert sorted(bodies) == sorted([first["body"].encode()] * 4 + [second["body"].encode()])
    assert len(first["attempts"]) == 4
    assert faults(provider.process)["duplicate"] == {"left": 0, "applied": 1, "copies": 3}


def test_a_failed_duplicate_is_retried(provider: SandboxClient, receive: Receive) -> None:
    receiver = receive(stub.answer(200, {}), stub.answer(500, {}), stub.answer(200, {}))
    provider.process.webhook_fault("duplicate", copies=1)
    deposit(provider, 1)
    (delivery,) = in_state(provider.process, "delivered")
    assert [attempt["status"] for attempt in delivery["attempts"]] == [200, 500, 200]
    assert len(set(arrived(receiver, 3))) == 1


def test_reordered_deliveries_are_sent_in_reverse(provider: SandboxClient, receive: Receive) -> None:
    receiver = receive()
    provider.process.webhook_fault("reorder", deliveries=3)
    deposit(provider, 1, 2)
    in_state(provider.process, "held", 2)
    assert receiver.requests == []
    deposit(provider, 3, 4)
    in_state(provider.process, "delivered", 4)
    assert amounts(provider, arrived(receiver, 4)) == [3, 2, 1, 4]
    assert faults(provider.process)["reorder"] == {"left": 0, "applied": 3}


def test_held_deliveries_are_sent_when_the_faults_are_cleared(
    provider: SandboxClient, receive: Receive
) -> None:
    receiver = receive()
    provider.process.webhook_fault("reorder", deliveries=10)
    deposit(provider, 1, 2)
    answer = requests.delete(f"{provider.process.control}/webhooks/faults", timeout=30)
    assert {fault["applied"] for fault in answer.json()["faults"].values()} == {0}
    assert amounts(provider, arrived(receiver, 2)) == [2, 1]


def test_a_delayed_delivery_waits_for_the_providers_clock(provider: SandboxClient, receive: Receive) -> None:
    receiver = receive()
    provider.process.webhook_fault("delay", seconds=3600)
    deposit(provider, 1, 2)
    assert amounts(provider, arrived(receiver, 1)) == [2]
    provider.process.advance(3600)
    assert amounts(provider, arrived(receiver, 2)) == [2, 1]
    assert faults(provider.process)["delay"] == {"left": 0, "applied": 1, "seconds": 3600}


def test_a_short_delay_ends_without_a_clock_step(provider: SandboxClient, receive: Receive) -> None:
    receiver = receive()
    provider.process.webhook_fault("delay", seconds=0.5)
    deposit(provider, 1)
    arrived(receiver, 1)
    (delivery,) = in_state(provider.process, "delivered")
    assert delivery["attempts"][0]["at"] >= delivery["dueAt"] > delivery["announcedAt"]


@pytest.mark.parametrize(
    ("forgery", "verdict"),
    [
        ("wrong_signature", SignatureStatus.INVALID),
        ("stranger", SignatureStatus.INVALID),
        ("unsigned", SignatureStatus.UNSIGNED),
        ("malformed", SignatureStatus.MALFORMED),
        ("tampered_data", SignatureStatus.INVALID),
        ("tampered_event", SignatureStatus.VALID),
    ],
)
def test_every_forgery_is_of_the_named_kind(
    provider: SandboxClient, receive: Receive, forgery: str, verdict: SignatureStatus
) -> None:
    receiver = receive()
    provider.process.webhook_fault("forge", forgery=forgery)
    deposit(provider, 1, 2)
    bodies = arrived(receiver, 2)
    forged, honest = judged(provider.process, bodies)
    assert (forged.signature_status, honest.signature_status) == (verdict, SignatureStatus.VALID)
    assert (honest.event, honest.data["amount"]) == ("Transaction updated", 2)
    assert [each["forgery"] for each in provider.process.deliveries()] == ["", forgery]
    assert faults(provider.process)["forge"] == {"left": 0, "applied": 1, "forgery": forgery}


def test_tampering_changes_the_amount_or_the_event_kind(provider: SandboxClient, receive: Receive) -> None:
    receiver = receive()
    for forgery in ("tampered_data", "tampered_event"):
        provider.process.webhook_fault("forge", forgery=forgery)
        deposit(provider, 1)
    data, event = judged(provider.process, arrived(receiver, 2))
    assert (data.event, event.event) == ("Transaction updated", "Payment updated")
    assert (data.data["amount"], event.data["amount"]) == (1_000_000, 1)


def test_a_forged_delivery_is_repeated_with_the_same_bytes(provider: SandboxClient, receive: Receive) -> None:
    receiver = receive(stub.answer(400, {}), stub.answer(200, {}))
    provider.process.webhook_fault("forge", forgery="stranger")
    deposit(provider, 1)
    in_state(provider.process, "delivered")
    assert len(set(arrived(receiver, 2))) == 1


def test_several_faults_can_apply_to_one_delivery(provider: SandboxClient, receive: Receive) -> None:
    receiver = receive()
    provider.process.webhook_fault("forge", forgery="unsigned", deliveries=2)
    provider.process.webhook_fault("duplicate", copies=1, deliveries=2)
    provider.process.webhook_fault("reorder", deliveries=2)
    deposit(provider, 1, 2)
    in_state(provider.process, "delivered", 2)
    bodies = arrived(receiver, 4)
    assert amounts(provider, bodies) == [2, 2, 1, 1]
    assert {found.signature_status for found in judged(provider.process, bodies)} == {
        SignatureStatus.UNSIGNED
    }


def test_either_key_signs_for_an_hour_after_a_rotation(provider: SandboxClient, receive: Receive) -> None:
    process = provider.process
    receiver = receive()
    (old,) = keys(process)
    assert requests.post(f"{process.control}/webhooks/keys", timeout=30).status_code == 200
    new, second = keys(process)
    assert second == old != new
    deposit(provider, 1, 2, 3, 4)
    found = judged(process, arrived(receiver, 4))
    assert {each.signature_status for each in found} == {SignatureStatus.VALID}
    assert {each.key for each in found} == {old, new}
    process.advance(3600)
    assert keys(process) == [new]
    deposit(provider, 5, 6)
    assert [each.key for each in judged(process, arrived(receiver, 6)[4:])] == [new, new]


def test_a_second_rotation_removes_the_oldest_key(provider: SandboxClient, receive: Receive) -> None:
    process = provider.process
    before = keys(process)
    for _ in range(2):
        requests.post(f"{process.control}/webhooks/keys", timeout=30)
    assert len(keys(process)) == 2
    assert before[0] not in keys(process)
    receiver = receive()
    deposit(provider, 1, 2)
    assert not any(
        verify_webhook(body, before).signature_status is SignatureStatus.VALID
        for body in arrived(receiver, 2)
    )


def test_a_reset_keeps_the_newest_key(provider: SandboxClient) -> None:
    process = provider.process
    requests.post(f"{process.control}/webhooks/keys", timeout=30)
    newest = keys(process)[0]
    process.reset()
    assert keys(process) == [newest]
