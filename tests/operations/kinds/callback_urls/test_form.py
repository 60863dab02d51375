"""The form: old beside new, and what it refuses."""

from typing import Any

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.operations.models.operations import Operation
from backoffice.operations.workflow import approvals
from tests import factories
from tests.operations.kinds.callback_urls.steps import AFTER, BEFORE, sample
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)

ADDRESS = "/operations/prepare/callback_url/"


def review(client: Client, url: str) -> Any:
    return client.post(ADDRESS, {"url": url, "step": "review"})


def test_the_review_shows_the_old_and_the_new_address(
    as_administrator: Client, provider: StubProvider
) -> None:
    html = review(as_administrator, AFTER).content.decode().replace("<wbr>", "")
    assert f"<h1>Send webhooks to {AFTER}</h1>" in html
    assert html.index("New URL") < html.index("Current URL") < html.index(BEFORE)


def test_the_form_shows_the_current_address(as_administrator: Client, provider: StubProvider) -> None:
    html = as_administrator.post(f"{ADDRESS}check/", {"url": ""}).content.decode()
    assert BEFORE in html
    assert "required" not in html


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "Enter a value."),
        ("https://pay.example.com/" + "x" * 2025, "at most 2048"),
        ("https://10.0.0.1/", "private"),
        (BEFORE, "The provider already uses this URL."),
    ],
)
def test_invalid_input_is_reported_at_its_field_and_kept(
    as_administrator: Client, provider: StubProvider, url: str, message: str
) -> None:
    answer = review(as_administrator, url)
    assert answer.status_code == 422
    assert message in " ".join(answer.context["form"].errors["url"])
    assert answer.context["form"]["url"].value() == url
    assert not Operation.objects.exists()


def test_nothing_is_prepared_without_the_current_address(
    as_administrator: Client, provider: StubProvider
) -> None:
    provider.callback = "42"
    answer = review(as_administrator, AFTER)
    assert answer.status_code == 422
    assert "current URL could not be read" in answer.content.decode()


def test_an_address_that_changed_after_the_review_is_reviewed_again(
    as_administrator: Client, provider: StubProvider
) -> None:
    shown = review(as_administrator, AFTER)
    provider.callback = '"https://hooks.example.com/other"'
    values = {"url": AFTER, "step": "prepare"}
    for name in ("submission", "digest"):
        values[name] = str(shown.context[name])
    answer = as_administrator.post(ADDRESS, values)
    assert answer.status_code == 422
    assert "details changed after your review" in answer.content.decode()
    assert not Operation.objects.exists()


def test_the_longest_address_fits_into_every_column(
    as_administrator: Client, administrator: User, provider: StubProvider
) -> None:
    longest = "https://" + "a" * 60 + ".example.com/" + "x" * 1967
    assert len(longest) == 2048
    operation = factories.prepared_of_kind("callback_url", sample(url=longest), administrator)
    assert len(operation.sentence) <= 200
    assert len(operation.recipient) <= 200
    html = as_administrator.get(f"/operations/{operation.pk}/").content.decode()
    assert longest in html.replace("<wbr>", "")


def test_an_equivalent_of_the_current_address_is_refused(
    as_administrator: Client, provider: StubProvider
) -> None:
    provider.callback = f'"{AFTER}"'
    answer = review(as_administrator, AFTER.replace("https://", "HTTPS://").replace(".com", ".COM:443"))
    assert answer.status_code == 422
    assert "already uses this URL" in answer.content.decode()


def test_prepare_again_prefills_the_form(administrator: User, as_administrator: Client) -> None:
    operation = factories.prepared_of_kind("callback_url", sample(), administrator)
    approvals.cancel_operation(operation.pk, actor=administrator)
    form = as_administrator.get(f"{ADDRESS}?copy={operation.pk}").context["form"]
    assert form["url"].value() == AFTER
