"""The provider's clock, which can be put forward, and real time, which one-time codes go by."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
import requests

from tests.sandbox.conftest import SandboxClient
from tests.sandbox_process import SandboxProcess

DAY = 86_400
MINE = threading.local()
NEAR = timedelta(minutes=1)


def ahead(provider: SandboxClient) -> timedelta:
    """How far the provider's clock is ahead of ours, going by the Date header of an answer."""
    return parsedate_to_datetime(provider.get("/balance").headers["Date"]) - datetime.now(UTC)


def test_the_date_of_every_response_follows_the_clock(provider: SandboxClient) -> None:
    assert abs(ahead(provider)) < NEAR
    provider.process.advance(3 * DAY)
    assert abs(ahead(provider) - timedelta(days=3)) < NEAR
    refused = provider.get("/nothing")
    assert abs(parsedate_to_datetime(refused.headers["Date"]) - provider.process.now()) < NEAR
    assert len(refused.raw.headers.getlist("Date")) == 1


def test_records_and_filters_use_the_clock(provider: SandboxClient) -> None:
    provider.process.advance(400 * DAY)
    assert provider.get("/transaction", duration="one year").json()["data"]["total"] == 0
    transaction_id = provider.withdraw().json()["data"]["transactionId"]
    (record,) = provider.get("/transaction", duration="one year").json()["data"]["data"]
    assert record["transactionId"] == transaction_id
    assert abs(datetime.fromisoformat(record["createdAt"]) - provider.process.now()) < NEAR


def test_one_time_codes_use_real_time(provider: SandboxClient) -> None:
    code = provider.process.totp()
    provider.process.advance(DAY)
    assert provider.withdraw(token=code).status_code == 200


def test_due_transactions_are_settled_after_a_step(provider: SandboxClient) -> None:
    provider.process.options(settle_after=3_600)
    transaction_id = provider.withdraw().json()["data"]["transactionId"]
    provider.process.advance(3_599 - NEAR.total_seconds())
    assert provider.record(transaction_id)["status"] == "processing"
    provider.process.advance(NEAR.total_seconds() + 1)
    assert provider.record(transaction_id)["status"] == "fullfiled"


@pytest.mark.parametrize("seconds", [-1, 10_000_000_000, "1", True, None])
def test_an_invalid_step_is_refused(provider: SandboxClient, seconds: object) -> None:
    response = requests.post(f"{provider.process.control}/clock", json={"advance": seconds}, timeout=30)
    assert response.status_code == 400
    assert abs(ahead(provider)) < NEAR


def test_steps_are_limited_to_ten_years(provider: SandboxClient) -> None:
    provider.process.advance(3_650 * DAY - 60)
    url = f"{provider.process.control}/clock"
    assert requests.post(url, json={"advance": 120}, timeout=30).status_code == 400
    assert provider.get("/transaction").status_code == 200


def test_a_reset_resets_the_clock(provider: SandboxClient) -> None:
    provider.process.advance(DAY)
    provider.process.reset()
    assert abs(ahead(provider)) < NEAR


def test_the_clock_survives_a_restart(tmp_path: Path) -> None:
    database = tmp_path / "sandbox.sqlite3"
    with SandboxProcess(database=database) as first:
        first.advance(DAY)
    with SandboxProcess(database=database) as second:
        assert abs(second.now() - datetime.now(UTC) - timedelta(days=1)) < NEAR


def test_a_reset_during_steps_keeps_row_and_process_consistent(process: SandboxProcess) -> None:
    """A start would find another time otherwise. The moment is short, so there are many resets and steps."""
    process.reset()  # whatever the test before left
    with ThreadPoolExecutor(8, initializer=lambda: setattr(MINE, "session", requests.Session())) as pool:
        for _ in range(60):
            step: tuple[str, object] = ("clock", {"advance": DAY})
            calls = [step] * 4 + [("reset", None)] + [step] * 4
            answers = [pool.submit(control, process, path, body) for path, body in calls]
            assert {answer.result() for answer in answers} == {200}
            shown = requests.get(f"{process.control}/clock", timeout=30).json()["aheadSeconds"]
            with closing(process.books()) as books:
                ((kept,),) = books.execute("SELECT clock_ahead FROM sandbox_sandboxstate")
            assert shown * 1_000_000 == kept
    process.reset()


def control(process: SandboxProcess, path: str, body: object) -> int:
    """Change something over the connection of this thread; the status of the answer."""
    session: requests.Session = MINE.session
    return session.post(f"{process.control}/{path}", json=body, timeout=30).status_code
