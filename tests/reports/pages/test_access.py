"""Who may export what, and what a person reads where it is not allowed."""

from collections.abc import Callable
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.reports.definitions.catalogue import REPORTS
from backoffice.reports.exports.limits import DownloadSlot
from tests.reports import odd_values
from tests.reports.download import Download
from tests.requirements import opened_by
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)  # a report reads by a connection of its own
SignIn = Callable[[Client, User], Client]
LIST = reverse("reports:list")
READERS = {
    "approvals": {"preparer", "approver", "auditor", "administrator"},
    "attempts": {"preparer", "approver", "auditor", "administrator"},
    "recipients": {"preparer", "approver", "auditor", "administrator"},
    "staff": {"administrator"},
    "access-rights": {"administrator"},
    "operations": {"preparer", "approver", "auditor", "administrator"},
    "transactions": {"preparer", "approver", "auditor", "administrator"},
    "statement": {"preparer", "approver", "auditor", "administrator"},
    "continuity": {"preparer", "approver", "auditor", "administrator"},
    "balances": {"preparer", "approver", "auditor", "administrator"},
    "bank-accounts": {"preparer", "approver", "auditor", "administrator"},
    "payments": {"preparer", "approver", "auditor", "administrator"},
    "wallets": {"preparer", "approver", "auditor", "administrator"},
    "api-keys": {"preparer", "approver", "auditor", "administrator"},
    "reconciliation": {"preparer", "approver", "auditor", "administrator"},
    "reconciliation-by-day": {"preparer", "approver", "auditor", "administrator"},
    "webhook-deliveries": {"preparer", "approver", "auditor", "administrator"},
    "incidents": {"preparer", "approver", "auditor", "administrator"},
    "audit-log": {"auditor", "administrator"},
}
CAST = ("preparer", "approver", "auditor", "administrator", "outsider")


def page_of(name: str) -> str:
    return reverse("reports:report", args=[name])


def address(name: str) -> str:
    return reverse("reports:csv", args=[name])


def test_every_report_has_its_readers_above() -> None:
    assert set(READERS) == set(REPORTS)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("person", opened_by(CAST, on_both_engines="administrator"))
def test_permissions_to_download_each_report(
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
def test_the_page_lists_the_reports_the_user_may_download(
    request: pytest.FixtureRequest, client: Client, sign_in: SignIn, person: str
) -> None:
    response = sign_in(client, request.getfixturevalue(person)).get(LIST)

    allowed = {name for name, readers in READERS.items() if person in readers}
    assert response.status_code == (200 if allowed else 403)
    page = response.content.decode()
    assert {name for name in READERS if f'href="{page_of(name)}"' in page} == allowed


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("person", opened_by(CAST, on_both_engines="administrator"))
def test_permissions_to_open_each_report_page(
    request: pytest.FixtureRequest, client: Client, sign_in: SignIn, person: str, name: str
) -> None:
    response = sign_in(client, request.getfixturevalue(person)).get(page_of(name))

    assert response.status_code == (200 if person in READERS[name] else 403)


def test_the_page_lists_the_roles_of_each_report(reader: Client) -> None:
    page = reader.get(LIST).content.decode()

    row = page.partition(f'href="{page_of("audit-log")}"')[2].partition("</tr>")[0]
    assert "Auditor, Administrator" in row


def test_an_unknown_report_is_not_found(reader: Client) -> None:
    assert reader.get(address("payroll")).status_code == 404


def test_downloads_accept_get_only(reader: Client) -> None:
    assert reader.post(address("operations")).status_code == 405


@pytest.mark.parametrize(
    ("name", "filters", "field", "message"),
    [
        ("operations", {"status": "sleeping"}, "operations-status", "Select one of the options"),
        ("operations", {"since": "31.12.2026"}, "operations-since", "Enter the day as year"),
        (
            "operations",
            {"since": "2026-03-02", "until": "2026-03-01"},
            "operations-until",
            "before the first day",
        ),
        ("operations", {"until": "9999-12-31"}, "operations-until", "Choose a day from 2000-01-01"),
        ("audit-log", {"since": "0001-01-01"}, "audit-log-since", "Choose a day from 2000-01-01"),
        ("transactions", {"currency": "EUR"}, "transactions-currency", "Select one of the options"),
        ("transactions", {"direction": "up"}, "transactions-direction", "Select one of the options"),
        ("operations", {"columns": "colour"}, "file-columns", "Select one of the options"),
        ("audit-log", {"actor": "x"}, "audit-log-actor", "Select one of the options"),
    ],
)
def test_an_invalid_filter_is_reported_at_its_field(
    reader: Client, name: str, filters: dict[str, str], field: str, message: str
) -> None:
    response = reader.get(address(name), filters)

    assert response.status_code == 422
    error = response.content.decode().partition(f'id="{field}_error">')[2].partition("</span>")[0]
    assert message in error
    assert not Entry.objects.exists()


def test_downloads_are_not_cached(reader: Client, download: Callable[..., Download]) -> None:
    headers = download("operations", since="2026-03-01", until="2026-03-31").headers

    assert headers["Content-Type"] == "text/csv; charset=utf-8; header=present"
    assert headers["Content-Disposition"] == (
        'attachment; filename="countersign-operations-2026-03-01-to-2026-03-31.csv"'
    )
    assert headers["Cache-Control"] == "no-store"


def test_a_download_is_audited_with_address_and_request_id(
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


def test_an_unreachable_provider_is_reported_on_a_page(reader: Client, settings: Settings) -> None:
    settings.GATEWAY_URL = "http://127.0.0.1:1/v2"  # where nobody listens

    response = reader.get(address("wallets"), {"currency": "NGN"})

    assert response.status_code == 502
    page = response.content.decode()
    assert "Wallet addresses: not available" in page
    assert "No file was created." in page
    assert f'href="{address("wallets")}?currency=NGN"' in page
    assert not Entry.objects.exists()


def test_an_unreachable_provider_is_reported_in_the_language_of_the_page(
    reader: Client, auditor: User, settings: Settings
) -> None:
    settings.GATEWAY_URL = "http://127.0.0.1:1/v2"  # where nobody listens
    User.objects.filter(pk=auditor.pk).update(language="fr")

    page = unescape(reader.get(address("wallets")).content.decode())

    assert "Le prestataire n\N{RIGHT SINGLE QUOTATION MARK}a pas pu être joint (" in page
    assert "could not be reached" not in page


def test_an_aborted_download_is_audited(reader: Client) -> None:
    odd_values.stored()
    response = reader.get(address("transactions"))
    next(iter(response))

    response.close()

    entry = Entry.objects.first()
    assert entry is not None
    assert (entry.action, entry.detail["complete"], entry.detail["rows"]) == ("report.exported", False, 0)


def test_a_large_report_is_offered_as_a_background_export(reader: Client, settings: Settings) -> None:
    settings.EXPORT_STREAM_ROWS = 0
    odd_values.stored()

    response = reader.get(address("transactions"), {"type": "withdrawal", "columns": ["type", "fee"]})

    page = response.content.decode()
    assert response.status_code == 200
    assert "Export it in the background" in page
    for name, text in (("type", "withdrawal"), ("columns", "type"), ("columns", "fee")):
        assert f'<input type="hidden" name="{name}" value="{text}">' in page
    assert not Entry.objects.exists()


def test_a_background_export_is_offered_when_all_download_slots_are_taken(
    reader: Client, settings: Settings
) -> None:
    held = [DownloadSlot() for _ in range(settings.EXPORT_STREAMS)]

    response = reader.get(address("operations"))
    for place in held:
        place.release()

    assert response.status_code == 503
    assert "Too many downloads are in progress" in response.content.decode()
    assert not Entry.objects.exists()
