"""One-time codes: totp as in RFC 6238, otp as issued by the provider."""

import base64
import hashlib
import hmac
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.sandbox.conftest import Service


def totp(secret: str, steps_from_now: int = 0) -> str:
    """RFC 6238 again, without a line of the sandbox's."""
    counter = int(time.time()) // 30 + steps_from_now
    mac = hmac.digest(base64.b32decode(secret), counter.to_bytes(8, "big"), hashlib.sha1)
    at = mac[19] % 16
    return str(int.from_bytes(mac[at : at + 4], "big") % 2**31 % 10**6).zfill(6)


def codes(service: Service) -> dict[str, str]:
    answer: dict[str, str] = requests.get(f"{service.process.control}/otp", timeout=30).json()
    return answer


def calm_secret(service: Service) -> str:
    """The secret, read when the present step has some seconds left, so that a test stays inside one step."""
    deadline = time.monotonic() + 30
    while int(codes(service)["secondsLeft"]) < 5:
        assert time.monotonic() < deadline
    return codes(service)["secret"]


def test_the_current_code_is_that_of_rfc_6238(service: Service) -> None:
    assert totp(calm_secret(service)) == codes(service)["totp"]


@pytest.mark.parametrize("drift", [-1, 0, 1])
def test_a_code_of_the_neighbouring_step_is_accepted(service: Service, drift: int) -> None:
    assert service.withdraw(token=totp(calm_secret(service), drift)).status_code == 200


@pytest.mark.parametrize("drift", [-3, 3])
def test_a_code_too_old_or_too_new_is_refused(service: Service, drift: int) -> None:
    response = service.withdraw(token=totp(calm_secret(service), drift))
    assert response.status_code == 400
    assert response.json()["message"] == "token is not valid or has expired"


def test_a_code_is_accepted_once(service: Service) -> None:
    code = service.process.totp()
    assert service.withdraw(token=code).status_code == 200
    response = service.withdraw(token=code)
    assert response.status_code == 400
    assert response.json()["message"] == "token has already been used"
    assert service.process.ledger()["debits"]["count"] == 1


def test_a_code_older_than_a_used_one_is_refused(service: Service) -> None:
    secret = calm_secret(service)
    assert service.withdraw(token=totp(secret, 1)).status_code == 200
    assert service.withdraw(token=totp(secret)).status_code == 400


def test_fifty_concurrent_requests_with_one_code_make_one_debit(service: Service) -> None:
    body = service.withdrawal()

    def send(_: int) -> int:
        return requests.post(
            f"{service.process.url}/balance/withdraw", json=body, headers=service.process.headers, timeout=30
        ).status_code

    with ThreadPoolExecutor(10) as pool:
        statuses = sorted(pool.map(send, range(50)))
    assert statuses == [200] + [400] * 49
    assert service.process.ledger()["debits"]["count"] == 1


def test_an_option_allows_a_code_again(service: Service) -> None:
    service.process.options(token_reuse=True)
    code = service.process.totp()
    assert [service.withdraw(token=code).status_code for _ in range(3)] == [200] * 3


def test_an_option_makes_the_one_time_code_optional_and_still_checks_it(service: Service) -> None:
    service.process.options(otp_required=False)
    assert service.withdraw(token=None).status_code == 200
    assert service.withdraw(token="000000x").status_code == 400


@pytest.mark.parametrize("code", ["", " ", "000000000000", "abcdef", "\N{FULLWIDTH DIGIT ONE}23456", "é"])
def test_malformed_codes_are_refused(service: Service, code: str) -> None:
    response = service.withdraw(token=code)
    assert response.status_code == 400
    assert response.json()["message"].startswith("token ")


def test_a_demo_code_is_accepted_once_and_replaced(service: Service) -> None:
    code = service.process.issued_otp()
    assert service.withdraw(otpType="otp", token=code).status_code == 200
    assert service.withdraw(otpType="otp", token=code).status_code == 400
    replacement = service.process.issued_otp()
    assert replacement != code
    assert f"A new one-time code (otp) was issued: {replacement}" in service.process.output()


def test_the_two_types_do_not_accept_each_others_codes(service: Service) -> None:
    assert service.withdraw(otpType="otp", token=service.process.totp()).status_code == 400
    assert service.withdraw(otpType="totp", token=service.process.issued_otp()).status_code == 400
