"""POST /payment: what is accepted, and how a payment lives."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import requests

from payments_gateway.crypto_addresses import AddressProof, check_address
from payments_gateway.sandbox.books import rates
from tests.sandbox.conftest import ACCOUNT, SandboxClient, exact

MEMBERS = (
    *("_id", "businessId", "reference", "incomingCurrency", "outgoingCurrency", "incomingAmount"),
    *("outgoingAmount", "confirmedAmount", "unconfirmedAmount", "state", "expTime", "address"),
    *(
        "customerEmail",
        "paymentType",
        "account",
        "rate",
        "threadTS",
        "senderUsername",
        "createdAt",
        "updatedAt",
    ),
)
NUMBERS = ("incomingAmount", "outgoingAmount", "confirmedAmount", "unconfirmedAmount", "rate")
PAYMENT = {
    "businessId": "b5f1c2d94a7e4f0ba1c83d56",
    "incomingCurrency": "USDT",
    "outgoingCurrency": "NGN",
    "customerEmail": "ada@example.com",
    "reference": "INV-1",
    "incomingAmount": 100,
}
TO_BANK = {**PAYMENT, "paymentType": "bank", "country": "NG", **ACCOUNT}
TO_USER = {**PAYMENT, "paymentType": "profile", "serviceUsername": "adaeze.obi"}
WRONG = [
    ("businessId", None, "is required"),
    ("businessId", "somebody-else", "is not that of this merchant"),
    ("incomingCurrency", None, "is required"),
    ("incomingCurrency", "NGN", "must be 'USDT'"),
    ("incomingCurrency", "BTC", "must be 'USDT'"),  # there is no rate of it
    ("outgoingCurrency", None, "is required"),
    ("outgoingCurrency", "USDT", "must be 'NGN' or 'USD'"),
    ("customerEmail", None, "is required"),
    ("customerEmail", "ada", "must be an email address"),
    ("customerEmail", "a@b", "must be an email address"),
    ("paymentType", None, "is required"),
    ("paymentType", "cash", "must be 'profile' or 'bank'"),
    ("reference", "", "must be printable text"),
    ("reference", "x" * 81, "must have at most 80 characters"),
    ("incomingAmount", None, "or outgoingAmount is required"),
    ("incomingAmount", "100", "must be a number"),
    ("incomingAmount", 0, "must be more than zero"),
    ("incomingAmount", -1, "must be more than zero"),
    ("incomingAmount", 1e-7, "must have at most 6 decimals in USDT"),
    ("incomingAmount", 0.000001, "is too little"),
    ("incomingAmount", 999_999_999_999, "or what becomes of it is more than a payment may be"),
    ("outgoingAmount", 1, "is not what incomingAmount becomes"),
    ("rateKey", "nonsense", "is not a key of a rate"),
    ("country", None, "is required"),
    ("accountNumber", None, "is required"),
    ("accountNumber", "0123450000", "does not exist at Access Bank"),
    ("accountName", None, "is required"),
    ("bank", None, "is required"),
    ("bankCode", "999", "is not a known bank code"),
    ("memo", "rent", "is not a known member"),
]


def create(provider: SandboxClient, body: Mapping[str, object], **changes: object) -> requests.Response:
    members = {**body, **changes}
    return provider.post("/payment", {name: value for name, value in members.items() if value is not None})


def created(provider: SandboxClient, body: Mapping[str, object], **changes: object) -> Any:
    response = create(provider, body, **changes)
    assert response.status_code == 200, response.text
    return exact(response)["data"]


def seen(provider: SandboxClient, reference: str = "INV-1") -> Any:
    """The payment as the oracle of the provider reports it now."""
    (found,) = [each for each in provider.process.ledger()["payments"] if each["reference"] == reference]
    return found


def money(provider: SandboxClient) -> list[Any]:
    return [provider.balance(currency) for currency in ("NGN", "USD", "USDT")]


@pytest.mark.parametrize(("body", "account"), [(TO_BANK, "0123456789"), (TO_USER, "adaeze.obi")])
def test_the_response_is_a_payment_as_specified(
    provider: SandboxClient, body: Mapping[str, object], account: str
) -> None:
    payment = created(provider, body)
    assert tuple(payment) == MEMBERS
    assert all(isinstance(payment[name], int | Decimal) for name in NUMBERS)
    assert all(isinstance(payment[name], str) for name in set(MEMBERS) - set(NUMBERS))
    assert {name: payment[name] for name in PAYMENT} == PAYMENT
    assert (payment["state"], payment["account"]) == ("pending", account)
    assert check_address("TRC20", payment["address"]) is AddressProof.CHECKSUM
    lifetime = datetime.fromisoformat(payment["expTime"]) - datetime.fromisoformat(payment["createdAt"])
    assert lifetime == timedelta(minutes=30)


def test_the_outgoing_amount_follows_from_the_incoming_one_and_the_rate(provider: SandboxClient) -> None:
    payment = created(provider, TO_BANK)
    at = datetime.fromisoformat(payment["createdAt"])
    assert payment["rate"] == rates.quote("USDT", "NGN", at)
    assert 0 <= payment["incomingAmount"] * payment["rate"] - payment["outgoingAmount"] < Decimal("0.01")


def test_the_incoming_amount_follows_from_the_outgoing_one(provider: SandboxClient) -> None:
    payment = created(provider, TO_BANK, incomingAmount=None, outgoingAmount=150_000.5)
    assert payment["outgoingAmount"] == Decimal("150000.5")
    assert 0 <= payment["incomingAmount"] * payment["rate"] - payment["outgoingAmount"] < Decimal("0.01")


def test_a_key_fixes_the_rate_for_ten_minutes(provider: SandboxClient) -> None:
    now = provider.process.now()
    key = rates.rate_key("USDT", "NGN", now)
    provider.process.advance(300)
    assert created(provider, TO_BANK, rateKey=key)["rate"] == rates.quote("USDT", "NGN", now)
    provider.process.advance(301)
    response = create(provider, TO_BANK, rateKey=key, reference="INV-2")
    assert response.json()["message"] == "rateKey has expired; read the rate again"


@pytest.mark.parametrize(("member", "value", "phrase"), WRONG)
def test_an_invalid_field_is_refused_by_name(
    provider: SandboxClient, member: str, value: object, phrase: str
) -> None:
    response = create(provider, TO_BANK, **{member: value})
    assert response.status_code == 400
    assert response.json()["message"].startswith(f"{member} {phrase}")
    assert provider.process.ledger()["payments"] == []


@pytest.mark.parametrize(
    ("username", "phrase"), [(None, "is required"), ("nobody", "is not a user of the provider")]
)
def test_a_payment_to_a_profile_needs_a_user(
    provider: SandboxClient, username: str | None, phrase: str
) -> None:
    response = create(provider, TO_USER, serviceUsername=username)
    assert response.status_code == 400
    assert response.json()["message"] == f"serviceUsername {phrase}"


def test_a_reference_is_used_once(provider: SandboxClient) -> None:
    created(provider, TO_BANK)
    response = create(provider, TO_USER)
    assert response.status_code == 409
    assert response.json()["message"] == "reference has been used by another payment"
    assert len(provider.process.ledger()["payments"]) == 1


def test_a_payment_without_a_reference_gets_a_new_one(provider: SandboxClient) -> None:
    references = {created(provider, TO_BANK, reference=None)["reference"] for _ in range(3)}
    assert len(references) == 3


@pytest.mark.parametrize("body", [TO_BANK, TO_USER])
def test_a_payment_is_paid_out_after_its_confirmations(
    provider: SandboxClient, body: Mapping[str, object]
) -> None:
    provider.process.options(settle_after=600)
    before = money(provider)
    created(provider, body)
    provider.process.pay_in("INV-1", "40")
    assert (seen(provider)["state"], seen(provider)["unconfirmedAmount"]) == ("unconfirmed", "40.000000")
    provider.process.advance(60)
    assert (seen(provider)["confirmedAmount"], seen(provider)["unconfirmedAmount"]) == (
        "40.000000",
        "0.000000",
    )
    provider.process.pay_in("INV-1")
    assert seen(provider)["unconfirmedAmount"] == "60.000000"
    provider.process.advance(60)
    assert (seen(provider)["state"], seen(provider)["confirmedAmount"]) == ("processing", "100.000000")
    provider.process.advance(600)
    assert seen(provider)["state"] == "completed"
    assert money(provider) == before
    assert provider.process.ledger()["differences"] == []


def test_a_long_clock_step_completes_a_payment(provider: SandboxClient) -> None:
    created(provider, TO_BANK)
    provider.process.pay_in("INV-1")
    provider.process.advance(86_400)
    assert seen(provider)["state"] == "completed"


def test_a_payout_to_the_merchant_is_a_deposit(provider: SandboxClient) -> None:
    payment = created(provider, TO_USER, serviceUsername=provider.process.api_user)
    before = provider.balance("NGN")["amount"]
    provider.process.pay_in("INV-1")
    assert provider.process.settle() == 1
    record = provider.records()[-1]
    assert (record["type"], record["sender"]) == ("deposit", "ada@example.com")
    assert (record["fromCurrency"], record["fromAmount"]) == ("USDT", 100)
    assert record["amount"] == payment["outgoingAmount"]
    assert provider.balance("NGN")["amount"] == before + payment["outgoingAmount"]
    assert provider.process.ledger()["differences"] == []


def test_the_customer_can_pay_automatically(provider: SandboxClient) -> None:
    provider.process.options(customer_pays_after=600)
    created(provider, TO_BANK)
    provider.process.advance(540)
    assert seen(provider)["state"] == "pending"
    provider.process.advance(60)
    assert seen(provider)["state"] == "unconfirmed"
    provider.process.advance(60)
    assert seen(provider)["state"] == "completed"


@pytest.mark.parametrize(("amount", "state"), [(None, "expired"), ("99.999999", "underpaid")])
def test_an_underpaid_payment_expires(provider: SandboxClient, amount: str | None, state: str) -> None:
    created(provider, TO_BANK)
    if amount is not None:
        provider.process.pay_in("INV-1", amount)
    provider.process.advance(29 * 60)
    assert seen(provider)["state"] in {"pending", "unconfirmed"}
    provider.process.advance(60)
    assert seen(provider)["state"] == state
    with pytest.raises(requests.HTTPError, match="409"):
        provider.process.pay_in("INV-1", "1")
    assert provider.process.ledger()["differences"] == []


def test_a_payout_ends_the_payment(provider: SandboxClient) -> None:
    created(provider, TO_BANK)
    provider.process.pay_in("INV-1")
    provider.process.advance(3_600)
    response = requests.post(f"{provider.process.control}/payments", json={"reference": "INV-1"}, timeout=30)
    assert response.status_code == 409
    assert response.json()["message"] == "the payment is completed and awaits nothing any more"


def test_a_timely_deposit_is_confirmed_after_the_expiry(provider: SandboxClient) -> None:
    created(provider, TO_BANK)
    provider.process.advance(29 * 60 + 30)
    provider.process.pay_in("INV-1")
    provider.process.advance(40)
    assert seen(provider)["state"] == "unconfirmed"
    provider.process.advance(60)
    assert seen(provider)["state"] == "completed"


def test_payouts_to_accounts_ending_in_99_fail_without_ledger_entries(provider: SandboxClient) -> None:
    before = provider.process.balance("NGN")
    created(provider, TO_BANK, accountNumber="0123456799")
    provider.process.pay_in("INV-1")
    provider.process.advance(60)
    assert seen(provider)["state"] == "failed"
    assert provider.process.balance("NGN") == before
    assert provider.process.ledger()["differences"] == []


def test_payouts_to_accounts_ending_in_88_take_an_hour(provider: SandboxClient) -> None:
    created(provider, TO_BANK, accountNumber="0123456788")
    provider.process.pay_in("INV-1")
    provider.process.advance(3_000)
    assert seen(provider)["state"] == "processing"
    provider.process.advance(700)
    assert seen(provider)["state"] == "completed"


def test_pausing_settlement_delays_payouts_and_not_confirmations(provider: SandboxClient) -> None:
    provider.process.options(settle_after=None)
    created(provider, TO_BANK)
    provider.process.pay_in("INV-1")
    provider.process.advance(3_600)
    assert seen(provider)["state"] == "processing"
    assert provider.process.settle("failed") == 1
    assert seen(provider)["state"] == "failed"


def test_settling_does_not_end_an_unpaid_payment(provider: SandboxClient) -> None:
    created(provider, TO_BANK)
    provider.process.pay_in("INV-1", "1")
    assert provider.process.settle() == 0
    assert seen(provider)["state"] == "unconfirmed"


def test_a_reset_deletes_payments(provider: SandboxClient) -> None:
    created(provider, TO_BANK)
    provider.process.pay_in("INV-1")
    provider.process.settle()
    provider.process.reset()
    assert provider.process.ledger()["payments"] == []
    assert provider.process.ledger()["differences"] == []
    created(provider, TO_BANK)
