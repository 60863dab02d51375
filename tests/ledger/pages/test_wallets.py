"""The page of the merchant's wallet addresses."""

import gzip
import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from tests.sandbox_process import SandboxProcess
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
    assert html.count("data-copy=") == 4
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
