"""What people and the provider do while the canaries are about."""

import json
import uuid
from typing import Any

from django.test import Client

from backoffice.operations.models.operations import Operation
from tests import stub_provider
from tests.core.secrets.canaries import Canaries
from tests.stub_provider import StubProvider

HOLDER = {"accountname": "ADA CHIDINMA OBI", "accountnumber": "9990001112"}


class Reader(Client):
    """A browser that remembers every answer, header by header."""

    def __init__(self, pages: list[tuple[str, bytes]], **defaults: Any) -> None:
        super().__init__(raise_request_exception=False, **defaults)
        self.pages = pages

    def request(self, **request: Any) -> Any:
        answer: Any = super().request(**request)
        head = "\n".join(f"{name}: {value}" for name, value in answer.items()) + answer.cookies.output()
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        self.pages.append((request["PATH_INFO"], head.encode() + b"\n" + body))
        return answer


def answer_with(stub: StubProvider, status: int, body: object, canaries: Canaries) -> None:
    """Answer a withdrawal like this, with the secrets in it, and a question for an account with its holder."""
    echo = f"key {canaries.api_key} token {canaries.otp}"
    text = body.format(echo=echo) if isinstance(body, str) else json.dumps(body).replace("{echo}", echo)

    def answer() -> stub_provider.Answer:
        is_withdrawal = "amount" in json.loads(stub.posts[-1])
        return (status, text) if is_withdrawal else (200, json.dumps({"data": HOLDER}))

    stub.answer_post = answer


def prepare(browser: Reader) -> Operation:
    """A withdrawal, by its form and its review."""
    address = "/operations/prepare/withdrawal/"
    typed = {
        "submission": str(uuid.uuid4()),
        "currency": "NGN",
        "amount": "250000.00",
        "bank_code": "044",
        "account_number": HOLDER["accountnumber"],
        "typed_name": HOLDER["accountname"],
        "duplicate_confirmed": "on",
        "duplicate_reason": str(uuid.uuid4()),
    }
    digest = browser.post(address, {**typed, "step": "review"}).context["digest"]
    browser.post(address, {**typed, "step": "prepare", "digest": digest})
    return Operation.objects.latest("prepared_at")


def release_operation(
    browser: Reader, operation: Operation, action: str, canaries: Canaries, **changes: str
) -> Any:
    """Press a button that takes the provider's one-time code."""
    values = {"digest": operation.digest, "otp": canaries.otp, **changes}
    return browser.post(f"/operations/{operation.pk}/{action}/", values)


def open_pages(browser: Reader, operation: Operation) -> None:
    """Open everything that shows what happened, and take the reports away."""
    for address in (
        f"/operations/{operation.pk}/",
        f"/operations/{operation.pk}/live/",
        *(
            "/",
            "/balances/",
            "/operations/",
            "/settings/audit/",
            "/settings/system/",
            "/reports/",
            "/account/",
            "/account/password/",
        ),
        *("/reports/operations.csv", "/reports/transactions.csv", "/reports/audit-log.csv"),
    ):
        assert browser.get(address).status_code in {200, 302, 502}, address


def status_of(operation: Operation) -> str:
    return Operation.objects.get(pk=operation.pk).status
