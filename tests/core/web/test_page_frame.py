"""The frame of every page: where we are, what is open to whom, and how many bytes it takes."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.template.loader import render_to_string
from django.test import Client
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.operations.kinds.base import LocalKind
from backoffice.operations.kinds.registry import KINDS
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
    "/webhooks/",
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


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ("sandbox", "SANDBOX · NO REAL MONEY"),
        ("staging", "STAGING · TEST MONEY"),
        ("production", "PRODUCTION · REAL MONEY"),
    ],
)
def test_every_page_says_where_it_is_in_words_and_colour(
    client: Client, sign_in: SignIn, auditor: User, settings: Settings, environment: str, words: str
) -> None:
    settings.ENVIRONMENT = environment
    for html in (page(client, "/account/sign-in/"), page(sign_in(Client(), auditor), "/")):
        assert f'<span class="env">{words}</span>' in html
        assert re.search(rf'<body class="(public )?{environment}">', html)


WORK = ["Overview", "Operations", "Unknown outcomes", "Incidents"]
BOOKS = ["Balances", "Transactions", "Reconciliation", "Statements", "Continuity"]
MONEY = [*BOOKS, "Wallets", "Payments", "Bank accounts"]
MOVE_MONEY = ["Convert", "Withdraw", "Transfer", "Send crypto", "Create payment"]
CONTROL = ["Reports", "API keys", "Webhooks"]


@pytest.mark.parametrize(
    ("person", "places"),
    [
        ("preparer", [*WORK, *MONEY, *MOVE_MONEY, *CONTROL, "My account"]),
        ("approver", [*WORK, *MONEY, *CONTROL, "My account"]),
        ("auditor", [*WORK, *MONEY, *CONTROL, "Audit log", "My account"]),
        ("administrator", [*WORK, *MONEY, *CONTROL, "Audit log", "My account"]),
        ("outsider", ["My account"]),
    ],
)
def test_the_menu_holds_what_is_open_to_the_person(
    client: Client, sign_in: SignIn, request: pytest.FixtureRequest, person: str, places: list[str]
) -> None:
    html = page(sign_in(client, request.getfixturevalue(person)), "/")
    menu = html[html.rindex('<nav class="side"') : html.index("<main")]
    assert re.findall(r">([A-Z][\w ]+)(?: <span[^>]*>\d+</span>)?</a>", menu) == places


@pytest.mark.parametrize("person", ["preparer", "approver", "auditor", "administrator", "outsider"])
def test_every_kind_that_is_open_to_a_person_begins_under_operations(
    client: Client, sign_in: SignIn, request: pytest.FixtureRequest, person: str
) -> None:
    user = request.getfixturevalue(person)
    begun = re.findall(
        r'<a role="button"[^>]* href="/operations/prepare/(\w+)/"',
        sign_in(client, user).get("/operations/").content.decode(),
    )
    sent = {name: kind for name, kind in KINDS.items() if not isinstance(kind, LocalKind)}
    assert begun == [name for name, kind in sent.items() if user.has_perm(kind.permission)]


@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
def test_the_theme_is_the_persons(client: Client, sign_in: SignIn, auditor: User, theme: str) -> None:
    User.objects.filter(pk=auditor.pk).update(theme=theme)
    html = page(sign_in(client, auditor), "/")
    assert (f'data-theme="{theme}"' in html) is (theme != "auto")


@pytest.mark.parametrize("address", PAGES)
def test_a_page_has_nothing_that_the_content_policy_forbids(
    client: Client, sign_in: SignIn, preparer: User, address: str
) -> None:
    factories.prepared(preparer)
    assert NOT_ALLOWED.findall(page(sign_in(client, preparer), address)) == []


@pytest.mark.parametrize("address", PAGES)
def test_a_full_page_keeps_within_its_bytes(
    client: Client, sign_in: SignIn, preparer: User, approver: User, address: str
) -> None:
    for number in range(50):
        factories.prepared(preparer, account_number=f"{number:010d}", account_name=f"HOLDER {number} LIMITED")
    html = zipped(page(sign_in(client, approver), address).encode())
    files = [STATIC / "app.css", STATIC / "app.js", *STATIC.glob("vendor/*/*.min.*")]
    files = [file for file in files if not file.name.startswith("uPlot")]  # comes when the page is there
    files.append(STATIC / "charts.js")
    assert html <= HTML_LIMIT
    assert html + sum(zipped(file.read_bytes()) for file in files) <= CRITICAL_LIMIT


def test_a_page_that_is_not_there_says_so_inside_the_frame(
    client: Client, sign_in: SignIn, preparer: User
) -> None:
    answer = sign_in(client, preparer).get("/operations/00000000-0000-4000-8000-000000000000/")
    assert answer.status_code == 404
    assert "Page not found" in answer.content.decode()


@pytest.mark.parametrize("template", ["500.html", "403_csrf.html"])
def test_the_last_resorts_need_no_context(template: str) -> None:
    html = render_to_string(template)
    assert "<h1>" in html
    assert NOT_ALLOWED.findall(html) == []
