"""Which requests a fault hits, and how often: its operation, `times`, `skip` and `containing`."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.sandbox.conftest import SandboxClient
from tests.sandbox.raw_http import Received, connected, exchanged
from tests.sandbox.withdrawals import WITHDRAW


def statuses(provider: SandboxClient, count: int) -> list[int]:
    return [provider.get("/balance").status_code for _ in range(count)]


def test_a_fault_applies_once_by_default(provider: SandboxClient) -> None:
    provider.process.fault("balances.list", "status", status=500)
    assert statuses(provider, 3) == [500, 200, 200]


def test_a_fault_skips_and_repeats_as_configured(provider: SandboxClient) -> None:
    fault = provider.process.fault("balances.list", "status", status=500, skip=2, times=2)
    assert statuses(provider, 6) == [200, 200, 500, 500, 200, 200]
    (seen,) = provider.process.faults()
    assert (seen["id"], seen["hits"], seen["left"], seen["passed"]) == (fault, 2, 0, 2)


def test_a_permanent_fault_applies_until_removed(provider: SandboxClient) -> None:
    fault = provider.process.fault("balances.list", "status", status=500, times=None)
    assert statuses(provider, 3) == [500] * 3
    assert provider.process.faults()[0]["left"] is None
    provider.process.clear_faults(fault)
    assert statuses(provider, 1) == [200]


def test_faults_that_respond_apply_in_turn(provider: SandboxClient) -> None:
    for status in (500, 502, 429):
        provider.process.fault("balances.list", "status", status=status)
    assert statuses(provider, 4) == [500, 502, 429, 200]


def test_a_fault_applies_to_its_operation_only(provider: SandboxClient) -> None:
    provider.process.fault(WITHDRAW, "status", status=500)
    assert statuses(provider, 1) == [200]
    assert provider.withdraw().status_code == 500


@pytest.mark.parametrize("path", ["/balance", "/transaction", "/no/such/path"])
def test_an_asterisk_matches_every_request(provider: SandboxClient, path: str) -> None:
    provider.process.fault("*", "status", status=500)
    assert provider.get(path).status_code == 500


def test_faults_never_apply_to_the_control_api(provider: SandboxClient) -> None:
    provider.process.fault("*", "status", status=500, times=None)
    assert provider.process.totp()
    provider.process.reset()
    assert statuses(provider, 1) == [200]


def test_a_request_is_matched_by_its_body(provider: SandboxClient) -> None:
    provider.process.options(token_reuse=True)
    provider.process.fault(WITHDRAW, "drop", when="after_read", containing='"1500.77"')
    assert provider.withdraw(amount="1500.76").status_code == 200
    body = provider.withdrawal(amount="1500.77")
    assert exchanged(provider.process, "POST", "/v2/balance/withdraw", body) == Received(b"", False)
    assert [row["amount"] for row in provider.process.ledger()["withdrawals"]] == ["1500.76"]


def test_a_request_is_matched_by_its_target(provider: SandboxClient) -> None:
    provider.process.fault("*", "status", status=500, containing="currency=USD", times=None)
    assert provider.get("/balance", currency="NGN").status_code == 200
    assert provider.get("/balance", currency="USD").status_code == 500


def test_matching_a_body_leaves_it_readable(provider: SandboxClient) -> None:
    provider.process.fault("*", "status", status=500, containing="nowhere in it", times=None)
    url = provider.process.url + "/bank/resolve"
    provider.session.headers["Content-Type"] = "application/json"
    chunks = iter([b'{"accountNumber": "0123456789", ', b'"bankCode": "044"}'])
    assert provider.session.post(url, data=chunks, timeout=30).status_code == 200
    assert provider.session.post(url, data=b"{" * 10, timeout=30).status_code == 400
    assert provider.session.post(url, data=b" " * 3_000_000, timeout=30).status_code == 413
    with connected(provider.process) as client:
        client.sendall(b"POST /v2/bank/resolve HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
    assert provider.get("/balance").status_code == 200


def test_a_fault_applies_exactly_as_often_as_configured_under_concurrency(provider: SandboxClient) -> None:
    fault = provider.process.fault("balances.list", "status", status=500, skip=5, times=7)
    together = threading.Barrier(16)

    def ask(_number: int) -> int:
        together.wait(120)
        return exchanged(provider.process, "GET", "/v2/balance").status

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(32)))
    assert (answers.count(500), answers.count(200)) == (7, 25)
    assert provider.process.hits(fault) == 7
