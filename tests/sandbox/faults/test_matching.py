"""Which requests a fault hits, and how often: its operation, `times`, `skip` and `containing`."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.sandbox.conftest import Service
from tests.sandbox.raw_http import Received, connected, exchanged
from tests.sandbox.withdrawals import WITHDRAW


def statuses(service: Service, count: int) -> list[int]:
    return [service.get("/balance").status_code for _ in range(count)]


def test_a_fault_applies_once_by_default(service: Service) -> None:
    service.process.fault("balances.list", "status", status=500)
    assert statuses(service, 3) == [500, 200, 200]


def test_a_fault_skips_and_repeats_as_configured(service: Service) -> None:
    fault = service.process.fault("balances.list", "status", status=500, skip=2, times=2)
    assert statuses(service, 6) == [200, 200, 500, 500, 200, 200]
    (seen,) = service.process.faults()
    assert (seen["id"], seen["hits"], seen["left"], seen["passed"]) == (fault, 2, 0, 2)


def test_a_permanent_fault_applies_until_removed(service: Service) -> None:
    fault = service.process.fault("balances.list", "status", status=500, times=None)
    assert statuses(service, 3) == [500] * 3
    assert service.process.faults()[0]["left"] is None
    service.process.clear_faults(fault)
    assert statuses(service, 1) == [200]


def test_faults_that_respond_apply_in_turn(service: Service) -> None:
    for status in (500, 502, 429):
        service.process.fault("balances.list", "status", status=status)
    assert statuses(service, 4) == [500, 502, 429, 200]


def test_a_fault_applies_to_its_operation_only(service: Service) -> None:
    service.process.fault(WITHDRAW, "status", status=500)
    assert statuses(service, 1) == [200]
    assert service.withdraw().status_code == 500


@pytest.mark.parametrize("path", ["/balance", "/transaction", "/no/such/path"])
def test_an_asterisk_matches_every_request(service: Service, path: str) -> None:
    service.process.fault("*", "status", status=500)
    assert service.get(path).status_code == 500


def test_faults_never_apply_to_the_control_api(service: Service) -> None:
    service.process.fault("*", "status", status=500, times=None)
    assert service.process.totp()
    service.process.reset()
    assert statuses(service, 1) == [200]


def test_a_request_is_matched_by_its_body(service: Service) -> None:
    service.process.options(token_reuse=True)
    service.process.fault(WITHDRAW, "drop", when="after_read", containing='"1500.77"')
    assert service.withdraw(amount="1500.76").status_code == 200
    body = service.withdrawal(amount="1500.77")
    assert exchanged(service.process, "POST", "/v2/balance/withdraw", body) == Received(b"", False)
    assert [row["amount"] for row in service.process.ledger()["withdrawals"]] == ["1500.76"]


def test_a_request_is_matched_by_its_target(service: Service) -> None:
    service.process.fault("*", "status", status=500, containing="currency=USD", times=None)
    assert service.get("/balance", currency="NGN").status_code == 200
    assert service.get("/balance", currency="USD").status_code == 500


def test_matching_a_body_leaves_it_readable(service: Service) -> None:
    service.process.fault("*", "status", status=500, containing="nowhere in it", times=None)
    url = service.process.url + "/bank/resolve"
    service.session.headers["Content-Type"] = "application/json"
    chunks = iter([b'{"accountNumber": "0123456789", ', b'"bankCode": "044"}'])
    assert service.session.post(url, data=chunks, timeout=30).status_code == 200
    assert service.session.post(url, data=b"{" * 10, timeout=30).status_code == 400
    assert service.session.post(url, data=b" " * 3_000_000, timeout=30).status_code == 413
    with connected(service.process) as client:
        client.sendall(b"POST /v2/bank/resolve HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
    assert service.get("/balance").status_code == 200


def test_a_fault_applies_exactly_as_often_as_configured_under_concurrency(service: Service) -> None:
    fault = service.process.fault("balances.list", "status", status=500, skip=5, times=7)
    together = threading.Barrier(16)

    def ask(_number: int) -> int:
        together.wait(120)
        return exchanged(service.process, "GET", "/v2/balance").status

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(32)))
    assert (answers.count(500), answers.count(200)) == (7, 25)
    assert service.process.hits(fault) == 7
