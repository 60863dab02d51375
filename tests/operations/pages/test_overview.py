"""The overview page: each block for who may see it, what it says when there is nothing, its questions and its bytes."""

import gzip
import re
from collections.abc import Callable
from datetime import UTC, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.api_keys import key_list
from backoffice.ledger.models import DayTotal, Facet, Mirror
from backoffice.operations.lifecycle import pause
from backoffice.operations.models.monitoring import Inspection
from backoffice.operations.models.operations import Operation
from tests import factories
from tests.append_only.triggers import lifted
from tests.ledger.stored_balances import balance, day_of_snapshots, snapshot

pytestmark = pytest.mark.django_db

SignIn = Callable[[Client, User], Client]
TYPES = ("deposit", "withdrawal", "sent", "transfer", "internalTransfer", "conversion")


def totals(*currencies: str, amount: str = "1234.5") -> None:
    """Every type in and out, on each of forty days up to today."""
    today = timezone.now().astimezone(UTC).date()
    facets = Facet.objects.bulk_create(
        Facet(currency=currency, type=kind, status="fulfilled", direction=way)
        for currency in currencies
        for kind in TYPES
        for way in ("in", "out")
    )
    DayTotal.objects.bulk_create(
        DayTotal(day=today - timedelta(days=ago), facet=one, count=2, amount=Decimal(amount), fee=Decimal(0))
        for ago in range(40)
        for one in facets
    )


def mirrored() -> None:
    now = timezone.now()
    Mirror.objects.update_or_create(pk=1, defaults={"as_of": now, "loaded_at": now})


def page(client: Client) -> str:
    answer = client.get("/")
    assert answer.status_code == 200
    return answer.content.decode()


def tables(html: str) -> list[list[list[str]]]:
    """The cells of the table behind each chart, without its head."""
    behind = re.findall(r'<details class="behind">.*?<tbody>(.*?)</tbody>', html, re.S)
    rows = [re.findall(r"<tr>(.*?)</tr>", body) for body in behind]
    return [[re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table] for table in rows]


def test_each_chart_has_a_table_of_thirty_days(as_approver: Client) -> None:
    totals("NGN", "USDT")
    naira, dollars = tables(page(as_approver))
    assert len(naira) == len(dollars) == 30
    today = timezone.now().astimezone(UTC)
    assert naira[-1] == [today.strftime("%-d %b"), "7,407.00", "7,407.00"]
    assert dollars[-1][1:] == ["7,407.000000", "7,407.000000"]


def test_currencies_without_balances_have_a_line_below_the_charts(as_approver: Client) -> None:
    totals("BTC", "NGN", "USD", "USDC", "USDT", amount="0.5")
    html = page(as_approver)
    assert re.findall(r"<h3>([A-Z]+)</h3>", html[html.index('id="lately"') :]) == ["NGN", "USD", "USDT"]
    others = re.findall(r'href="/transactions/\?currency=(\w+)">\1</a> in ([\d.]+) · out ([\d.]+)', html)
    assert [(code, Decimal(received), Decimal(sent)) for code, received, sent in others] == [
        ("BTC", Decimal(90), Decimal(90)),
        ("USDC", Decimal(90), Decimal(90)),
    ]


def test_a_chart_is_drawn_from_its_table(as_approver: Client) -> None:
    totals("NGN")
    html = page(as_approver)
    assert html.count('<figure class="chart">') == 1
    assert re.search(r'data-uplot="/static/vendor/uplot-1\.6\.32/uPlot\.iife\.min[^"]*\.js"', html)
    assert re.search(r'data-charts="/static/charts[^"]*\.js"', html)
    assert not re.search(r'<script src="/static/charts', html)  # app.js loads it when the page is shown
    assert not re.search(r"<script(?! src)|<style|\sstyle=|application/json", html)


def test_volumes_by_type_have_labels_numbers_and_bars(as_approver: Client) -> None:
    totals("NGN")
    html = page(as_approver)
    row = re.search(r"<tr><th scope=\"row\">Internal transfers</th>(.*?)</tr>", html)
    assert row is not None
    assert ">120</td>" in row[1]
    assert "74,070.00" in row[1]
    assert '<rect width="100%"' in row[1]


def test_very_large_and_small_amounts_have_the_usual_format(as_approver: Client) -> None:
    totals("NGN", amount="9999999999999999999999.5")
    totals("USDT", amount="0.000001")
    naira, dollars = tables(page(as_approver))
    assert naira[0][1] == "59,999,999,999,999,999,999,997.00"
    assert dollars[0][1] == "0.000006"


def test_the_cards_have_a_trend_of_thirty_days(as_approver: Client) -> None:
    balance(amount="300")
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    snapshot("100", ago=timezone.now() - (midnight - timedelta(days=20)))
    html = page(as_approver)
    assert '<polyline points="' in html
    assert re.search(r"Up 200\.00 in (20|21) days", html)


def test_the_balances_loaded_by_htmx_have_the_trend(as_approver: Client, settings: Settings) -> None:
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    balance()
    day_of_snapshots("NGN")
    assert "<polyline" in as_approver.get("/balances/").content.decode()


def test_urgent_operations_show_their_expiry(as_approver: Client, preparer: User) -> None:
    calm, urgent = factories.prepared(preparer), factories.prepared(preparer)
    with lifted(connection):
        Operation.objects.filter(pk=urgent.pk).update(expires_at=timezone.now() + timedelta(minutes=25))
    html = page(as_approver)
    assert html.index(urgent.reference) < html.index(calm.reference)
    assert html.count("data-until>") == 1


def test_states_and_the_time_to_approve_are_shown(
    as_approver: Client, preparer: User, approver: User
) -> None:
    factories.prepared(preparer)
    factories.approved(preparer, approver)
    Inspection.objects.create(
        pk=1,
        at=timezone.now(),
        approved_count=7,
        median_approval_time=timedelta(minutes=14),
    )
    html = page(as_approver)
    states = html.partition("Operations by status</h2>")[2].partition("</section>")[0]
    assert re.findall(r"status=(\w+)\".*?<b class=\"num\">(\d+)<", states, re.S) == [
        ("pending", "1"),
        ("approved", "1"),
    ]
    assert "<b>14 min</b>" in states
    assert "Median of 7 operations in 30 days" in states


def test_an_empty_mirror_is_reported(as_approver: Client) -> None:
    html = page(as_approver)
    assert "No transactions yet" in html
    assert tables(html) == []


def test_days_without_transactions_are_reported(as_approver: Client) -> None:
    mirrored()
    assert "No transactions in the last 30 days" in page(as_approver)


def test_each_section_needs_its_permission(
    client: Client, sign_in: SignIn, may_only: Callable[..., User], outsider: User
) -> None:
    balance()
    totals("NGN")
    mirrored()
    blocks = {
        "ledger.view_balance": 'id="balances"',
        "ledger.view_transaction": "Last 30 days",
        "operations.view_operation": "Operations by status",
    }
    for permission, block in blocks.items():
        html = page(sign_in(client, may_only(outsider, permission)))
        shown = {name for name, text in blocks.items() if text in html}
        assert (block, shown) == (block, {permission})


def test_a_user_without_a_role_is_told_what_to_do(client: Client, sign_in: SignIn, outsider: User) -> None:
    totals("NGN")
    html = page(sign_in(client, outsider))
    assert "You have no role yet" in html
    assert "Last 30 days" not in html


@pytest.mark.parametrize("person", ["preparer", "approver", "auditor", "administrator"])
def test_the_overview_takes_few_queries_and_is_small(
    client: Client,
    sign_in: SignIn,
    request: pytest.FixtureRequest,
    django_assert_max_num_queries: DjangoAssertNumQueries,
    preparer: User,
    person: str,
) -> None:
    totals("NGN", "USD", "USDT")
    mirrored()
    Inspection.objects.create(pk=1, at=timezone.now())
    for currency in ("NGN", "USD", "USDT"):
        balance(currency)
        day_of_snapshots(currency)
    for number in range(12):
        factories.prepared(preparer, account_number=f"{number:010d}", account_name=f"HOLDER {number} LIMITED")
    browser = sign_in(client, request.getfixturevalue(person))
    for asked_now_and_then in (pause.cached_pause, key_list.expiring_keys):
        asked_now_and_then()
    page(browser)  # the flows of thirty days are cached for a moment
    more = {"approver": 1, "administrator": 2}.get(
        person, 0
    )  # what waits for them; and until the first payment
    with django_assert_max_num_queries(6 + more):
        html = page(browser)
    assert len(tables(html)) == 3
    assert len(gzip.compress(html.encode())) <= 14 * 1024


def test_who_decides_nothing_sees_what_is_in_progress(
    client: Client, sign_in: SignIn, auditor: User, preparer: User
) -> None:
    assert "No operations in progress" in page(sign_in(client, auditor))
    operation = factories.prepared(preparer)
    html = page(client)
    assert f'href="{operation.get_absolute_url()}"' in html
    assert "View all open operations" in html
    assert "No operations in progress" not in html
