"""The service's transactions, live: filters, direction, the operation behind each, and what it costs."""

import gzip
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.operations.models import Operation
from tests import factories
from tests.sandbox_process import API_USER, SandboxProcess
from tests.stub_service import StubService

pytestmark = pytest.mark.django_db

SignIn = Callable[[Client, User], Client]
PAGE, ROWS = "/transactions/", "/transactions/now/"


@pytest.fixture
def reader(client: Client, sign_in: SignIn, auditor: User) -> Client:
    return sign_in(client, auditor)


def text(answer: Any) -> str:
    return str(answer.content.decode())


def record(number: int = 1, **members: Any) -> dict[str, Any]:
    usual = {
        "transactionId": f"TX-{number:04d}-4f7e2b0c9d1a",
        "type": "withdrawal",
        "status": "fullfiled",
        "currency": "NGN",
        "amount": 250000.5,
        "fee": 50,
        "sender": API_USER,
        "username": "Ada Chidinma Obi",
        "createdAt": "2026-11-20T10:42:07Z",
    }
    return usual | members


def sent_as(operation: Operation, transaction_id: str) -> None:
    """The operation's one attempt, bound to a transaction of the service."""
    factories.attempt(
        operation,
        outcome="succeeded",
        closed_at=timezone.now(),
        service_transaction_id=transaction_id,
    )


def test_the_first_answer_does_not_wait_for_the_service(reader: Client, service: StubService) -> None:
    go_on = threading.Event()
    service.before_get = lambda: go_on.wait(20)
    html = text(reader.get(f"{PAGE}?currency=NGN"))
    go_on.set()
    assert "The service is being asked" in html
    assert 'hx-get="/transactions/now/?currency=NGN"' in html
    assert 'href="?currency=NGN&amp;read=1">Ask the service</a>' in html


def test_without_scripts_a_link_reads_them_into_the_whole_page(reader: Client, service: StubService) -> None:
    service.records = json.dumps([record()])
    html = text(reader.get(f"{PAGE}?read=1"))
    assert "<!DOCTYPE html>" in html
    assert "TX-0001" in html


@pytest.mark.parametrize(
    ("members", "shown"),
    [
        ({}, '\N{MINUS SIGN}<span class="money"><span>NGN</span> 250,000.50</span>'),
        ({"type": "deposit"}, '+<span class="money"><span>NGN</span> 250,000.50</span>'),
        ({"type": "transfer", "sender": "kola"}, '+<span class="money">'),
        ({"type": "refund", "sender": ""}, '>\n<span class="money">'),
        ({"amount": -7, "type": "deposit"}, '+<span class="money"><span>NGN</span> 7.00</span>'),
    ],
)
def test_the_amount_says_which_way_it_went(
    reader: Client, service: StubService, members: dict[str, Any], shown: str
) -> None:
    service.records = json.dumps([record(**members)])
    html = text(reader.get(ROWS))
    assert shown.replace(">\n", ">") in html


@pytest.mark.parametrize(
    ("status", "badge"),
    [
        ("fullfiled", '<span class="badge succeeded">fulfilled</span>'),
        ("failed", '<span class="badge failed">failed</span>'),
        ("on hold", '<span class="badge ">on hold</span>'),
    ],
)
def test_the_status_is_the_services_word(
    reader: Client, service: StubService, status: str, badge: str
) -> None:
    service.records = json.dumps([record(status=status)])
    assert badge in text(reader.get(ROWS))


def test_a_transaction_of_ours_leads_to_its_operation(
    reader: Client, service: StubService, maker: User
) -> None:
    operation = factories.prepared(maker)
    sent_as(operation, record()["transactionId"])
    service.records = json.dumps([record(), record(2)])
    html = text(reader.get(ROWS))
    assert html.count('href="/operations/') == 1
    assert operation.get_absolute_url() in html
    assert operation.reference in html


def test_totals_are_of_one_currency_or_said_to_mix_them(reader: Client, service: StubService) -> None:
    service.records = json.dumps([record()])
    assert "over all currencies" in text(reader.get(ROWS))
    html = text(reader.get(f"{ROWS}?currency=NGN"))
    assert "over all currencies" not in html
    assert '<span class="money"><span>NGN</span> 250,000.00</span>' in html


def test_filters_and_page_reach_the_service(reader: Client, sandbox: SandboxProcess) -> None:
    every = reader.get(ROWS, {"per_page": "20"}).context
    assert every["told"].value.transaction_count > 20
    assert [every["previous"], every["next"]] == [0, 2]
    second = reader.get(ROWS, {"per_page": "20", "page": "2"}).context
    assert second["previous"] == 1
    ids = [{row.record.transaction_id for row in shown["rows"]} for shown in (every, second)]
    assert not ids[0] & ids[1]
    narrowed = reader.get(ROWS, {"currency": "USD", "type": "deposit", "duration": "one year"}).context
    assert {(row.record.currency, row.record.type) for row in narrowed["rows"]} <= {("USD", "deposit")}


def test_pages_and_export_keep_the_filters(reader: Client, sandbox: SandboxProcess) -> None:
    html = text(reader.get(ROWS, {"currency": "NGN", "per_page": "20", "page": "2"}))
    assert 'href="/transactions/?currency=NGN&amp;per_page=20&amp;page=1"' in html
    assert 'href="/reports/transactions.csv?currency=NGN"' in html


def test_htmx_gets_the_rows_alone_and_a_restored_page_gets_all(reader: Client, service: StubService) -> None:
    rows = text(reader.get(PAGE, headers={"HX-Request": "true"}))
    assert rows.lstrip().startswith('<div id="transactions">')
    restored = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
    assert "<!DOCTYPE html>" in text(reader.get(PAGE, headers=restored))


def test_while_the_service_is_away_the_last_answer_stands_with_its_age(
    reader: Client, service: StubService, settings: Settings
) -> None:
    service.records = json.dumps([record()])
    reader.get(ROWS)
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    at_once, later = text(reader.get(PAGE)), text(reader.get(ROWS))
    for html in (at_once, later):
        assert "TX-0001" in html
        assert "What stands here is" in html
    assert "The service does not tell it now" in later


def test_a_service_that_was_never_read_is_said_to_be_away(reader: Client, settings: Settings) -> None:
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    html = text(reader.get(ROWS))
    assert "Nothing is known from before." in html
    assert "Not known yet" in html


@pytest.mark.parametrize(
    "wrong", ["currency=EUR", "type=lottery", "duration=one+decade", "page=0", "page=x", "per_page=7"]
)
@pytest.mark.parametrize("address", [PAGE, ROWS])
def test_a_filter_that_makes_no_sense_is_refused_and_nobody_is_asked(
    reader: Client, service: StubService, address: str, wrong: str
) -> None:
    asked: list[int] = []
    service.before_get = lambda: asked.append(1)
    page = reader.get(f"{address}?{wrong}")
    assert (page.status_code, asked) == (422, [])
    assert "Nothing is listed until this is mended" in text(page)


@pytest.mark.parametrize("role", ["maker", "checker", "auditor", "administrator"])
def test_fifty_rows_need_six_queries_and_14_kilobytes_at_most(
    client: Client,
    sign_in: SignIn,
    request: pytest.FixtureRequest,
    django_assert_max_num_queries: DjangoAssertNumQueries,
    service: StubService,
    maker: User,
    role: str,
) -> None:
    records = [record(number) for number in range(50)]
    for told in records[:3]:
        sent_as(factories.prepared(maker), told["transactionId"])
    service.records = json.dumps(records)
    browser = sign_in(client, request.getfixturevalue(role))
    with django_assert_max_num_queries(6):
        page = browser.get(f"{PAGE}?read=1")
    assert text(page).count("TX-0") >= 50
    assert len(gzip.compress(page.content)) <= 14 * 1024
