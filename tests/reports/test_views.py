"""Who may take what away, and what a person is told where it cannot be had."""

from collections.abc import Callable, Iterator

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.reports.catalogue import REPORTS
from backoffice.reports.csv_encoding import CHUNK_CHARACTERS
from payments_gateway import ReadFailedError
from tests.reports.download import Download
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db
SignIn = Callable[[Client, User], Client]
LIST = reverse("reports:list")
READERS = {
    "operations": {"maker", "checker", "auditor", "administrator"},
    "transactions": {"maker", "checker", "auditor", "administrator"},
    "balances": {"maker", "checker", "auditor", "administrator"},
    "bank-accounts": {"maker", "checker", "auditor", "administrator"},
    "payments": {"maker", "checker", "auditor", "administrator"},
    "wallets": {"maker", "checker", "auditor", "administrator"},
    "api-keys": {"maker", "checker", "auditor", "administrator"},
    "incidents": {"maker", "checker", "auditor", "administrator"},
    "audit-log": {"auditor", "administrator"},
}
CAST = ("maker", "checker", "auditor", "administrator", "outsider")


def address(name: str) -> str:
    return reverse("reports:csv", args=[name])


@pytest.fixture
def reader(client: Client, auditor: User, sign_in: SignIn) -> Client:
    """The auditor's browser."""
    return sign_in(client, auditor)


@pytest.fixture
def long_sandbox(settings: Settings) -> Iterator[SandboxProcess]:
    """A service of its own with more transactions than one chunk of a file holds; the test may stop it."""
    with SandboxProcess(transactions=2000) as process:
        settings.GATEWAY_URL = process.url
        yield process


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
    assert {name for name in READERS if f'action="{address(name)}"' in page} == allowed


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
        ("transactions", {"duration": "one decade"}, "transactions-duration", "Select a valid choice"),
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


def test_a_service_that_does_not_answer_is_told_on_a_page(
    reader: Client, long_sandbox: SandboxProcess
) -> None:
    long_sandbox.stop()

    response = reader.get(address("transactions"), {"currency": "NGN"})

    assert response.status_code == 502
    page = response.content.decode()
    assert "Transactions could not be read" in page
    assert "No file was made and nothing was changed" in page
    assert f'href="{address("transactions")}?currency=NGN"' in page
    assert not Entry.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_service_that_stops_in_the_middle_breaks_the_file_off(
    reader: Client, long_sandbox: SandboxProcess
) -> None:
    response = reader.get(address("transactions"))
    chunks = iter(response)
    sent = next(chunks)
    long_sandbox.stop()

    with pytest.raises(ReadFailedError):
        list(chunks)
    response.close()

    entry = Entry.objects.first()
    assert entry is not None
    assert len(sent) >= CHUNK_CHARACTERS
    assert entry.detail["complete"] is False
    assert entry.detail["rows"] >= sent.count(b"\r\n") - 1


@pytest.mark.django_db(transaction=True)
def test_a_reader_who_goes_away_is_on_record(reader: Client, long_sandbox: SandboxProcess) -> None:
    response = reader.get(address("transactions"))
    sent = next(iter(response))

    response.close()

    entry = Entry.objects.first()
    assert entry is not None
    assert (entry.action, entry.detail["complete"]) == ("report.exported", False)
    assert entry.detail["rows"] == sent.count(b"\r\n") - 1


def test_the_page_needs_few_queries(
    reader: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(6):
        reader.get(LIST)


def test_a_refused_form_comes_back_in_the_card_of_its_own_report(reader: Client) -> None:
    html = reader.get("/reports/operations.csv?since=yesterday").content.decode()
    assert html.count('id="operations-since"') == 1
    assert html.count("Enter a valid date.") == 1
