"""What the control API refuses: by the name of the member, and without any change."""

import pytest
import requests

from tests.sandbox.conftest import SandboxClient

STATUS = {"kind": "status", "operation": "*", "status": 500}


def test_settling_to_an_unknown_status_is_refused(provider: SandboxClient) -> None:
    response = requests.post(f"{provider.process.control}/settle", json={"outcome": "fulfilled"}, timeout=30)
    assert response.status_code == 400
    assert response.json()["message"] == "outcome must be 'fullfiled' or 'failed'"


@pytest.mark.parametrize("limit", ["0", "501", "x", "-1", ""])
def test_an_invalid_number_of_deliveries_is_refused(provider: SandboxClient, limit: str) -> None:
    response = requests.get(f"{provider.process.control}/webhooks", params={"limit": limit}, timeout=30)
    assert response.status_code == 400
    assert response.json()["message"].startswith("limit ")


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("clock", {}, "advance is required"),
        ("clock", {"advance": -1}, "advance must be at least 0"),
        ("clock", {"advance": "60"}, "advance must be a number"),
        ("clock", {"advance": 10**10 + 1}, "advance must be at most"),
        ("clock", {"advance": 400_000_000}, "seconds must put the clock forward"),
        ("deposits", {"currency": "EUR", "amount": "1", "sender": "Ada"}, "currency must be"),
        ("deposits", {"currency": "NGN", "amount": 1, "sender": "Ada"}, "amount must be a string"),
        ("deposits", {"currency": "NGN", "amount": "0", "sender": "Ada"}, "amount must be more than zero"),
        ("deposits", {"currency": "NGN", "amount": "NaN", "sender": "Ada"}, "amount must be a plain decimal"),
        ("deposits", {"currency": "NGN", "amount": "1"}, "sender is required"),
        ("deposits", {"currency": "NGN", "amount": "1", "sender": " "}, "sender must be printable"),
        ("payments", {}, "reference is required"),
        ("payments", {"reference": ""}, "reference must have at least 1"),
        ("kyc", {"completed": "yes"}, "completed must be true or false"),
        ("options", {"customer_pays_after": -1}, "customer_pays_after must be at least 0"),
        ("webhooks/faults", {"kind": "lose"}, "kind must be"),
        ("webhooks/faults", {"kind": "delay"}, "seconds is required"),
        ("webhooks/faults", {"kind": "forge", "forgery": "x"}, "forgery must be"),
        ("webhooks/faults", {"kind": "reorder", "copies": 1}, "copies is not a known member"),
        ("webhooks/faults", {"kind": "duplicate", "deliveries": -1}, "deliveries must be at least 0"),
        ("faults", [], "the body must be a JSON object"),
        ("faults", {}, "kind is required"),
        ("faults", {"kind": "crash", "operation": "*"}, "kind must be"),
        ("faults", {"kind": "drop", "when": "after_read"}, "operation is required"),
        ("faults", {"kind": "drop", "operation": "*"}, "when is required"),
        (
            "faults",
            {"kind": "drop", "operation": "balances.steal", "when": "after_read"},
            "operation must be",
        ),
        ("faults", {"kind": "drop", "operation": "*", "when": "later"}, "when must be"),
        (
            "faults",
            {"kind": "drop", "operation": "*", "when": "after_read", "reset": 1},
            "reset must be true",
        ),
        ("faults", {"kind": "drop", "operation": "*", "when": "after_read", "at": 1}, "at is not a known"),
        ("faults", {"kind": "delay", "operation": "*"}, "seconds is required"),
        ("faults", {"kind": "delay", "operation": "*", "seconds": 0}, "seconds "),
        ("faults", {"kind": "delay", "operation": "*", "seconds": 3601}, "seconds must be at most 3600"),
        ("faults", {"kind": "delay", "operation": "*", "seconds": "1"}, "seconds must be a number"),
        ("faults", {"kind": "status", "operation": "*", "status": 199}, "status must be at least 200"),
        ("faults", {"kind": "status", "operation": "*", "status": 600}, "status must be at most 599"),
        ("faults", {"kind": "status", "operation": "*", "status": "500"}, "status must be a whole number"),
        ("faults", {**STATUS, "headers": {"A b": "c"}}, "headers must be names and values"),
        ("faults", {**STATUS, "headers": {"A": "b\r\nC: d"}}, "headers must be names and values"),
        ("faults", {**STATUS, "headers": {"Content-Length": "3"}}, "headers must leave Content-Length"),
        ("faults", {**STATUS, "headers": {"A": 1}}, "headers must be a string"),
        ("faults", {**STATUS, "times": 0}, "times must be at least 1"),
        ("faults", {**STATUS, "times": 1.5}, "times must be a whole number"),
        ("faults", {**STATUS, "times": True}, "times must be a whole number"),
        ("faults", {**STATUS, "skip": -1}, "skip must be at least 0"),
        ("faults", {**STATUS, "containing": ""}, "containing must have at least 1"),
        ("faults", {**STATUS, "containing": 5}, "containing must be a string"),
        ("faults", {"kind": "truncate", "operation": "*"}, "at is required"),
        ("faults", {"kind": "truncate", "operation": "*", "at": -1}, "at must be at least 0"),
        (
            "faults",
            {"kind": "truncate", "operation": "*", "at": 1, "content_length": 3},
            "content_length must",
        ),
        ("faults", {"kind": "garbage", "operation": "*", "form": "xml"}, "form must be one of html, "),
        (
            "faults",
            {"kind": "duplicate_record", "operation": "balances.list"},
            "operation must be transactions",
        ),
        (
            "faults",
            {"kind": "duplicate_record", "operation": "*", "position": -1},
            "position must be at least",
        ),
        ("faults", {"kind": "hide_record_for", "operation": "*"}, "seconds is required"),
        ("faults", {"kind": "rate_limit", "operation": "*", "per_second": 0}, "per_second must be at least"),
    ],
)
def test_an_invalid_body_is_refused_by_name_and_changes_nothing(
    provider: SandboxClient, path: str, body: object, message: str
) -> None:
    before = provider.process.ledger()
    response = requests.post(f"{provider.process.control}/{path}", json=body, timeout=30)
    assert response.status_code == 400
    assert response.json()["message"].startswith(message)
    assert provider.process.ledger() == before
    assert provider.process.faults() == []
    assert requests.get(f"{provider.process.control}/clock", timeout=30).json()["aheadSeconds"] == 0


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"kind": NaN}', b'{"kind": "drop", "kind": "delay"}'])
@pytest.mark.parametrize(
    "path", ["clock", "deposits", "payments", "kyc", "webhooks/faults", "faults", "options"]
)
def test_a_body_that_is_not_json_is_refused(provider: SandboxClient, path: str, body: bytes) -> None:
    response = requests.post(f"{provider.process.control}/{path}", data=body, timeout=30)
    assert response.status_code == 400
    assert response.json()["message"]


def test_a_status_with_a_deeply_nested_body_is_refused(provider: SandboxClient) -> None:
    body = b'{"kind": "status", "operation": "*", "status": 500, "body": %b1%b}' % (b"[" * 900, b"]" * 900)
    assert requests.post(f"{provider.process.control}/faults", data=body, timeout=30).status_code == 400


def test_the_number_of_faults_is_limited(provider: SandboxClient) -> None:
    for _ in range(200):
        provider.process.fault("balances.list", "status", status=500)
    response = requests.post(f"{provider.process.control}/faults", json=STATUS, timeout=30)
    assert (response.status_code, response.json()["message"][:14]) == (400, "there are 200 ")


def test_a_missing_fault_cannot_be_removed(provider: SandboxClient) -> None:
    response = requests.delete(f"{provider.process.control}/faults/999999", timeout=30)
    assert response.status_code == 404
    assert response.json()["message"] == "there is no fault 999999"
