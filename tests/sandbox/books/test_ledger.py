"""Balances and transactions agree to the last decimal, whatever happened; seen over HTTP alone."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from decimal import Decimal

import requests

from tests.sandbox.conftest import PAYMENT, Service

FEES = {"NGN": Decimal(50), "USD": Decimal(1)}


def check_books(service: Service) -> None:
    """Rebuild every balance entry from the transaction records and compare."""
    records = service.records()
    for currency in ("NGN", "USD", "USDT"):
        mine = [record for record in records if record["currency"] == currency]
        balance = received = sent = Decimal(0)
        for record in mine:
            assert record["prevBalance"] == balance
            incoming = record["type"] in {"deposit", "internalTransfer"} or record["fromCurrency"] != currency
            received += record["amount"] if incoming else 0
            sent += record["fee"] + (0 if incoming else record["amount"])
            balance = received - sent
        entry = service.balance(currency)
        assert (entry["amount"], entry["totalRecieved"], entry["totalSent"]) == (balance, received, sent)
        assert entry["txnCount"] == len(mine)
        assert service.process.balance(currency) == balance
    assert service.process.ledger()["differences"] == []


def check_reversals(service: Service) -> None:
    """Every failed withdrawal was given back in full exactly once, and nothing else was."""
    records = service.records()
    failed = {
        each["transactionId"]: each["amount"] + each["fee"] for each in records if each["status"] == "failed"
    }
    pattern = re.compile("Reversal of (.+)")
    given_back = [
        (match[1], each["amount"]) for each in records if (match := pattern.fullmatch(each["sender"]))
    ]
    assert sorted(given_back) == sorted(failed.items())


def test_concurrent_withdrawals_cannot_overdraw(service: Service) -> None:
    """Forty at once ask for four times what is there: only what fits is taken."""
    service.process.options(token_reuse=True)
    before = service.balance("USD")["amount"]
    body = service.withdrawal(currency="USD", amount=f"{before / 10:.2f}")

    def send(_: int) -> int:
        return requests.post(
            f"{service.process.url}/balance/withdraw", json=body, headers=service.process.headers, timeout=30
        ).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(send, range(40)))
    assert statuses.count(200) == 9
    assert statuses.count(422) == 31
    assert service.balance("USD")["amount"] == before - 9 * (Decimal(str(body["amount"])) + FEES["USD"])
    check_books(service)


def test_the_seeded_history_is_consistent(service: Service) -> None:
    check_books(service)
    check_reversals(service)


def test_the_check_of_the_books_finds_a_wrong_balance(service: Service) -> None:
    """The oracle is no rubber stamp: a balance changed behind its back is found."""
    with closing(service.process.books()) as books:
        books.execute(
            "UPDATE sandbox_account SET balance = balance + 1, received = received + 1 WHERE id = 1"
        )
        books.commit()
    assert service.process.ledger()["differences"] == [
        "NGN: the records do not lead to the balance",
        "merchant NGN: not the sum of its entries",
    ]
    service.process.reset()
    assert service.process.ledger()["differences"] == []


def test_the_check_of_the_books_finds_a_payment_that_moved_nothing(service: Service) -> None:
    assert service.post("/payment", PAYMENT).status_code == 200
    service.process.pay_in(str(PAYMENT["reference"]))
    service.process.settle()
    assert service.process.ledger()["payments"][0]["state"] == "completed"
    assert service.process.ledger()["differences"] == []
    with closing(service.process.books()) as books:
        books.execute("DELETE FROM sandbox_entry WHERE payment_id IS NOT NULL")
        books.commit()
    assert "1 payments have not moved what their state says" in service.process.ledger()["differences"]
    service.process.reset()
