"""Who may take what away, and what a person is told where it cannot be had."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from django.forms import ChoiceField
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.operations.selectors import EVERYTHING
from backoffice.reports.asking import form_of
from backoffice.reports.catalogue import REPORTS
from backoffice.reports.models import ExportJob
from backoffice.reports.slots import Place
from tests import factories
from tests.reports import odd_values
from tests.reports.asking import asked_for
from tests.reports.download import Download
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)  # a report reads by a connection of its own
SignIn = Callable[[Client, User], Client]
LIST = reverse("reports:list")
READERS = {
    "approvals": {"maker", "checker", "auditor", "administrator"},
    "attempts": {"maker", "checker", "auditor", "administrator"},
    "staff": {"administrator"},
    "operations": {"maker", "checker", "auditor", "administrator"},
    "transactions": {"maker", "checker", "auditor", "administrator"},
    "statement": {"maker", "checker", "auditor", "administrator"},
    "continuity": {"maker", "checker", "auditor", "administrator"},
    "balances": {"maker", "checker", "auditor", "administrator"},
    "bank-accounts": {"maker", "checker", "auditor", "administrator"},
    "payments": {"maker", "checker", "auditor", "administrator"},
    "wallets": {"maker", "checker", "auditor", "administrator"},
    "api-keys": {"maker", "checker", "auditor", "administrator"},
    "reconciliation": {"maker", "checker", "auditor", "administrator"},
    "reconciliation-by-day": {"maker", "checker", "auditor", "administrator"},
    "webhook-deliveries": {"maker", "checker", "auditor", "administrator"},
    "incidents": {"maker", "checker", "auditor", "administrator"},
    "audit-log": {"auditor", "administrator"},
}
CAST = ("maker", "checker", "auditor", "administrator", "outsider")


def page_of(name: str) -> str:
    return reverse("reports:report", args=[name])


def address(name: str) -> str:
    return reverse("reports:csv", args=[name])


@pytest.fixture
def reader(client: Client, auditor: User, sign_in: SignIn) -> Client:
    """The auditor's browser."""
    return sign_in(client, auditor)


def test_every_report_has_its_readers_above() -> None:
    assert set(READERS) == set(REPORTS)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("person", CAST)
def test_who_may_take_a_report_away(
    request: pytest.FixtureRequest,
    client: Client,
    sign_in: SignIn,
    sandbox: SandboxProcess,
    person: str,
    name: str,
) -> None:
    browser = sign_in(client, request.getfixturevalue(person))

    response = browser.get(address(name))

    assert response.status_code == (200 if person in READERS[name] else 403)
    list(response)


@pytest.mark.parametrize("person", CAST)
def test_the_page_offers_what_the_person_may_take(
    request: pytest.FixtureRequest, client: Client, sign_in: SignIn, person: str
) -> None:
    response = sign_in(client, request.getfixturevalue(person)).get(LIST)

    allowed = {name for name, readers in READERS.items() if person in readers}
    assert response.status_code == (200 if allowed else 403)
    page = response.content.decode()
    assert {name for name in READERS if f'href="{page_of(name)}"' in page} == allowed


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("person", CAST)
def test_who_may_open_the_page_of_a_report(
    request: pytest.FixtureRequest, client: Client, sign_in: SignIn, person: str, name: str
) -> None:
    response = sign_in(client, request.getfixturevalue(person)).get(page_of(name))

    assert response.status_code == (200 if person in READERS[name] else 403)


def test_the_page_says_who_may_read_what(reader: Client) -> None:
    page = reader.get(LIST).content.decode()

    row = page.partition(f'href="{page_of("audit-log")}"')[2].partition("</tr>")[0]
    assert "Auditor, Administrator" in row


def test_an_unknown_report_is_not_found(reader: Client) -> None:
    assert reader.get(address("payroll")).status_code == 404


def test_a_download_is_a_link_and_nothing_else(reader: Client) -> None:
    assert reader.post(address("operations")).status_code == 405


@pytest.mark.parametrize(
    ("name", "filters", "field", "message"),
    [
        ("operations", {"status": "sleeping"}, "operations-status", "Select a valid choice"),
        ("operations", {"since": "31.12.2026"}, "operations-since", "Enter a valid date"),
        (
            "operations",
            {"since": "2026-03-02", "until": "2026-03-01"},
            "operations-until",
            "before the first one",
        ),
        ("operations", {"until": "9999-12-31"}, "operations-until", "Choose a day from 2000-01-01"),
        ("audit-log", {"since": "0001-01-01"}, "audit-log-since", "Choose a day from 2000-01-01"),
        ("transactions", {"currency": "EUR"}, "transactions-currency", "Select a valid choice"),
        ("transactions", {"direction": "up"}, "transactions-direction", "Select a valid choice"),
        ("operations", {"columns": "colour"}, "file-columns", "Select a valid choice"),
        ("audit-log", {"actor": "x"}, "audit-log-actor", "Select a valid choice"),
    ],
)
def test_a_filter_that_makes_no_sense_is_told_beside_its_field(
    reader: Client, name: str, filters: dict[str, str], field: str, message: str
) -> None:
    response = reader.get(address(name), filters)

    assert response.status_code == 422
    error = response.content.decode().partition(f'id="{field}_error">')[2].partition("</span>")[0]
    assert message in error
    assert not Entry.objects.exists()


def test_the_answer_is_a_file_that_nobody_keeps(reader: Client, download: Callable[..., Download]) -> None:
    headers = download("operations", since="2026-03-01", until="2026-03-31").headers

    assert headers["Content-Type"] == "text/csv; charset=utf-8; header=present"
    assert headers["Content-Disposition"] == (
        'attachment; filename="countersign-operations-2026-03-01-to-2026-03-31.csv"'
    )
    assert headers["Cache-Control"] == "no-store"


def test_a_download_is_on_record_with_the_address_and_request(
    reader: Client, auditor: User, download: Callable[..., Download]
) -> None:
    headers = download("audit-log", group="operation").headers

    exported, requested = Entry.objects.all()[:2]
    assert str(exported) == f"{auditor} exported the report Audit log"
    assert exported.detail == {
        "report": "audit-log",
        "filters": {"group": "operation"},
        "rows": 0,
        "complete": True,
    }
    assert {requested.address, exported.address} == {"127.0.0.1"}
    assert {requested.request_id, exported.request_id} == {headers["X-Request-ID"]}


def test_a_service_that_does_not_answer_is_told_on_a_page(reader: Client, settings: Settings) -> None:
    settings.GATEWAY_URL = "http://127.0.0.1:1/v2"  # where nobody listens

    response = reader.get(address("wallets"), {"currency": "NGN"})

    assert response.status_code == 502
    page = response.content.decode()
    assert "Wallet addresses could not be read" in page
    assert "No file was made and nothing was changed" in page
    assert f'href="{address("wallets")}?currency=NGN"' in page
    assert not Entry.objects.exists()


def test_a_reader_who_goes_away_is_on_record(reader: Client) -> None:
    odd_values.stored()
    response = reader.get(address("transactions"))
    next(iter(response))

    response.close()

    entry = Entry.objects.first()
    assert entry is not None
    assert (entry.action, entry.detail["complete"], entry.detail["rows"]) == ("report.exported", False, 0)


def test_a_big_report_is_offered_in_the_background_and_not_begun(reader: Client, settings: Settings) -> None:
    settings.EXPORT_STREAM_ROWS = 0
    odd_values.stored()

    response = reader.get(address("transactions"), {"type": "withdrawal", "columns": ["type", "fee"]})

    page = response.content.decode()
    assert response.status_code == 200
    assert "made in the background" in page
    for name, text in (("type", "withdrawal"), ("columns", "type"), ("columns", "fee")):
        assert f'<input type="hidden" name="{name}" value="{text}">' in page
    assert not Entry.objects.exists()


def test_where_all_places_are_taken_the_background_is_offered_at_once(
    reader: Client, settings: Settings
) -> None:
    held = [Place() for _ in range(settings.EXPORT_STREAMS)]

    response = reader.get(address("operations"))
    for place in held:
        place.leave()

    assert response.status_code == 503
    assert "Other files are being sent" in response.content.decode()
    assert not Entry.objects.exists()


def test_what_is_sent_from_the_page_is_the_same_file_as_by_its_link(reader: Client) -> None:
    odd_values.stored()
    sent = {"type": "withdrawal", "columns": ["transaction_id", "fee"], "format": "csv"}

    by_page = b"".join(reader.post(page_of("transactions"), sent))

    assert by_page == b"".join(reader.get(address("transactions"), sent))


def the_planner_counts_anew() -> None:
    """What earlier tests deleted may stay in PostgreSQL's files for a while, and its planner goes by their size."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE ledger_transaction")


def test_excel_gets_a_file_of_its_own_kind(reader: Client) -> None:
    odd_values.stored()
    the_planner_counts_anew()

    response = reader.post(page_of("transactions"), {"format": "xlsx"})

    assert b"".join(response).startswith(b"PK")
    assert response["Content-Type"].endswith("spreadsheetml.sheet")
    assert response["Content-Disposition"].endswith('.xlsx"')
    entry = Entry.objects.filter(action="report.exported").get()
    assert (entry.detail["rows"], entry.detail["complete"]) == (len(odd_values.TEXTS), True)


def test_the_page_says_about_how_many_rows_there_are(reader: Client, maker: User) -> None:
    factories.prepared(maker)

    answer = reader.get(reverse("reports:size", args=["operations"]), {"status": "pending"})

    assert re.search(r"About [\d,]+ rows?\.", answer.content.decode())


@pytest.mark.parametrize(
    "path", ["/reports/", "/reports/operations/", "/reports/exports/", "/reports/schedules/"]
)
def test_the_pages_need_few_queries(
    reader: Client, auditor: User, path: str, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(5):
        asked_for(auditor)

    with django_assert_max_num_queries(8):
        answer = reader.get(path)

    assert len(gzip.compress(answer.content)) <= 14_000


def test_a_refused_form_comes_back_with_what_was_typed(reader: Client) -> None:
    html = reader.get("/reports/operations.csv?since=yesterday&columns=status").content.decode()
    assert html.count('value="yesterday"') == 1
    assert html.count("Enter a valid date.") == 1
    assert 'value="status" checked' in html
    assert 'value="reference" checked' not in html


def test_the_columns_that_were_chosen_stand_open_on_a_refused_form(reader: Client) -> None:
    sent = {"chooses": "on", "columns": ["type", "currency", "amount"], "least": "abc"}

    html = reader.post(page_of("transactions"), sent).content.decode()

    assert re.search(r"<details[^>]* open>\s*<summary>3 of \d+ columns</summary>", html)
    assert html.partition('class="headings"')[2].partition("</ul>")[0].count(" checked>") == 3


def test_a_file_of_no_columns_is_not_taken_for_one_of_all(reader: Client) -> None:
    answer = reader.post(page_of("operations"), {"chooses": "on", "then": "background"})

    html = answer.content.decode()
    assert answer.status_code == 422
    assert "Choose at least one column." in html
    assert re.search(r"<details[^>]* open>\s*<summary>0 of \d+ columns</summary>", html)
    assert " checked>" not in html.partition('class="headings"')[2].partition("</ul>")[0]
    assert not ExportJob.objects.exists()


def test_where_columns_are_not_asked_about_all_of_them_come(reader: Client) -> None:
    reader.post(page_of("operations"), {"then": "background"})

    assert ExportJob.objects.get().columns == []
    html = reader.get(page_of("operations")).content.decode()
    assert 'type="hidden" name="chooses"' in html
    assert re.search(r"<details class=\"fold\">\s*<summary>\d+ columns; choose some of them</summary>", html)


def test_no_link_to_a_file_is_marked_as_a_download() -> None:
    """The browser would keep the page that offers the background as a file."""
    pages = Path("templates").rglob("*.html")
    links = [link for page in pages for link in re.findall(r"<a [^>]*reports:csv[^>]*>", page.read_text())]

    assert links
    assert [link for link in links if " download" in link] == []


@pytest.mark.parametrize("name", REPORTS)
def test_a_page_that_nobody_narrowed_leaves_nothing_out(name: str) -> None:
    lists = [field for field in form_of(REPORTS[name], {}).fields.values() if isinstance(field, ChoiceField)]
    sent_by_browsers = {field.widget.choices[0][0] for field in lists}
    assert sent_by_browsers <= {"", EVERYTHING}
