"""Reading what was downloaded."""

import csv
import io
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from tests.reports.download import Download


@pytest.fixture
def download(client: Client) -> Callable[..., Download]:
    """Download a report with the test's browser, to its end, as the server would send it."""

    def get(name: str, **filters: str | int | list[str]) -> Download:
        response = client.get(reverse("reports:csv", args=[name]), filters)
        assert response.status_code == 200, response.status_code
        text = b"".join(response).decode("utf-8")
        rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
        return Download(rows=rows, headers=dict(response.items()))

    return get
