"""The control API and the console page."""

import pytest
import requests

from tests.sandbox.conftest import FAILING, Service
from tests.sandbox_process import SandboxProcess

DEFAULTS = {
    "settle_after": 0,
    "token_required": True,
    "token_reuse": False,
    "fail_next": 0,
    "customer_pays_after": None,
}


def test_the_ledger_lists_what_was_asked_since_the_seed(service: Service) -> None:
    service.process.options(token_reuse=True, settle_after=None)
    first = service.withdraw(amount="100").json()["data"]["transactionId"]
    service.withdraw(amount="20.5", currency="USD", **FAILING)
    ledger = service.process.ledger()
    assert ledger["debits"] == {"count": 2, "amounts": {"NGN": "150.00", "USD": "21.50"}}
    assert [row["status"] for row in ledger["withdrawals"]] == ["processing", "processing"]
    row = ledger["withdrawals"][0]
    assert row["receivedAt"].endswith("Z")
    assert {name: value for name, value in row.items() if name != "receivedAt"} == {
        "transactionId": first,
        "currency": "NGN",
        "amount": "100.00",
        "fee": "50.00",
        "accountNumber": "0123456789",
        "accountName": "Kelechi Eze",
        "bank": "Access Bank",
        "bankCode": "044",
        "status": "processing",
    }


def test_reading_the_ledger_wants_no_credentials(service: Service) -> None:
    assert requests.get(f"{service.process.control}/ledger", timeout=30).json()["withdrawals"] == []


def test_a_reset_returns_exactly_to_the_seed(service: Service) -> None:
    before = service.records(), service.get("/balance").json(), service.process.ledger()
    service.process.options(token_reuse=True, fail_next=1, settle_after=None)
    service.withdraw()
    service.withdraw(currency="USD")
    service.process.settle()
    service.process.reset()
    assert (service.records(), service.get("/balance").json(), service.process.ledger()) == before
    assert service.process.options() == DEFAULTS


def test_a_reset_empties_accounts_that_the_seed_never_touched() -> None:
    """Three records are the opening deposits alone: no fee was ever paid before."""
    with SandboxProcess(transactions=3) as process, requests.Session() as session:
        session.headers.update(process.headers)
        service = Service(process, session)
        assert service.withdraw().status_code == 200
        process.reset()
        assert process.ledger()["differences"] == []
        assert len(service.records()) == 3


def test_a_reset_makes_a_used_token_fresh(service: Service) -> None:
    token = service.process.token()
    assert service.withdraw(token=token).status_code == 200
    service.process.reset()
    assert service.withdraw(token=token).status_code == 200


def test_options_change_only_what_is_given(service: Service) -> None:
    assert service.process.options() == DEFAULTS
    assert service.process.options(settle_after=1.5) == {**DEFAULTS, "settle_after": 1.5}
    assert service.process.options(fail_next=2) == {**DEFAULTS, "settle_after": 1.5, "fail_next": 2}
    assert service.process.options(settle_after=None)["settle_after"] is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("settle_after", -1),
        ("settle_after", "1"),
        ("settle_after", True),
        ("settle_after", 1e300),
        ("fail_next", 1.5),
        ("fail_next", -1),
        ("fail_next", None),
        ("token_reuse", 1),
        ("token_required", "no"),
        ("speed", 1),
    ],
)
def test_a_wrong_option_is_refused_by_name(service: Service, name: str, value: object) -> None:
    response = requests.post(f"{service.process.control}/options", json={name: value}, timeout=30)
    assert response.status_code == 400
    assert response.json()["message"].startswith(f"{name} ")
    assert service.process.options() == DEFAULTS


def test_settling_to_a_status_that_is_none_is_refused(service: Service) -> None:
    response = requests.post(f"{service.process.control}/settle", json={"outcome": "fulfilled"}, timeout=30)
    assert response.status_code == 400
    assert response.json()["message"] == "outcome must be 'fullfiled' or 'failed'"


def test_settle_and_reset_need_no_body(service: Service) -> None:
    assert requests.post(f"{service.process.control}/settle", timeout=30).json() == {"settled": 0}
    assert requests.post(f"{service.process.control}/reset", timeout=30).json() == {"transactions": 60}


def test_the_root_leads_to_the_console(service: Service) -> None:
    response = requests.get(service.process.address, timeout=30)
    assert response.url == f"{service.process.control}/"
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"


def test_the_console_says_what_it_is_and_shows_tokens_and_balances(service: Service) -> None:
    service.withdraw(accountName="<b>Ada</b>")
    page = requests.get(f"{service.process.control}/", timeout=30).text
    assert "Simulation, moves nothing" in page
    assert service.process.one_time_code() in page
    assert str(service.process.balance("NGN")) in page
    assert "&lt;b&gt;Ada&lt;/b&gt;, Access Bank 0123456789" in page
