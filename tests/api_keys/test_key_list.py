"""The list of API keys: what was last known at once, then what the provider says; warnings, buttons, file."""

import csv
import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone, translation
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.api_keys import key_list
from backoffice.api_keys.key_list import expiry_warning, key_rows
from backoffice.api_keys.models import KnownKey
from backoffice.core import credentials
from backoffice.core.models import LeaseRow
from backoffice.operations.models.operations import Operation
from backoffice.operations.outcome import confirmation
from tests.api_keys import steps
from tests.api_keys.steps import text_of
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]
UNREACHABLE = "http://127.0.0.1:9/v4"


def an_hour_passes() -> None:
    """What was listed and tried lies an hour back."""
    KnownKey.objects.update(as_of=timezone.now() - key_list.REFRESH_INTERVAL)
    LeaseRow.objects.update(held_until=timezone.now())


def known(short_hash: str, **members: Any) -> KnownKey:
    return KnownKey.objects.create(
        short_hash=short_hash, position=KnownKey.objects.count(), as_of=timezone.now(), **members
    )


def test_the_page_does_not_call_the_provider_and_loads_the_list_by_htmx(
    as_administrator: Client, settings: Settings
) -> None:
    settings.GATEWAY_URL_V4 = UNREACHABLE
    known("0a1b2c3d", name="till")
    page = text_of(as_administrator.get("/settings/api-keys/"))
    assert 'hx-get="/settings/api-keys/list/" hx-trigger="load"' in page
    assert "till" in page
    assert "the key configured at installation" in page


def test_the_list_is_read_from_the_provider(as_administrator: Client, sandbox: SandboxProcess) -> None:
    known("gone", name="gone at the service")
    page = text_of(as_administrator.get("/settings/api-keys/list/"))
    assert "first key" in page
    assert "gone at the service" not in page
    assert "In use" in page
    assert "hx-get" not in page
    assert [key.name for key in KnownKey.objects.all()] == ["first key"]


def test_an_unreachable_provider_shows_the_last_reported_list_with_its_age(
    as_administrator: Client, settings: Settings
) -> None:
    known("0a1b2c3d", name="till")
    settings.GATEWAY_URL_V4 = UNREACHABLE
    for address in ("/settings/api-keys/list/", "/settings/api-keys/?now=1"):
        page = text_of(as_administrator.get(address))
        assert "This is the last reported list" in page
        assert "Last reported <time" in page
        assert "till" in page


def test_a_link_reads_the_list_without_javascript(as_administrator: Client, sandbox: SandboxProcess) -> None:
    assert 'href="/settings/api-keys/?now=1"' in text_of(as_administrator.get("/settings/api-keys/"))
    assert "first key" in text_of(as_administrator.get("/settings/api-keys/?now=1"))


@pytest.mark.parametrize(
    ("left", "words", "tone"),
    [
        (timedelta(days=31), "", ""),
        (timedelta(days=30), "in 30 days", "info"),
        (timedelta(days=8), "in 8 days", "info"),
        (timedelta(days=7), "in 7 days", "warn"),
        (timedelta(days=1, hours=1), "in 1 day", "warn"),
        (timedelta(days=1), "in 1 day", "bad"),
        (timedelta(hours=5), "in less than a day", "bad"),
        (timedelta(0), "expired", "bad"),
    ],
)
def test_an_expiry_is_warned_of_thirty_seven_and_one_days_before(
    left: timedelta, words: str, tone: str
) -> None:
    now = timezone.now()
    assert expiry_warning(now + left, now) == (words, tone)
    assert expiry_warning(None, now) == ("", "")


def test_each_key_shows_its_status() -> None:
    now = timezone.now()
    known("a", name="ended", ended_at=now)
    known("b", name="expired", expires_at=now - timedelta(days=1))
    known("c", name="works")
    own = credentials.key_in_use().short_hash
    known(own, name="own")
    assert [row.state for row in key_rows()] == ["Invalidated", "Expired", "Valid", "In use"]
    KnownKey.objects.filter(pk=own).update(ended_at=now)
    assert key_rows()[-1].state == "Invalidated, still in use"
    assert key_rows()[-1].state_tone == "bad"


def test_a_key_created_here_is_listed_with_its_permissions(
    as_administrator: Client, created: Operation
) -> None:
    key_list.refresh_keys()
    row = next(row for row in key_rows() if row.name == "till")
    assert row.scope == "Full access: read, convert, pay out, and manage API keys (Master)"
    assert row.warning == ""
    assert row.expires_at is not None


def test_buttons_prefill_the_form_and_need_the_permission_to_prepare(
    as_administrator: Client, as_approver: Client
) -> None:
    known("0a1b2c3d", name="till")
    page = text_of(as_administrator.get("/settings/api-keys/"))
    assert "/operations/prepare/api_key_invalidate/?short_hash=0a1b2c3d" in page
    assert "/operations/prepare/api_key_delete/?short_hash=0a1b2c3d" in page
    assert "/operations/prepare/api_key_create/" in page
    assert "/operations/prepare/" not in text_of(as_approver.get("/settings/api-keys/")).partition("<main")[2]


def test_a_key_name_with_markup_is_escaped(as_administrator: Client) -> None:
    known("<b>", name="<script>alert(1)</script>&")
    page = text_of(as_administrator.get("/settings/api-keys/"))
    assert "<script>alert" not in page
    assert "short_hash=%3Cb%3E" in page


def test_the_csv_export_has_the_list_and_escapes_formulas(as_approver: Client) -> None:
    known("0a1b2c3d", name="=HYPERLINK(1)")
    body = b"".join(as_approver.get("/reports/api-keys.csv").streaming_content)  # type: ignore[attr-defined]
    [row] = csv.DictReader(io.StringIO(body.decode()))
    assert (row["Short hash"], row["Name"], row["Used by this installation"]) == (
        "0a1b2c3d",
        "'=HYPERLINK(1)",
        "false",
    )


def test_a_key_whose_creation_response_was_lost_is_reported(
    as_administrator: Client, approver: User, sandbox: SandboxProcess
) -> None:
    sandbox.options(token_reuse=True)
    sandbox.fault("api_keys.generate", "drop", when="after_execution")
    operation = steps.approve_and_send(
        steps.prepare(as_administrator, "api_key_create", **steps.NAMED), approver, sandbox
    )
    assert confirmation.confirm_operation(operation.pk).status == "succeeded"
    page = text_of(as_administrator.get("/settings/api-keys/list/"))
    assert "the response with the key was lost. No one can use it" in page


@pytest.mark.parametrize(
    ("ends_in", "words"),
    [
        (timedelta(days=31), ""),
        (timedelta(days=29, hours=1), "in 29 days"),
        (timedelta(hours=3), "in less than a day"),
        (-timedelta(days=2), "expired"),
        (-timedelta(days=8), ""),
    ],
)
def test_the_overview_warns_of_a_key_that_expires_within_thirty_days(
    as_administrator: Client, settings: Settings, ends_in: timedelta, words: str
) -> None:
    settings.GATEWAY_URL_V4 = UNREACHABLE
    known("0a1b2c3d", name="till", expires_at=timezone.now() + ends_in)
    shown = text_of(as_administrator.get("/")).partition("Needs attention")[2]
    assert ("till" in shown, words in shown) == (bool(words), True)


def test_the_overview_does_not_warn_of_an_ended_key(as_administrator: Client) -> None:
    now = timezone.now()
    known("0a1b2c3d", name="till", expires_at=now + timedelta(days=3), ended_at=now)
    assert "till" not in text_of(as_administrator.get("/"))


def test_the_sweeper_refreshes_a_list_that_is_not_opened(sandbox: SandboxProcess, settings: Settings) -> None:
    key_list.refresh_keys_if_due()
    assert [key.name for key in KnownKey.objects.all()] == ["first key"]
    settings.GATEWAY_URL_V4 = UNREACHABLE
    an_hour_passes()
    key_list.refresh_keys_if_due()
    assert [key.name for key in KnownKey.objects.all()] == ["first key"]


def test_the_list_is_read_at_most_once_an_hour_in_the_background(
    sandbox: SandboxProcess, settings: Settings
) -> None:
    assert [key_list.refresh_keys_if_due(), key_list.refresh_keys_if_due()] == [1, 0]
    KnownKey.objects.update(name="an hour ago")
    an_hour_passes()
    assert key_list.refresh_keys_if_due() == 1
    assert KnownKey.objects.get().name == "first key"


def test_a_list_read_by_a_user_postpones_the_background_read(sandbox: SandboxProcess) -> None:
    key_list.refresh_keys()
    assert key_list.refresh_keys_if_due() == 0
    assert not LeaseRow.objects.exists()


def test_failed_background_reads_back_off(settings: Settings) -> None:
    settings.GATEWAY_URL_V4 = UNREACHABLE
    assert [key_list.refresh_keys_if_due(), key_list.refresh_keys_if_due()] == [0, 0]
    pause = LeaseRow.objects.get().held_until - timezone.now()
    assert key_list.RETRY_INTERVAL - timedelta(minutes=1) < pause <= key_list.RETRY_INTERVAL


def test_the_page_takes_at_most_six_queries_with_fifty_keys(
    as_administrator: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(50):
        known(f"{number:08x}", name=f"key {number}")
    credentials.clear_key_cache()
    cache.delete("expiring-keys")
    with django_assert_max_num_queries(6):
        assert len(as_administrator.get("/settings/api-keys/").content) < 60_000


def test_permissions_are_in_the_readers_language() -> None:
    known("0a1b2c3d", name="till", scope="Read and pay out (Withdrawal)")
    with translation.override("fr"):
        (row,) = key_rows()
        assert row.permissions == "Consulter et payer (Withdrawal)"
