"""The credential headers, and what each scope of a key reaches."""

import pytest
import requests

from payments_gateway.operations import OPERATIONS, ApiOperation, Endpoint
from tests.sandbox.conftest import SandboxClient
from tests.sandbox.v4_calls import generated
from tests.sandbox_process import SandboxProcess

V2_ONLY = "X-User-Version"
GUARDED = [operation for operation in OPERATIONS if operation.endpoint is not Endpoint.V2_OPEN]
READS = {
    "balances.list",
    "wallets.get",
    "transactions.page",
    "transactions.summary",
    "callbacks.url",
    "accounts.list",
}
TAKES_MONEY_OUT = {"balances.withdraw", "balances.transfer", "wallets.transfer", "payments.create"}
NEITHER = {"balances.convert", "callbacks.set_url", "accounts.create"}
REACHED = {
    "M": {operation.name for operation in GUARDED},
    "G": READS,
    "W": READS | TAKES_MONEY_OUT,
    "N": READS | NEITHER,
}


@pytest.fixture(autouse=True, scope="module")
def nothing_planned(process: SandboxProcess) -> None:
    """No fault of a test before is left to hit one of these calls."""
    process.reset()


def send(process: SandboxProcess, operation: ApiOperation, headers: dict[str, str]) -> requests.Response:
    """The operation with an empty body: whoever is let in reads what is missing, and nothing happens."""
    base = "/v4" if operation.endpoint is Endpoint.V4 else "/v2"
    url = process.address + base + operation.path
    body: dict[str, object] | None = None if operation.method == "GET" else {}
    return requests.request(operation.method, url, json=body, headers=headers, timeout=30)


def headers_of(process: SandboxProcess, operation: ApiOperation) -> dict[str, str]:
    """The headers that the specification names for the operation, and no other."""
    headers = process.headers
    if operation.endpoint is Endpoint.V4:
        del headers[V2_ONLY]
    return headers


@pytest.mark.parametrize("operation", GUARDED, ids=lambda operation: operation.name)
@pytest.mark.parametrize("value", [None, "", "wrong", "ключ".encode().decode("latin-1")])
def test_a_missing_or_wrong_header_is_refused_by_name(
    process: SandboxProcess, operation: ApiOperation, value: str | None
) -> None:
    good = headers_of(process, operation)
    for header in good:
        headers = good if value is None else {**good, header: value}
        headers = {name: text for name, text in headers.items() if value is not None or name != header}
        response = send(process, operation, headers)
        assert response.status_code == 401
        assert response.json() == {
            "success": False,
            "message": f"{header} is {'not valid' if value else 'missing'}",
        }


@pytest.mark.parametrize("operation", GUARDED, ids=lambda operation: operation.name)
def test_correct_headers_are_accepted(process: SandboxProcess, operation: ApiOperation) -> None:
    assert send(process, operation, headers_of(process, operation)).status_code in {200, 400}


@pytest.mark.parametrize("scope", REACHED)
def test_a_scope_allows_exactly_these_operations(provider: SandboxClient, scope: str) -> None:
    key = generated(provider, scope)
    for operation in GUARDED:
        response = send(provider.process, operation, {**provider.process.headers, "X-Api-Key": key})
        allowed = operation.name in REACHED[scope]
        assert response.status_code in ({200, 400} if allowed else {403}), (operation.name, response.text)
        assert allowed or response.json() == {
            "success": False,
            "message": f"the scope of this X-Api-Key, {scope}, does not allow {operation.name}",
        }


def test_header_names_are_case_insensitive(provider: SandboxClient) -> None:
    headers = {name.lower(): value for name, value in provider.process.headers.items()}
    assert requests.get(provider.process.url + "/balance", headers=headers, timeout=30).status_code == 200


def test_resolving_an_account_needs_no_credentials(provider: SandboxClient) -> None:
    body = {"accountNumber": "0123456789", "bankCode": "044"}
    assert requests.post(provider.process.url + "/bank/resolve", json=body, timeout=30).status_code == 200


def test_a_refused_caller_changes_nothing(provider: SandboxClient) -> None:
    body = provider.withdrawal()
    assert requests.post(provider.process.url + "/balance/withdraw", json=body, timeout=30).status_code == 401
    assert provider.process.ledger()["withdrawals"] == []


def test_a_read_only_key_does_not_consume_a_one_time_code(provider: SandboxClient) -> None:
    key = generated(provider, "G")
    code = provider.process.totp()
    headers = {**provider.process.headers, "X-Api-Key": key}
    refused = requests.post(
        f"{provider.process.url}/balance/withdraw",
        json=provider.withdrawal(token=code),
        headers=headers,
        timeout=30,
    )
    assert refused.status_code == 403
    assert provider.process.ledger()["withdrawals"] == []
    assert provider.withdraw(token=code).status_code == 200
