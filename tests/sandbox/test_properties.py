"""Balances, transactions and summaries agree to the last decimal after any history at all; seen over HTTP alone."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import ROUND_DOWN, Decimal
from itertools import count, product
from typing import Any

import pytest
import requests
from hypothesis import note, seed
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from payments_gateway.sandbox.books import rates
from tests.contract import case_counts
from tests.sandbox.books.test_ledger import check_books, check_reversals
from tests.sandbox.conftest import ACCOUNT, SandboxClient, exact
from tests.sandbox_process import SandboxProcess

BUSINESS_ID = "b5f1c2d94a7e4f0ba1c83d56"
TYPES = ("deposit", "withdrawal", "sent", "transfer", "internalTransfer", "conversion")
FILTERS = list(product((None, "NGN", "USD"), (None, *TYPES)))
OURS = "countersign-demo"

fiat = st.sampled_from(["NGN", "USD"])
decimals = st.integers(0, 99).map(lambda cents: f".{cents:02d}")
amounts = st.builds("{}{}".format, st.integers(0, 9_000) | st.integers(0, 9_000_000), decimals | st.just(""))
crypto = st.integers(1, 2_000_000_000).map(lambda units: Decimal(units).scaleb(-6))
endings = st.sampled_from(["11", "12", "88", "99"])
payees = st.sampled_from([OURS, "ada.obi", "ada.obi99", "nobody"])
users = st.sampled_from(["ada.obi", "ada.obi88", "ada.obi99", "emeka", "nobody", OURS])
networks = st.sampled_from(["ERC20", "BEP20", "POLYGON"])
outcomes = st.sampled_from([None, None, "fullfiled", "failed"])
steps_of_time = st.sampled_from([1, 59, 61, 600, 1_900, 90_000])
nonsense: st.SearchStrategy[object] = st.sampled_from(
    ["", "0", "-1", "NaN", "1e3", "0.001", "9" * 13, "999999999999", 5, None, [], {}]
)


@pytest.fixture(scope="module")
def small() -> Iterator[SandboxClient]:
    """A provider with a short past, so that everything can be read at every check."""
    with SandboxProcess(transactions=12) as process, requests.Session() as session:
        session.headers.update(process.headers)
        yield SandboxClient(process, session)


class Histories(RuleBasedStateMachine):
    """Everything that can happen to the provider, in any order; counts what it has accepted."""

    provider: SandboxClient
    histories: Iterator[int]

    @initialize()
    def begin(self) -> None:
        note(case_counts.summary())
        self.reset()

    @precondition(lambda self: self.debits > 8)
    @rule()
    def reset(self) -> None:
        self.provider.process.reset()
        self.provider.process.options(otp_required=False, settle_after=None)
        self.debits = self.payments = 0

    @rule(currency=fiat, amount=amounts, ending=endings)
    def withdraw(self, currency: str, amount: str, ending: str) -> None:
        number = f"01234567{ending}"
        body = {**ACCOUNT, "accountNumber": number, "currency": currency, "amount": amount, "otpType": "totp"}
        self.debits += self._accepted("/balance/withdraw", body)

    @rule(receiver=users, currency=fiat, amount=amounts)
    def transfer(self, receiver: str, currency: str, amount: str) -> None:
        body = {"receiverUsername": receiver, "currency": currency, "amount": amount, "otpType": "otp"}
        self.debits += self._accepted("/balance/transfer", body)

    @rule(given=fiat, received=fiat, amount=amounts)
    def convert(self, given: str, received: str, amount: str) -> None:
        body = {"fromCurrency": given, "toCurrency": received, "amount": amount}
        self.debits += self._accepted("/balance/convert", body)

    @rule(network=networks, currency=st.sampled_from(["USDT", "USDC"]), ending=endings, amount=crypto)
    def send(self, network: str, currency: str, ending: str, amount: Decimal) -> None:
        address = f"0x{'4' * 38}{ending}"
        body = {"network": network, "currency": currency, "address": address, "amount": float(amount)}
        self.debits += self._accepted("/wallet/transfer", body)

    @rule(username=payees, currency=fiat, amount=crypto)
    def ask_for_a_payment(self, username: str, currency: str, amount: Decimal) -> None:
        body = {
            "businessId": BUSINESS_ID,
            "incomingCurrency": "USDT",
            "outgoingCurrency": currency,
            "customerEmail": "ada@example.com",
            "paymentType": "profile",
            "serviceUsername": username,
            "incomingAmount": float(amount),
            "reference": f"R{self.payments}",
        }
        self.payments += self._accepted("/payment", body)

    @rule(amount=st.none() | st.none() | crypto.map(str), which=st.integers(0, 1))
    def pay(self, amount: str | None, which: int) -> None:
        body = {"reference": f"R{which}"} | ({} if amount is None else {"amount": amount})
        url = f"{self.provider.process.control}/payments"
        assert requests.post(url, json=body, timeout=30).status_code in {200, 400, 404, 409}

    @rule(username=payees, currency=fiat, amount=crypto)
    def pay_out(self, username: str, currency: str, amount: Decimal) -> None:
        """A payment from its beginning to its end, which chance alone seldom reaches."""
        reference, before = f"R{self.payments}", self.payments
        self.ask_for_a_payment(username, currency, amount)
        if self.payments > before:
            self.provider.process.pay_in(reference)
            self.provider.process.settle()

    @rule(
        currency=st.sampled_from(["NGN", "USD", "USDT", "USDC"]),
        amount=amounts.filter(lambda text: float(text) > 0),
    )
    def money_arrives(self, currency: str, amount: str) -> None:
        self.provider.process.deposit(currency, amount)

    @rule(member=st.sampled_from(["amount", "currency", "accountNumber"]), value=nonsense)
    def ask_for_nonsense(self, member: str, value: object) -> None:
        good = {**ACCOUNT, "currency": "NGN", "amount": "1", "otpType": "totp"}
        assert not self._accepted("/balance/withdraw", {**good, member: value})

    @precondition(lambda self: self.debits + self.payments > 3)
    @rule(outcome=outcomes)
    def settle(self, outcome: str | None) -> None:
        self.provider.process.settle(outcome)

    @rule(seconds=steps_of_time, settle_after=st.none() | st.integers(0, 60))
    def let_time_pass(self, seconds: int, settle_after: int | None) -> None:
        self.provider.process.options(settle_after=settle_after)
        self.provider.process.advance(seconds)

    @rule()
    def let_the_next_one_fail(self) -> None:
        self.provider.process.options(fail_next=1)

    @rule()
    def read_everything(self) -> None:
        ledger = self.provider.process.ledger()
        assert ledger["differences"] == []
        assert ledger["debits"]["count"] == self.debits
        assert len(ledger["payments"]) == self.payments
        assert all(Decimal(balance) >= 0 for balance in ledger["balances"].values())

    def teardown(self) -> None:
        self.read_everything()
        check_books(self.provider)
        check_reversals(self.provider)
        check_conversions(self.provider)
        check_payouts(self.provider)
        check_summaries(self.provider, next(self.histories))

    def _accepted(self, path: str, body: Mapping[str, object]) -> int:
        response = self.provider.post(path, body)
        assert response.status_code in {200, 400, 409, 422}, response.text
        return response.status_code == 200


def test_any_history_leaves_a_consistent_ledger(small: SandboxClient) -> None:
    machine = seed(case_counts.SEED)(
        type("HistoriesOfThis", (Histories,), {"provider": small, "histories": count()})
    )
    run_state_machine_as_test(machine, settings=case_counts.of_histories())


def check_conversions(provider: SandboxClient) -> None:
    """Each has two records, one after the other; those since the seed fit the rate of their minute."""
    converted = [record for record in provider.records() if record["type"] == "conversion"]
    since_the_seed = {order["transactionId"] for order in provider.process.ledger()["orders"]}
    assert len(converted) % 2 == 0
    for given, received in zip(converted[::2], converted[1::2], strict=True):
        assert given["currency"] == given["fromCurrency"] != received["currency"]
        assert (received["fromCurrency"], received["fromAmount"]) == (given["currency"], given["amount"])
        if given["transactionId"] in since_the_seed:
            at = datetime.fromisoformat(given["createdAt"])
            rate = rates.quote(given["currency"], received["currency"], at)
            worth = (given["amount"] * rate).quantize(Decimal("0.01"), rounding=ROUND_DOWN)
            assert received["amount"] == worth


def check_payouts(provider: SandboxClient) -> None:
    """A completed payment to the merchant itself is one deposit of what it pays out; nobody else's is any."""
    payments = provider.process.ledger()["payments"]
    mine = [each for each in payments if each["state"] == "completed" and each["account"] == OURS]
    expected = [
        (each["outgoingCurrency"], Decimal(each["outgoingAmount"]), Decimal(each["incomingAmount"]))
        for each in mine
    ]
    paid = [
        (record["currency"], record["amount"], record["fromAmount"])
        for record in provider.records()
        if record["type"] == "deposit" and record["fromCurrency"] != record["currency"]
    ]
    assert sorted(paid) == sorted(expected)


def check_summaries(provider: SandboxClient, history: int) -> None:
    """A summary is what the records that its filters select add up to. Three histories check every pair of filters."""
    records = provider.records()
    for currency, kind in FILTERS[history % 3 :: 3]:
        chosen = [
            record
            for record in records
            if currency in {None, record["currency"]} and kind in {None, record["type"]}
        ]
        summary = summary_of(provider, currency=currency, type=kind)
        assert summary["volume"] == sum(record["amount"] for record in chosen)
        assert summary["txnCount"] == len(chosen)


def summary_of(provider: SandboxClient, **filters: object) -> Any:
    query = {name: value for name, value in filters.items() if value is not None}
    return exact(provider.get("/transaction/summary", **query))["data"]["summary"]
