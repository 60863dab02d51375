"""The requests exactly as they leave, header by header and member by member."""

import json
from decimal import Decimal
from typing import Any

import pytest
from pydantic import SecretStr

from payments_gateway import NotSentError, ProviderProfile, Withdrawal
from payments_gateway.money import loads
from payments_gateway.operations import Endpoint
from payments_gateway.transport import Transport
from tests.payments_gateway import stub
from tests.payments_gateway.conftest import Gateway, Serve, config
from tests.payments_gateway.situations import ACCEPTED, WITHDRAWAL, withdraw

EMPTY_PAGE = {"data": {"data": [], "total": 0, "perPage": 100, "page": 1, "pages": 0}}
COMMON = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "countersign"}
V2 = {"X-Api-Key": "canary-key-7f3a", "X-Api-User": "merchant", "X-User-Version": "v2"}


def test_a_withdrawal_on_the_wire(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(200, ACCEPTED))
    withdraw(gateway(server.url))
    (request,) = server.requests
    assert (request.method, request.target) == ("POST", "/v2/balance/withdraw")
    assert dict(request.headers) == COMMON | V2 | {
        "Host": f"127.0.0.1:{server.port}",
        "Content-Type": "application/json",
        "Content-Length": str(len(request.body)),
    }
    assert json.loads(request.body) == {
        "accountNumber": "0123456789",
        "accountName": "ADA OBI",
        "bank": "Access Bank",
        "bankCode": "044",
        "currency": "NGN",
        "amount": "250000.00",
        "otpType": "totp",
        "token": "482913",
    }


def test_a_bank_is_resolved_without_credentials(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(200, {"data": {"accountname": "ADA OBI"}}))
    gateway(server.url).banks.resolve(account_number="0123456789", bank_code="044")
    (request,) = server.requests
    assert (request.method, request.target) == ("POST", "/v2/bank/resolve")
    assert not {name for name, _ in request.headers} & set(V2)
    assert request.header("Content-Type") == "application/json"
    assert json.loads(request.body) == {"accountNumber": "0123456789", "bankCode": "044"}


def test_balances_on_the_wire(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(200, {"data": {"balances": []}}))
    client = gateway(server.url)
    client.balances.list()
    client.balances.list("USDT")
    assert [request.target for request in server.requests] == ["/v2/balance", "/v2/balance?currency=USDT"]
    assert dict(server.requests[0].headers) == COMMON | V2 | {"Host": f"127.0.0.1:{server.port}"}
    assert server.requests[0].body == b""


def test_transactions_on_the_wire(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(200, EMPTY_PAGE))
    client = gateway(server.url)
    client.transactions.page(currency="NGN", type="internalTransfer", duration="one day", page=3, per_page=50)
    client.transactions.page()
    assert [request.target for request in server.requests] == [
        "/v2/transaction?currency=NGN&type=internalTransfer&duration=one%20day&page=3&limit=50",
        "/v2/transaction?page=1&limit=100",
    ]


def test_the_profile_renames_what_the_specification_leaves_open(serve: Serve, gateway: Gateway) -> None:
    profile = ProviderProfile().overridden(
        {
            "transaction_page_query": "p",
            "transaction_per_page_query": "perPage",
            "first_page": 0,
            "durations": {"one day": "1d"},
            "otp_type_member": "otp_type",
        }
    )
    server = serve(stub.answer(200, EMPTY_PAGE), stub.answer(200, ACCEPTED))
    client = gateway(server.url, profile=profile)
    client.transactions.page(duration="one day")
    withdraw(client)
    assert server.requests[0].target == "/v2/transaction?duration=1d&p=0&perPage=100"
    assert json.loads(server.requests[1].body)["otp_type"] == "totp"


def test_the_otp_type_is_from_the_request_or_the_profile() -> None:
    codes_by_mail = ProviderProfile().overridden({"otp_type": "otp"})
    assert WITHDRAWAL.wire(None, ProviderProfile())["otpType"] == "totp"
    assert WITHDRAWAL.wire(None, codes_by_mail)["otpType"] == "otp"
    named = WITHDRAWAL.model_copy(update={"otp_type": "totp"})
    assert named.wire(None, codes_by_mail)["otpType"] == "totp"


def test_v4_operations_have_two_headers(serve: Serve) -> None:
    server = serve(stub.answer(200, {"data": []}))
    transport = Transport(config(server.url))
    transport.send_once(
        "PUT", "/account", {"currency": "NGN"}, into=lambda response: response, endpoint=Endpoint.V4
    )
    (request,) = server.requests
    assert (request.method, request.target) == ("PUT", "/v4/account")
    assert (request.header("x-api-key"), request.header("x-api-user")) == ("canary-key-7f3a", "merchant")
    assert not {name for name, _ in request.headers} & set(V2)


@pytest.mark.parametrize("digits", ["0.1", "0.000001", "12345678901234567890.12", "100", "3"])
def test_numbers_are_sent_digit_by_digit(serve: Serve, digits: str) -> None:
    server = serve(stub.answer(200, {}))
    body = {"amount": Decimal(digits), "text": digits}
    Transport(config(server.url)).send_once("POST", "/wallet/transfer", body, into=lambda response: response)
    assert server.requests[0].body == f'{{"amount": {digits}, "text": "{digits}"}}'.encode()


def test_numbers_are_sent_without_an_exponent(serve: Serve) -> None:
    server = serve(stub.answer(200, {}))
    body = {"small": Decimal("1E-6"), "large": Decimal("1E+6")}
    Transport(config(server.url)).send_once("POST", "/wallet/transfer", body, into=lambda response: response)
    assert server.requests[0].body == b'{"small": 0.000001, "large": 1000000}'


@pytest.mark.parametrize(
    ("amount", "sent"),
    [
        ("0.10", "0.10"),
        (Decimal("1E+5"), "100000"),
        (7, "7"),
        ("12345678901234567890.12", "12345678901234567890.12"),
    ],
)
def test_the_amount_of_a_withdrawal_is_text(amount: Any, sent: str) -> None:
    request = WITHDRAWAL.model_validate(WITHDRAWAL.model_dump() | {"amount": amount})
    assert request.wire(None, ProviderProfile())["amount"] == sent


@pytest.mark.parametrize(
    "change",
    [
        *(
            {"amount": amount}
            for amount in ("0", "-1", "0.001", "1e5", "NaN", "1,000.50", "", 0.1, True, None)
        ),
        *({"amount": Decimal(amount)} for amount in ("NaN", "Infinity", "-0", "1E+30", "0.001")),
        {"currency": "EUR"},
        {"currency": "USDT"},
        {"currency": ""},
        {"account_number": " "},
        {"account_name": ""},
        {"bank": ""},
        {"bank_code": ""},
        {"otp_type": "sms"},
        {"memo": "not a member"},
    ],
)
def test_an_invalid_withdrawal_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(NotSentError):
        Withdrawal.model_validate(WITHDRAWAL.model_dump() | change)


def test_the_one_time_code_stays_secret_until_it_is_sent() -> None:
    body = WITHDRAWAL.wire(SecretStr("482913"), ProviderProfile())
    assert "482913" not in repr(body)


def test_a_withdrawal_may_be_sent_with_either_field_names() -> None:
    assert Withdrawal.model_validate(WITHDRAWAL.model_dump(by_alias=True)) == WITHDRAWAL


def test_received_amounts_are_exact(serve: Serve, gateway: Gateway) -> None:
    text = (
        b'{"data": {"balances": {"toCurrency": "USDT", "amount": 12345678901234567890.12, "totalRecieved": 0.1,'
        b' "totalSent": 1e-6, "txnCount": 3, "formattedAmount": 12345678901234567890}}}'
    )
    (balance,) = gateway(serve(stub.answer(200, text)).url).balances.list()
    assert balance.amount == Decimal("12345678901234567890.12")
    assert balance.total_received == Decimal("0.1")
    assert balance.total_sent == Decimal("0.000001")
    assert balance.formatted_amount == loads("12345678901234567890")
