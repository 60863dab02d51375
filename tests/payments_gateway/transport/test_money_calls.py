"""A money call: every way it can end, the error it ends in, and that one request at most was made."""

import time
from typing import Any

import pytest
from django.utils import translation
from django.utils.translation import gettext

from payments_gateway import (
    CredentialsError,
    InsufficientFundsError,
    InvalidRequestError,
    KycRequiredError,
    NotFoundError,
    OtpRejectedError,
    OutcomeUnknownError,
    ProviderProfile,
    RateLimitedError,
    RejectedError,
)
from tests.payments_gateway import stub
from tests.payments_gateway.conftest import Gateway, Serve
from tests.payments_gateway.situations import ACCEPTED, BROKEN, SLOW, UNREADABLE, refused, withdraw

REFUSALS: list[tuple[int, str, type[RejectedError]]] = [
    *((status, "Invalid OTP", OtpRejectedError) for status in (400, 401, 403, 422)),
    (400, "Invalid 2FA code", OtpRejectedError),
    (400, "token is required", OtpRejectedError),
    (401, "Token has expired", OtpRejectedError),
    (400, "Wrong TOTP", OtpRejectedError),
    (422, "The authenticator token was already used", OtpRejectedError),
    (400, "token is not valid or has already been used", OtpRejectedError),
    (400, "One-time password incorrect", OtpRejectedError),
    (429, "Too many OTP attempts", OtpRejectedError),
    *((status, "Insufficient funds", InsufficientFundsError) for status in (400, 402, 422)),
    (400, "insufficient wallet balance", InsufficientFundsError),
    (400, "Your balance is too low", InsufficientFundsError),
    *((status, "User has not completed KYC", KycRequiredError) for status in (400, 403, 422)),
    *((status, "Invalid API key", CredentialsError) for status in (400, 401, 403)),
    (403, "Insufficient scope", CredentialsError),
    (401, "Unauthorized", CredentialsError),
    (401, "This endpoint is disabled", CredentialsError),
    (403, "Forbidden", CredentialsError),
    (404, "User not found", NotFoundError),
    (400, "amount must be greater than 100", InvalidRequestError),
    (422, "bankCode is unknown", InvalidRequestError),
    (429, "Slow down", RateLimitedError),
    (400, "Too many requests", RateLimitedError),
    (418, "I am a teapot", RejectedError),
]


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("status", [200, 400])
def test_an_unreadable_response_proves_nothing(
    serve: Serve, gateway: Gateway, status: int, body: bytes
) -> None:
    server = serve(stub.answer(status, body))
    error = refused(gateway(server.url))
    assert type(error) is OutcomeUnknownError
    assert error.status == status
    assert len(error.body_excerpt) <= 500
    assert len(server.requests) == server.connections == 1


@pytest.mark.parametrize(
    "behaviour",
    [*BROKEN.values(), *(stub.answer(200, body) for body in UNREADABLE.values())],
    ids=[*BROKEN, *UNREADABLE],
)
def test_the_reason_can_be_shown_in_another_language(
    serve: Serve, gateway: Gateway, behaviour: stub.Behaviour
) -> None:
    why = str(refused(gateway(serve(behaviour).url)).parameters["why"])
    with translation.override("fr"):
        assert gettext(why) != why


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": None},
        {"data": []},
        {"data": "done"},
        {"success": True, "message": "ok"},
        {"success": False, "message": "Insufficient funds"},
        {"success": False, "message": "no", "data": {"transactionId": "T-1"}},
        {"success": "false", "data": {}},
        {"success": None, "data": {}},
    ],
)
def test_a_success_status_without_a_success_body_proves_nothing(
    serve: Serve, gateway: Gateway, body: dict[str, Any]
) -> None:
    server = serve(stub.answer(200, body))
    assert type(refused(gateway(server.url))) is OutcomeUnknownError
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "status", [202, 204, 206, 300, 301, 302, 303, 304, 307, 308, 500, 501, 502, 503, 504, 599]
)
def test_an_ambiguous_status_code_proves_nothing(serve: Serve, gateway: Gateway, status: int) -> None:
    target = serve(stub.answer(200, ACCEPTED))
    headers = (f"Location: {target.url}/balance/withdraw", "Retry-After: 0")
    body = b"" if status in {204, 304} else {"success": False, "message": "Insufficient funds"}
    server = serve(stub.answer(status, body, headers))
    error = refused(gateway(server.url))
    assert type(error) is OutcomeUnknownError
    assert error.status == status
    assert len(server.requests) == server.connections == 1
    assert target.connections == 0


@pytest.mark.parametrize("location", ["http://[broken", "http://127.0.0.1:1/"])
def test_redirects_are_not_followed(serve: Serve, gateway: Gateway, location: str) -> None:
    """`requests` would parse the address and read the body to its end, even where it may not follow."""
    body = stub.drip(stub.message(302, b" " * 2000, (f"Location: {location}",)), every=0)
    server = serve(body)
    error = refused(gateway(server.url, response_limit=1000))
    assert type(error) is OutcomeUnknownError
    assert error.status == 302
    assert len(server.requests) == server.connections == 1


@pytest.mark.parametrize("status", [408, 409, 424, 425, 499])
def test_a_refusal_possible_after_execution_proves_nothing(
    serve: Serve, gateway: Gateway, status: int
) -> None:
    server = serve(stub.answer(status, {"success": False, "message": "No such account"}))
    error = refused(gateway(server.url))
    assert type(error) is OutcomeUnknownError
    assert ProviderProfile().uncertain_statuses[status] in str(error)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "words",
    [
        "Duplicate transaction",
        "This reference was already processed",
        "reference has been used by another payment",
    ],
)
@pytest.mark.parametrize("status", [400, 422])
def test_a_refusal_of_a_request_that_arrived_before_proves_nothing(
    serve: Serve, gateway: Gateway, status: int, words: str
) -> None:
    """The request is made once, so a proxy may have sent it twice."""
    server = serve(stub.answer(status, {"success": False, "message": words}))
    error = refused(gateway(server.url))
    assert type(error) is OutcomeUnknownError
    assert words in error.body_excerpt
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("words", "is_used"),
    [
        ("token has already been used", True),
        ("Invalid OTP: already used", True),
        ("token is not valid or has already been used", False),
        ("Wrong TOTP", False),
    ],
)
@pytest.mark.parametrize("otp_single_use", [True, False])
def test_a_used_code_is_known_as_such_where_codes_are_accepted_once(
    serve: Serve, gateway: Gateway, words: str, is_used: bool, otp_single_use: bool
) -> None:
    """Only the caller knows whether the code was made for this request alone."""
    server = serve(stub.answer(400, {"success": False, "message": words}))
    profile = ProviderProfile(otp_single_use=otp_single_use)
    error = refused(gateway(server.url, profile=profile))
    assert isinstance(error, OtpRejectedError)
    assert error.is_used is (is_used and otp_single_use)


@pytest.mark.parametrize(("status", "words", "kind"), REFUSALS)
def test_a_refusal_is_classified_by_its_message(
    serve: Serve, gateway: Gateway, status: int, words: str, kind: type[RejectedError]
) -> None:
    server = serve(stub.answer(status, {"success": False, "message": words}))
    error = refused(gateway(server.url))
    assert type(error) is kind
    assert (str(error), error.status) == (words, status)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"message": "No"}, "No"),
        ({"message": "Invalid", "errors": ["amount is required"]}, "Invalid; amount is required"),
        (
            {"message": "Invalid", "errors": [{"field": "amount", "message": "is required"}]},
            "Invalid; amount is required",
        ),
        ({"message": "amount is required", "errors": ["amount is required"]}, "amount is required"),
        ({"message": "Invalid", "errors": {"amount": ["too small"]}}, "Invalid; amount: too small"),
        ({"message": ["amount is required", "bank is required"]}, "amount is required; bank is required"),
        ({"message": "Null\x00 and\ud800\n lines"}, "Null\ufffd and\ufffd lines"),
        ({"message": "x" * 1000}, "x" * 299 + "…"),
    ],
)
def test_the_message_of_a_refusal_is_kept(
    serve: Serve, gateway: Gateway, body: dict[str, Any], words: str
) -> None:
    error = refused(gateway(serve(stub.answer(400, body)).url))
    assert type(error) is InvalidRequestError
    assert str(error) == words


@pytest.mark.parametrize(
    "body", [{}, {"message": ""}, {"message": 5}, {"errors": ["x"]}, {"success": True, "message": "ok"}]
)
def test_a_refusal_without_a_message_proves_nothing(
    serve: Serve, gateway: Gateway, body: dict[str, Any]
) -> None:
    assert type(refused(gateway(serve(stub.answer(400, body)).url))) is OutcomeUnknownError


@pytest.mark.parametrize("behaviour", BROKEN.values(), ids=BROKEN)
def test_a_broken_exchange_proves_nothing(serve: Serve, gateway: Gateway, behaviour: stub.Behaviour) -> None:
    server = serve(behaviour)
    assert type(refused(gateway(server.url))) is OutcomeUnknownError
    assert server.connections == 1
    assert len(server.requests) <= 1


@pytest.mark.parametrize("behaviour", SLOW.values(), ids=SLOW)
def test_a_slow_response_is_awaited_until_the_deadline(
    serve: Serve, gateway: Gateway, behaviour: stub.Behaviour
) -> None:
    server = serve(behaviour)
    started = time.monotonic()
    assert type(refused(gateway(server.url, deadline=2.0))) is OutcomeUnknownError
    assert 2.0 <= time.monotonic() - started < 40
    assert len(server.heard(1)) == server.connections == 1


def test_reading_stops_at_the_size_limit(serve: Serve, gateway: Gateway) -> None:
    endless = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 20_000_000
    server = serve(stub.raw(endless))
    error = refused(gateway(server.url, response_limit=1000))
    assert type(error) is OutcomeUnknownError
    assert "too long" in str(error)


def test_each_money_call_has_a_connection_of_its_own(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(200, ACCEPTED))
    client = gateway(server.url)
    withdraw(client)
    withdraw(client)
    assert len(server.requests) == server.connections == 2


@pytest.mark.parametrize(
    ("data", "transaction_id", "status"),
    [
        ({"withdrawal": {"transactionId": "A", "status": "fullfiled"}}, "A", "fulfilled"),
        ({"transferDetail": {"transactionId": "B", "status": "processing"}}, "B", "processing"),
        ({"transactionId": "C"}, "C", ""),
        ({"transactionId": 17}, "17", ""),
        ({"transactionId": "W" * 501}, None, ""),  # no name: the yes counts without it
        ({"transactionId": "", "withdrawal": "?", "transferDetail": None}, None, ""),
        ({}, None, ""),
    ],
)
@pytest.mark.parametrize("status_code", [200, 201])
def test_the_receipt_names_the_transaction_where_it_can(
    serve: Serve,
    gateway: Gateway,
    status_code: int,
    data: dict[str, Any],
    transaction_id: str | None,
    status: str,
) -> None:
    receipt = withdraw(gateway(serve(stub.answer(status_code, {"data": data})).url))
    assert (receipt.transaction_id, receipt.status, receipt.raw) == (transaction_id, status, data)
