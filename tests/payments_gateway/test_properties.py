"""Any valid payload survives the way there and back exactly; any nonsense ends in a typed error."""

import json
from decimal import Decimal
from typing import Any

import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from payments_gateway import (
    OPERATIONS,
    AccountRequest,
    CallEffect,
    Conversion,
    GatewayError,
    OutcomeUnknownError,
    PaymentRequest,
    PaymentsGateway,
    ProviderProfile,
    ReadFailedError,
    RejectedError,
    Transfer,
    TransferDetail,
    WalletTransfer,
    Withdrawal,
    dumps,
    loads,
)
from payments_gateway.connection import RawResponse
from payments_gateway.fields import RequestModel
from payments_gateway.resources.transactions import TransactionPage, TransactionRecord
from payments_gateway.transport import Transport
from tests.payments_gateway.calls import CALLS
from tests.payments_gateway.conftest import config

SETTINGS = config("https://service.example/v2", tries=1)


class Canned(Transport):
    """A transport whose wire answers always the same, whatever is asked."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(SETTINGS)
        self._answer = RawResponse(status, body, is_complete=True, date=None, retry_after=0)

    def _exchange(
        self, session: requests.Session, request: requests.PreparedRequest, total: float
    ) -> RawResponse:
        return self._answer


def outcome(name: str, status: int, body: bytes) -> object:
    """What an operation makes of an answer: a value, or its GatewayError. Nothing else is caught."""
    gateway = PaymentsGateway(SETTINGS, transport=Canned(status, body))
    try:
        return CALLS[name].call(gateway)
    except GatewayError as exc:
        return exc


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=12)
NUMBERS = st.integers() | st.floats() | st.integers(10**20, 10**45) | st.sampled_from([1e300, 5e-324, -0.0])
WORDS = st.sampled_from(
    ["", "0", "-1", "1e5", "NaN", "9" * 50, "T1", "fullfiled", "2025-11-21", "\x00", "{}"]
)
LEAVES = st.none() | st.booleans() | NUMBERS | ANY_TEXT | WORDS
NAMES = ANY_TEXT | st.sampled_from(
    ["data", "success", "message", "errors", "raw", "page", "model_dump", "__class__"]
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@st.composite
def disturbed(draw: st.DrawFn, value: Any) -> Any:
    """A good answer in which some members are missing, replaced, wrapped or added."""
    match draw(st.integers(0, 11)):
        case 0:
            return draw(JSON)
        case 1:
            return [value, draw(LEAVES)]
        case 2:
            return {"data": value}
    if isinstance(value, dict):
        kept = {name: draw(disturbed(item)) for name, item in value.items() if draw(st.integers(0, 9))}
        return kept | draw(st.dictionaries(NAMES, JSON, max_size=1))
    return [draw(disturbed(item)) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([200, 200, 200, 201, 400, 404, 409, 500]))
def test_any_response_gives_a_value_or_a_typed_error(
    operation: Any, data: st.DataObject, status: int
) -> None:
    answer = data.draw(disturbed(CALLS[operation.name].answer))
    end = outcome(operation.name, status, json.dumps(answer).encode())
    unclear = ReadFailedError if operation.effect is CallEffect.READS else OutcomeUnknownError
    if isinstance(end, GatewayError):
        assert isinstance(end, (unclear, RejectedError))
    else:
        assert status in {200, 201}
        assert isinstance(end, (BaseModel, list, dict, str, type(None)))


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(CALLS)), st.binary(max_size=60) | ANY_TEXT.map(lambda text: repr(text).encode())
)
def test_any_bytes_give_a_typed_error(name: str, body: bytes) -> None:
    assert isinstance(outcome(name, 200, body), GatewayError)


def amounts(decimals: int) -> st.SearchStrategy[Decimal]:
    return st.decimals(
        min_value=Decimal(1).scaleb(-decimals), max_value=Decimal(10) ** 20, places=decimals, allow_nan=False
    )


TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=20
).filter(lambda text: bool(text.strip()))
FIAT = st.sampled_from(["NGN", "USD"])
EMAILS = st.sampled_from(["ada@example.com", "ü+1@bücher.example"])
BANK = dict.fromkeys(("country", "account_number", "account_name", "bank", "bank_code"), TEXT)


def built(kind: type[RequestModel], **members: st.SearchStrategy[Any]) -> st.SearchStrategy[RequestModel]:
    """Requests of a kind. Said by their members, because Hypothesis does not know the constraints of pydantic."""
    return st.fixed_dictionaries(members).map(kind.model_validate)


REQUESTS = st.one_of(
    built(
        Withdrawal,
        **dict.fromkeys(("account_number", "account_name", "bank", "bank_code"), TEXT),
        currency=FIAT,
        amount=amounts(2),
        otp_type=st.sampled_from(["otp", "totp"]),
    ),
    st.sampled_from([("NGN", "USD"), ("USD", "NGN")]).flatmap(
        lambda pair: built(
            Conversion, from_currency=st.just(pair[0]), to_currency=st.just(pair[1]), amount=amounts(2)
        )
    ),
    built(
        Transfer,
        receiver_username=TEXT,
        currency=FIAT,
        amount=amounts(2),
        memo=st.just("") | TEXT,
        otp_type=st.sampled_from(["otp", "totp"]),
    ),
    built(
        WalletTransfer,
        network=TEXT,
        currency=st.just("USDT"),
        address=TEXT,
        amount=amounts(6),
        wallet_type=st.none() | TEXT,
        memo=st.just("") | TEXT,
    ),
    built(
        PaymentRequest,
        business_id=TEXT,
        incoming_currency=st.just("BTC"),
        outgoing_currency=FIAT,
        customer_email=EMAILS,
        payment_type=st.just("bank"),
        reference=st.none() | TEXT,
        incoming_amount=amounts(18),
        outgoing_amount=st.none() | amounts(2),
        rate_key=st.none() | TEXT,
        service_username=st.none() | TEXT,
        **BANK,
    ),
    built(AccountRequest, account_name=TEXT, currency=TEXT, preferred_account_name=st.none() | TEXT),
)


def wire(request: RequestModel) -> dict[str, object]:
    """The body of a request, as its method makes it."""
    match request:
        case Withdrawal() | Transfer():
            return request.wire(SecretStr("1"), ProviderProfile())
        case PaymentRequest():
            return request.wire(ProviderProfile())
        case Conversion() | WalletTransfer() | AccountRequest():
            return request.wire()
    raise TypeError(type(request).__name__)


@settings(max_examples=150, deadline=None)
@given(REQUESTS)
def test_requests_round_trip_exactly(request_: RequestModel) -> None:
    body = {name: value for name, value in wire(request_).items() if name != "token"}
    arrived = loads(dumps(body).encode())
    assert arrived == body
    assert type(request_).model_validate(arrived) == request_


@settings(max_examples=100, deadline=None)
@given(REQUESTS)
def test_wire_types_are_preserved(request_: RequestModel) -> None:
    body = json.loads(dumps({name: value for name, value in wire(request_).items() if name != "token"}))
    numbers = {"incomingAmount", "outgoingAmount"} | (
        {"amount"} if isinstance(request_, WalletTransfer) else set()
    )
    for name, value in body.items():
        assert isinstance(value, (int, float) if name in numbers else str), name


EXACT = st.decimals(allow_nan=False, allow_infinity=False, places=18, min_value=-(10**21), max_value=10**21)


@settings(max_examples=150, deadline=None)
@given(EXACT, EXACT | st.none(), TEXT, st.booleans())
def test_responses_round_trip_exactly(amount: Decimal, fee: Decimal | None, name: str, as_text: bool) -> None:
    def written(number: Decimal | None) -> object:
        return format(number, "f") if as_text and number is not None else number

    record = {"transactionId": "T1", "amount": written(amount), "fee": written(fee), "username": name}
    body = {"data": {"data": [record], "total": 1, "perPage": 1, "page": 1, "pages": 1}}
    page = outcome("transactions.page", 200, dumps(body).encode())
    assert isinstance(page, TransactionPage)
    expected = TransactionRecord(transaction_id="T1", amount=amount, fee=fee, username=name)
    assert page.records == [expected]


@settings(max_examples=150, deadline=None)
@given(EXACT, TEXT)
def test_receipts_round_trip_exactly(amount: Decimal, name: str) -> None:
    detail = {"transactionId": name, "amount": format(amount, "f"), "sender": name, "news": {"a": [name]}}
    receipt = outcome("balances.convert", 200, dumps({"data": {"transferDetail": detail}}).encode())
    assert isinstance(receipt, TransferDetail)
    assert (receipt.amount, receipt.sender, receipt.transaction_id) == (amount, name, name.strip())
    assert receipt.raw == {"transferDetail": detail}
    assert receipt.model_extra == {"news": {"a": [name]}}
