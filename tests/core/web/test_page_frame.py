"""The frame of every page: where we are, what is open to whom, and how many bytes it takes."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.db import InterfaceError
from django.template.loader import render_to_string
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.core.telemetry import endpoints
from backoffice.core.web.middleware import BrowserPolicyMiddleware
from tests import factories

pytestmark = pytest.mark.django_db

SignIn = Callable[[Client, User], Client]
PAGES = [
    "/",
    "/operations/",
    "/operations/?tab=done",
    "/money/balances/",
    "/transactions/",
    "/money/bank-accounts/",
    "/settings/webhooks/",
    "/account/",
    "/reports/",
]
HTML_LIMIT, CRITICAL_LIMIT = 14_000, 50_000
STATIC = Path(django_settings.BASE_DIR) / "static"
NOT_ALLOWED = re.compile(
    r"<style|<script(?![^>]*\ssrc=)|\sstyle=|\son[a-z]+=|javascript:|\bhx-on|\bhx-vals='js", re.I
)


def page(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def zipped(content: bytes) -> int:
    return len(gzip.compress(content, 6))


ENVIRONMENTS = {
    "sandbox": "SANDBOX · NO REAL MONEY",
    "rehearsal": "REHEARSAL · NO REAL MONEY",
    "staging": "STAGING · TEST MONEY",
    "production": "PRODUCTION · REAL MONEY",
}


def fail(exc: Exception) -> Callable[..., None]:
    def raises(*_args: object, **_named: object) -> None:
        raise exc

    return raises


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_page_shows_its_environment_in_words_and_colour(
    sign_in: SignIn,
    auditor: User,
    settings: Settings,
    environment: str,
    monkeypatch: pytest.MonkeyPatch,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    settings.ENVIRONMENT = environment
    stranger, strict = Client(raise_request_exception=False), Client(enforce_csrf_checks=True)
    signed_in = sign_in(Client(), auditor)
    answers = [
        stranger.get("/account/sign-in/"),
        signed_in.get("/"),
        signed_in.get("/operations/batches/files/"),
        signed_in.get("/no-such-page/"),
        stranger.get("/no-such-page/"),
        strict.post("/account/sign-in/", {}),
    ]
    monkeypatch.setattr(endpoints, "is_database_unavailable", lambda _exc: True)
    for exc in (ZeroDivisionError(), InterfaceError("connection already closed")):
        monkeypatch.setattr(BrowserPolicyMiddleware, "__call__", fail(exc))
        with django_assert_num_queries(0):
            answers.append(stranger.get("/"))
    assert [answer.status_code for answer in answers] == [200, 200, 403, 404, 404, 403, 500, 503]
    words = ENVIRONMENTS[environment]
    for html in (answer.content.decode() for answer in answers):
        label, _dot, money = words.partition(" · ")
        assert f'<span class="env">{label}<small> · {money}</small></span>' in html
        assert re.search(rf'<body class="(public )?{environment}">', html)


@pytest.mark.parametrize("address", PAGES)
def test_every_page_names_the_readers_time_zone_once_and_its_times_do_not(
    client: Client, sign_in: SignIn, preparer: User, administrator: User, address: str
) -> None:
    User.objects.filter(pk=administrator.pk).update(time_zone="America/New_York")
    administrator.refresh_from_db()
    factories.prepared(preparer)
    html = page(sign_in(client, administrator), address)
    assert html.count("Times in America/New_York (UTC-") == 1
    assert re.search(r"<time[^>]*>[^<]*\bE[SD]T\b", html) is None


WORK = ["Overview", "Operations"]
MONEY = ["Balances", "Transactions", "Statements", "Wallets", "Bank accounts", "Off-ramp payments"]
CONTROL = ["Reconciliation", "Reports", "Settings"]
EVERYTHING = [*WORK, *MONEY, *CONTROL]
RECONCILIATION = ["Unmatched", "Unknown outcomes", "Incidents", "Balance continuity"]
SETTINGS = ["Recipients", "Approval policies", "API keys", "Webhooks"]
KINDS = [
    "Conversions",
    "Withdrawals",
    "Transfers",
    "Crypto transfers",
    "Off-ramp payments",
    "Batches",
    "Bank account openings",
]
LINK = re.compile(r">([A-Z][\w -]+)(?: <span[^>]*>\d+</span>)?</a>")


@pytest.mark.parametrize(
    ("person", "places"),
    [
        ("preparer", EVERYTHING),
        ("approver", EVERYTHING),
        ("auditor", EVERYTHING),
        ("administrator", EVERYTHING),
        ("outsider", []),
    ],
)
def test_the_menu_lists_what_the_user_may_open(
    client: Client, sign_in: SignIn, request: pytest.FixtureRequest, person: str, places: list[str]
) -> None:
    html = page(sign_in(client, request.getfixturevalue(person)), "/")
    menu = html[html.rindex('<nav class="side"') : html.index("<main")]
    assert LINK.findall(menu) == places


@pytest.mark.parametrize(
    ("person", "address", "tabs"),
    [
        ("approver", "/reconciliation/", RECONCILIATION),
        ("approver", "/reconciliation/unknown/", RECONCILIATION),
        ("approver", "/reconciliation/incidents/", RECONCILIATION),
        ("approver", "/reconciliation/continuity/", RECONCILIATION),
        ("preparer", "/settings/recipients/", SETTINGS),
        ("approver", "/settings/api-keys/", SETTINGS),
        ("approver", "/settings/webhooks/", SETTINGS),
        ("auditor", "/settings/audit/", [*SETTINGS, "Audit log", "System"]),
        ("administrator", "/settings/system/", ["Team", *SETTINGS, "Audit log", "System"]),
        ("administrator", "/settings/team/", ["Team", *SETTINGS, "Audit log", "System"]),
        ("approver", "/settings/policies/", SETTINGS),
        ("auditor", "/operations/", ["All operations", *KINDS]),
        ("auditor", "/transactions/", ["All transactions", "Provider summary"]),
        ("auditor", "/transactions/summary/", ["All transactions", "Provider summary"]),
        ("auditor", "/money/wallets/", []),
    ],
)
def test_a_section_with_several_pages_has_tabs(
    client: Client,
    sign_in: SignIn,
    request: pytest.FixtureRequest,
    person: str,
    address: str,
    tabs: list[str],
) -> None:
    html = page(sign_in(client, request.getfixturevalue(person)), address)
    section = re.split('<nav class="tabs section(?: strip)?"', html)[1].partition("</nav>")[0] if tabs else ""
    assert ('<nav class="tabs section' in html) == bool(tabs)
    assert LINK.findall(section) == tabs
    assert section.count('aria-current="page"') == bool(tabs)


def test_settings_lists_its_pages_in_labelled_navigations_before_the_content(
    client: Client, sign_in: SignIn, administrator: User
) -> None:
    html = page(sign_in(client, administrator), "/settings/team/groups/")
    navigations = re.findall(r'<nav (?:class="tabs section" )?aria-label="Settings">(.*?)</nav>', html, re.S)
    current = [re.findall(r'href="([^"]+)" aria-current="page"', links) for links in navigations]
    assert current == [["/settings/team/"], ["/settings/team/"]]  # behind a button, and at the side
    assert html.rindex('aria-label="Settings"') < html.index("<h1")


@pytest.mark.parametrize(
    ("person", "kinds"),
    [
        (
            "preparer",
            ["Convert", "Withdraw", "Transfer", "Send crypto", "Off-ramp payment", "Payments from a file"],
        ),
        ("approver", []),
        ("auditor", []),
    ],
)
def test_new_operations_are_offered_in_one_menu_to_who_may_prepare_them(
    client: Client, sign_in: SignIn, request: pytest.FixtureRequest, person: str, kinds: list[str]
) -> None:
    html = page(sign_in(client, request.getfixturevalue(person)), "/")
    menu = html.partition('<details class="new">')[2].partition("</details>")[0]
    assert LINK.findall(menu) == kinds


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/operations/unknown/", "/reconciliation/unknown/"),
        ("/operations/incidents/?page=2", "/reconciliation/incidents/?page=2"),
        ("/operations/incidents/7/", "/reconciliation/incidents/7/"),
        ("/operations/accounts/", "/settings/recipients/"),
        ("/money/continuity/?currency=NGN", "/reconciliation/continuity/?currency=NGN"),
        ("/webhooks/3/", "/settings/webhooks/3/"),
        ("/keys/rotation/", "/settings/api-keys/rotation/"),
        ("/audit/?about=x", "/settings/audit/?about=x"),
        ("/operations/filters/?tab=done", "/operations/views/?tab=done"),
        ("/transactions/filters/7/rename/", "/transactions/views/7/rename/"),
        ("/payments/?state=open", "/operations/off-ramp-payments/?state=open"),
    ],
)
def test_the_old_address_of_a_page_leads_to_the_new_one(
    client: Client, sign_in: SignIn, auditor: User, old: str, new: str
) -> None:
    answer = sign_in(client, auditor).get(old)
    assert (answer.status_code, answer.headers["Location"]) == (301, new)


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("/money/bank-accounts/", "bank_account"),
        ("/settings/api-keys/", "api_key_create"),
        ("/settings/webhooks/", "callback_url"),
    ],
)
def test_a_change_of_the_set_up_begins_on_the_page_of_what_it_changes(
    client: Client, sign_in: SignIn, administrator: User, auditor: User, address: str, kind: str
) -> None:
    link = f'href="/operations/prepare/{kind}/"'
    assert link in page(sign_in(client, administrator), address)
    assert link not in page(sign_in(Client(), auditor), address)


@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
def test_the_theme_is_the_users(client: Client, sign_in: SignIn, auditor: User, theme: str) -> None:
    User.objects.filter(pk=auditor.pk).update(theme=theme)
    html = page(sign_in(client, auditor), "/")
    assert (f'data-theme="{theme}"' in html) is (theme != "auto")


@pytest.mark.parametrize("address", PAGES)
def test_a_page_complies_with_the_content_security_policy(
    client: Client, sign_in: SignIn, preparer: User, address: str
) -> None:
    factories.prepared(preparer)
    assert NOT_ALLOWED.findall(page(sign_in(client, preparer), address)) == []


@pytest.mark.parametrize("address", PAGES)
def test_a_full_page_stays_within_its_size_limit(
    client: Client, sign_in: SignIn, preparer: User, approver: User, address: str
) -> None:
    for number in range(50):
        factories.prepared(preparer, account_number=f"{number:010d}", account_name=f"HOLDER {number} LIMITED")
    content = page(sign_in(client, approver), address)
    html = zipped(content.encode())
    loaded = {STATIC / name for name in re.findall(r'/static/([\w./-]+\.(?:css|js))"', content)}
    assert {STATIC / "app.css", STATIC / "app.js"} <= loaded
    later = ("palette", "charts", "uPlot")  # loaded when the palette is opened, and once the page is shown
    loaded = {file for file in loaded if not file.name.startswith(later)}
    assert html <= HTML_LIMIT
    assert html + sum(zipped(file.read_bytes()) for file in loaded) <= CRITICAL_LIMIT


def test_a_missing_page_is_reported_inside_the_frame(client: Client, sign_in: SignIn, preparer: User) -> None:
    answer = sign_in(client, preparer).get("/operations/00000000-0000-4000-8000-000000000000/")
    assert answer.status_code == 404
    assert "Page not found" in answer.content.decode()


@pytest.mark.parametrize("template", ["500.html", "503.html", "403_csrf.html"])
def test_the_error_pages_need_no_context(template: str) -> None:
    html = render_to_string(template)
    assert "<h1>" in html
    assert NOT_ALLOWED.findall(html) == []


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("/money/statements/", "From: 1 Nov 2026 · To: 30 Nov 2026"),
        ("/reconciliation/continuity/", "From: 1 Nov 2026 · To: 30 Nov 2026"),
        ("/reconciliation/", "From (UTC): 1 Nov 2026 · To (UTC): 30 Nov 2026 · Unmatched"),
        ("/transactions/", "From: 1 Nov 2026 · To: 30 Nov 2026"),
        ("/operations/", "From: 1 Nov 2026 · To: 30 Nov 2026"),
        ("/settings/audit/", "From: 1 Nov 2026 · To: 30 Nov 2026"),
    ],
)
def test_a_printed_list_says_which_days_it_covers(
    client: Client, auditor: User, sign_in: SignIn, address: str, shown: str
) -> None:
    """The forms with the filters are not printed."""
    html = page(sign_in(client, auditor), f"{address}?since=2026-11-01&until=2026-11-30")
    [printed] = re.findall(r'<p class="printed">(.*?)</p>', html)
    assert shown in printed
    screen, _media, printer = (STATIC / "app.css").read_text().partition("@media print {")
    assert ".printed { display: none; }" in screen
    assert ".printed { display: block; }" in printer
