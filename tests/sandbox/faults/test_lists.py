"""Faults of GET /transaction: records that come twice, or that cannot be seen yet."""

from tests.sandbox.conftest import SandboxClient
from tests.sandbox.withdrawals import executed


def ids(provider: SandboxClient, limit: int = 20) -> list[str]:
    page = provider.get("/transaction", limit=limit).json()["data"]
    return [record["transactionId"] for record in page["data"]]


def test_a_record_is_listed_twice(provider: SandboxClient) -> None:
    before = ids(provider)
    exact = provider.get("/transaction").text
    provider.process.fault("transactions.page", "duplicate_record", position=3)
    assert ids(provider) == [*before[:4], *before[3:]]
    assert provider.get("/transaction").text == exact


def test_the_rest_of_the_page_is_unchanged(provider: SandboxClient) -> None:
    exact = provider.get("/transaction", limit=1).text
    provider.process.fault("transactions.page", "duplicate_record")
    record = exact[exact.index("[") + 1 : exact.rindex("]")]
    assert provider.get("/transaction", limit=1).text == exact.replace(record, f"{record}, {record}")


def test_a_shorter_or_refused_page_is_unchanged(provider: SandboxClient) -> None:
    fault = provider.process.fault("transactions.page", "duplicate_record", position=5, times=None)
    assert len(ids(provider, limit=5)) == 5
    assert provider.get("/transaction", limit=0).status_code == 400
    assert provider.process.hits(fault) == 2


def test_a_new_record_is_hidden_and_not_counted(provider: SandboxClient) -> None:
    before = provider.get("/transaction").json()
    provider.process.fault("transactions.page", "hide_record_for", seconds=3600)
    made = provider.withdraw().json()["data"]["transactionId"]
    assert provider.get("/transaction").json() == before
    assert executed(provider) == 1
    provider.process.clear_faults()
    assert ids(provider)[0] == made


def test_a_hidden_record_appears_after_the_lag(provider: SandboxClient) -> None:
    provider.process.fault("transactions.page", "hide_record_for", seconds=3600)
    made = provider.withdraw().json()["data"]["transactionId"]
    assert made not in ids(provider)
    provider.process.advance(3601)
    assert ids(provider)[0] == made


def test_the_list_of_a_summary_has_the_same_faults(provider: SandboxClient) -> None:
    before = provider.get("/transaction/summary").json()["data"]
    provider.process.fault("transactions.summary", "hide_record_for", seconds=3600)
    provider.withdraw()
    assert provider.get("/transaction/summary").json()["data"] == before
    provider.process.fault("transactions.summary", "duplicate_record")
    records = provider.get("/transaction/summary").json()["data"]["txn"]["data"]
    assert records[:2] == [before["txn"]["data"][0]] * 2


def test_the_extra_read_of_one_record_lags_with_the_list(provider: SandboxClient) -> None:
    provider.process.fault("*", "hide_record_for", seconds=3600)
    made = provider.withdraw().json()["data"]["transactionId"]
    assert provider.get(f"/transaction/{made}").status_code == 404
    provider.process.clear_faults()
    assert provider.get(f"/transaction/{made}").json()["transactionId"] == made


def test_a_record_older_than_the_fault_stays_visible(provider: SandboxClient) -> None:
    made = provider.withdraw().json()["data"]["transactionId"]
    provider.process.fault("*", "hide_record_for", seconds=3600)
    assert ids(provider)[0] == made
