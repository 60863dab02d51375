"""What makes no sense among the filters is said once, kept out of addresses where it must be, and lists nothing."""

import re
from html import unescape

import pytest
from django.db import connection
from django.test import Client

from backoffice.ledger.models import Facet
from backoffice.ledger.transactions import query_planner
from tests.ledger.stored_transactions import store, stored, unsaved
from tests.operations.pages.transactions.steps import PAGE, listed
from tests.operations.steps import text_of

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"currency": "EUR"}, "Select one of the options"),
        ({"sort": "colour"}, "Select one of the options"),
        ({"since": "yesterday"}, "Enter the day as year"),
        ({"since": "2026-02-02", "until": "2026-02-01"}, "before the first day"),
        ({"min_amount": "-1"}, "Enter 0 or more."),
        ({"min_amount": "1e999999"}, "digits"),
        ({"min_amount": "NaN"}, "Enter an amount"),
        ({"min_amount": "1,2"}, "Enter an amount"),
        ({"min_amount": "1.234,56"}, "Enter an amount"),
        ({"max_amount": "12,34,567"}, "Enter an amount"),
        ({"max_amount": "1234,567"}, "Enter an amount"),
        ({"max_amount": "1,234.5,678"}, "Enter an amount"),
        ({"max_amount": ",123"}, "Enter an amount"),
        ({"min_amount": "5", "max_amount": "4.99"}, "below the minimum amount"),
        ({"text": "ad"}, "at least 3 characters"),
        ({"counterparty": "x" * 201}, "at most 200"),
        ({"text": "nul\x00byte"}, "Null characters"),
    ],
)
def test_an_invalid_filter_is_reported_at_its_field_and_kept(
    reader: Client, typed: dict[str, str], message: str
) -> None:
    stored()
    answer = reader.get(PAGE, typed)
    assert answer.status_code == 422
    html = text_of(answer)
    assert message in html
    assert html.count(message) == 1
    assert "No results: correct the filters above" in html
    field = re.search(r'<span class="error" id="id_(\w+)_error">', html)
    assert field is not None
    assert field[1] in typed


def test_the_list_partial_explains_why_it_is_empty(reader: Client) -> None:
    html = text_of(reader.get(PAGE, {"currency": "EUR", "min_amount": "x"}, headers={"HX-Request": "true"}))
    assert "Currency: Select one of the options" in html
    assert "Minimum amount: Enter an amount" in html
    assert html.count("No results until this filter is corrected") == 2


@pytest.mark.parametrize(
    ("typed", "message"),
    [("1999-01-01", "Choose a day from 2000-01-01 to 2099-12-31"), ("abc", "Enter the day as year")],
)
def test_an_invalid_day_to_jump_to_is_reported_and_keeps_the_list(
    reader: Client, typed: str, message: str
) -> None:
    rows = store([unsaved(currency="USD") for _ in range(51)])
    stored(currency="NGN")
    answer = reader.get(PAGE, {"currency": "USD", "jump": typed})
    assert answer.status_code == 200
    assert len(listed(answer)) == 50
    html = unescape(text_of(answer))
    assert re.search(rf'<span class="error" id="id_jump_error">{message}', html)
    assert re.search(rf'name="jump" value="{typed}"[^>]* aria-invalid="true"', html)
    [further] = re.findall(r'href="([^"]+)" rel="next"', html)
    rest = reader.get(further)
    assert listed(rest) == [rows[0].transaction_id]
    assert "id_jump_error" not in text_of(rest)


@pytest.mark.parametrize("name", ["text", "counterparty"])
@pytest.mark.parametrize("typed", ["0123456789", "01 2345-6789", "12345678"])
def test_an_account_number_is_kept_out_of_urls(reader: Client, name: str, typed: str) -> None:
    answer = reader.get(PAGE, {name: typed}, headers={"HX-Request": "true"})

    assert answer.status_code == 422
    assert "Use the search at the top" in text_of(answer)
    assert answer["HX-Push-Url"] == "false"
    assert typed not in re.findall(r'href="([^"]+)"', text_of(answer))
    assert r'pattern="(?![\d\s\-]{8,}$).*"' in text_of(reader.get(PAGE))


@pytest.mark.parametrize("typed", ["1234567", "4f7e2b0c9d1a", "2026 Ltd", "12345678 Ltd"])
def test_other_numbers_are_searched_for(reader: Client, typed: str) -> None:
    assert reader.get(PAGE, {"text": typed}).status_code == 200


@pytest.mark.skipif(connection.vendor != "postgresql", reason="only PostgreSQL breaks statements off")
def test_a_slow_filter_suggests_a_narrower_one(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_planner, "TIMEOUT_SECONDS", 0.2)
    Facet.objects.create(currency="NGN", type="deposit", status="fulfilled", direction="in")
    with connection.copy().cursor() as another:
        another.execute("BEGIN; LOCK TABLE ledger_names")
        answer = reader.get(PAGE, {"text": "ada"})
        another.connection.close()
    assert answer.status_code == 422
    assert "Choose a shorter period" in text_of(answer)


@pytest.mark.parametrize(
    ("typed", "status"), [("---", 422), ("a-!", 422), ("-a-", 200), ("ab ", 422), ("a b", 200)]
)
def test_characters_missing_from_the_index_are_not_searched_for(
    reader: Client, typed: str, status: int
) -> None:
    stored()
    answer = reader.get(PAGE, {"text": typed})
    assert answer.status_code == status
    for name in ("text", "counterparty"):
        refused = "alone cannot be searched for" in text_of(reader.get(PAGE, {name: typed}))
        assert refused is (typed in ("---", "a-!"))
