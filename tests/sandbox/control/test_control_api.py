"""The control API: the oracle, options, settling and resetting, and what happens around the provider."""

import pytest
import requests

from tests.sandbox.conftest import FAILING, PAYMENT, SandboxClient
from tests.sandbox_process import SandboxProcess

DEFAULTS = {
    "settle_after": 0,
    "otp_required": True,
    "token_reuse": False,
    "fail_next": 0,
    "customer_pays_after": None,
}


def test_the_ledger_lists_the_orders_since_the_seed(provider: SandboxClient) -> None:
    provider.process.options(token_reuse=True, settle_after=None)
    first = provider.withdraw(amount="100").json()["data"]["transactionId"]
    provider.withdraw(amount="20.5", currency="USD", **FAILING)
    ledger = provider.process.ledger()
    assert ledger["debits"] == {"count": 2, "amounts": {"NGN": "150.00", "USD": "21.50"}}
    assert [row["status"] for row in ledger["withdrawals"]] == ["processing", "processing"]
    row = ledger["withdrawals"][0]
    assert row["receivedAt"].endswith("Z")
    assert {name: value for name, value in row.items() if name != "receivedAt"} == {
        "transactionId": first,
        "currency": "NGN",
        "amount": "100.00",
        "fee": "50.00",
        "accountNumber": "0123456789",
        "accountName": "Kelechi Eze",
        "bank": "Access Bank",
        "bankCode": "044",
        "status": "processing",
    }


def test_reading_the_ledger_needs_no_credentials(provider: SandboxClient) -> None:
    assert requests.get(f"{provider.process.control}/ledger", timeout=30).json()["withdrawals"] == []


def test_a_reset_restores_the_seed_exactly(provider: SandboxClient) -> None:
    before = provider.records(), provider.get("/balance").json(), provider.process.ledger()
    provider.process.options(token_reuse=True, fail_next=1, settle_after=None)
    provider.withdraw()
    provider.withdraw(currency="USD")
    provider.process.settle()
    provider.process.reset()
    assert (provider.records(), provider.get("/balance").json(), provider.process.ledger()) == before
    assert provider.process.options() == DEFAULTS


def test_a_reset_empties_accounts_not_in_the_seed() -> None:
    """Three records are the opening deposits alone: no fee was ever paid before."""
    with SandboxProcess(transactions=3) as process, requests.Session() as session:
        session.headers.update(process.headers)
        provider = SandboxClient(process, session)
        assert provider.withdraw().status_code == 200
        process.reset()
        assert process.ledger()["differences"] == []
        assert len(provider.records()) == 3


def test_a_reset_makes_a_used_one_time_code_valid_again(provider: SandboxClient) -> None:
    code = provider.process.totp()
    assert provider.withdraw(token=code).status_code == 200
    provider.process.reset()
    assert provider.withdraw(token=code).status_code == 200


def test_options_change_only_the_given_fields(provider: SandboxClient) -> None:
    assert provider.process.options() == DEFAULTS
    assert provider.process.options(settle_after=1.5) == {**DEFAULTS, "settle_after": 1.5}
    assert provider.process.options(fail_next=2) == {**DEFAULTS, "settle_after": 1.5, "fail_next": 2}
    assert provider.process.options(settle_after=None)["settle_after"] is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("settle_after", -1),
        ("settle_after", "1"),
        ("settle_after", True),
        ("settle_after", 1e300),
        ("fail_next", 1.5),
        ("fail_next", -1),
        ("fail_next", None),
        ("token_reuse", 1),
        ("otp_required", "no"),
        ("speed", 1),
    ],
)
def test_an_invalid_option_is_refused_by_name(provider: SandboxClient, name: str, value: object) -> None:
    response = requests.post(f"{provider.process.control}/options", json={name: value}, timeout=30)
    assert response.status_code == 400
    assert response.json()["message"].startswith(f"{name} ")
    assert provider.process.options() == DEFAULTS


def test_settle_and_reset_need_no_body(provider: SandboxClient) -> None:
    assert requests.post(f"{provider.process.control}/settle", timeout=30).json() == {"settled": 0}
    assert requests.post(f"{provider.process.control}/reset", timeout=30).json() == {"transactions": 60}


def test_the_root_redirects_to_the_console(provider: SandboxClient) -> None:
    response = requests.get(provider.process.address, timeout=30)
    assert response.url == f"{provider.process.control}/"
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"


def test_the_ledger_lists_debits_of_every_kind(provider: SandboxClient) -> None:
    provider.process.options(token_reuse=True, settle_after=None)
    provider.withdraw(amount="100")
    provider.post("/balance/convert", {"fromCurrency": "USD", "toCurrency": "NGN", "amount": "20"})
    transfer = {"receiverUsername": "amara", "currency": "NGN", "amount": "7", "otpType": "totp"}
    provider.post("/balance/transfer", {**transfer, "token": provider.process.totp(), "memo": "rent"})
    ledger = provider.process.ledger()
    assert [row["kind"] for row in ledger["orders"]] == ["withdrawal", "conversion", "transfer"]
    assert ledger["debits"] == {"count": 3, "amounts": {"NGN": "157.00", "USD": "20.00"}}
    assert len(ledger["withdrawals"]) == 1
    assert ledger["orders"][2]["receiverUsername"] == "amara"
    assert ledger["differences"] == []


def test_a_deposit_is_a_record_and_changes_the_balance(provider: SandboxClient) -> None:
    before = provider.process.balance("NGN")
    made = provider.process.deposit("NGN", "250.75", sender="Tunde Ajayi")
    record = provider.records()[-1]
    assert (record["transactionId"], record["type"], record["sender"]) == (made, "deposit", "Tunde Ajayi")
    assert str(provider.process.balance("NGN") - before) == "250.75"
    assert provider.process.ledger()["differences"] == []


def test_a_customer_pays_a_payment_in_parts(provider: SandboxClient) -> None:
    provider.post("/payment", PAYMENT)
    paid = provider.process.pay_in("INV-1", "5")
    assert (paid["reference"], paid["state"], paid["unconfirmedAmount"]) == ("INV-1", "unconfirmed", 5)
    assert provider.process.pay_in("INV-1")["unconfirmedAmount"] == 20
    provider.process.advance(61)
    (payment,) = provider.process.ledger()["payments"]
    assert payment["confirmedAmount"] == "20.000000"


def test_paying_a_closed_payment_is_refused(provider: SandboxClient) -> None:
    url = f"{provider.process.control}/payments"
    assert requests.post(url, json={"reference": "none"}, timeout=30).status_code == 404
    provider.post("/payment", PAYMENT)
    provider.process.advance(3600)
    assert requests.post(url, json={"reference": "INV-1"}, timeout=30).status_code == 409


def test_advancing_the_clock_settles_due_transactions(provider: SandboxClient) -> None:
    provider.process.options(settle_after=600)
    made = provider.withdraw().json()["data"]
    before = provider.process.now()
    assert 601 <= (provider.process.advance(601) - before).total_seconds() < 660
    clock = requests.get(f"{provider.process.control}/clock", timeout=30).json()
    assert clock["aheadSeconds"] == 601
    assert clock["wall"] < clock["now"]
    assert provider.record(made["transactionId"])["status"] == "fullfiled"
    provider.process.reset()
    assert requests.get(f"{provider.process.control}/clock", timeout=30).json()["aheadSeconds"] == 0


def test_one_time_codes_stay_in_real_time(provider: SandboxClient) -> None:
    provider.process.advance(86_400)
    assert provider.withdraw(token=provider.process.totp()).status_code == 200


def test_kyc_is_an_option(provider: SandboxClient) -> None:
    headers = {"x-api-key": provider.process.api_key, "x-api-user": provider.process.api_user}
    body = {"accountName": "Meridian", "currency": "NGN", "preferredAccountName": "Meridian"}
    url = f"{provider.process.address}/v4/account"
    provider.process.kyc(False)
    assert requests.put(url, json=body, headers=headers, timeout=30).status_code == 400
    provider.process.kyc(True)
    assert requests.put(url, json=body, headers=headers, timeout=30).status_code == 200


def test_deliveries_and_keys_of_webhooks_are_listed(provider: SandboxClient) -> None:
    url = f"{provider.process.address}/nowhere"
    provider.session.put(f"{provider.process.url}/callbackurl", json={"callbackUrl": url}, timeout=30)
    made = provider.process.deposit("NGN", "5")
    provider.process.deposit("NGN", "6")
    listed = requests.get(f"{provider.process.control}/webhooks", params={"limit": 1}, timeout=30).json()
    assert listed["callbackUrl"] == url
    assert len(listed["deliveries"]) == 1
    assert made in provider.process.deliveries()[1]["data"]
    keys = f"{provider.process.control}/webhooks/keys"
    (first,) = requests.get(keys, timeout=30).json()["keys"]
    newer, older = requests.post(keys, timeout=30).json()["keys"]
    assert older == first
    assert newer["pem"].startswith("-----BEGIN PUBLIC KEY-----")


def test_faults_of_webhooks_are_set_counted_and_removed(provider: SandboxClient) -> None:
    provider.process.webhook_fault("duplicate", copies=2)
    provider.process.webhook_fault("reorder", deliveries=3)
    provider.process.webhook_fault("delay", seconds=1.5, deliveries=4)
    faults = provider.process.webhook_fault("forge", forgery="tampered_data", deliveries=5)
    assert {kind: fault["left"] for kind, fault in faults.items()} == {
        "duplicate": 1,
        "reorder": 3,
        "delay": 4,
        "forge": 5,
    }
    url = f"{provider.process.control}/webhooks/faults"
    cleared = requests.delete(url, timeout=30).json()["faults"]
    assert {fault["left"] for fault in cleared.values()} == {0}


def test_a_fault_is_returned_as_it_was_set(provider: SandboxClient) -> None:
    made = provider.process.fault("*", "status", status=500, body={"a": 1.50}, headers={"Retry-After": "1"})
    (fault,) = provider.process.faults()
    assert fault.pop("since").endswith("Z")
    assert fault == {
        "id": made,
        "kind": "status",
        "operation": "*",
        "times": 1,
        "skip": 0,
        "containing": None,
        "status": 500,
        "body": {"a": 1.5},
        "headers": {"Retry-After": "1"},
        "when": "before_execution",
        "hits": 0,
        "left": 1,
        "passed": 0,
    }
