"""Faults on demand: the bytes that the client gets, and what the books say was executed."""

import json
from datetime import timedelta
from email.utils import parsedate_to_datetime

import pytest

from tests.sandbox.conftest import SandboxClient
from tests.sandbox.raw_http import Received, exchanged
from tests.sandbox.withdrawals import WITHDRAW, executed, withdrawal


@pytest.mark.parametrize(
    ("when", "reset", "executions"),
    [("before_read", True, 0), ("after_read", False, 0), ("after_execution", False, 1)],
)
def test_a_dropped_connection_returns_no_bytes(
    provider: SandboxClient, when: str, reset: bool, executions: int
) -> None:
    provider.process.fault(WITHDRAW, "drop", when=when)
    assert withdrawal(provider) == Received(b"", reset)
    assert executed(provider) == executions


def test_a_response_dropped_midway_was_executed(provider: SandboxClient) -> None:
    provider.process.fault(WITHDRAW, "drop", when="mid_answer")
    answer = withdrawal(provider)
    assert answer.reset
    assert answer.status == 200
    assert 0 < len(answer.body) < int(answer.header("Content-Length") or 0)
    assert executed(provider) == 1


@pytest.mark.parametrize("when", ["before_read", "after_read", "after_execution", "mid_answer"])
@pytest.mark.parametrize("reset", [True, False])
def test_the_connection_is_reset_only_on_request(provider: SandboxClient, when: str, reset: bool) -> None:
    provider.process.fault("balances.list", "drop", when=when, reset=reset)
    assert exchanged(provider.process, "GET", "/v2/balance").reset is reset


@pytest.mark.parametrize(("when", "executions"), [("before_execution", 0), ("after_execution", 1)])
def test_a_status_replaces_the_execution_or_only_its_response(
    provider: SandboxClient, when: str, executions: int
) -> None:
    headers = {"Retry-After": "7", "Location": "http://127.0.0.1:9/"}
    provider.process.fault(
        WITHDRAW, "status", status=503, body={"message": "busy"}, headers=headers, when=when
    )
    answer = withdrawal(provider)
    assert answer.head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert json.loads(answer.body) == {"message": "busy"}
    assert (answer.header("Retry-After"), answer.header("Location")) == ("7", "http://127.0.0.1:9/")
    assert answer.header("Content-Type") == "application/json"
    assert executed(provider) == executions


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
def test_a_status_can_have_any_body(
    provider: SandboxClient, status: int, body: object, expected: bytes
) -> None:
    provider.process.fault("*", "status", status=status, body=body)
    answer = exchanged(provider.process, "GET", "/v2/balance")
    assert (answer.status, answer.body) == (status, expected)


def test_a_truncated_response_is_shorter_than_its_content_length(provider: SandboxClient) -> None:
    provider.process.fault(WITHDRAW, "truncate", at=11)
    answer = withdrawal(provider)
    assert answer.body == b'{"data": {"'
    assert int(answer.header("Content-Length") or 0) > 11
    assert not answer.reset
    assert executed(provider) == 1


def test_a_faulty_response_is_dated_by_the_provider_clock(provider: SandboxClient) -> None:
    provider.process.fault(WITHDRAW, "truncate", at=11)
    now = provider.process.advance(86_400)
    dated = parsedate_to_datetime(withdrawal(provider).header("Date") or "")
    assert timedelta(0) <= dated - now.replace(microsecond=0) < timedelta(minutes=1)


def test_a_truncated_response_can_have_a_matching_content_length(provider: SandboxClient) -> None:
    provider.process.fault(WITHDRAW, "truncate", at=11, content_length="cut")
    answer = withdrawal(provider)
    assert (answer.body, answer.header("Content-Length")) == (b'{"data": {"', "11")
    assert executed(provider) == 1


def test_a_response_shorter_than_the_cut_is_complete(provider: SandboxClient) -> None:
    provider.process.fault("balances.list", "truncate", at=100_000)
    answer = exchanged(provider.process, "GET", "/v2/balance")
    assert json.loads(answer.body)["success"] is True


def test_a_rate_limit_refuses_excess_requests_with_retry_after(provider: SandboxClient) -> None:
    fault = provider.process.fault(WITHDRAW, "rate_limit", per_second=0.01)
    provider.process.options(token_reuse=True)
    first, second = withdrawal(provider), withdrawal(provider)
    assert (first.status, second.status) == (200, 429)
    assert 90 <= int(second.header("Retry-After") or 0) <= 100
    assert json.loads(second.body)["success"] is False
    assert executed(provider) == 1
    assert provider.process.hits(fault) == 1


def test_a_rate_limit_accepts_requests_within_it(provider: SandboxClient) -> None:
    fault = provider.process.fault("balances.list", "rate_limit", per_second=50)
    answers = [provider.get("/balance").status_code for _ in range(40)]
    assert answers == [200] * 40
    assert provider.process.hits(fault) == 0


def test_a_cut_connection_is_closed_without_a_log_line(provider: SandboxClient) -> None:
    provider.process.fault("*", "drop", when="before_read", times=30)
    assert {exchanged(provider.process, "GET", "/v2/balance") for _ in range(30)} == {Received(b"", True)}
    assert provider.get("/balance").status_code == 200
