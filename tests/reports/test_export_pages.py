"""The pages of exports: only their own person's, and only as long as the report may be read."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.reports.models import ExportJob
from backoffice.reports.states import State
from tests.reports.asking import asked_for, made, now

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]
PAGES = ("export", "progress", "download")
DEEDS = ("cancel", "again")


@pytest.fixture
def reader(client: Client, auditor: User, sign_in: SignIn) -> Client:
    return sign_in(client, auditor)


def address(page: str, job: ExportJob) -> str:
    return reverse(f"reports:{page}", args=[job.pk])


def test_a_wish_becomes_an_export_with_its_page(reader: Client, auditor: User) -> None:
    sent = {
        "then": "background",
        "group": "export",
        "columns": ["action"],
        "has_mark": "on",
        "format": "xlsx",
    }

    answer = reader.post(reverse("reports:report", args=["audit-log"]), sent)

    job = ExportJob.objects.get()
    assert answer["Location"] == address("export", job)
    assert (job.person, job.state, job.filters) == (auditor, State.WAITING, {"group": ["export"]})
    assert (job.columns, job.format, job.has_mark) == (["action"], "xlsx", True)


@pytest.mark.parametrize("page", PAGES)
def test_nobody_else_sees_it(
    client: Client, auditor: User, administrator: User, sign_in: SignIn, page: str
) -> None:
    job = made(auditor)

    assert sign_in(client, administrator).get(address(page, job)).status_code == 404


@pytest.mark.parametrize("deed", DEEDS)
def test_nobody_else_does_anything_with_it(
    client: Client, auditor: User, administrator: User, sign_in: SignIn, deed: str
) -> None:
    job = asked_for(auditor)

    assert sign_in(client, administrator).post(address(deed, job)).status_code == 404
    assert now(job).state == State.WAITING
    assert ExportJob.objects.count() == 1


@pytest.mark.parametrize("page", PAGES)
def test_without_the_right_it_is_gone(reader: Client, auditor: User, page: str) -> None:
    job = made(auditor)
    auditor.groups.clear()

    assert reader.get(address(page, job)).status_code == 404
    assert not Entry.objects.filter(action="export.downloaded").exists()


def test_the_file_is_what_was_made(reader: Client, auditor: User) -> None:
    job = made(auditor)

    answer = reader.get(address("download", job))

    assert b"".join(answer) == job.file.read_bytes()
    assert answer["Content-Disposition"] == f'attachment; filename="{job.name}"'
    assert answer["Cache-Control"] == "no-store"
    assert Entry.objects.filter(action="export.downloaded").get().actor_id == auditor.pk


def test_the_page_tells_progress_without_a_script_and_asks_again_with_one(
    reader: Client, auditor: User
) -> None:
    job = asked_for(auditor, estimate=1000)
    ExportJob.objects.filter(pk=job.pk).update(state=State.RUNNING, rows=250)

    page = reader.get(address("export", job)).content.decode()

    assert '<progress value="250" max="1000"' in page
    assert "250 of about 1,000 rows written" in page
    assert f'hx-get="{address("progress", job)}"' in page
    assert f'<a href="{address("export", job)}">Look again</a>' in page


def test_a_finished_one_is_no_longer_asked_for_and_shows_its_digest(reader: Client, auditor: User) -> None:
    job = made(auditor)

    part = reader.get(address("progress", job)).content.decode()

    assert "hx-get" not in part
    assert job.sha256 in part
    assert f'href="{address("download", job)}"' in part


def test_it_is_cancelled_by_its_person(reader: Client, auditor: User) -> None:
    job = asked_for(auditor)

    assert reader.post(address("cancel", job))["Location"] == address("export", job)

    assert now(job).state == State.CANCELLED
    assert "It was cancelled" in reader.get(address("export", job)).content.decode()


def test_the_same_is_made_again(reader: Client, auditor: User) -> None:
    job = made(auditor)

    reader.post(address("again", job))

    assert ExportJob.objects.filter(state=State.WAITING).get().wish == job.wish


def test_a_file_that_is_no_longer_there_is_told(reader: Client, auditor: User) -> None:
    job = made(auditor)
    job.file.unlink()

    answer = reader.get(address("download", job), follow=True)

    assert "no longer there" in answer.content.decode()


def test_why_there_is_no_file_stands_on_the_page(reader: Client, auditor: User) -> None:
    job = asked_for(auditor)
    ExportJob.objects.filter(pk=job.pk).update(state=State.FAILED, problem="The service went away")

    assert "There is no file: The service went away" in reader.get(address("export", job)).content.decode()


def test_the_list_has_the_persons_own_newest_first(
    reader: Client, auditor: User, administrator: User
) -> None:
    asked_for(administrator)
    first, second = asked_for(auditor), asked_for(auditor)

    page = reader.get(reverse("reports:exports")).content.decode()

    assert page.index(address("export", second)) < page.index(address("export", first))
    assert page.count('class="row"') == 2
