"""What a list or card says when it is empty or the provider cannot be read: what happened, and what to do next."""

import re
import socket
from collections.abc import Callable, Iterator

import pytest
from django.test import Client
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.ledger import accounts, balances
from tests import factories

pytestmark = pytest.mark.django_db

SignIn = Callable[[Client, User], Client]
EMPTY = {
    "/": 2,  # nothing waits, no charts
    "/money/statements/": 1,
    "/money/wallets/": 1,
    "/money/bank-accounts/": 1,
    "/operations/off-ramp-payments/": 1,
    "/reconciliation/unknown/": 1,
    "/reconciliation/incidents/": 1,
    "/reconciliation/continuity/": 1,
    "/reports/exports/": 1,
    "/reports/schedules/": 1,
    "/settings/recipients/": 1,
    "/settings/audit/?about=nobody": 1,
}
"""Addresses, and how many empty lists each has in an empty database."""

READ_NOW = {
    "/balances/": "/",
    "/money/balances/now/": "/money/balances/?read=1",
    "/money/wallets/now/": "?read=1",
    "/money/bank-accounts/own/": "?read=1",
    "/settings/webhooks/callback/": "?read=1",
    "/settings/api-keys/list/": "/settings/api-keys/?now=1",
}
"""The parts of pages that read the provider, and where their link leads to try again."""


@pytest.fixture
def everything(client: Client, sign_in: SignIn) -> Client:
    """Somebody with every role."""
    return sign_in(client, factories.person("Kemi Alade", *Role))


@pytest.fixture
def silent_provider() -> Iterator[str]:
    """The address of a provider that accepts connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v2"


@pytest.mark.parametrize(("address", "number"), EMPTY.items())
def test_every_empty_list_links_to_the_next_step(everything: Client, address: str, number: int) -> None:
    html = everything.get(address).content.decode()
    empty = re.findall(r'<div class="empty">(.*?)</div>\s*</div>', html, re.S)
    assert len(empty) == number
    for text in empty:
        assert re.search(r'<a role="button" class="ghost" href="[^"]+">[^<]+</a>', text)


@pytest.mark.parametrize(("address", "retry"), READ_NOW.items())
def test_a_provider_that_is_down_is_reported_with_a_link_to_try_again(
    everything: Client, settings: Settings, address: str, retry: str
) -> None:
    settings.GATEWAY_URL = settings.GATEWAY_URL_V4 = "http://127.0.0.1:9/v2"
    html = everything.get(address).content.decode()
    assert "The provider cannot be reached, or does not respond in time." in html
    assert f'<a href="{retry}">Try again now</a>' in html
    assert "Loading" not in html


@pytest.mark.parametrize("address", ["/balances/", "/money/balances/now/", "/money/wallets/now/"])
def test_a_provider_that_does_not_answer_is_reported_alike(
    everything: Client,
    settings: Settings,
    silent_provider: str,
    monkeypatch: pytest.MonkeyPatch,
    address: str,
) -> None:
    settings.GATEWAY_URL = silent_provider
    for module in (accounts, balances):
        monkeypatch.setattr(module, "PAGE_TIMEOUT", 0.2)
    html = everything.get(address).content.decode()
    assert "The provider cannot be reached, or does not respond in time." in html


def test_the_reason_is_in_the_readers_language(everything: Client, settings: Settings) -> None:
    settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = "http://127.0.0.1:9/v2", "http://127.0.0.1:9/v4"
    html = everything.get("/balances/", headers={"Accept-Language": "fr"}).content.decode()
    assert "Soldes non chargés\u00a0: Le prestataire est injoignable ou ne répond pas à temps." in html
