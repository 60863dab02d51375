"""Faults on demand: the bytes that the client gets, and what the books say was executed."""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.sandbox.conftest import Service
from tests.sandbox.raw import Received, connected, exchanged, received, written
from tests.sandbox_process import SandboxProcess

WITHDRAW = "balances.withdraw"


def withdrawal(service: Service) -> Received:
    return exchanged(service.process, "POST", "/v2/balance/withdraw", service.withdrawal())


def executed(service: Service) -> int:
    """How many withdrawals the books have."""
    return len(service.process.ledger()["withdrawals"])


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)  # between two looks at a condition with a deadline


@pytest.mark.parametrize(
    ("when", "reset", "executions"),
    [("before_read", True, 0), ("after_read", False, 0), ("after_execution", False, 1)],
)
def test_a_dropped_connection_brings_not_one_byte(
    service: Service, when: str, reset: bool, executions: int
) -> None:
    service.process.fault(WITHDRAW, "drop", when=when)
    assert withdrawal(service) == Received(b"", reset)
    assert executed(service) == executions


def test_an_answer_dropped_in_the_middle_was_executed(service: Service) -> None:
    service.process.fault(WITHDRAW, "drop", when="mid_answer")
    answer = withdrawal(service)
    assert answer.reset
    assert answer.status == 200
    assert 0 < len(answer.body) < int(answer.header("Content-Length") or 0)
    assert executed(service) == 1


@pytest.mark.parametrize("when", ["before_read", "after_read", "after_execution", "mid_answer"])
@pytest.mark.parametrize("reset", [True, False])
def test_whoever_asks_for_a_reset_gets_one_and_whoever_does_not_gets_none(
    service: Service, when: str, reset: bool
) -> None:
    service.process.fault("balances.list", "drop", when=when, reset=reset)
    assert exchanged(service.process, "GET", "/v2/balance").reset is reset


@pytest.mark.parametrize(("when", "executions"), [("before_execution", 0), ("after_execution", 1)])
def test_a_status_replaces_the_execution_or_only_its_answer(
    service: Service, when: str, executions: int
) -> None:
    headers = {"Retry-After": "7", "Location": "http://127.0.0.1:9/"}
    service.process.fault(
        WITHDRAW, "status", status=503, body={"message": "busy"}, headers=headers, when=when
    )
    answer = withdrawal(service)
    assert answer.head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert json.loads(answer.body) == {"message": "busy"}
    assert (answer.header("Retry-After"), answer.header("Location")) == ("7", "http://127.0.0.1:9/")
    assert answer.header("Content-Type") == "application/json"
    assert executed(service) == executions


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (502, None, b'{"success": false, "message": "Bad Gateway"}'),
        (599, None, b'{"success": false, "message": "Status of a fault"}'),
        (500, "<h1>Oops</h1>", b"<h1>Oops</h1>"),
        (409, [], b"[]"),
        (418, 1.50, b"1.5"),
        (302, {}, b"{}"),
        (204, None, b""),
    ],
)
def test_a_status_has_any_body(service: Service, status: int, body: object, expected: bytes) -> None:
    service.process.fault("*", "status", status=status, body=body)
    answer = exchanged(service.process, "GET", "/v2/balance")
    assert (answer.status, answer.body) == (status, expected)


def test_a_truncated_answer_promises_more_than_comes(service: Service) -> None:
    service.process.fault(WITHDRAW, "truncate", at=11)
    answer = withdrawal(service)
    assert answer.body == b'{"data": {"'
    assert int(answer.header("Content-Length") or 0) > 11
    assert not answer.reset
    assert executed(service) == 1


def test_a_truncated_answer_can_look_whole(service: Service) -> None:
    service.process.fault(WITHDRAW, "truncate", at=11, content_length="cut")
    answer = withdrawal(service)
    assert (answer.body, answer.header("Content-Length")) == (b'{"data": {"', "11")
    assert executed(service) == 1


def test_an_answer_that_is_shorter_than_the_cut_comes_whole(service: Service) -> None:
    service.process.fault("balances.list", "truncate", at=100_000)
    answer = exchanged(service.process, "GET", "/v2/balance")
    assert json.loads(answer.body)["success"] is True


class TestDelays:
    """Nobody sleeps: a delay of ten minutes ends when its fault is taken away."""

    @pytest.fixture
    def held(self, service: Service) -> Callable[..., Received]:
        """Send a withdrawal that a delay holds, look at the books, let it go on."""

        def hold(when: str, executions: int) -> Received:
            fault = service.process.fault(WITHDRAW, "delay", seconds=600, when=when)
            with ThreadPoolExecutor(1) as pool:
                answer = pool.submit(withdrawal, service)
                until(lambda: service.process.hits(fault) == 1 and executed(service) == executions)
                service.process.clear_faults(fault)
                return answer.result(120)

        return hold

    @pytest.mark.parametrize(("when", "executions"), [("before_execution", 0), ("after_execution", 1)])
    def test_the_books_change_after_the_wait_or_before_it(
        self, service: Service, held: Callable[..., Received], when: str, executions: int
    ) -> None:
        assert held(when, executions).status == 200
        assert executed(service) == 1

    @pytest.mark.parametrize("when", ["before_execution", "after_execution"])
    def test_what_a_client_has_given_up_is_executed_all_the_same(self, service: Service, when: str) -> None:
        fault = service.process.fault(WITHDRAW, "delay", seconds=600, when=when)
        with connected(service.process) as connection:
            connection.sendall(written(service.process, "POST", "/v2/balance/withdraw", service.withdrawal()))
            until(lambda: service.process.hits(fault) == 1)
        service.process.clear_faults(fault)
        until(lambda: executed(service) == 1)

    def test_a_delay_ends_by_itself(self, service: Service) -> None:
        service.process.fault("balances.list", "delay", seconds=0.2)
        began = time.monotonic()
        assert exchanged(service.process, "GET", "/v2/balance").status == 200
        assert time.monotonic() - began >= 0.2

    def test_delays_add_up_and_go_with_another_fault(self, service: Service) -> None:
        service.process.fault("balances.list", "delay", seconds=0.1)
        service.process.fault("balances.list", "delay", seconds=0.1, when="after_execution")
        service.process.fault("balances.list", "status", status=500, when="after_execution")
        began = time.monotonic()
        assert exchanged(service.process, "GET", "/v2/balance").status == 500
        assert time.monotonic() - began >= 0.2

    def test_a_reset_drops_what_a_delay_holds_without_executing_it(self, service: Service) -> None:
        fault = service.process.fault(WITHDRAW, "delay", seconds=600)
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(withdrawal, service)
            until(lambda: service.process.hits(fault) == 1)
            service.process.reset()
            assert answer.result(120) == Received(b"", reset=True)
        assert executed(service) == 0

    def test_delays_leave_room_for_the_control_api(self, service: Service) -> None:
        fault = service.process.fault("balances.list", "delay", seconds=600, times=None)
        with ThreadPoolExecutor(12) as pool:
            answers = [pool.submit(exchanged, service.process, "GET", "/v2/balance") for _ in range(12)]
            until(lambda: sum(answer.done() for answer in answers) == 6)
            assert service.process.hits(fault) == 6
            service.process.clear_faults()
            assert {answer.result(120).status for answer in answers} == {200}
        again = service.process.fault("balances.list", "delay", seconds=0.01)
        assert service.get("/balance").status_code == 200
        assert service.process.hits(again) == 1

    def test_a_held_request_does_not_keep_the_process_from_ending(self) -> None:
        with SandboxProcess() as process, connected(process) as connection:
            fault = process.fault("balances.list", "delay", seconds=600)
            connection.sendall(written(process, "GET", "/v2/balance"))
            until(lambda: process.hits(fault) == 1)
            process.stop()
            assert received(connection).data == b""


class TestLists:
    """Faults of GET /transaction."""

    def ids(self, service: Service, limit: int = 20) -> list[str]:
        page = service.get("/transaction", limit=limit).json()["data"]
        return [record["transactionId"] for record in page["data"]]

    def test_a_record_comes_twice(self, service: Service) -> None:
        before = self.ids(service)
        exact = service.get("/transaction").text
        service.process.fault("transactions.page", "duplicate_record", position=3)
        assert self.ids(service) == [*before[:4], *before[3:]]
        assert service.get("/transaction").text == exact

    def test_all_else_in_the_page_stays_as_it_is_to_the_digit(self, service: Service) -> None:
        exact = service.get("/transaction", limit=1).text
        service.process.fault("transactions.page", "duplicate_record")
        record = exact[exact.index("[") + 1 : exact.rindex("]")]
        assert service.get("/transaction", limit=1).text == exact.replace(record, f"{record}, {record}")

    def test_a_page_that_is_shorter_or_refused_stays_as_it_is(self, service: Service) -> None:
        fault = service.process.fault("transactions.page", "duplicate_record", position=5, times=None)
        assert len(self.ids(service, limit=5)) == 5
        assert service.get("/transaction", limit=0).status_code == 400
        assert service.process.hits(fault) == 2

    def test_a_new_record_stays_invisible_and_is_not_counted(self, service: Service) -> None:
        before = service.get("/transaction").json()
        service.process.fault("transactions.page", "hide_record_for", seconds=3600)
        made = service.withdraw().json()["data"]["transactionId"]
        assert service.get("/transaction").json() == before
        assert executed(service) == 1
        service.process.clear_faults()
        assert self.ids(service)[0] == made

    def test_an_invisible_record_appears_when_its_time_has_come(self, service: Service) -> None:
        service.process.fault("transactions.page", "hide_record_for", seconds=3600)
        made = service.withdraw().json()["data"]["transactionId"]
        assert made not in self.ids(service)
        service.process.advance(3601)
        assert self.ids(service)[0] == made

    def test_the_list_within_a_summary_lags_and_stutters_too(self, service: Service) -> None:
        before = service.get("/transaction/summary").json()["data"]
        service.process.fault("transactions.summary", "hide_record_for", seconds=3600)
        service.withdraw()
        assert service.get("/transaction/summary").json()["data"] == before
        service.process.fault("transactions.summary", "duplicate_record")
        records = service.get("/transaction/summary").json()["data"]["txn"]["data"]
        assert records[:2] == [before["txn"]["data"][0]] * 2

    def test_the_extra_read_of_one_record_lags_with_the_list(self, service: Service) -> None:
        service.process.fault("*", "hide_record_for", seconds=3600)
        made = service.withdraw().json()["data"]["transactionId"]
        assert service.get(f"/transaction/{made}").status_code == 404
        service.process.clear_faults()
        assert service.get(f"/transaction/{made}").json()["transactionId"] == made

    def test_a_record_older_than_the_fault_stays_visible(self, service: Service) -> None:
        made = service.withdraw().json()["data"]["transactionId"]
        service.process.fault("*", "hide_record_for", seconds=3600)
        assert self.ids(service)[0] == made


def test_a_rate_limit_refuses_what_is_beyond_it_and_says_when_to_come_back(service: Service) -> None:
    fault = service.process.fault(WITHDRAW, "rate_limit", per_second=0.01)
    service.process.options(token_reuse=True)
    first, second = withdrawal(service), withdrawal(service)
    assert (first.status, second.status) == (200, 429)
    assert 90 <= int(second.header("Retry-After") or 0) <= 100
    assert json.loads(second.body)["success"] is False
    assert executed(service) == 1
    assert service.process.hits(fault) == 1


def test_a_rate_limit_lets_pass_what_keeps_to_it(service: Service) -> None:
    fault = service.process.fault("balances.list", "rate_limit", per_second=50)
    answers = [service.get("/balance").status_code for _ in range(40)]
    assert answers == [200] * 40
    assert service.process.hits(fault) == 0


class TestWhichRequests:
    """Operation, times, skip, containing."""

    def statuses(self, service: Service, count: int) -> list[int]:
        return [service.get("/balance").status_code for _ in range(count)]

    def test_a_fault_hits_once_unless_told_otherwise(self, service: Service) -> None:
        service.process.fault("balances.list", "status", status=500)
        assert self.statuses(service, 3) == [500, 200, 200]

    def test_it_lets_some_pass_and_hits_as_often_as_told(self, service: Service) -> None:
        fault = service.process.fault("balances.list", "status", status=500, skip=2, times=2)
        assert self.statuses(service, 6) == [200, 200, 500, 500, 200, 200]
        (seen,) = service.process.faults()
        assert (seen["id"], seen["hits"], seen["left"], seen["passed"]) == (fault, 2, 0, 2)

    def test_it_hits_until_it_is_taken_away(self, service: Service) -> None:
        fault = service.process.fault("balances.list", "status", status=500, times=None)
        assert self.statuses(service, 3) == [500] * 3
        assert service.process.faults()[0]["left"] is None
        service.process.clear_faults(fault)
        assert self.statuses(service, 1) == [200]

    def test_faults_that_answer_take_their_turns(self, service: Service) -> None:
        for status in (500, 502, 429):
            service.process.fault("balances.list", "status", status=status)
        assert self.statuses(service, 4) == [500, 502, 429, 200]

    def test_only_its_operation_is_hit(self, service: Service) -> None:
        service.process.fault(WITHDRAW, "status", status=500)
        assert self.statuses(service, 1) == [200]
        assert service.withdraw().status_code == 500

    @pytest.mark.parametrize("path", ["/balance", "/transaction", "/no/such/path"])
    def test_a_star_is_whatever_is_asked_of_the_service(self, service: Service, path: str) -> None:
        service.process.fault("*", "status", status=500)
        assert service.get(path).status_code == 500

    def test_the_control_api_is_never_hit(self, service: Service) -> None:
        service.process.fault("*", "status", status=500, times=None)
        assert service.process.token()
        service.process.reset()
        assert self.statuses(service, 1) == [200]

    def test_one_request_among_many_is_told_by_what_its_body_contains(self, service: Service) -> None:
        service.process.options(token_reuse=True)
        service.process.fault(WITHDRAW, "drop", when="after_read", containing='"1500.77"')
        assert service.withdraw(amount="1500.76").status_code == 200
        body = service.withdrawal(amount="1500.77")
        assert exchanged(service.process, "POST", "/v2/balance/withdraw", body) == Received(b"", False)
        assert [row["amount"] for row in service.process.ledger()["withdrawals"]] == ["1500.76"]

    def test_one_request_among_many_is_told_by_its_target(self, service: Service) -> None:
        service.process.fault("*", "status", status=500, containing="currency=USD", times=None)
        assert service.get("/balance", currency="NGN").status_code == 200
        assert service.get("/balance", currency="USD").status_code == 500

    def test_looking_into_a_body_changes_nothing_for_the_service(self, service: Service) -> None:
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

    def test_many_at_once_are_hit_exactly_as_often_as_told(self, service: Service) -> None:
        fault = service.process.fault("balances.list", "status", status=500, skip=5, times=7)
        together = threading.Barrier(16)

        def ask(_number: int) -> int:
            together.wait(120)
            return exchanged(service.process, "GET", "/v2/balance").status

        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(ask, range(32)))
        assert (answers.count(500), answers.count(200)) == (7, 25)
        assert service.process.hits(fault) == 7


def test_a_cut_connection_leaves_no_trace_and_no_connection_behind(service: Service) -> None:
    service.process.fault("*", "drop", when="before_read", times=30)
    assert {exchanged(service.process, "GET", "/v2/balance") for _ in range(30)} == {Received(b"", True)}
    assert service.get("/balance").status_code == 200
    assert "Traceback" not in service.process.output()
