"""Faults of GET /transaction: records that come twice, or that cannot be seen yet."""

from tests.sandbox.conftest import Service
from tests.sandbox.withdrawals import executed


def ids(service: Service, limit: int = 20) -> list[str]:
    page = service.get("/transaction", limit=limit).json()["data"]
    return [record["transactionId"] for record in page["data"]]


def test_a_record_is_listed_twice(service: Service) -> None:
    before = ids(service)
    exact = service.get("/transaction").text
    service.process.fault("transactions.page", "duplicate_record", position=3)
    assert ids(service) == [*before[:4], *before[3:]]
    assert service.get("/transaction").text == exact


def test_the_rest_of_the_page_is_unchanged(service: Service) -> None:
    exact = service.get("/transaction", limit=1).text
    service.process.fault("transactions.page", "duplicate_record")
    record = exact[exact.index("[") + 1 : exact.rindex("]")]
    assert service.get("/transaction", limit=1).text == exact.replace(record, f"{record}, {record}")


def test_a_shorter_or_refused_page_is_unchanged(service: Service) -> None:
    fault = service.process.fault("transactions.page", "duplicate_record", position=5, times=None)
    assert len(ids(service, limit=5)) == 5
    assert service.get("/transaction", limit=0).status_code == 400
    assert service.process.hits(fault) == 2


def test_a_new_record_is_hidden_and_not_counted(service: Service) -> None:
    before = service.get("/transaction").json()
    service.process.fault("transactions.page", "hide_record_for", seconds=3600)
    made = service.withdraw().json()["data"]["transactionId"]
    assert service.get("/transaction").json() == before
    assert executed(service) == 1
    service.process.clear_faults()
    assert ids(service)[0] == made


def test_a_hidden_record_appears_after_the_lag(service: Service) -> None:
    service.process.fault("transactions.page", "hide_record_for", seconds=3600)
    made = service.withdraw().json()["data"]["transactionId"]
    assert made not in ids(service)
    service.process.advance(3601)
    assert ids(service)[0] == made


def test_the_list_of_a_summary_has_the_same_faults(service: Service) -> None:
    before = service.get("/transaction/summary").json()["data"]
    service.process.fault("transactions.summary", "hide_record_for", seconds=3600)
    service.withdraw()
    assert service.get("/transaction/summary").json()["data"] == before
    service.process.fault("transactions.summary", "duplicate_record")
    records = service.get("/transaction/summary").json()["data"]["txn"]["data"]
    assert records[:2] == [before["txn"]["data"][0]] * 2


def test_the_extra_read_of_one_record_lags_with_the_list(service: Service) -> None:
    service.process.fault("*", "hide_record_for", seconds=3600)
    made = service.withdraw().json()["data"]["transactionId"]
    assert service.get(f"/transaction/{made}").status_code == 404
    service.process.clear_faults()
    assert service.get(f"/transaction/{made}").json()["transactionId"] == made


def test_a_record_older_than_the_fault_stays_visible(service: Service) -> None:
    made = service.withdraw().json()["data"]["transactionId"]
    service.process.fault("*", "hide_record_for", seconds=3600)
    assert ids(service)[0] == made
