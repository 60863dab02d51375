"""One call of every operation: what is called, what must leave, and an answer as the specification shows it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from payments_gateway import (
    AccountRequest,
    Conversion,
    KeyRequest,
    PaymentRequest,
    PaymentsGateway,
    Transfer,
    WalletTransfer,
)
from tests.payments_gateway.situations import WITHDRAWAL

TOKEN = SecretStr("482913")
DONE = {"success": True, "message": "ok"}

CONVERSION = Conversion(from_currency="NGN", to_currency="USD", amount="1500.50")
TRANSFER = Transfer(receiver_username="ada", currency="NGN", amount="10.00", memo="Lunch")
WALLET_TRANSFER = WalletTransfer(
    network="TRC20", currency="USDT", address="T9yD", amount="0.000001", wallet_type="main", memo="m"
)
PAYMENT = PaymentRequest(
    business_id="B1",
    incoming_currency="USDT",
    outgoing_currency="NGN",
    customer_email="ada@example.com",
    payment_type="bank",
    reference="R1",
    outgoing_amount="1000.10",
    rate_key="K1",
    country="NG",
    account_number="0123456789",
    account_name="ADA OBI",
    bank="Access Bank",
    bank_code="044",
)
ACCOUNT = AccountRequest(account_name="Ada", currency="NGN", preferred_account_name="Ada Ltd")
KEY = KeyRequest(name="reports", scope="G", replaces=SecretStr("canary-old-key"), expires_in_days=30)

DETAIL = {
    "transactionId": "T1",
    "sender": "acme",
    "status": "fullfiled",
    "date": "2025-11-21",
    "toCurrency": "USD",
    "fromCurrency": "NGN",
    "receiveAmount": "1.00",
    "amount": "1500.50",
    "username": "ada",
    "senderPrevbalance": "2000.00",
}
WALLET_DETAIL = {
    **{name: DETAIL[name] for name in ("transactionId", "sender", "status", "date", "username")},
    "type": "transfer",
    "toCurrency": "USDT",
    "fromCurrency": "USDT",
    "receiveAmount": 1.5,
    "amount": 2,
    "address": "T9yD",
    "memo": "m",
}
PAGE = {"data": [], "total": 0, "perPage": 100, "page": 1, "pages": 0}
PAID = {
    "_id": "P1",
    "businessId": "B1",
    "reference": "R1",
    "incomingCurrency": "USDT",
    "outgoingCurrency": "NGN",
    "incomingAmount": 0.65,
    "outgoingAmount": 1000.1,
    "confirmedAmount": 0,
    "unconfirmedAmount": 0,
    "state": "pending",
    "expTime": "2025-11-21T10:30:00Z",
    "address": "T9yD",
    "customerEmail": "ada@example.com",
    "paymentType": "bank",
    "account": "0123456789",
    "rate": 1538.62,
    "threadTS": "1763719200.1",
    "senderUsername": "",
    "createdAt": "2025-11-21T10:00:00Z",
    "updatedAt": "2025-11-21T10:00:00Z",
}


@dataclass(frozen=True)
class Case:
    """A call, the target and body that must leave, and a good answer to it."""

    call: Callable[[PaymentsGateway], object]
    answer: dict[str, Any]
    sent: dict[str, Any] | None = None
    query: str = ""


CALLS: dict[str, Case] = {
    "balances.convert": Case(
        lambda gateway: gateway.balances.convert(CONVERSION),
        {**DONE, "data": {"transferDetail": DETAIL}},
        {"fromCurrency": "NGN", "toCurrency": "USD", "amount": "1500.50"},
    ),
    "balances.withdraw": Case(
        lambda gateway: gateway.balances.withdraw(WITHDRAWAL, otp=TOKEN),
        {"data": {"transactionId": "T1"}},
        {
            "accountNumber": "0123456789",
            "accountName": "ADA OBI",
            "bank": "Access Bank",
            "bankCode": "044",
            "currency": "NGN",
            "amount": "250000.00",
            "otpType": "totp",
            "token": "482913",
        },
    ),
    "balances.transfer": Case(
        lambda gateway: gateway.balances.transfer(TRANSFER, otp=TOKEN),
        {**DONE, "data": DETAIL},
        {
            "receiverUsername": "ada",
            "currency": "NGN",
            "amount": "10.00",
            "memo": "Lunch",
            "otpType": "totp",
            "token": "482913",
        },
    ),
    "balances.list": Case(
        lambda gateway: gateway.balances.list("USDT"),
        {**DONE, "data": {"balances": []}},
        query="?currency=USDT",
    ),
    "wallets.transfer": Case(
        lambda gateway: gateway.wallets.transfer(WALLET_TRANSFER),
        {**DONE, "data": {"transferDetail": WALLET_DETAIL}},
        {
            "network": "TRC20",
            "currency": "USDT",
            "address": "T9yD",
            "amount": 0.000001,
            "walletType": "main",
            "memo": "m",
        },
    ),
    "wallets.get": Case(
        lambda gateway: gateway.wallets.get(currency="USDT", network="BSC BEP20"),
        {**DONE, "wallet": {"uid": "W1", "addresses": ["T9yD"]}},
        query="?currency=USDT&network=BSC%20BEP20",
    ),
    "payments.create": Case(
        lambda gateway: gateway.payments.create(PAYMENT),
        {**DONE, "data": PAID},
        {
            "businessId": "B1",
            "incomingCurrency": "USDT",
            "outgoingCurrency": "NGN",
            "customerEmail": "ada@example.com",
            "paymentType": "bank",
            "reference": "R1",
            "outgoingAmount": 1000.10,
            "rateKey": "K1",
            "country": "NG",
            "accountNumber": "0123456789",
            "accountName": "ADA OBI",
            "bank": "Access Bank",
            "bankCode": "044",
        },
    ),
    "transactions.page": Case(
        lambda gateway: gateway.transactions.page(currency="NGN", type="sent", duration="one week", page=2),
        {**DONE, "data": PAGE},
        query="?currency=NGN&type=sent&duration=one%20week&page=2&limit=100",
    ),
    "transactions.summary": Case(
        lambda gateway: gateway.transactions.summary(type="deposit", duration="one year", per_page=5),
        {**DONE, "data": {"txn": PAGE, "summary": {"volume": 0, "txnCount": 0, "duration": 1}}},
        query="?type=deposit&duration=one%20year&page=1&limit=5",
    ),
    "banks.resolve": Case(
        lambda gateway: gateway.banks.resolve(account_number="0123456789", bank_code="044"),
        {"data": {"accountname": "ADA OBI"}},
        {"accountNumber": "0123456789", "bankCode": "044"},
    ),
    "api_keys.create": Case(
        lambda gateway: gateway.api_keys.create(otp=TOKEN),
        {"data": {"key": "canary-new-key", "expires": "2026-11-21"}},
        {"otpType": "totp", "token": "482913"},
    ),
    "callbacks.set_url": Case(
        lambda gateway: gateway.callbacks.set_url("https://example.com/hook"),
        DONE,
        {"callbackUrl": "https://example.com/hook"},
    ),
    "callbacks.url": Case(
        lambda gateway: gateway.callbacks.url(),
        {**DONE, "data": {"callbackUrl": "https://example.com/hook"}},
    ),
    "accounts.create": Case(
        lambda gateway: gateway.accounts.create(ACCOUNT),
        {"data": [{"account_name": "Ada Ltd", "status": "ACTIVE"}], "message": "created"},
        {"accountName": "Ada", "currency": "NGN", "preferredAccountName": "Ada Ltd"},
    ),
    "accounts.list": Case(
        lambda gateway: gateway.accounts.list(account_name="Ada Ltd", page=1, per_page=20),
        {"data": {"accounts": []}, "message": "ok"},
        query="?accountName=Ada%20Ltd&page=1&perPage=20",
    ),
    "api_keys.generate": Case(
        lambda gateway: gateway.api_keys.generate(KEY, otp=TOKEN),
        {"data": {"apikey": "canary-new-key"}, "message": "generated"},
        {
            "keyname": "reports",
            "scope": "G",
            "apikey": "canary-old-key",
            "expirationInDays": 30,
            "otp": "482913",
        },
    ),
    "api_keys.list": Case(lambda gateway: gateway.api_keys.list(), {"data": {"Apikeys": []}}),
    "api_keys.scopes": Case(lambda gateway: gateway.api_keys.scopes(), {"data": {"Master": "M"}}),
    "api_keys.invalidate": Case(
        lambda gateway: gateway.api_keys.invalidate(SecretStr("canary-old-key")),
        {"data": {"apikey": "canary-old-key"}, "message": "invalidated"},
        {"apikey": "canary-old-key"},
    ),
    "api_keys.delete": Case(
        lambda gateway: gateway.api_keys.delete("1a2b3c4d"),
        {"message": "deleted"},
        query="?apikeyHash=1a2b3c4d",
    ),
}
