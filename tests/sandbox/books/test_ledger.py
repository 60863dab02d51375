"""Balances and transactions agree to the last decimal, whatever happened; seen over HTTP alone."""

import re
from contextlib import closing
from decimal import Decimal

from tests.sandbox.conftest import PAYMENT, SandboxClient

FEES = {"NGN": Decimal(50), "USD": Decimal(1)}


def check_books(provider: SandboxClient) -> None:
    """Rebuild every balance entry from the transaction records and compare."""
    records = provider.records()
    for currency in ("NGN", "USD", "USDT"):
        mine = [record for record in records if record["currency"] == currency]
        balance = received = sent = Decimal(0)
        for record in mine:
            assert record["prevBalance"] == balance
            incoming = record["type"] in {"deposit", "internalTransfer"} or record["fromCurrency"] != currency
            received += record["amount"] if incoming else 0
            sent += record["fee"] + (0 if incoming else record["amount"])
            balance = received - sent
        entry = provider.balance(currency)
        assert (entry["amount"], entry["totalRecieved"], entry["totalSent"]) == (balance, received, sent)
        assert entry["txnCount"] == len(mine)
        assert provider.process.balance(currency) == balance
    assert provider.process.ledger()["differences"] == []


def check_reversals(provider: SandboxClient) -> None:
    """Every failed withdrawal was given back in full exactly once, and nothing else was."""
    records = provider.records()
    failed = {
        each["transactionId"]: each["amount"] + each["fee"] for each in records if each["status"] == "failed"
    }
    pattern = re.compile("Reversal of (.+)")
    given_back = [
        (match[1], each["amount"]) for each in records if (match := pattern.fullmatch(each["sender"]))
    ]
    assert sorted(given_back) == sorted(failed.items())


def test_concurrent_withdrawals_cannot_overdraw(provider: SandboxClient) -> None:
    """Forty at once ask for four times what is there: only what fits is taken."""
    provider.process.options(token_reuse=True)
    before = provider.balance("USD")["amount"]
    body = provider.withdrawal(currency="USD", amount=f"{before / 10:.2f}")
    statuses = provider.withdraw_at_once(body, 40)
    assert statuses.count(200) == 9
    assert statuses.count(422) == 31
    assert provider.balance("USD")["amount"] == before - 9 * (Decimal(str(body["amount"])) + FEES["USD"])
    check_books(provider)


def test_the_seeded_history_is_consistent(provider: SandboxClient) -> None:
    check_books(provider)
    check_reversals(provider)


def test_the_check_of_the_books_finds_a_wrong_balance(provider: SandboxClient) -> None:
    """The oracle is no rubber stamp: a balance changed behind its back is found."""
    with closing(provider.process.books()) as books:
        books.execute(
            "UPDATE sandbox_account SET balance = balance + 1, received = received + 1 WHERE id = 1"
        )
        books.commit()
    assert provider.process.ledger()["differences"] == [
        "NGN: the records do not lead to the balance",
        "merchant NGN: not the sum of its entries",
    ]
    provider.process.reset()
    assert provider.process.ledger()["differences"] == []


def test_the_check_of_the_books_finds_a_payment_that_moved_nothing(provider: SandboxClient) -> None:
    assert provider.post("/payment", PAYMENT).status_code == 200
    provider.process.pay_in(str(PAYMENT["reference"]))
    provider.process.settle()
    assert provider.process.ledger()["payments"][0]["state"] == "completed"
    assert provider.process.ledger()["differences"] == []
    with closing(provider.process.books()) as books:
        books.execute("DELETE FROM sandbox_entry WHERE payment_id IS NOT NULL")
        books.commit()
    assert "1 payments have not moved what their state says" in provider.process.ledger()["differences"]
    provider.process.reset()
