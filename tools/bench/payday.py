"""P9: payday: hundreds of approved withdrawals of one balance, from the bulk release until all are confirmed."""

import csv
import io
import re
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import requests

from payments_gateway.sandbox import API_KEY, API_USER, USER_VERSIONS
from tools.bench.databases import BenchDatabase, temporary_database
from tools.bench.measure import Measure
from tools.browser import BrowserError, HttpBrowser
from tools.processes import Stack, temporary_stack

SLOW_SECONDS = 0.3  # that the provider takes for each answer
UNKNOWN = 5  # requests that are read and neither executed nor answered
BARE_PAYMENTS = 50  # the rate of the bare loop is constant
_TIMEOUT = 900.0
_SIGN_IN_AGAIN = 120.0  # a second factor is fresh for five minutes
COLUMNS = ("currency", "amount", "bank_code", "account_number", "typed_name", "name_reason", "memo")


def payday_measures(payments: int) -> Iterator[Measure]:
    """On PostgreSQL, with a provider that asks for no one-time code."""
    with (
        temporary_database("payday") as database,
        tempfile.TemporaryDirectory() as folder,
        payday_stack(database, Path(folder)) as stack,
    ):
        yield from _measures_on(stack, payments)


@contextmanager
def payday_stack(database: BenchDatabase, folder: Path, first_command: str = "") -> Iterator[Stack]:
    """The product on this database, with what this Python code adds to it, and a provider that asks for no one-time
    code.
    """
    extra = {
        "COUNTERSIGN_DATABASE_URL": database.url,
        "COUNTERSIGN_LOG_LEVEL": "WARNING",
        **_broker(),
    }
    changes = {"extra": extra, "profile": "published", "settle_after": 0.0, "transactions": 300}
    changes["first_command"] = first_command
    with temporary_stack(folder, **changes) as stack:
        yield stack


def _broker() -> dict[str, str]:
    """As in production, if Redis runs on this machine; otherwise folders, whose polling costs a tenth of the time."""
    try:
        socket.create_connection(("127.0.0.1", 6379), timeout=1).close()
    except OSError:
        return {}
    return {"COUNTERSIGN_BROKER_URL": "redis://127.0.0.1:6379/11"}


def _measures_on(stack: Stack, payments: int) -> Iterator[Measure]:
    with HttpBrowser(stack.web) as preparer, HttpBrowser(stack.web) as approver:
        preparer.sign_in("Tunde Bello")
        approver.sign_in("Amara Okafor")
        payday = Payday(stack, preparer, approver, payments)
        minutes = payday.seconds(Decimal("1000.00")) / 60
        yield Measure(
            "P9.fast",
            f"{payments} withdrawals of one balance, released together, to all confirmed",
            payments / minutes,
            "/min",
            300,
            "least",
        )
        lost = min(UNKNOWN, payments - 1)
        minutes = payday.seconds(Decimal("4000.00"), unknown=lost) / 60
        yield Measure(
            "P9.unknown",
            f"the same with {lost} of which the provider's answer is lost, to {payments - lost} confirmed",
            (payments - lost) / minutes,
            "/min",
            300,
            "least",
        )
        yield Measure(
            "P9.slow",
            f"the same, the provider taking {SLOW_SECONDS * 1000:.0f} ms for each answer",
            payday.seconds(Decimal("2000.00"), delay=SLOW_SECONDS),
            "s",
            rivals={"requests alone": payday.bare_seconds()},
            target={"requests alone": 0.45},
        )


@dataclass
class Payday:
    """Files of withdrawals, each prepared by one person, approved and sent by another, on a running product."""

    stack: Stack
    preparer: HttpBrowser
    approver: HttpBrowser
    payments: int
    signed_in_at: float = field(default_factory=time.monotonic)

    def seconds(self, first_amount: Decimal, unknown: int = 0, delay: float = 0.0) -> float:
        """From the confirmation of the bulk release until all of its operations are confirmed but the unknown ones."""
        rows, confirmation = self._confirmation(first_amount)
        for number in range(unknown):
            # A fault does not count the requests that an earlier one hits.
            self._lose_a_request(skip=(number + 1) * self.payments // (unknown + 1) - number)
        with self.slow_provider(delay) if delay else nullcontext():
            began = time.monotonic()
            self.approver.submit(confirmation, "")
            _wait(self.approver, rows, f'<progress value="{self.payments - unknown}"')
            return time.monotonic() - began

    def _lose_a_request(self, *, skip: int) -> None:
        fault = {"operation": "balances.withdraw", "kind": "drop", "when": "after_read", "skip": skip}
        requests.post(f"{self.stack.sandbox}/_sandbox/faults", json=fault, timeout=30).raise_for_status()

    def _confirmation(self, first_amount: Decimal) -> tuple[str, requests.Response]:
        """The address of the rows of an approved batch, and the page that confirms to send them."""
        if time.monotonic() - self.signed_in_at > _SIGN_IN_AGAIN:
            self.approver.session, self.signed_in_at = requests.Session(), time.monotonic()
            self.approver.sign_in("Amara Okafor")
        rows = f"{self._approved_batch(first_amount)}rows/"
        link = re.search(r'href="(/operations/send/[^"]*)"', self.approver.get(rows).text)
        if link is None:
            raise BrowserError(f"{rows} does not offer to send")
        return rows, self.approver.get(link[1])

    def bare_seconds(self) -> float:
        """As many requests to withdraw, one after the other, each on a new connection, and nothing else."""
        count = min(BARE_PAYMENTS, self.payments)
        with self.slow_provider(SLOW_SECONDS):
            began = time.monotonic()
            for number in range(count):
                self._withdraw(number)
            return (time.monotonic() - began) * self.payments / count

    def _withdraw(self, number: int) -> None:
        row = payday_row(number)
        body = {"currency": "NGN", "amount": f"{3000 + number}", "bankCode": row["bank_code"]}
        account = {"accountNumber": row["account_number"], "accountName": "A", "bank": "Access Bank"}
        requests.post(
            f"{self.stack.sandbox}/v2/balance/withdraw",
            json=body | account,
            headers={"X-Api-Key": API_KEY, "X-Api-User": API_USER, "X-User-Version": USER_VERSIONS[0]},
            timeout=60,
        ).raise_for_status()

    @contextmanager
    def slow_provider(self, seconds: float) -> Iterator[None]:
        """Within the block, the simulated provider takes so long for each answer."""
        address = f"{self.stack.sandbox}/_sandbox/faults"
        fault = {"operation": "*", "kind": "delay", "seconds": seconds, "times": None}
        requests.post(address, json=fault, timeout=30).raise_for_status()
        try:
            yield
        finally:
            requests.delete(address, timeout=30).raise_for_status()

    def _approved_batch(self, first_amount: Decimal) -> str:
        """The path of an approved batch whose operations exist."""
        form = self.preparer.get("/operations/batches/files/")
        columns = self.preparer.upload(
            form, "/files/", kind="withdrawal", file=("payday.csv", self._file(first_amount))
        )
        mapping = dict(zip(COLUMNS, COLUMNS, strict=True))
        checking = self.preparer.submit(columns, "/check/", **mapping)
        checked = _wait(self.preparer, checking.url, "/submit/")
        operation = self.preparer.submit(checked, "/submit/").url
        total = sum(first_amount + number for number in range(self.payments))
        self.approver.submit(self.approver.get(operation), "/approve/", confirmation=str(total))
        _wait(self.approver, f"{operation}rows/", f'value="0" max="{self.payments}"')
        _wait(self.approver, f"{operation}rows/", "/operations/send/")
        return operation

    def _file(self, first_amount: Decimal) -> str:
        text = io.StringIO()
        rows = csv.DictWriter(text, COLUMNS)
        rows.writeheader()
        for number in range(self.payments):
            rows.writerow(payday_row(number) | {"currency": "NGN", "amount": str(first_amount + number)})
        return text.getvalue()


def payday_row(number: int) -> dict[str, str]:
    names = {"typed_name": "Somebody Else", "name_reason": "Measured"}
    return {"bank_code": "044", "account_number": f"01{number:06}12", "memo": "Payday", **names}


def _wait(browser: HttpBrowser, address: str, text: str) -> requests.Response:
    """The page once it has this text."""
    deadline = time.monotonic() + _TIMEOUT
    while time.monotonic() < deadline:
        page = browser.get(address)
        if text in page.text:
            return page
        time.sleep(0.5)
    raise BrowserError(f"{address} did not show {text!r} in {_TIMEOUT:.0f} s")
