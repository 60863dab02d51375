"""A file is in the language of the person who ordered it, whoever writes it and whenever."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django import forms
from django.core import mail
from django.db.models import TextChoices
from django.test import Client
from django.urls import reverse
from django.utils.functional import lazy
from django.utils.translation import get_language, override

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.reports.definitions import catalogue
from backoffice.reports.exports import runner
from backoffice.reports.models import ExportJob, Schedule
from backoffice.reports.report import Column, ComputedReport, labelled
from backoffice.reports.schedules import messages
from tests.reports.export_requests import path_of, requested_export
from tests.reports.schedule_requests import now, ran, stored_schedule

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("public_address", "tongues")]
SignIn = Callable[[Client, User], Client]
PERIOD = {"report": "tongues", "filters": {}, "columns": [], "period": "all"}


def translated(text: str) -> Any:
    """A text whose translation names its language."""
    return lazy(lambda: f"{text} in {get_language()}", str)()


class Tongue(TextChoices):
    ORDERED = "export.requested", translated("Ordered")


@pytest.fixture
def tongues(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report whose headings and cells name the language in which they are written."""

    def rows(_user: User, _form: forms.Form) -> Iterator[str]:
        yield str(get_language())

    declared: dict[str, Any] = {"about": "", "permissions": ("audit.view_entry",), "form": forms.Form}
    column: Column[str] = Column("tongue", translated("Heading"), lambda row: row)
    computed: ComputedReport[str, forms.Form] = ComputedReport(
        name="tongues", title=translated("Tongues"), columns=(column,), rows=rows, **declared
    )
    monkeypatch.setitem(catalogue.REPORTS, computed.name, computed)


@pytest.fixture
def french_reader(client: Client, auditor: User, sign_in: SignIn) -> Client:
    User.objects.filter(pk=auditor.pk).update(language="fr")
    return sign_in(client, auditor)


def content_of(job: ExportJob) -> list[str]:
    runner.run_export(job.pk)
    return path_of(ExportJob.objects.get(pk=job.pk)).read_text().splitlines()


def test_a_download_is_in_the_language_of_the_page_though_it_is_sent_later(french_reader: Client) -> None:
    answer = french_reader.get(reverse("reports:csv", args=["tongues"]))
    assert b"".join(answer).decode().splitlines() == ['"Heading in fr"', '"fr"']


def test_a_background_export_is_in_the_language_of_the_page(french_reader: Client) -> None:
    french_reader.post(reverse("reports:report", args=["tongues"]), {"then": "background"})
    job = ExportJob.objects.get()
    assert job.language == "fr"
    with override("en"):
        assert content_of(job) == ['"Heading in fr"', '"fr"']


def test_the_browser_decides_for_whoever_chose_no_language(
    client: Client, auditor: User, sign_in: SignIn
) -> None:
    browser = sign_in(client, auditor)
    browser.post(
        reverse("reports:report", args=["tongues"]),
        {"then": "background"},
        headers={"Accept-Language": "fr-CH, en;q=0.5"},
    )
    assert ExportJob.objects.get().language == "fr"


def test_an_export_that_is_repeated_is_in_the_same_language(auditor: User, reader: Client) -> None:
    job = requested_export(auditor, report="tongues", columns=[], language="fr")
    content_of(job)
    reader.post(reverse("reports:repeat", args=[job.pk]))
    assert set(ExportJob.objects.values_list("language", flat=True)) == {"fr"}


def test_labels_that_the_database_writes_are_in_the_language_too(auditor: User) -> None:
    requested_export(auditor, report="tongues", columns=[])  # for an entry in the audit log
    column: Column[Any] = Column("what", "What", labelled("action", Tongue))
    for language in ("en", "fr"):
        with override(language):
            [label] = Entry.objects.annotate(label=column.expression).values_list("label", flat=True)
        assert label == f"Ordered in {language}"


def test_a_schedule_has_the_language_of_the_page(
    client: Client, auditor: User, french_reader: Client
) -> None:
    typed = {
        "name": "Weekly",
        "frequency": "weekly",
        "weekday": "1",
        "day": "1",
        "hour": "6",
        "time_zone": "Africa/Lagos",
        "period": "all",
        "recipients": [auditor.pk],
    }
    french_reader.post(reverse("reports:new_schedule", args=["tongues"]), typed)
    schedule = Schedule.objects.get()
    assert schedule.language == "fr"
    User.objects.filter(pk=auditor.pk).update(language="en")
    client.post(reverse("reports:schedule", args=[schedule.pk]), typed)
    assert now(schedule).language == "en"


def test_the_files_of_a_schedule_are_in_its_language(auditor: User) -> None:
    job = ran(stored_schedule(auditor, **PERIOD, language="fr"))
    assert (job.language, path_of(job).read_text().splitlines()) == ("fr", ['"Heading in fr"', '"fr"'])


@pytest.mark.parametrize(("chosen", "expected"), [("auto", "fr"), ("en", "en"), ("fr", "fr")])
def test_an_e_mail_is_in_the_language_of_its_reader_or_else_of_the_file(
    auditor: User, chosen: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    User.objects.filter(pk=auditor.pk).update(language=chosen)
    ran(stored_schedule(auditor, **PERIOD, language="fr"))
    monkeypatch.setattr(messages, "gettext", lambda text: f"[{get_language()}] {text}")
    assert messages.send_due_messages() == 1
    assert f"[{expected}] " in mail.outbox[0].body


def test_the_audit_log_names_a_report_in_english(french_reader: Client) -> None:
    b"".join(french_reader.get(reverse("reports:csv", args=["tongues"])))
    french_reader.post(reverse("reports:report", args=["tongues"]), {"then": "background"})
    labels = Entry.objects.filter(action__startswith="report.").values_list("target_label", flat=True)
    assert set(labels) == {"the report Tongues in en"}
    assert Entry.objects.get(action="export.requested").target_label == "the report Tongues in en"
