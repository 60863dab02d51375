"""What can be asked for, and what is refused before anything leaves."""

from decimal import Decimal
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from payments_gateway import NotSentError, PaymentRequest, ProviderProfile
from payments_gateway.fields import RequestModel
from tests.payments_gateway.calls import ACCOUNT, CONVERSION, KEY, PAYMENT, TRANSFER, WALLET_TRANSFER
from tests.payments_gateway.situations import WITHDRAWAL


def changed(request: RequestModel, change: dict[str, Any]) -> RequestModel:
    return type(request).model_validate(request.model_dump() | change)


BAD_AMOUNTS = ("0", "-1", "NaN", "1e5", "1,000", "", 0.1, True, None, Decimal("Infinity"), "9" * 23)
FREE_TEXTS = ("", "  ", "a\x00b", "a\ud800", None, 5)


@pytest.mark.parametrize(
    ("request_", "change"),
    [
        *((CONVERSION, {"amount": amount}) for amount in (*BAD_AMOUNTS, "0.001")),
        *((TRANSFER, {"amount": amount}) for amount in (*BAD_AMOUNTS, "0.001")),
        *((WALLET_TRANSFER, {"amount": amount}) for amount in (*BAD_AMOUNTS, "0.0000001")),
        *((PAYMENT, {"incoming_amount": amount}) for amount in BAD_AMOUNTS if amount is not None),
        *((PAYMENT, {"outgoing_amount": amount}) for amount in ("0.001", "0", "-1")),
        (CONVERSION, {"to_currency": "NGN"}),
        (CONVERSION, {"to_currency": "USDT"}),
        (TRANSFER, {"currency": "USDT"}),
        (TRANSFER, {"memo": "x" * 29}),
        (TRANSFER, {"memo": "a\x00"}),
        (TRANSFER, {"otp_type": "sms"}),
        *((TRANSFER, {"receiver_username": text}) for text in FREE_TEXTS),
        *(
            (WALLET_TRANSFER, {name: text})
            for name in ("network", "currency", "address")
            for text in FREE_TEXTS
        ),
        *(
            (PAYMENT, {"customer_email": text})
            for text in ("ada", "a@b@c", "a b@c", "@", "a" * 250 + "@b.ng")
        ),
        *((PAYMENT, {name: None}) for name in ("business_id", "incoming_currency", "outgoing_currency")),
        *((PAYMENT, {name: None}) for name in ("customer_email", "payment_type")),
        *(
            (PAYMENT, {name: None})
            for name in ("country", "account_number", "account_name", "bank", "bank_code")
        ),
        (PAYMENT, {"outgoing_amount": None}),
        (PAYMENT, {"payment_type": "profile"}),
        (ACCOUNT, {"account_name": ""}),
        (ACCOUNT, {"currency": ""}),
        (KEY, {"name": ""}),
        (KEY, {"scope": " "}),
        (KEY, {"expires_in_days": 0}),
        (KEY, {"expires_in_days": "30"}),
        (KEY, {"expires_in_months": 1}),
        *(
            (request, {"news": 1})
            for request in (CONVERSION, TRANSFER, WALLET_TRANSFER, PAYMENT, ACCOUNT, KEY)
        ),
    ],
)
def test_invalid_requests_are_refused(request_: RequestModel, change: dict[str, Any]) -> None:
    with pytest.raises(NotSentError, match=r"Nothing was sent\.$"):
        changed(request_, change)


@pytest.mark.parametrize("request_", [CONVERSION, TRANSFER, WALLET_TRANSFER, PAYMENT, ACCOUNT, KEY])
def test_a_request_is_frozen(request_: RequestModel) -> None:
    name = next(iter(type(request_).model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(request_, name, "other")


def test_a_memo_of_28_characters_is_accepted() -> None:
    memo = "é" * 28
    transfer = TRANSFER.model_validate(TRANSFER.model_dump() | {"memo": memo})
    assert transfer.wire(None, ProviderProfile())["memo"] == memo


def test_empty_fields_are_omitted() -> None:
    transfer = TRANSFER.model_copy(update={"memo": ""})
    assert set(transfer.wire(None, ProviderProfile())) == {
        "receiverUsername",
        "currency",
        "amount",
        "otpType",
    }
    wallet = WALLET_TRANSFER.model_copy(update={"memo": "", "wallet_type": None})
    assert set(wallet.wire()) == {"network", "currency", "address", "amount"}
    account = ACCOUNT.model_copy(update={"preferred_account_name": None})
    assert account.wire() == {"accountName": "Ada", "currency": "NGN"}
    key = KEY.model_copy(update={"replaces": None, "expires_in_days": None})
    assert key.wire(None, ProviderProfile()) == {"keyname": "reports", "scope": "G"}


def test_the_user_field_of_a_payment_is_named_by_the_profile() -> None:
    payment = PaymentRequest(
        business_id="B1",
        incoming_currency="BTC",
        outgoing_currency="NGN",
        customer_email="ada@example.com",
        payment_type="profile",
        service_username="ada",
        incoming_amount="0.000000000000000001",
    )
    sent = {
        "businessId": "B1",
        "incomingCurrency": "BTC",
        "outgoingCurrency": "NGN",
        "customerEmail": "ada@example.com",
        "paymentType": "profile",
        "incomingAmount": Decimal("0.000000000000000001"),
    }
    assert payment.wire(ProviderProfile()) == sent | {"serviceUsername": "ada"}
    other = ProviderProfile().overridden({"service_username_member": "username"})
    assert payment.wire(other) == sent | {"username": "ada"}


def test_a_payment_of_another_type_has_no_conditions() -> None:
    bare = {"country": None, "account_number": None, "account_name": None, "bank": None, "bank_code": None}
    assert changed(PAYMENT, {**bare, "payment_type": "cash"}).model_dump()["payment_type"] == "cash"


def test_the_currency_field_of_a_transfer_is_named_by_the_profile() -> None:
    other = ProviderProfile().overridden(
        {"transfer_currency_member": "transferCurrency", "otp_type_member": "type"}
    )
    body = TRANSFER.wire(SecretStr("1"), other)
    assert (body["transferCurrency"], body["type"]) == ("NGN", "totp")
    assert not {"currency", "otpType"} & set(body)


@pytest.mark.parametrize(
    ("request_", "change", "text"),
    [
        (WITHDRAWAL, {"bank": " "}, "The request cannot be sent (bank: empty). Nothing was sent."),
        (PAYMENT, {"customer_email": "canary"}, "(customer_email: not as specified)"),
        (PAYMENT, {"bank_code": None}, "sent: A payment of type bank needs bank_code. Nothing"),
        (WITHDRAWAL, {"amount": "0.001"}, "sent: NGN has at most 2 decimals. Nothing"),
        (WITHDRAWAL, {"amount": "canary"}, "(amount: not an exact number)"),
    ],
)
def test_the_refusal_names_the_member_and_not_its_value(
    request_: RequestModel, change: dict[str, Any], text: str
) -> None:
    with pytest.raises(NotSentError) as caught:
        changed(request_, change)
    assert text in str(caught.value)
    assert "canary" not in str(caught.value)


def test_the_refusal_holds_no_value_of_the_request() -> None:
    with pytest.raises(NotSentError) as caught:
        changed(KEY, {"name": "", "replaces": SecretStr("canary"), "expires_in_months": 1})
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
