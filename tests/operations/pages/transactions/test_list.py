"""The list of the mirror's transactions, its totals, and the views that are saved of it."""

import gzip
import re
from datetime import datetime, timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import set_script_prefix
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import User
from backoffice.ledger.models import Transaction
from backoffice.ledger.transactions import volumes
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.saved_views import SavedView
from backoffice.operations.pages import transactions
from tests import factories
from tests.ledger.stored_transactions import AT, add_up, store, stored, unsaved
from tests.operations.conftest import SignIn
from tests.operations.pages.transactions.steps import MINUS, PAGE, listed, totals
from tests.operations.steps import text_of

pytestmark = pytest.mark.django_db

COUNT = "/transactions/count/"
VIEWS = "/transactions/views/"


def sent_as(operation: Operation, transaction_id: str) -> None:
    """The operation's one attempt, bound to a transaction of the provider."""
    factories.attempt(
        operation,
        outcome="succeeded",
        closed_at=timezone.now(),
        provider_transaction_id=transaction_id,
    )


@pytest.mark.parametrize(
    ("members", "shown"),
    [
        ({}, '\N{MINUS SIGN}<span class="money"><span>NGN</span> 250,000.50</span>'),
        ({"direction": "in"}, '+<span class="money"><span>NGN</span> 250,000.50</span>'),
        ({"direction": ""}, '>\n<span class="money">'),
        ({"currency": "USDT", "amount": Decimal("0.000001")}, "<span>USDT</span> 0.000001</span>"),
    ],
)
def test_the_amount_shows_its_direction(reader: Client, members: dict[str, Any], shown: str) -> None:
    stored(**members)
    assert shown.replace(">\n", ">") in text_of(reader.get(PAGE))


def test_row_links_work_under_a_url_prefix(reader: Client) -> None:
    one = stored()
    transactions._url_pattern.cache_clear()
    set_script_prefix("/desk10/")
    try:
        assert f'href="/desk10/transactions/{one.pk}/"' in text_of(reader.get(PAGE))
    finally:
        set_script_prefix("/")
        transactions._url_pattern.cache_clear()


@pytest.mark.parametrize(
    ("status", "badge"),
    [
        ("fulfilled", '<span class="badge succeeded">Completed</span>'),
        ("failed", '<span class="badge failed">Failed</span>'),
        ("on hold", '<span class="badge ">on hold</span>'),
    ],
)
def test_a_known_status_has_a_label_and_others_are_shown_as_reported(
    reader: Client, status: str, badge: str
) -> None:
    stored(status=status)
    assert badge in text_of(reader.get(PAGE))


def test_provider_text_is_escaped(reader: Client) -> None:
    one = stored(counterparty="<script>x</script>", transaction_id="<b>", type="<i>")
    for address in (PAGE, f"{PAGE}{one.pk}/"):
        html = text_of(reader.get(address))
        assert "<script>x" not in html
        assert "<b>&lt;" not in html
        assert "&lt;b&gt;" in html


def test_an_own_transaction_links_to_its_operation(reader: Client, preparer: User) -> None:
    operation = factories.prepared(preparer)
    one = stored()
    stored()
    sent_as(operation, one.transaction_id)
    html = text_of(reader.get(PAGE))
    assert html.count(f'href="{operation.get_absolute_url()}"') == 1
    assert operation.reference in html
    assert operation.sentence in text_of(reader.get(f"{PAGE}{one.pk}/"))


def test_filters_are_in_the_url_and_in_every_link(reader: Client) -> None:
    store([unsaved(amount=Decimal(number), currency="USD") for number in range(1, 61)])
    stored(currency="NGN")
    page = reader.get(PAGE, {"currency": "USD", "min_amount": "5", "sort": "largest"})
    assert len(listed(page)) == 50
    html = unescape(text_of(page))
    assert 'href="/reports/transactions.csv?currency=USD&min_amount=5&sort=largest"' in html
    assert f'href="{VIEWS}?currency=USD&min_amount=5&sort=largest"' in html
    [further] = re.findall(r'href="([^"]+)" rel="next">Smaller', html)
    second = reader.get(further)
    assert [row.transaction.amount for row in second.context["rows"]] == [10, 9, 8, 7, 6, 5]
    [back] = re.findall(r'href="([^"]+)" rel="prev">← Larger', unescape(text_of(second)))
    assert listed(reader.get(back)) == listed(page)


@pytest.mark.parametrize("typed", ["300,000", "300,000.00", "299999.99", " 300,000 "])
def test_an_amount_is_searched_for_as_it_is_shown(reader: Client, typed: str) -> None:
    found = stored(amount=Decimal(300_000))
    stored(amount=Decimal("299999.98"))
    assert listed(reader.get(PAGE, {"min_amount": typed})) == [found.transaction_id]
    million = stored(amount=Decimal("1234567.89"))
    assert listed(reader.get(PAGE, {"min_amount": "1,234,567.89"})) == [million.transaction_id]


def test_days_are_in_the_users_time_zone(reader: Client, auditor: User) -> None:
    late = stored(occurred_at=AT.replace(hour=23, minute=30))
    User.objects.filter(pk=auditor.pk).update(time_zone="Africa/Lagos")
    assert listed(reader.get(PAGE, {"since": "2026-11-21"})) == [late.transaction_id]
    assert listed(reader.get(PAGE, {"until": "2026-11-20"})) == []


@pytest.mark.parametrize("sort", ["", "oldest"])
def test_jumping_to_a_day_works_in_both_orders(reader: Client, sort: str) -> None:
    rows = {back: stored(occurred_at=AT - timedelta(days=back)) for back in range(6)}
    answer = reader.get(PAGE, {"jump": "2026-11-17", "sort": sort, "currency": "NGN"}, follow=True)
    expected = (3, 4, 5) if sort == "" else (3, 2, 1, 0)
    assert listed(answer) == [rows[back].transaction_id for back in expected]
    assert "jump" not in answer.redirect_chain[0][0]
    assert answer.context["page"].previous_cursor
    [back] = re.findall(r'href="([^"]+)" rel="prev"', unescape(text_of(answer)))
    assert len(listed(reader.get(back))) == 6 - len(expected)


def test_jumping_beyond_the_last_day_keeps_the_previous_page_link(reader: Client) -> None:
    one = stored()
    answer = reader.get(PAGE, {"jump": "2020-01-01"}, follow=True)
    assert "End of the list" in text_of(answer)
    [back] = re.findall(r'href="([^"]+)" rel="prev"', unescape(text_of(answer)))
    assert listed(reader.get(back)) == [one.transaction_id]


def test_a_cursor_is_valid_for_its_filters_only(reader: Client) -> None:
    store([unsaved() for _ in range(60)])
    cursor = reader.get(PAGE).context["page"].next_cursor
    assert len(listed(reader.get(PAGE, {"cursor": cursor}))) == 10
    assert len(listed(reader.get(PAGE, {"cursor": cursor, "currency": "NGN"}))) == 50


def test_missing_transactions_are_marked_and_not_totalled(reader: Client) -> None:
    listed_still = stored(amount=Decimal(7))
    add_up([listed_still])
    gone = stored(amount=Decimal(5), missing_since=AT)

    html = text_of(reader.get(PAGE, {"count": 1}))
    assert "2 transactions" in html
    assert totals(html) == [["NGN", "0.00", "7.00", MINUS + "7.00"]]
    assert "Excluded from totals: 1 no longer listed by the provider" in html
    assert html.count("no longer listed by the provider since 20 Nov 2026") == 1
    assert "No longer listed by the provider</b> since" in text_of(reader.get(f"{PAGE}{gone.pk}/"))
    assert "No longer listed" not in text_of(reader.get(f"{PAGE}{listed_still.pk}/"))


def test_an_empty_filtered_list_suggests_what_to_do(reader: Client) -> None:
    assert "No transactions yet" in text_of(reader.get(PAGE))
    stored()
    assert "Remove a filter" in text_of(reader.get(PAGE, {"direction": "in"}))
    assert "by reference" not in text_of(reader.get(PAGE, {"direction": "in"}))
    assert "To find an operation by reference, use the search at the top." in text_of(
        reader.get(PAGE, {"text": "W-BG599Q"})
    )


def test_the_count_is_loaded_after_the_page(reader: Client) -> None:
    add_up(store([unsaved(currency=currency) for currency in ("NGN", "NGN", "USD")]))
    html = unescape(text_of(reader.get(PAGE, {"currency": "NGN"})))
    assert f'hx-get="{COUNT}?currency=NGN"' in html
    for address, asked in ((COUNT, {}), (PAGE, {"count": "1"})):
        html = text_of(reader.get(address, {"currency": "NGN", **asked}))
        assert "2 transactions</p>" in html
        assert totals(html) == [["NGN", "0.00", "500,001.00", MINUS + "500,001.00"]]
    assert "0 transactions</p>" in text_of(reader.get(COUNT, {"text": "nobody"}))


def test_totals_are_by_currency_with_their_net(reader: Client) -> None:
    rows = [
        unsaved(direction="in", type="deposit", amount=Decimal(300)),
        unsaved(direction="out", amount=Decimal("100.5")),
        unsaved(direction="in", type="deposit", currency="USD", amount=Decimal(7)),
    ]
    add_up(store(rows))
    assert totals(text_of(reader.get(COUNT))) == [
        ["NGN", "300.00", "100.50", "+199.50"],
        ["USD", "7.00", "0.00", "+7.00"],
    ]
    add_up([stored(direction="", amount=Decimal(5))])
    html = text_of(reader.get(COUNT))
    assert "Direction not provided" in html
    assert totals(html)[0] == ["NGN", "300.00", "100.50", "+199.50", "5.00"]


@pytest.mark.parametrize(
    ("type_", "label"), [("sent", "Crypto sent"), ("internalTransfer", "Internal transfer"), ("loan", "loan")]
)
def test_a_known_type_has_a_label_and_others_are_shown_as_reported(
    reader: Client, type_: str, label: str
) -> None:
    one = stored(type=type_)
    html = text_of(reader.get(PAGE))
    assert f">{label}</a>" in html
    assert f'<option value="{type_}">{label}</option>' in html
    assert f"/ {label}</p>" in text_of(reader.get(f"{PAGE}{one.pk}/"))


def test_both_sides_of_a_conversion_lead_to_its_operation(reader: Client, preparer: User) -> None:
    operation = factories.prepared(preparer)
    sides = _conversion(AT)
    stranger = stored(
        type="conversion", direction="in", from_currency="NGN", from_amount=Decimal(99), occurred_at=AT
    )
    _conversion(AT + timedelta(minutes=5))
    sent_as(operation, sides[0].transaction_id)
    html = text_of(reader.get(PAGE))
    assert html.count(f'href="{operation.get_absolute_url()}"') == 2
    for side in sides:
        assert operation.reference in text_of(reader.get(f"{PAGE}{side.pk}/"))
    assert operation.reference not in text_of(reader.get(f"{PAGE}{stranger.pk}/"))


def test_a_bought_side_between_two_equal_conversions_leads_nowhere(reader: Client, preparer: User) -> None:
    operation = factories.prepared(preparer)
    sold, bought = _conversion(AT)
    _conversion(AT)
    sent_as(operation, sold.transaction_id)
    assert operation.reference not in text_of(reader.get(f"{PAGE}{bought.pk}/"))


def _conversion(at: datetime) -> tuple[Transaction, Transaction]:
    """Its sold and its bought side, as the provider lists them."""
    sold = stored(type="conversion", direction="out", amount=Decimal(1600), occurred_at=at)
    bought = stored(
        type="conversion",
        direction="in",
        currency="USD",
        amount=Decimal(1),
        from_currency="NGN",
        from_amount=Decimal(1600),
        occurred_at=at + timedelta(seconds=1),
    )
    return sold, bought


def test_list_actions_precede_the_rows(reader: Client) -> None:
    stored()
    before, _, behind = text_of(reader.get(PAGE, {"currency": "NGN"})).partition("<table")
    for tool in ('id="count"', 'aria-label="Go to date"', "Save view", "Export CSV"):
        assert tool in before
        assert tool not in behind


def test_a_search_by_amount_is_totalled_or_reported_as_too_large(
    reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    store([unsaved(amount=Decimal(number)) for number in (1, 20, 300)])
    html = text_of(reader.get(COUNT, {"min_amount": "20"}))
    assert "2 transactions</p>" in html
    assert totals(html) == [["NGN", "0.00", "320.00", MINUS + "320.00"]]
    monkeypatch.setattr(volumes, "sum_rows", lambda _: None)
    assert "No totals: too many transactions" in text_of(reader.get(COUNT, {"min_amount": "20"}))
    assert "No totals" not in text_of(reader.get(COUNT, {"currency": "NGN"}))


def test_htmx_gets_only_the_rows_and_a_history_restore_gets_the_page(reader: Client) -> None:
    rows = text_of(reader.get(PAGE, headers={"HX-Request": "true"}))
    assert rows.lstrip().startswith('<div id="transactions">')
    assert 'id="export" hx-swap-oob="true"' in rows
    restored = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
    assert "<!DOCTYPE html>" in text_of(reader.get(PAGE, headers=restored))


def test_filters_are_saved_per_list_and_shared_ones_name_their_owner(
    client: Client, sign_in: SignIn, preparer: User, approver: User
) -> None:
    mine, theirs = sign_in(client, preparer), sign_in(Client(), approver)
    stored(currency="USD")
    saved = mine.post(f"{VIEWS}?currency=USD&sort=largest", {"name": "Large dollars", "is_shared": "on"})
    assert saved["Location"] == f"{PAGE}?currency=USD&sort=largest"
    html = text_of(theirs.get(VIEWS))
    assert "Large dollars" in html
    assert "Tunde Bello" in html
    assert "USD · Largest amount first" in html
    assert "Large dollars" in text_of(mine.get(PAGE))  # it says so once that it is saved
    assert "Large dollars" not in text_of(mine.get("/operations/views/"))
    kept = SavedView.objects.get()
    assert theirs.post(f"/operations/views/{kept.pk}/rename/", {"name": "Theirs"}).status_code == 404
    theirs.post(f"/operations/views/{kept.pk}/delete/")
    assert SavedView.objects.filter(pk=kept.pk).exists()
    assert mine.post(f"/operations/views/{kept.pk}/delete/")["Location"] == VIEWS
    assert not SavedView.objects.exists()


@pytest.mark.parametrize("role", ["preparer", "approver", "auditor", "administrator"])
def test_fifty_rows_take_at_most_six_queries_and_14_kilobytes(
    client: Client,
    sign_in: SignIn,
    request: pytest.FixtureRequest,
    django_assert_max_num_queries: DjangoAssertNumQueries,
    preparer: User,
    role: str,
) -> None:
    bought = {"type": "conversion", "direction": "in", "from_currency": "USD", "from_amount": Decimal(1)}
    rows = store(
        [
            unsaved(occurred_at=AT - timedelta(minutes=number), **(bought if number % 2 else {}))
            for number in range(60)
        ]
    )
    for one in rows[:3]:
        sent_as(factories.prepared(preparer), one.transaction_id)
    browser = sign_in(client, request.getfixturevalue(role))
    browser.get(PAGE)  # the facets are known to the process from then on
    with django_assert_max_num_queries(6):
        page = browser.get(PAGE)
    assert len(listed(page)) == 50
    assert len(gzip.compress(page.content)) <= 14 * 1024
