"""Forms while the provider takes every question and answers none: how long people wait, and what they read."""

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Operation
from backoffice.operations.permissions import APPROVE, PREPARE
from tests.cached_reads import forget_reads
from tests.payments_gateway import stub
from tests.payments_gateway.stub import Stub

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]
ATTEMPTS = 20
BESIDES = 0.6  # seconds that everything but waiting for the provider may take
ACCOUNT = {"bank_code": "044", "account_number": "0123456789", "typed_name": "Ada Obi"}
TYPED = {
    "withdrawal": {**ACCOUNT, "currency": "NGN", "amount": "100"},
    "conversion": {"direction": "NGN-USD", "amount": "100"},
    "transfer": {"username": "kola.traders", "currency": "NGN", "amount": "100"},
    "payment": {
        **ACCOUNT,
        "country": "NG",
        "incoming_currency": "USDT",
        "incoming_amount": "10",
        "outgoing_currency": "NGN",
        "customer_email": "ada@example.com",
        "payment_type": "bank",
    },
    "callback_url": {"url": "https://pay.example.com/webhooks"},
    "bank_account": {"account_name": "Lagos shop", "currency": "NGN"},
    "api_key_create": {"method": "named", "key_name": "till", "scope": "M", "expires_unit": "days"},
    "api_key_invalidate": {"short_hash": "0a1b2c3d"},
}
NOT_CHECKED = {
    "withdrawal": "account_number",
    "payment": "account_number",
    "callback_url": "url",
    "api_key_create": "key_name",
    "api_key_invalidate": "short_hash",
}


@pytest.fixture(autouse=True)
def silent(settings: Settings, tmp_path: Path) -> Iterator[None]:
    """The provider, which could report banks and rates besides."""
    file = tmp_path / "profile.toml"
    file.write_text('capabilities = ["banks", "rates"]\n')
    settings.GATEWAY_PROFILE = str(file)
    with Stub(stub.silent) as provider:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = provider.url, provider.url.replace("/v2", "/v4")
        yield


@pytest.fixture
def ask(
    sign_in: SignIn, preparer: User, approver: User, administrator: User
) -> Callable[..., tuple[Any, float]]:
    """Open a kind's form, or send it with what was typed: the answer, and the seconds that it took."""
    people = {PREPARE: preparer, APPROVE: approver}
    browsers = {person: sign_in(Client(), person) for person in (preparer, approver, administrator)}

    def ask(kind: str, **typed: str) -> tuple[Any, float]:
        browser = browsers[people.get(KINDS[kind].permission, administrator)]
        address = f"/operations/prepare/{kind}/"
        began = time.monotonic()
        sent = {**typed, "submission": str(uuid.uuid4())}
        answer = browser.post(address, sent) if typed else browser.get(address, follow=True)
        return answer, time.monotonic() - began

    return ask


@pytest.mark.parametrize("kind", KINDS)
def test_a_form_opens_within_a_second_without_the_provider(
    ask: Callable[..., tuple[Any, float]], kind: str
) -> None:
    def opened() -> float:
        forget_reads()
        answer, seconds = ask(kind)
        assert answer.status_code == 200
        return seconds

    assert_it_takes(opened, less_than=0.8 + BESIDES)


def test_a_form_does_not_wait_again_after_a_timeout(ask: Callable[..., tuple[Any, float]]) -> None:
    ask("payment")
    assert_it_takes(lambda: ask("payment")[1], less_than=BESIDES)


@pytest.mark.parametrize("kind", TYPED)
def test_a_form_is_checked_within_three_seconds(ask: Callable[..., tuple[Any, float]], kind: str) -> None:
    def checked() -> float:
        forget_reads()
        ask(kind)
        return ask(kind, **TYPED[kind])[1]

    assert_it_takes(checked, less_than=3 + BESIDES)
    assert not Operation.objects.exists()


def assert_it_takes(seconds: Callable[[], float], *, less_than: float) -> None:
    """It waits for the provider as long each time; what a busy machine adds differs, so the least of some counts."""
    assert any(seconds() < less_than for _ in range(ATTEMPTS))


@pytest.mark.parametrize(("kind", "field"), NOT_CHECKED.items())
def test_an_unavailable_check_is_reported_at_its_field(
    ask: Callable[..., tuple[Any, float]], kind: str, field: str
) -> None:
    answer, _ = ask(kind, **TYPED[kind])
    assert answer.status_code == 422
    messages = " ".join(answer.context["form"].errors[field])
    assert "Nothing was prepared. Try again." in messages
    assert messages in answer.content.decode().replace("&#x27;", "'")
