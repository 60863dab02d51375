"""Reading what was downloaded."""

from collections.abc import Callable, Iterator

import pytest
from django import forms
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.reports.definitions import catalogue
from backoffice.reports.models import work_folder
from backoffice.reports.report import Column, ComputedReport
from tests.reports.download import Download, rows_by_column


@pytest.fixture
def reader(client: Client, auditor: User, sign_in: Callable[[Client, User], Client]) -> Client:
    """The auditor's browser."""
    return sign_in(client, auditor)


@pytest.fixture
def download(client: Client) -> Callable[..., Download]:
    """Download a report with the test's browser, to its end, as the server would send it."""

    def get(name: str, **filters: str | int | list[str]) -> Download:
        response = client.get(reverse("reports:csv", args=[name]), filters)
        assert response.status_code == 200, response.status_code
        text = b"".join(response).decode("utf-8")
        return Download(rows=rows_by_column(name, text), headers=dict(response.items()))

    return get


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Iterator[object]]], None]:
    """A report `numbers` with these rows, for the length of the test."""

    def offered(rows: Callable[[], Iterator[object]]) -> None:
        report = ComputedReport(
            name="numbers",
            title="Numbers",
            about="",
            permissions=("audit.view_entry",),
            form=forms.Form,
            columns=(Column("number", "number", lambda row: row), Column("end", "end", lambda _row: "")),
            rows=lambda _user, _form: rows(),
        )
        monkeypatch.setitem(catalogue.REPORTS, report.name, report)

    return offered


@pytest.fixture
def empty_folder() -> None:
    """No file of another test in the folder of exports."""
    for path in work_folder().iterdir():
        path.unlink()


@pytest.fixture
def public_address(settings: Settings) -> None:
    """Where this installation is reached, as links in messages need."""
    settings.PUBLIC_URL = "https://office.example"
