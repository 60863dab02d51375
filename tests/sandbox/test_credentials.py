"""The three credential headers."""

import pytest
import requests

from tests.sandbox.conftest import Service

OPERATIONS = [("GET", "/balance"), ("POST", "/balance/withdraw"), ("GET", "/transaction")]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.parametrize("header", ["X-Api-Key", "X-Api-User", "X-User-Version"])
@pytest.mark.parametrize("value", [None, "", "wrong", "ключ".encode().decode("latin-1")])
def test_a_missing_or_wrong_header_is_refused_by_name(
    service: Service, method: str, path: str, header: str, value: str | None
) -> None:
    headers = {**service.process.headers, header: value}
    if value is None:
        del headers[header]
    response = requests.request(method, service.process.url + path, headers=headers, timeout=30)
    assert response.status_code == 401
    assert response.json()["success"] is False
    assert header in response.json()["message"]


def test_header_names_have_no_case(service: Service) -> None:
    headers = {name.lower(): value for name, value in service.process.headers.items()}
    assert requests.get(service.process.url + "/balance", headers=headers, timeout=30).status_code == 200


def test_resolving_an_account_wants_no_credentials(service: Service) -> None:
    body = {"accountNumber": "0123456789", "bankCode": "044"}
    assert requests.post(service.process.url + "/bank/resolve", json=body, timeout=30).status_code == 200


def test_a_refused_caller_moves_nothing(service: Service) -> None:
    body = service.withdrawal()
    assert requests.post(service.process.url + "/balance/withdraw", json=body, timeout=30).status_code == 401
    assert service.process.ledger()["withdrawals"] == []
