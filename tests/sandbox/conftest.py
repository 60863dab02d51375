"""The sandbox as a client without our own client sees it: plain HTTP."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from decimal import Decimal
from typing import Any

import pytest
import requests

from tests.payments_gateway.stub import Behaviour, Stub
from tests.sandbox.webhook_receiver import TAKEN, Receive, point_to
from tests.sandbox_process import SandboxProcess

ACCOUNT = {
    "accountNumber": "0123456789",
    "accountName": "Kelechi Eze",
    "bank": "Access Bank",
    "bankCode": "044",
}
FAILING = {**ACCOUNT, "accountNumber": "0123456799"}
PAYMENT = {
    "businessId": "b5f1c2d94a7e4f0ba1c83d56",
    "incomingCurrency": "USDT",
    "outgoingCurrency": "NGN",
    "paymentType": "profile",
    "serviceUsername": "amara",
    "customerEmail": "amara@example.com",
    "incomingAmount": 20,
    "reference": "INV-1",
}


class SandboxClient:
    """The provider and its control API, with credentials and a valid withdrawal at hand."""

    def __init__(self, process: SandboxProcess, session: requests.Session) -> None:
        self.process = process
        self.session = session

    def get(self, path: str, **query: object) -> requests.Response:
        return self.session.get(
            self.process.url + path, params={k: str(v) for k, v in query.items()}, timeout=30
        )

    def post(self, path: str, body: object) -> requests.Response:
        return self.session.post(self.process.url + path, json=body, timeout=30)

    def withdrawal(self, **changes: object) -> dict[str, object]:
        """A body that the provider accepts, with changes; None takes a member away."""
        body: dict[str, object] = {**ACCOUNT, "currency": "NGN", "amount": "1500.25", "otpType": "totp"}
        body |= changes if "token" in changes else {"token": self.process.totp(), **changes}
        return {name: value for name, value in body.items() if value is not None}

    def withdraw(self, **changes: object) -> requests.Response:
        return self.post("/balance/withdraw", self.withdrawal(**changes))

    def withdraw_at_once(self, body: object, times: int) -> list[int]:
        """Send the same withdrawal so many times, from eight threads; returns the status of each response."""

        def send(_: int) -> int:
            return requests.post(
                f"{self.process.url}/balance/withdraw", json=body, headers=self.process.headers, timeout=30
            ).status_code

        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(send, range(times)))

    def balance(self, currency: str) -> Any:
        """The balance entry of one currency."""
        (entry,) = exact(self.get("/balance", currency=currency))["data"]["balances"]
        return entry

    def records(self) -> list[Any]:
        """Every transaction record, oldest first."""
        page = exact(self.get("/transaction", limit=500))["data"]
        assert page["pages"] == 1
        return list(reversed(page["data"]))

    def record(self, transaction_id: str) -> Any:
        (found,) = [record for record in self.records() if record["transactionId"] == transaction_id]
        return found


def exact(response: requests.Response) -> Any:
    """The JSON of an answer with exact numbers."""
    return response.json(parse_float=Decimal)


@pytest.fixture(scope="session")
def process(sandbox_process: SandboxProcess) -> SandboxProcess:
    """The one of the whole run: a reset leaves nothing of what other tests did to it."""
    return sandbox_process


@pytest.fixture
def provider(process: SandboxProcess) -> Iterator[SandboxClient]:
    """The provider in its seeded state. Whatever is done to it, no traceback comes into its log."""
    process.reset()
    output = process.output()
    with requests.Session() as session:
        session.headers.update(process.headers)
        yield SandboxClient(process, session)
    assert "Traceback" not in process.output().removeprefix(output)


@pytest.fixture
def receive(provider: SandboxClient) -> Iterator[Receive]:
    """Start a receiver that behaves like this, and make it the callback URL."""
    with ExitStack() as stack:

        def start(*behaviours: Behaviour) -> Stub:
            receiver = stack.enter_context(Stub(*(behaviours or (TAKEN,))))
            point_to(provider.process, receiver.url)
            return receiver

        yield start
        provider.process.reset()  # while the receiver can still be reached
