"""Balances, bank accounts and webhooks: who opens them, what they show at once, and what they cost."""

import gzip
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.ledger import urls
from backoffice.ledger.models import Balance
from backoffice.operations.kinds.registry import KINDS
from tests.cached_reads import forget_reads
from tests.ledger.stored_balances import balance, day_of_snapshots, snapshot
from tests.payments_gateway import stub
from tests.payments_gateway.stub import Stub
from tests.requirements import opened_by
from tests.sandbox_process import API_KEY, API_USER, SandboxProcess
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db

SignIn = Callable[[Client, User], Client]
ROLES = ("preparer", "approver", "auditor", "administrator", "outsider")
ANSWERS = {
    "balances":      ("get",  200, 200, 200, 200, 403),
    "balances_now":  ("get",  200, 200, 200, 200, 403),
    "bank_accounts": ("get",  200, 200, 200, 200, 403),
    "own_accounts":  ("get",  200, 200, 200, 200, 403),
    "continuity":    ("get",  200, 200, 200, 200, 403),
    "statements":    ("get",  200, 200, 200, 200, 403),
    "wallets":       ("get",  200, 200, 200, 200, 403),
    "sync_status":   ("get",  200, 200, 200, 200, 403),
    "wallets_now":   ("get",  200, 200, 200, 200, 403),
    "callback":      ("get",  200, 200, 200, 200, 403),
}  # fmt: skip
BALANCES, ACCOUNTS, WEBHOOKS = "/money/balances/", "/money/bank-accounts/", "/settings/webhooks/"


@pytest.fixture
def reader(client: Client, sign_in: SignIn, auditor: User) -> Client:
    return sign_in(client, auditor)


def text(answer: Any) -> str:
    return str(answer.content.decode())


@contextmanager
def held_back(provider: StubProvider) -> Iterator[None]:
    """Let the provider answer no read before the end of the block."""
    go_on = threading.Event()
    provider.before_get = lambda: go_on.wait(20)
    try:
        yield
    finally:
        go_on.set()


def test_access_table_covers_every_url() -> None:
    assert set(ANSWERS) == {pattern.name for pattern in urls.urlpatterns}


@pytest.mark.parametrize("role", opened_by(ROLES, on_both_engines="preparer"))
@pytest.mark.parametrize("name", ANSWERS)
def test_each_role_has_the_access_listed(
    client: Client, sign_in: SignIn, request: pytest.FixtureRequest, unreachable: None, name: str, role: str
) -> None:
    method, *answers = ANSWERS[name]
    answer = getattr(sign_in(client, request.getfixturevalue(role)), str(method))(reverse(f"ledger:{name}"))
    assert answer.status_code == answers[ROLES.index(role)]


@pytest.mark.parametrize("address", [BALANCES, ACCOUNTS, WEBHOOKS])
def test_the_first_answer_does_not_wait_for_the_provider(
    reader: Client, provider: StubProvider, address: str
) -> None:
    with held_back(provider):
        html = text(reader.get(address))
    assert 'hx-trigger="load"' in html
    assert 'read=1">' in html


@pytest.mark.parametrize("address", [BALANCES, ACCOUNTS, WEBHOOKS])
@pytest.mark.parametrize("role", opened_by(ROLES[:-1], on_both_engines="preparer"))
def test_a_page_takes_at_most_six_queries_and_little_html(
    client: Client,
    sign_in: SignIn,
    request: pytest.FixtureRequest,
    django_assert_max_num_queries: DjangoAssertNumQueries,
    address: str,
    role: str,
) -> None:
    for currency in ("NGN", "USD", "USDT"):
        balance(currency)
        day_of_snapshots(currency)
    browser = sign_in(client, request.getfixturevalue(role))
    with django_assert_max_num_queries(6):
        page = browser.get(address)
    assert len(gzip.compress(page.content)) <= 14 * 1024


def test_the_last_reported_balances_are_shown_with_their_age(reader: Client) -> None:
    balance(at=timezone.now() - timedelta(minutes=12))
    html = text(reader.get(BALANCES))
    for part in (
        "8,412,090.55",
        "41,200,000.00",
        "32,787,909.45",
        "1,204",
        ">12 min</time>",
        "Nigerian naira",
    ):
        assert part in html


def test_totals_that_no_balance_has_are_left_out_and_with_all_of_them_the_table(reader: Client) -> None:
    balance("NGN")
    balance("USD")
    Balance.objects.update(total_received=None, total_sent=None)
    html = text(reader.get(BALANCES))
    headings = re.findall(r'<th scope="col"[^>]*>([^<]+)</th>', html)
    assert headings == ["Currency", "Balance", "Transactions", "Age"]
    assert "Not provided" not in html
    Balance.objects.update(transaction_count=None)
    html = text(reader.get(BALANCES))
    assert "<table" not in html
    assert html.count("8,412,090.55") == 2
    assert "Not provided" not in html


def test_a_total_that_one_balance_lacks_is_a_dash_and_is_read_aloud_in_words(reader: Client) -> None:
    balance("NGN")
    balance("USD")
    Balance.objects.filter(currency="USD").update(total_sent=None)
    html = text(reader.get(BALANCES))
    assert html.count("32,787,909.45") == 1
    dash = '<span class="none" aria-hidden="true">\N{EN DASH}</span><span class="sr">Not provided</span>'
    assert html.count(dash) == html.count("Not provided") == 1


def test_balances_are_read_and_stored(reader: Client, sandbox: SandboxProcess) -> None:
    html = text(reader.get(f"{BALANCES}now/"))
    stored = Balance.objects.get(currency="NGN")
    assert stored.amount == sandbox.balance("NGN")
    assert f"{stored.amount:,.2f}" in html
    assert "every 60s" in html


def test_a_link_reads_the_balances_without_javascript(reader: Client, sandbox: SandboxProcess) -> None:
    html = text(reader.get(f"{BALANCES}?read=1"))
    assert "<!DOCTYPE html>" in html
    assert f"{sandbox.balance('USD'):,.2f}" in html


def test_an_unreachable_provider_shows_the_last_reported_balances_and_an_error(
    reader: Client, unreachable: None
) -> None:
    balance()
    html = text(reader.get(f"{BALANCES}now/"))
    assert "8,412,090.55" in html
    assert "Not refreshed: The provider cannot be reached" in html


def test_the_trend_is_drawn_and_described(reader: Client) -> None:
    snapshot("8000000.55", ago=timedelta(hours=10))
    balance()
    html = text(reader.get(BALANCES))
    assert '<polyline points="' in html
    assert "Up 412,090.00 in 10 hours" in html
    assert "style=" not in html


def test_each_balance_links_to_the_operations_the_user_may_prepare(
    client: Client, sign_in: SignIn, preparer: User, auditor: User
) -> None:
    balance("NGN")
    html = text(sign_in(client, preparer).get(BALANCES))
    for address in (
        "/operations/prepare/conversion/?direction=NGN-USD",
        "/operations/prepare/withdrawal/?currency=NGN",
        "/operations/prepare/transfer/?currency=NGN",
    ):
        assert f'href="{address}"' in html
    assert "prepare" not in text(sign_in(Client(), auditor).get(BALANCES))


def test_crypto_balances_offer_no_conversion_or_withdrawal(
    client: Client, sign_in: SignIn, preparer: User
) -> None:
    balance("USDT", "12.5")
    html = text(sign_in(client, preparer).get(BALANCES))
    assert "currency=USDT" not in html.replace("wallet_transfer/?currency=USDT", "")
    assert ("wallet_transfer/?currency=USDT" in html) is ("wallet_transfer" in KINDS)


@pytest.mark.django_db(transaction=True)  # a stored report is read by a connection of its own
def test_the_export_has_current_and_earlier_balances(reader: Client) -> None:
    balance()
    snapshot("8000000.55", ago=timedelta(hours=10))
    assert 'href="/reports/balances.csv"' in text(reader.get(BALANCES))
    lines = b"".join(reader.get("/reports/balances.csv")).decode().splitlines()
    assert [line.split(",")[:3] for line in lines[1:]] == [
        ["last_known", "NGN", "8412090.55"],
        ["snapshot", "NGN", "8000000.55"],
    ]


def test_the_recipient_of_an_account_is_shown(reader: Client, sandbox: SandboxProcess) -> None:
    page = reader.post(ACCOUNTS, {"bank_code": "044", "account_number": "0123456789"})
    assert page.status_code == 200
    assert page.context["holder"].account_name in text(page)
    assert "0123456789" not in page.request["PATH_INFO"]


def test_a_preparer_gets_a_link_to_a_prefilled_withdrawal(
    client: Client, sign_in: SignIn, preparer: User, sandbox: SandboxProcess
) -> None:
    browser, account = sign_in(client, preparer), {"bank_code": "044", "account_number": "0123456789"}
    assert "Withdraw to this account" in text(browser.post(ACCOUNTS, account))
    form = browser.post("/operations/prepare/withdrawal/", {**account, "step": "change"}).context["form"]
    assert {name: form[name].value() for name in account} == account


def test_a_reader_gets_no_link_to_a_withdrawal(reader: Client, sandbox: SandboxProcess) -> None:
    page = reader.post(ACCOUNTS, {"bank_code": "044", "account_number": "0123456789"})
    assert "Withdraw to this account" not in text(page)


@pytest.mark.parametrize(
    ("bank_code", "number", "message"),
    [
        ("", "0123456789", "Select a bank."),
        ("044", "12", "exactly 10 digits"),
        ("000", "0123456789", "Select one of the options"),
        ("044", "1234560000", "The bank did not find this account"),
    ],
)
def test_an_account_that_cannot_be_resolved_is_reported_at_its_field(
    reader: Client, sandbox: SandboxProcess, bank_code: str, number: str, message: str
) -> None:
    page = reader.post(ACCOUNTS, {"bank_code": bank_code, "account_number": number})
    assert page.status_code == 422
    assert message in text(page)
    assert f'value="{number}"' in text(page)


def test_an_unreachable_provider_is_reported_when_resolving(reader: Client, unreachable: None) -> None:
    page = reader.post(ACCOUNTS, {"bank_code": "044", "account_number": "0123456789"})
    assert page.status_code == 422
    assert "Account not checked. The provider cannot be reached" in text(page)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (200, {"data": {"accountname": None}}, "none of accountname, accountName is present"),
        (200, {"data": {"accountName": ["ADA"]}}, "accountName is not text"),
        (500, {"message": "down"}, "The provider responded with an error (HTTP 500)."),
        (401, {"message": "Invalid API key"}, "The provider refuses the API key."),
        (429, {"message": "Too many requests"}, "Too many requests"),
    ],
)
def test_a_failed_resolution_says_what_failed(
    reader: Client, settings: Settings, status: int, body: object, message: str
) -> None:
    with Stub(stub.answer(status, body)) as provider:
        settings.GATEWAY_URL = provider.url
        page = reader.post(ACCOUNTS, {"bank_code": "044", "account_number": "0123456789"})
    assert page.status_code == 422
    assert message in text(page)
    assert "did not find" not in text(page)
    assert "The provider cannot be reached" not in text(page)
    assert 'value="0123456789"' in text(page)


def test_the_rest_of_the_answer_is_in_a_disclosure(reader: Client, settings: Settings) -> None:
    answered = {"accountname": "ADA OBI", "country": "NG", "phonenumber": "+2348030000001", "currency": "NGN"}
    with Stub(stub.answer(200, {"data": answered})) as provider:
        settings.GATEWAY_URL = provider.url
        page = reader.post(ACCOUNTS, {"bank_code": "044", "account_number": "0123456789"})
    assert page.context["holder_details"] == [
        ("Country", "Nigeria"),
        ("Currency", "NGN"),
        ("Phone number", "+2348030000001"),
    ]
    assert "<summary>Details from the provider</summary>" in text(page)


def listed(name: str) -> str:
    asset = {"currency": "NGN", "id": "0455001122", "type": "bank_account", "balance": 0}
    return json.dumps([{"accountName": name, "assets": [asset]}])


def test_own_accounts_are_read_and_stored_with_their_age(
    reader: Client, provider: StubProvider, settings: Settings
) -> None:
    provider.accounts = listed("Lagos shop")
    assert "0455001122" in text(reader.get(f"{ACCOUNTS}own/"))
    assert '<span class="asking">Refreshing…' in text(reader.get(ACCOUNTS))
    settings.GATEWAY_URL_V4 = "http://127.0.0.1:9/v4"
    html = text(reader.get(f"{ACCOUNTS}own/"))
    assert "Lagos shop" in html
    assert "Not refreshed: " in html


def test_the_export_has_every_account_with_its_number(reader: Client, provider: StubProvider) -> None:
    provider.accounts = listed("Lagos shop")
    assert 'href="/reports/bank-accounts.csv"' in text(reader.get(ACCOUNTS))
    lines = b"".join(reader.get("/reports/bank-accounts.csv")).decode().splitlines()
    assert lines[1].split(",") == ["Lagos shop", "NGN", "0455001122", "bank_account", "0"]


def test_the_export_has_accounts_without_a_currency(reader: Client, provider: StubProvider) -> None:
    provider.accounts = '[{"accountName": "Empty shop", "assets": []}]'
    assert "No balance in any currency" in text(reader.get(f"{ACCOUNTS}own/"))
    lines = b"".join(reader.get("/reports/bank-accounts.csv")).decode().splitlines()
    assert lines[1].split(",") == ["Empty shop", "", "", "", ""]


def test_a_link_reads_the_accounts_without_javascript(reader: Client, provider: StubProvider) -> None:
    provider.accounts = listed("Lagos shop")
    html = text(reader.get(f"{ACCOUNTS}?read=1"))
    assert "<!DOCTYPE html>" in html
    assert "Lagos shop" in html


@pytest.mark.parametrize(
    ("role", "offered"), [("administrator", True), ("preparer", False), ("auditor", False)]
)
@pytest.mark.parametrize(("address", "kind"), [(ACCOUNTS, "bank_account"), (WEBHOOKS, "callback_url")])
def test_a_change_is_offered_to_users_who_may_prepare_it(
    client: Client,
    sign_in: SignIn,
    request: pytest.FixtureRequest,
    address: str,
    kind: str,
    role: str,
    offered: bool,
) -> None:
    page = sign_in(client, request.getfixturevalue(role)).get(address)
    assert (f'role="button" href="/operations/prepare/{kind}/"' in text(page)) is offered


@pytest.mark.parametrize(
    ("public", "reported", "message"),
    [
        ("https://pay.example.com", "https://pay.example.com/webhooks", "This is Countersign's own address"),
        ("https://pay.example.com", "https://pay.example.com", "This is Countersign's own address"),
        (
            "https://pay.example.com",
            "https://PAY.example.com:443/webhooks",
            "This is Countersign's own address",
        ),
        ("https://pay.example.com/a", "https://pay.example.com/ab", "This is not Countersign's address"),
        ("https://pay.example.com", "http://pay.example.com/webhooks", "This is not Countersign's address"),
        (
            "https://pay.example.com",
            "https://pay.example.com.evil.example/",
            "This is not Countersign's address",
        ),
        (
            "https://pay.example.com",
            "https://pay.example.com@evil.example/",
            "This is not Countersign's address",
        ),
        ("https://pay.example.com", "https://pay.example.com:x/", "This is not Countersign's address"),
        ("", "https://pay.example.com/webhooks", "COUNTERSIGN_PUBLIC_URL"),
        ("https://pay.example.com", "", "No callback URL is set"),
    ],
)
def test_the_callback_url_is_compared_with_ours(
    reader: Client, provider: StubProvider, settings: Settings, public: str, reported: str, message: str
) -> None:
    settings.PUBLIC_URL = public
    provider.callback = json.dumps(reported)
    html = text(reader.get(f"{WEBHOOKS}callback/"))
    assert message in html
    assert reported in html


def test_a_callback_url_that_cannot_be_read_is_reported(reader: Client, unreachable: None) -> None:
    html = text(reader.get(f"{WEBHOOKS}?read=1"))
    assert "Not refreshed: " in html
    assert "No earlier values are stored." in html


def supported_by(answer: Any) -> str:
    """The panel of the supported currencies, without its markup."""
    html = text(answer).partition('id="supported-currencies"')[2].partition("</section>")[0]
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", html.replace("</dt><dd>", ": "))).strip(" >")


@pytest.mark.parametrize(
    ("profile", "shown"),
    [
        ("published", "Pay-in: USDT Payout: NGN , USD"),
        ("listing", "Direction not provided: NGN , USD , USDT"),
    ],
)
def test_the_supported_currencies_are_shown_in_each_direction(
    reader: Client,
    settings: Settings,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    profile: str,
    shown: str,
) -> None:
    name = "published_process" if profile == "published" else "sandbox_process"
    process: SandboxProcess = request.getfixturevalue(name)
    settings.GATEWAY_URL, settings.GATEWAY_PROFILE = process.url, profile
    settings.GATEWAY_API_KEY, settings.GATEWAY_API_USER = API_KEY, API_USER
    if profile == "listing":
        settings.GATEWAY_PROFILE = str(tmp_path / "profile.toml")
        (tmp_path / "profile.toml").write_text('capabilities = ["currencies"]\n')
    assert "Not loaded yet." in supported_by(reader.get(BALANCES))
    assert shown in supported_by(reader.get(f"{BALANCES}now/"))
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    for address in (BALANCES, f"{BALANCES}now/", f"{BALANCES}?read=1"):
        assert shown in supported_by(reader.get(address))


def test_no_currencies_are_requested_or_shown_without_the_capability(
    reader: Client, provider: StubProvider
) -> None:
    assert "supported-currencies" not in text(reader.get(f"{BALANCES}now/"))


def test_an_unreadable_or_empty_list_of_currencies_is_explained(
    reader: Client, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "profile.toml").write_text('capabilities = ["currencies"]\n')
    settings.GATEWAY_PROFILE = str(tmp_path / "profile.toml")
    balances = stub.answer(200, {"data": {"balances": []}})
    for currencies, shown in (
        (
            stub.answer(500, {"message": "out of order"}),
            "Not refreshed: The provider responded with an error",
        ),
        (stub.answer(200, {"data": []}), "The provider lists no currency."),
    ):
        forget_reads()
        with Stub(balances, currencies) as provider:
            settings.GATEWAY_URL = provider.url
            html = supported_by(reader.get(f"{BALANCES}now/"))
        assert shown in html
        assert "No earlier values are stored." in html or "Reported by the provider:" in html
