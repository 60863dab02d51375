"""The page of the mirror's transactions, one transaction's own page, and their saved filters."""

import gzip
import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import User
from backoffice.ledger import walking
from backoffice.ledger.mirrored import TransactionChange
from backoffice.operations.models import Operation, SavedFilter
from tests import factories
from tests.ledger.transactions import AT, add_up, store, stored, unsaved

pytestmark = pytest.mark.django_db

SignIn = Callable[[Client, User], Client]
PAGE, COUNT, FILTERS = "/transactions/", "/transactions/count/", "/transactions/filters/"


@pytest.fixture
def reader(client: Client, sign_in: SignIn, auditor: User) -> Client:
    return sign_in(client, auditor)


def text(answer: Any) -> str:
    return str(answer.content.decode())


def listed(answer: Any) -> list[str]:
    return [row.transaction.transaction_id for row in answer.context["rows"]]


def sent_as(operation: Operation, transaction_id: str) -> None:
    """The operation's one attempt, bound to a transaction of the service."""
    factories.attempt(
        operation,
        outcome="succeeded",
        closed_at=timezone.now(),
        service_transaction_id=transaction_id,
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
def test_the_amount_says_which_way_it_went(reader: Client, members: dict[str, Any], shown: str) -> None:
    stored(**members)
    assert shown.replace(">\n", ">") in text(reader.get(PAGE))


@pytest.mark.parametrize(
    ("status", "badge"),
    [
        ("fulfilled", '<span class="badge succeeded">fulfilled</span>'),
        ("failed", '<span class="badge failed">failed</span>'),
        ("on hold", '<span class="badge ">on hold</span>'),
    ],
)
def test_the_status_is_the_services_word(reader: Client, status: str, badge: str) -> None:
    stored(status=status)
    assert badge in text(reader.get(PAGE))


def test_what_the_service_wrote_is_text_and_not_markup(reader: Client) -> None:
    one = stored(counterparty="<script>x</script>", transaction_id="<b>", type="<i>")
    for address in (PAGE, f"{PAGE}{one.pk}/"):
        html = text(reader.get(address))
        assert "<script>x" not in html
        assert "<b>&lt;" not in html
        assert "&lt;b&gt;" in html


def test_a_transaction_of_ours_leads_to_its_operation(reader: Client, maker: User) -> None:
    operation = factories.prepared(maker)
    one = stored()
    stored()
    sent_as(operation, one.transaction_id)
    html = text(reader.get(PAGE))
    assert html.count(f'href="{operation.get_absolute_url()}"') == 1
    assert operation.reference in html
    assert operation.sentence in text(reader.get(f"{PAGE}{one.pk}/"))


def test_filters_stand_in_the_address_and_stay_in_every_link(reader: Client) -> None:
    store([unsaved(amount=Decimal(number), currency="USD") for number in range(1, 61)])
    stored(currency="NGN")
    page = reader.get(PAGE, {"currency": "USD", "least": "5", "sort": "largest"})
    assert len(listed(page)) == 50
    html = unescape(text(page))
    assert 'href="/reports/transactions.csv?currency=USD&least=5"' in html
    assert f'href="{FILTERS}?currency=USD&least=5&sort=largest"' in html
    [further] = re.findall(r'href="([^"]+)" rel="next">Smaller', html)
    second = reader.get(further)
    assert [row.transaction.amount for row in second.context["rows"]] == [10, 9, 8, 7, 6, 5]
    [back] = re.findall(r'href="([^"]+)" rel="prev">← Larger', unescape(text(second)))
    assert listed(reader.get(back)) == listed(page)


def test_days_are_those_of_the_person_who_asks(reader: Client, auditor: User) -> None:
    late = stored(occurred_at=AT.replace(hour=23, minute=30))
    User.objects.filter(pk=auditor.pk).update(time_zone="Africa/Lagos")
    assert listed(reader.get(PAGE, {"since": "2026-11-21"})) == [late.transaction_id]
    assert listed(reader.get(PAGE, {"until": "2026-11-20"})) == []


@pytest.mark.parametrize("sort", ["", "oldest"])
def test_a_day_is_gone_to_in_either_order_of_time(reader: Client, sort: str) -> None:
    rows = {back: stored(occurred_at=AT - timedelta(days=back)) for back in range(6)}
    answer = reader.get(PAGE, {"jump": "2026-11-17", "sort": sort, "currency": "NGN"}, follow=True)
    expected = (3, 4, 5) if sort == "" else (3, 2, 1, 0)
    assert listed(answer) == [rows[back].transaction_id for back in expected]
    assert "jump" not in answer.redirect_chain[0][0]
    assert answer.context["page"].previous_cursor
    [back] = re.findall(r'href="([^"]+)" rel="prev"', unescape(text(answer)))
    assert len(listed(reader.get(back))) == 6 - len(expected)


def test_beyond_the_last_day_the_way_back_is_open(reader: Client) -> None:
    one = stored()
    answer = reader.get(PAGE, {"jump": "2020-01-01"}, follow=True)
    assert "The list ends here" in text(answer)
    [back] = re.findall(r'href="([^"]+)" rel="prev"', unescape(text(answer)))
    assert listed(reader.get(back)) == [one.transaction_id]


def test_a_cursor_counts_among_the_filters_it_was_made_for(reader: Client) -> None:
    store([unsaved() for _ in range(60)])
    cursor = reader.get(PAGE).context["page"].next_cursor
    assert len(listed(reader.get(PAGE, {"cursor": cursor}))) == 10
    assert len(listed(reader.get(PAGE, {"cursor": cursor, "currency": "NGN"}))) == 50


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"currency": "EUR"}, "Select a valid choice"),
        ({"sort": "colour"}, "Select a valid choice"),
        ({"since": "yesterday"}, "Enter a valid date"),
        ({"since": "2026-02-02", "until": "2026-02-01"}, "before the first one"),
        ({"least": "-1"}, "greater than or equal to 0"),
        ({"least": "1e999999"}, "digits"),
        ({"least": "NaN"}, "Enter an amount"),
        ({"least": "5", "most": "4.99"}, "less than the amount before it"),
        ({"text": "ad"}, "at least 3 characters"),
        ({"counterparty": "x" * 201}, "at most 200"),
        ({"text": "nul\x00byte"}, "Null characters"),
    ],
)
def test_what_makes_no_sense_is_said_beside_its_field_and_kept(
    reader: Client, typed: dict[str, str], said: str
) -> None:
    stored()
    answer = reader.get(PAGE, typed)
    assert answer.status_code == 422
    html = text(answer)
    assert said in html
    assert "Nothing is listed until this is mended" in html
    field = re.search(r'<span class="error" id="id_(\w+)_error">', html)
    assert field is not None
    assert field[1] in typed


def test_a_list_that_is_narrowed_to_nothing_says_what_to_do(reader: Client) -> None:
    assert "No transaction yet" in text(reader.get(PAGE))
    stored()
    assert "Take a filter away" in text(reader.get(PAGE, {"direction": "in"}))


def test_what_has_no_quick_answer_says_what_to_ask_for_instead(
    reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walking, "NAMES_MERGED", 1)
    store([unsaved(counterparty="Ada One"), unsaved(counterparty="Ada Two")])
    monkeypatch.setattr(walking, "WHOLE_GATHERED", 1)
    answer = reader.get(PAGE, {"text": "ada", "sort": "largest"})
    if answer.status_code == 200:  # SQLite looks through them all
        assert connection.vendor == "sqlite"
        assert len(listed(answer)) == 2
    else:
        assert "Type more of it" in text(answer)
    assert len(listed(reader.get(PAGE, {"text": "ada"}))) == 2


def test_the_page_asks_for_the_count_when_it_is_there(reader: Client) -> None:
    add_up(store([unsaved(currency=currency) for currency in ("NGN", "NGN", "USD")]))
    html = unescape(text(reader.get(PAGE, {"currency": "NGN"})))
    assert f'hx-get="{COUNT}?currency=NGN"' in html
    for address, asked in ((COUNT, {}), (PAGE, {"count": "1"})):
        html = text(reader.get(address, {"currency": "NGN", **asked}))
        assert '2 transactions · out <span class="money"><span>NGN</span> 500,001.00</span></p>' in html
    assert "0 transactions</p>" in text(reader.get(COUNT, {"text": "nobody"}))


def test_htmx_gets_the_rows_alone_and_a_restored_page_gets_all(reader: Client) -> None:
    rows = text(reader.get(PAGE, headers={"HX-Request": "true"}))
    assert rows.lstrip().startswith('<div id="transactions">')
    restored = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
    assert "<!DOCTYPE html>" in text(reader.get(PAGE, headers=restored))


def test_one_transaction_shows_all_that_was_told_and_what_it_was_before(reader: Client) -> None:
    one = stored(previous_balance=Decimal(7), sender="kola", business_id="biz-9", status="failed")
    TransactionChange.objects.create(
        transaction=one, seen_at=AT, before={"status": "processing"}, after={"status": "failed"}
    )
    html = text(reader.get(f"{PAGE}{one.pk}/"))
    for shown in (one.transaction_id, "kola", "biz-9", "NGN 7.00", "<s>processing</s> failed"):
        assert shown in html
    assert "No operation here is known to have caused it" in html
    assert reader.get(f"{PAGE}{one.pk + 1}/").status_code == 404


def test_filters_are_kept_by_list_and_shared_ones_say_whose_they_are(
    client: Client, sign_in: SignIn, maker: User, checker: User
) -> None:
    mine, theirs = sign_in(client, maker), sign_in(Client(), checker)
    stored(currency="USD")
    saved = mine.post(f"{FILTERS}?currency=USD&sort=largest", {"name": "Large dollars", "is_shared": "on"})
    assert saved["Location"] == f"{PAGE}?currency=USD&sort=largest"
    html = text(theirs.get(FILTERS))
    assert "Large dollars" in html
    assert "Tunde Bello" in html
    assert "USD · Largest amount first" in html
    assert "Large dollars" in text(mine.get(PAGE))  # it says so once that it is saved
    assert "Large dollars" not in text(mine.get("/operations/filters/"))
    kept = SavedFilter.objects.get()
    assert theirs.post(f"/operations/filters/{kept.pk}/rename/", {"name": "Theirs"}).status_code == 404
    theirs.post(f"/operations/filters/{kept.pk}/delete/")
    assert SavedFilter.objects.filter(pk=kept.pk).exists()
    assert mine.post(f"/operations/filters/{kept.pk}/delete/")["Location"] == FILTERS
    assert not SavedFilter.objects.exists()


@pytest.mark.parametrize("role", ["maker", "checker", "auditor", "administrator"])
def test_fifty_rows_need_six_queries_and_14_kilobytes_at_most(
    client: Client,
    sign_in: SignIn,
    request: pytest.FixtureRequest,
    django_assert_max_num_queries: DjangoAssertNumQueries,
    maker: User,
    role: str,
) -> None:
    rows = store([unsaved(occurred_at=AT - timedelta(minutes=number)) for number in range(60)])
    for one in rows[:3]:
        sent_as(factories.prepared(maker), one.transaction_id)
    browser = sign_in(client, request.getfixturevalue(role))
    browser.get(PAGE)  # the facets are known to the process from then on
    with django_assert_max_num_queries(6):
        page = browser.get(PAGE)
    assert len(listed(page)) == 50
    assert len(gzip.compress(page.content)) <= 14 * 1024
