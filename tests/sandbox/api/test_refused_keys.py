"""API keys that are not made: a wrong one-time code, and members that cannot be meant."""

from collections.abc import Callable

import pytest

from tests.sandbox.conftest import SandboxClient
from tests.sandbox.v4_calls import KEYNAME, MASTER, call, listed, status_with
from tests.sandbox_process import API_KEY, SandboxProcess


@pytest.mark.parametrize("code", [SandboxProcess.totp, SandboxProcess.issued_otp])
def test_either_otp_type_creates_a_key_once(
    provider: SandboxClient, code: Callable[[SandboxProcess], str]
) -> None:
    body = {**MASTER, "otp": code(provider.process)}
    assert call(provider, "POST", "/user/api-key", body).status_code == 200
    assert call(provider, "POST", "/user/api-key", body).status_code == 400
    assert len(listed(provider)) == 2


def test_a_missing_one_time_code_is_reported_by_its_field_name(provider: SandboxClient) -> None:
    response = call(provider, "POST", "/user/api-key", MASTER)
    assert response.status_code == 400
    assert response.json() == {
        "success": False,
        "message": "otp is required",
        "errors": [{"field": "otp", "message": "is required"}],
    }


def test_a_refused_one_time_code_leaves_the_old_key_working(provider: SandboxClient) -> None:
    response = call(provider, "POST", "/user/api-key", {**MASTER, "apikey": API_KEY, "otp": "000000x"})
    assert response.status_code == 400
    assert response.json()["message"] == "otp is not valid or has expired"
    assert status_with(provider.process, API_KEY) == 200
    assert len(listed(provider)) == 1


@pytest.mark.parametrize("wrong", [{"scope": "X"}, {"apikey": "no such key"}, {"keyname": ""}])
def test_a_refused_request_does_not_consume_the_one_time_code(
    provider: SandboxClient, wrong: dict[str, str]
) -> None:
    code = provider.process.totp()
    assert call(provider, "POST", "/user/api-key", {**MASTER, "otp": code, **wrong}).status_code == 400
    assert call(provider, "POST", "/user/api-key", {**MASTER, "otp": code}).status_code == 200


@pytest.mark.parametrize("scope", ["", "m", "Master", "MG", "X", "\N{FULLWIDTH LATIN CAPITAL LETTER M}"])
def test_an_unknown_scope_is_refused(provider: SandboxClient, scope: str) -> None:
    response = call(provider, "POST", "/user/api-key", {**KEYNAME, "scope": scope})
    assert response.status_code == 400
    assert response.json() == {
        "success": False,
        "message": "invalid API scope",
        "errors": [{"field": "scope", "message": "must be one of M, G, W, N"}],
    }


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"scope": "M"}, "keyname is required"),
        (KEYNAME, "scope is required"),
        ({**MASTER, "keyname": 5}, "keyname must be a string"),
        ({**MASTER, "keyname": "x" * 121}, "keyname must have at most 120 characters"),
        ({**MASTER, "keyname": " "}, "keyname must be printable text and not blank"),
        ({**MASTER, "keyname": "a\x00b"}, "keyname must be printable text and not blank"),
        ({**MASTER, "keyname": "\ud800"}, "keyname must be text in valid Unicode"),
        ({**MASTER, "scope": ["M"]}, "scope must be a string"),
        ({**MASTER, "apikey": ""}, "apikey must have at least 1 characters"),
        ({**MASTER, "apikey": "x" * 129}, "apikey must have at most 128 characters"),
        ({**MASTER, "apikey": {}}, "apikey must be a string"),
        ({**MASTER, "expirationInDays": -1}, "expirationInDays must be at least 0"),
        ({**MASTER, "expirationInDays": 3651}, "expirationInDays must be at most 3650"),
        ({**MASTER, "expirationInDays": 10**30}, "expirationInDays must be at most 3650"),
        ({**MASTER, "expirationInDays": 1.5}, "expirationInDays must be a whole number"),
        ({**MASTER, "expirationInDays": "30"}, "expirationInDays must be a whole number"),
        ({**MASTER, "expirationInMonths": True}, "expirationInMonths must be a whole number"),
        ({**MASTER, "expirationInMonths": 121}, "expirationInMonths must be at most 120"),
        ({**MASTER, "otp": 123456}, "otp must be a string"),
        ({**MASTER, "expires": "never"}, "expires is not a known member"),
        ([MASTER], "the body must be a JSON object"),
    ],
)
def test_an_invalid_field_is_refused_by_name(provider: SandboxClient, body: object, message: str) -> None:
    response = call(provider, "POST", "/user/api-key", body)
    assert response.status_code == 400
    assert response.json()["message"] == message
    assert len(listed(provider)) == 1
