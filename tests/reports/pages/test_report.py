"""The page of a report: what is chosen there, and what comes back where that makes no sense."""

import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection
from django.forms import ChoiceField
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.operations.pages.operation_list import ALL_TAB
from backoffice.reports.definitions.catalogue import REPORTS
from backoffice.reports.exports.request_codec import filter_form
from backoffice.reports.models import ExportJob
from backoffice.reports.rendering.xlsx import MAX_CELL_CHARACTERS
from tests import factories
from tests.reports import odd_values
from tests.reports.export_requests import requested_export
from tests.reports.pages.test_access import address, page_of

pytestmark = pytest.mark.django_db(transaction=True)  # a report reads by a connection of its own


def test_form_and_link_download_the_same_file(reader: Client) -> None:
    odd_values.stored()
    sent = {"type": "withdrawal", "columns": ["transaction_id", "fee"], "format": "csv"}

    by_page = b"".join(reader.post(page_of("transactions"), sent))

    assert by_page == b"".join(reader.get(address("transactions"), sent))


def the_planner_counts_anew() -> None:
    """What earlier tests deleted may stay in PostgreSQL's files for a while, and its planner goes by their size."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE ledger_transaction")


def test_excel_files_have_their_own_format(reader: Client) -> None:
    odd_values.stored()
    the_planner_counts_anew()

    response = reader.post(page_of("transactions"), {"format": "xlsx"})

    assert b"".join(response).startswith(b"PK")
    assert response["Content-Type"].endswith("spreadsheetml.sheet")
    assert response["Content-Disposition"].endswith('.xlsx"')
    entry = Entry.objects.filter(action="report.exported").get()
    assert (entry.detail["rows"], entry.detail["complete"]) == (len(odd_values.TEXTS), True)


def test_a_cell_too_long_for_excel_is_reported_with_the_form_and_not_offered_in_background(
    reader: Client, offer: Callable[[Callable[[], Iterator[object]]], None]
) -> None:
    offer(lambda: iter(["x" * (MAX_CELL_CHARACTERS + 1)]))

    response = reader.get(address("numbers"), {"format": "xlsx"})

    html = response.content.decode()
    assert response.status_code == 422
    assert "32,767 characters, the limit of Excel. Export as CSV. No export was requested." in html
    assert '<option value="xlsx" selected>' in html
    assert "Background export needed" not in html
    assert not Entry.objects.exists()


def test_the_page_shows_the_approximate_number_of_rows(reader: Client, preparer: User) -> None:
    factories.prepared(preparer)

    answer = reader.get(reverse("reports:size", args=["operations"]), {"status": "pending"})

    assert re.search(r"About [\d,]+ rows?\.", answer.content.decode())


def test_a_report_that_cannot_have_rows_is_a_file_without_rows(reader: Client) -> None:
    chosen = {"tab": "waiting"}  # nothing ever waits for an auditor

    assert reader.get(page_of("operations"), chosen).status_code == 200
    assert b"".join(reader.get(address("operations"), chosen)).count(b"\n") == 1


@pytest.mark.parametrize(
    "path", ["/reports/", "/reports/operations/", "/reports/exports/", "/reports/schedules/"]
)
def test_the_pages_need_few_queries(
    reader: Client, auditor: User, path: str, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(5):
        requested_export(auditor)

    with django_assert_max_num_queries(8):
        answer = reader.get(path)

    assert len(gzip.compress(answer.content)) <= 14_000


def test_a_refused_form_keeps_its_input(reader: Client) -> None:
    html = reader.get("/reports/operations.csv?since=yesterday&columns=status").content.decode()
    assert html.count('value="yesterday"') == 1
    assert html.count("Enter the day as year, month and day") == 1
    assert 'value="status" checked' in html
    assert 'value="reference" checked' not in html


def test_selected_columns_are_expanded_on_a_refused_form(reader: Client) -> None:
    sent = {"chooses": "on", "columns": ["type", "currency", "amount"], "min_amount": "abc"}

    html = reader.post(page_of("transactions"), sent).content.decode()

    assert re.search(r"<details[^>]* open>\s*<summary>3 of \d+ columns</summary>", html)
    assert html.partition('class="headings"')[2].partition("</ul>")[0].count(" checked>") == 3


def test_an_empty_column_selection_is_refused(reader: Client) -> None:
    answer = reader.post(page_of("operations"), {"chooses": "on", "then": "background"})

    html = answer.content.decode()
    assert answer.status_code == 422
    assert "Select at least one column." in html
    assert re.search(r"<details[^>]* open>\s*<summary>0 of \d+ columns</summary>", html)
    assert " checked>" not in html.partition('class="headings"')[2].partition("</ul>")[0]
    assert not ExportJob.objects.exists()


def test_a_request_without_column_choice_has_all_columns(reader: Client) -> None:
    reader.post(page_of("operations"), {"then": "background"})

    assert ExportJob.objects.get().columns == []
    html = reader.get(page_of("operations")).content.decode()
    assert 'type="hidden" name="chooses"' in html
    assert re.search(r"<details class=\"fold\">\s*<summary>All \d+ columns</summary>", html)


def test_download_links_have_no_download_attribute() -> None:
    """The browser would keep the page that offers the background as a file."""
    pages = Path("templates").rglob("*.html")
    links = [link for page in pages for link in re.findall(r"<a [^>]*reports:csv[^>]*>", page.read_text())]

    assert links
    assert [link for link in links if " download" in link] == []


@pytest.mark.parametrize("name", REPORTS)
def test_an_unfiltered_page_exports_everything(name: str) -> None:
    lists = [
        field for field in filter_form(REPORTS[name], {}).fields.values() if isinstance(field, ChoiceField)
    ]
    sent_by_browsers = {field.widget.choices[0][0] for field in lists}
    assert sent_by_browsers <= {"", ALL_TAB}


@pytest.mark.parametrize("name", ["operations", "payments"])
def test_the_page_says_which_day_of_an_operation_counts(reader: Client, name: str) -> None:
    """An operation prepared on the last day of a month and sent on the next is in the file of the first month."""
    shown = reader.get(reverse("reports:report", args=[name])).content.decode()
    assert "by the day they were prepared" in shown
