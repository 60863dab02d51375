"""How a withdrawal stops being `processing`, and what becomes of the money."""

import pytest

from tests.sandbox.conftest import FAILING, SandboxClient


@pytest.fixture
def paused(provider: SandboxClient) -> SandboxClient:
    """The provider with settlement switched off, until the test asks for it."""
    provider.process.options(settle_after=None, token_reuse=True)
    return provider


def test_a_withdrawal_is_processing_until_it_settles(paused: SandboxClient) -> None:
    transaction_id = paused.withdraw().json()["data"]["transactionId"]
    assert paused.record(transaction_id)["status"] == "processing"
    assert paused.process.settle() == 1
    record = paused.record(transaction_id)
    assert record["status"] == "fullfiled"
    assert record["updatedAt"] > record["createdAt"]
    assert paused.process.settle() == 0


def test_a_due_withdrawal_is_settled_before_it_is_read(provider: SandboxClient) -> None:
    transaction_id = provider.withdraw().json()["data"]["transactionId"]
    assert provider.record(transaction_id)["status"] == "fullfiled"


def test_a_withdrawal_that_is_not_due_stays_open(provider: SandboxClient) -> None:
    provider.process.options(settle_after=3600)
    assert provider.record(provider.withdraw().json()["data"]["transactionId"])["status"] == "processing"


def test_withdrawals_to_accounts_ending_in_88_take_an_hour(provider: SandboxClient) -> None:
    transaction_id = provider.withdraw(accountNumber="0123456788").json()["data"]["transactionId"]
    assert provider.record(transaction_id)["status"] == "processing"


def test_successful_settlement_does_not_change_the_balance(paused: SandboxClient) -> None:
    paused.withdraw()
    before = paused.balance("NGN")
    paused.process.settle()
    assert paused.balance("NGN") == before


def test_withdrawals_to_accounts_ending_in_99_fail_and_are_refunded(paused: SandboxClient) -> None:
    before = paused.balance("NGN")
    failed = paused.withdraw(**FAILING).json()["data"]["transactionId"]
    paused.process.settle()
    record, reversal = paused.records()[-2:]
    assert (record["transactionId"], record["status"]) == (failed, "failed")
    assert (reversal["type"], reversal["status"]) == ("deposit", "fullfiled")
    assert reversal["sender"] == f"Reversal of {failed}"
    assert reversal["amount"] == record["amount"] + record["fee"]
    assert reversal["prevBalance"] == before["amount"] - reversal["amount"]
    after = paused.balance("NGN")
    assert after["amount"] == before["amount"]
    assert after["totalSent"] - before["totalSent"] == reversal["amount"]
    assert after["totalRecieved"] - before["totalRecieved"] == reversal["amount"]
    assert after["txnCount"] == before["txnCount"] + 2


def test_the_next_withdrawals_fail_on_request(paused: SandboxClient) -> None:
    assert paused.process.options(fail_next=1)["fail_next"] == 1
    first = paused.withdraw().json()["data"]["transactionId"]
    second = paused.withdraw().json()["data"]["transactionId"]
    assert paused.process.options()["fail_next"] == 0
    paused.process.settle()
    assert [paused.record(each)["status"] for each in (first, second)] == ["failed", "fullfiled"]


def test_a_refused_withdrawal_does_not_consume_a_requested_failure(paused: SandboxClient) -> None:
    paused.process.options(fail_next=1)
    assert paused.withdraw(token="wrong").status_code == 400
    assert paused.process.options()["fail_next"] == 1


@pytest.mark.parametrize("outcome", ["fullfiled", "failed"])
def test_settling_can_set_the_final_status(paused: SandboxClient, outcome: str) -> None:
    normal = paused.withdraw().json()["data"]["transactionId"]
    failing = paused.withdraw(**FAILING).json()["data"]["transactionId"]
    assert paused.process.settle(outcome) == 2
    assert [paused.record(each)["status"] for each in (normal, failing)] == [outcome, outcome]
