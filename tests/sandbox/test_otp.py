"""One-time codes: totp as in RFC 6238, otp as issued by the provider."""

import base64
import hashlib
import hmac
import time

import pytest
import requests

from tests.sandbox.conftest import SandboxClient


def totp(secret: str, steps_from_now: int = 0) -> str:
    """RFC 6238 again, without a line of the sandbox's."""
    counter = int(time.time()) // 30 + steps_from_now
    mac = hmac.digest(base64.b32decode(secret), counter.to_bytes(8, "big"), hashlib.sha1)
    at = mac[19] % 16
    return str(int.from_bytes(mac[at : at + 4], "big") % 2**31 % 10**6).zfill(6)


def codes(provider: SandboxClient) -> dict[str, str]:
    answer: dict[str, str] = requests.get(f"{provider.process.control}/otp", timeout=30).json()
    return answer


def calm_secret(provider: SandboxClient) -> str:
    """The secret, read when the present step has some seconds left, so that a test stays inside one step."""
    deadline = time.monotonic() + 30
    while int(codes(provider)["secondsLeft"]) < 5:
        assert time.monotonic() < deadline
    return codes(provider)["secret"]


def test_the_current_code_is_that_of_rfc_6238(provider: SandboxClient) -> None:
    assert totp(calm_secret(provider)) == codes(provider)["totp"]


@pytest.mark.parametrize("drift", [-1, 0, 1])
def test_a_code_of_the_neighbouring_step_is_accepted(provider: SandboxClient, drift: int) -> None:
    assert provider.withdraw(token=totp(calm_secret(provider), drift)).status_code == 200


@pytest.mark.parametrize("drift", [-3, 3])
def test_a_code_too_old_or_too_new_is_refused(provider: SandboxClient, drift: int) -> None:
    response = provider.withdraw(token=totp(calm_secret(provider), drift))
    assert response.status_code == 400
    assert response.json()["message"] == "token is not valid or has expired"


def test_a_code_is_accepted_once(provider: SandboxClient) -> None:
    code = provider.process.totp()
    assert provider.withdraw(token=code).status_code == 200
    response = provider.withdraw(token=code)
    assert response.status_code == 400
    assert response.json()["message"] == "token has already been used"
    assert provider.process.ledger()["debits"]["count"] == 1


def test_a_code_older_than_a_used_one_is_refused(provider: SandboxClient) -> None:
    secret = calm_secret(provider)
    assert provider.withdraw(token=totp(secret, 1)).status_code == 200
    assert provider.withdraw(token=totp(secret)).status_code == 400


def test_fifty_concurrent_requests_with_one_code_make_one_debit(provider: SandboxClient) -> None:
    statuses = sorted(provider.withdraw_at_once(provider.withdrawal(), 50))
    assert statuses == [200] + [400] * 49
    assert provider.process.ledger()["debits"]["count"] == 1


def test_an_option_allows_a_code_again(provider: SandboxClient) -> None:
    provider.process.options(token_reuse=True)
    code = provider.process.totp()
    assert [provider.withdraw(token=code).status_code for _ in range(3)] == [200] * 3


def test_an_option_makes_the_one_time_code_optional_and_still_checks_it(provider: SandboxClient) -> None:
    provider.process.options(otp_required=False)
    assert provider.withdraw(token=None).status_code == 200
    assert provider.withdraw(token="000000x").status_code == 400


@pytest.mark.parametrize("code", ["", " ", "000000000000", "abcdef", "\N{FULLWIDTH DIGIT ONE}23456", "é"])
def test_malformed_codes_are_refused(provider: SandboxClient, code: str) -> None:
    response = provider.withdraw(token=code)
    assert response.status_code == 400
    assert response.json()["message"].startswith("token ")


def test_a_demo_code_is_accepted_once_and_replaced(provider: SandboxClient) -> None:
    code = provider.process.issued_otp()
    assert provider.withdraw(otpType="otp", token=code).status_code == 200
    assert provider.withdraw(otpType="otp", token=code).status_code == 400
    replacement = provider.process.issued_otp()
    assert replacement != code
    assert f"A new one-time code (otp) was issued: {replacement}" in provider.process.output()


def test_the_two_types_do_not_accept_each_others_codes(provider: SandboxClient) -> None:
    assert provider.withdraw(otpType="otp", token=provider.process.totp()).status_code == 400
    assert provider.withdraw(otpType="totp", token=provider.process.issued_otp()).status_code == 400
