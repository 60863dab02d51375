"""The pages of exports: only their own person's, and only as long as the report may be read."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import AccessReview, User
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.reports.definitions.catalogue import REPORTS
from backoffice.reports.models import ExportJob, ExportState
from tests.reports.export_requests import made, now, path_of, requested_export

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]
PAGES = ("export", "progress", "download")
DEEDS = ("cancel", "repeat", "remove_export")


def address(page: str, job: ExportJob) -> str:
    return reverse(f"reports:{page}", args=[job.pk])


def test_a_request_creates_an_export_with_a_page(reader: Client, auditor: User) -> None:
    sent = {
        "then": "background",
        "group": "export",
        "columns": ["action"],
        "has_byte_order_mark": "on",
        "format": "xlsx",
    }

    answer = reader.post(reverse("reports:report", args=["audit-log"]), sent)

    job = ExportJob.objects.get()
    assert answer["Location"] == address("export", job)
    assert (job.person, job.state, job.filters) == (auditor, ExportState.WAITING, {"group": ["export"]})
    assert (job.columns, job.format, job.has_byte_order_mark) == (["action"], "xlsx", True)


def test_the_filters_are_shown_as_selected(reader: Client, auditor: User) -> None:
    chosen = {"actor": [str(auditor.pk)], "group": ["two_factor"], "since": ["2026-11-21"]}
    html = reader.get(address("export", made(auditor, filters=chosen))).content.decode()
    for shown in (f"<dt>Person</dt><dd>{auditor}</dd>", "<dt>From</dt><dd>21 Nov 2026</dd>"):
        assert shown in html


def test_an_outdated_filter_is_shown_as_entered(reader: Client, auditor: User) -> None:
    job = made(auditor, filters={"group": ["colour"], "of_before": ["1", "2"]})
    html = reader.get(address("export", job)).content.decode()
    assert "<dt>Group</dt><dd>colour</dd>" in html
    assert "<dt>Of before</dt><dd>1, 2</dd>" in html


@pytest.mark.parametrize("page", PAGES)
def test_other_users_cannot_see_an_export(
    client: Client, auditor: User, administrator: User, sign_in: SignIn, page: str
) -> None:
    job = made(auditor)

    assert sign_in(client, administrator).get(address(page, job)).status_code == 404


@pytest.mark.parametrize("deed", DEEDS)
def test_other_users_cannot_change_an_export(
    client: Client, auditor: User, administrator: User, sign_in: SignIn, deed: str
) -> None:
    job = requested_export(auditor)

    assert sign_in(client, administrator).post(address(deed, job)).status_code == 404
    assert now(job).state == ExportState.WAITING
    assert ExportJob.objects.count() == 1


@pytest.mark.parametrize("page", PAGES)
def test_an_export_is_hidden_without_the_permission(reader: Client, auditor: User, page: str) -> None:
    job = made(auditor)
    auditor.groups.clear()

    assert reader.get(address(page, job)).status_code == 404
    assert not Entry.objects.filter(action="export.downloaded").exists()


def test_the_download_is_the_rendered_file(reader: Client, auditor: User) -> None:
    job = made(auditor)

    answer = reader.get(address("download", job))

    assert b"".join(answer) == path_of(job).read_bytes()
    assert answer["Content-Disposition"] == f'attachment; filename="{job.name}"'
    assert answer["Cache-Control"] == "no-store"
    assert Entry.objects.filter(action="export.downloaded").get().actor_id == auditor.pk


def test_the_page_shows_progress_without_a_script_and_polls_with_one(reader: Client, auditor: User) -> None:
    job = requested_export(auditor, estimate=1000)
    ExportJob.objects.filter(pk=job.pk).update(state=ExportState.RUNNING, rows=250)

    page = reader.get(address("export", job)).content.decode()

    assert '<progress value="250" max="1000"' in page
    assert "250 of about 1,000 rows written" in page
    assert f'hx-get="{address("progress", job)}?announced=25%20%25"' in page
    assert f'<a href="{address("export", job)}">Refresh progress</a>' in page


def test_a_finished_export_stops_polling_and_shows_its_digest(reader: Client, auditor: User) -> None:
    job = made(auditor)

    part = reader.get(address("progress", job)).content.decode()

    assert "hx-get" not in part
    assert job.sha256 in part
    assert f'href="{address("download", job)}"' in part


def test_polling_does_not_replace_the_buttons(reader: Client, auditor: User) -> None:
    job = requested_export(auditor, estimate=1000)

    part = reader.get(address("progress", job), headers={"HX-Request": "true"}).content.decode()

    assert 'id="progress"' in part
    assert "<button" not in part
    assert 'id="export-deed"' in reader.get(address("export", job)).content.decode()


def test_when_finished_the_page_is_replaced_and_keeps_focus(reader: Client, auditor: User) -> None:
    job = made(auditor)

    answer = reader.get(address("progress", job), headers={"HX-Request": "true"})

    assert (answer["HX-Retarget"], answer["HX-Reswap"]) == ("#export", "outerHTML")
    assert answer.content.decode().count('id="export-deed"') == 1


@pytest.mark.parametrize(
    ("rows", "shown", "announced"),
    [
        (250, "25 %", None),
        (499, "25 %", None),
        (500, "25 %", "Running, 50 %."),
        (0, "waiting", "Running, 0 %."),
        (5000, "50 %", "Running, 75 %."),
    ],
)
def test_progress_is_announced_at_every_quarter(
    reader: Client, auditor: User, rows: int, shown: str, announced: str | None
) -> None:
    job = requested_export(auditor, estimate=1000)
    ExportJob.objects.filter(pk=job.pk).update(state=ExportState.RUNNING, rows=rows)

    part = reader.get(
        address("progress", job), {"announced": shown}, headers={"HX-Request": "true"}
    ).content.decode()

    assert ('role="status"' in part) is (announced is not None)
    assert announced is None or f'hx-swap-oob="innerHTML">{announced}</p>' in part


def test_an_export_is_cancelled_by_its_user(reader: Client, auditor: User) -> None:
    job = requested_export(auditor)

    assert reader.post(address("cancel", job))["Location"] == address("export", job)

    assert now(job).state == ExportState.CANCELLED
    assert "Cancelled: no file was created." in reader.get(address("export", job)).content.decode()


def test_an_export_is_repeated_with_the_same_request(reader: Client, auditor: User) -> None:
    job = made(auditor)

    reader.post(address("repeat", job))

    assert ExportJob.objects.filter(state=ExportState.WAITING).get().request_fields == job.request_fields


def test_a_deleted_file_is_reported(reader: Client, auditor: User) -> None:
    job = made(auditor)
    path_of(job).unlink()

    answer = reader.get(address("download", job), follow=True)

    assert "This file was deleted." in answer.content.decode()


def test_the_reason_for_a_missing_file_is_shown(reader: Client, auditor: User) -> None:
    job = requested_export(auditor)
    ExportJob.objects.filter(pk=job.pk).update(
        state=ExportState.FAILED, failure={"code": "provider_unreadable", "error": "The service went away"}
    )

    shown = reader.get(address("export", job)).content.decode()
    assert "No file was created. The provider&#x27;s data could not be read: The service went away" in shown


def test_the_list_has_own_exports_newest_first(reader: Client, auditor: User, administrator: User) -> None:
    requested_export(administrator)
    first, second = requested_export(auditor), requested_export(auditor)

    page = reader.get(reverse("reports:exports")).content.decode()

    assert page.index(address("export", second)) < page.index(address("export", first))
    assert page.count('class="row"') == 2


def test_the_list_distinguishes_exports_of_one_report(reader: Client, auditor: User) -> None:
    requested_export(auditor, filters={"since": ["2026-11-21"], "group": ["export"]}, columns=[])
    requested_export(auditor, columns=["position", "actor"])

    for path in (reverse("reports:exports"), reverse("reports:list")):
        page = reader.get(path).content.decode()
        assert ">Action: Background exports · From: 21 Nov 2026</small>" in page
        assert f">2 of {len(REPORTS['audit-log'].columns)} columns</small>" in page


def test_names_in_filters_are_read_in_one_query(
    reader: Client,
    auditor: User,
    administrator: User,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    requested_export(auditor, filters={"actor": [str(auditor.pk)]})
    with CaptureQueriesContext(connection) as of_one:
        reader.get(reverse("reports:exports"))
    requested_export(auditor, filters={"actor": [str(administrator.pk)]})

    with django_assert_num_queries(len(of_one)):
        page = reader.get(reverse("reports:exports")).content.decode()

    assert f"Person: {auditor}" in page
    assert f"Person: {administrator}" in page


def test_a_chosen_access_review_is_shown_by_its_name(
    client: Client, sign_in: SignIn, administrator: User, preparer: User, approver: User
) -> None:
    review = AccessReview.objects.create(
        operation=uuid4(), signed_at=clock.now(), prepared_by=preparer, approved_by=approver, rows=[]
    )
    job = requested_export(
        administrator, report="access-rights", columns=[], filters={"review": [str(review.operation)]}
    )

    html = sign_in(client, administrator).get(address("export", job)).content.decode()

    assert f"<dt>Signed-off review</dt><dd>{review}</dd>" in html


def test_a_deleted_export_is_not_shown_as_expired(reader: Client, auditor: User) -> None:
    job = made(auditor)

    page = reader.post(address("remove_export", job), follow=True).content.decode()

    assert '<span class="badge ">Deleted</span>' in page
    assert "You deleted the file." in page
    ExportJob.objects.filter(pk=job.pk).update(expires_at=clock.now())
    assert "You deleted the file." in reader.get(address("export", job)).content.decode()


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (ExportState.RUNNING, "7"),
        (ExportState.DONE, "7"),
        (ExportState.EXPIRED, "7"),
        (ExportState.REMOVED, "7"),
    ]
    + [(state, "") for state in (ExportState.WAITING, ExportState.CANCELLED, ExportState.FAILED)],
)
def test_the_row_count_is_shown_for_finished_files_only(
    reader: Client, auditor: User, state: ExportState, shown: str
) -> None:
    job = made(auditor)
    ExportJob.objects.filter(pk=job.pk).update(state=state, rows=7)

    page = reader.get(reverse("reports:exports")).content.decode()

    assert f'data-label="Rows">{shown}</td>' in page
