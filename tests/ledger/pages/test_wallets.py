"""The page of the merchant's wallet addresses."""

import gzip
import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from tests.sandbox_process import API_KEY, API_USER, SandboxProcess
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db
SignIn = Callable[[Client, User], Client]
Holding = Callable[..., None]
PAGE, NOW = "/money/wallets/", "/money/wallets/now/"
SILENT = "http://127.0.0.1:9/v2"


@pytest.fixture
def reader(client: Client, sign_in: SignIn, auditor: User) -> Client:
    return sign_in(client, auditor)


def text(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.fixture
def holding(provider: StubProvider) -> Holding:
    """Let the provider report these addresses."""

    def hold(*addresses: object) -> None:
        provider.wallet = json.dumps({"addresses": addresses})

    return hold


def test_the_providers_addresses_are_listed_with_qr_codes(reader: Client, sandbox: SandboxProcess) -> None:
    html = text(reader, NOW)
    for network in ("TRC20", "ERC20", "BEP20", "POLYGON"):
        assert f">{network}</th>" in html
    assert html.count("data-copy=") == 8  # three of them also hold USDC, and one address is for BTC
    assert html.count("data:image/svg+xml") == 1
    assert "Reported by the provider:" in html


def test_qr_codes_are_drawn_for_addresses_only(reader: Client, holding: Holding) -> None:
    holding({"address": "addr-1", "network": "A"}, {"address": "addr-2", "network": "B"})
    assert 'alt="QR code of addr-1"' in text(reader, NOW)
    assert 'alt="QR code of addr-2"' in text(reader, f"{NOW}?show=addr-2")
    assert 'alt="QR code of addr-1"' in text(reader, f"{NOW}?show=addr-of-a-thief")


def test_currency_and_network_narrow_the_list(reader: Client, holding: Holding) -> None:
    holding(
        {"address": "addr-1", "network": "A", "currency": "USDT"},
        {"address": "addr-2", "network": "B", "currency": "USDT"},
        {"address": "addr-3", "network": "B", "currency": "BTC"},
        "addr-4",
    )
    found = {
        "": {1, 2, 3, 4},
        "?network=B": {2, 3},
        "?currency=USDT&network=B": {2},
        "?network=C": set(),
    }
    for query, expected in found.items():
        html = text(reader, NOW + query)
        assert {number for number in range(1, 5) if f'data-copy="addr-{number}"' in html} == expected
    assert "No matching addresses" in text(reader, f"{NOW}?network=C")


WALLET = {
    "uid": "W-5f2a",
    "reference": "WAL-77",
    "status": "active",
    "version": "v2",
    "appName": "Obi Traders",
    "createdAt": 1614589200,
    "updatedAt": 1795165200,
    "addresses": [{"address": "addr-1", "network": "A", "currency": "USDT"}],
}


def test_every_member_of_the_wallet_is_shown_with_its_times(reader: Client, provider: StubProvider) -> None:
    provider.wallet = json.dumps(WALLET)
    html = text(reader, NOW)
    for member in ("uid", "reference", "status", "version", "appName"):
        assert f"<dd>{WALLET[member]}</dd>" in html
    assert '<time datetime="2021-03-01T09:00:00+00:00">' in html
    assert '<time datetime="2026-11-20T09:00:00+00:00">' in html
    provider.wallet = '{"addresses": []}'
    assert text(reader, NOW).count("<dd>Not provided</dd>") == 7


def test_in_the_published_profile_the_wallet_and_every_network_are_shown(
    reader: Client, published_process: SandboxProcess, settings: Settings
) -> None:
    settings.GATEWAY_URL, settings.GATEWAY_PROFILE = published_process.url, "published"
    settings.GATEWAY_API_KEY, settings.GATEWAY_API_USER = API_KEY, API_USER
    html = text(reader, NOW)
    for network in ("TRC20", "ERC20", "BEP20", "POLYGON"):
        assert f">{network}</th>" in html
        assert f"<option>{network}</option>" in html
    assert "<dd>active</dd>" in html


@pytest.fixture
def supported(provider: StubProvider, settings: Settings, tmp_path: Path) -> list[str]:
    """A provider that also has BTC wallets, of which GET /wallet without a filter names none. Its requests."""
    (tmp_path / "profile.toml").write_text('capabilities = ["wallet_config"]')
    settings.GATEWAY_PROFILE = str(tmp_path / "profile.toml")
    provider.wallet = json.dumps(WALLET)
    asked: list[str] = []

    def answer(path: str) -> tuple[int, str]:
        if "config" in path:
            return (
                200,
                '{"data": [{"currency": "USDT", "networks": ["A"]}, {"currency": "BTC", "networks": ["B"]}]}',
            )
        asked.append(path)
        found = (
            [{"address": "addr-9", "network": "B", "currency": "BTC"}]
            if "BTC" in path
            else WALLET["addresses"]
        )
        return 200, json.dumps({"wallet": {**WALLET, "addresses": found}})

    provider.answer_get = answer  # type: ignore[method-assign]
    return asked


def test_currencies_and_networks_that_the_provider_supports_are_choices_and_are_read(
    reader: Client, supported: list[str]
) -> None:
    html = text(reader, NOW)
    for choice in ("BTC", "USDT", "A", "B"):
        assert f"<option>{choice}</option>" in html
    html = text(reader, f"{NOW}?currency=BTC")
    assert 'data-copy="addr-9"' in html
    assert "<option>USDT</option>" in html
    assert supported == ["/v2/wallet", "/v2/wallet", "/v2/wallet?currency=BTC"]
    html = text(reader, f"{PAGE}?currency=BTC")
    assert 'data-copy="addr-9"' in html
    answer: Any = reader.get("/reports/wallets.csv?currency=BTC")
    assert b"addr-9" in b"".join(answer.streaming_content)


@pytest.mark.parametrize("query", ["currency=GIFT", "currency=BTC&network=A", "network=Z", "currency=USDT"])
def test_a_currency_or_network_that_is_not_supported_or_listed_already_is_not_asked_for(
    reader: Client, supported: list[str], query: str
) -> None:
    text(reader, f"{NOW}?{query}")
    assert supported == ["/v2/wallet"]


def test_an_unreachable_provider_shows_the_last_reported_value_with_its_age(
    reader: Client, holding: Holding, settings: Settings
) -> None:
    holding({"address": "addr-1", "network": "A"})
    text(reader, NOW)
    settings.GATEWAY_URL = SILENT
    html = text(reader, NOW)
    assert "addr-1" in html
    assert "Not refreshed: " in html
    assert "Values last reported: <time" in html


def test_before_the_first_read_the_page_says_so_and_requests_it(reader: Client, settings: Settings) -> None:
    settings.GATEWAY_URL = SILENT
    html = text(reader, PAGE)
    assert "Addresses not loaded yet" in html
    assert f'hx-get="{NOW}' in html
    assert 'read=1">Refresh from the provider</a>' in html
    assert "No earlier values are stored." in text(reader, f"{PAGE}?read=1")


def test_provider_text_is_escaped(reader: Client, holding: Holding) -> None:
    holding({"address": '"><script>x</script>', "network": "<b>A</b>"})
    html = text(reader, NOW)
    assert "<script>x" not in html
    assert "<b>A" not in html


@pytest.mark.parametrize("count", [0, 4, 200])
def test_the_page_stays_within_its_queries_and_bytes(
    reader: Client, holding: Holding, django_assert_max_num_queries: DjangoAssertNumQueries, count: int
) -> None:
    holding(*({"address": f"T{number:033}", "network": f"N{number % 9}"} for number in range(count)))
    with django_assert_max_num_queries(6):
        answer: Any = reader.get(f"{PAGE}?read=1")
    assert len(gzip.compress(answer.content)) <= 14 * 1024
    assert answer.content.count(b"data-copy=") == min(count, 50)


def test_the_csv_has_every_address(reader: Client, holding: Holding) -> None:
    holding({"address": "addr-1", "network": "A", "currency": "USDT"}, "addr-2")
    answer: Any = reader.get("/reports/wallets.csv")
    lines = b"".join(answer.streaming_content).decode("utf-8-sig").splitlines()
    assert lines == ["Currency,Network,Address", "USDT,A,addr-1", ",,addr-2"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [("", {1, 2, 3}), ("?network=B", {2, 3}), ("?currency=USDT&network=B&show=addr-3", {2})],
)
def test_the_csv_has_the_rows_on_the_page(
    reader: Client, holding: Holding, query: str, expected: set[int]
) -> None:
    holding(
        {"address": "addr-1", "network": "A", "currency": "USDT"},
        {"address": "addr-2", "network": "B", "currency": "USDT"},
        {"address": "addr-3", "network": "B", "currency": "BTC"},
        {"address": "", "network": "C", "currency": "BTC"},
    )
    [link] = re.findall(r'href="([^"]+\.csv[^"]*)"', text(reader, PAGE + query))
    answer: Any = reader.get(unescape(link))
    file = b"".join(answer.streaming_content).decode("utf-8-sig")
    assert {number for number in range(1, 4) if f"addr-{number}" in file} == expected
    assert file.count("\r\n") == 1 + len(expected)
