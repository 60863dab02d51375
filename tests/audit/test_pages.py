"""The audit log on screen: who may see it, what it says, and how it is narrowed and verified."""

import gzip
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.checkpoints import deliver_checkpoints_due, sign
from backoffice.audit.log import record
from backoffice.audit.models import Entry
from backoffice.core.web import request_context
from tests import factories
from tests.append_only.triggers import lifted

pytestmark = pytest.mark.django_db
SignIn = Callable[[Client, User], Client]
LIST, VERIFY = reverse("audit:list"), reverse("audit:verify")


@pytest.fixture
def reader(client: Client, auditor: User, sign_in: SignIn) -> Client:
    """The auditor's browser."""
    return sign_in(client, auditor)


def listed(reader: Client, **filters: str | int) -> list[str]:
    """The sentences on the page."""
    response = reader.get(LIST, filters)
    assert response.status_code == 200
    return [str(entry) for entry in response.context["page"].rows]


@pytest.mark.parametrize(
    ("person", "status"),
    [("preparer", 403), ("approver", 403), ("outsider", 403), ("auditor", 200), ("administrator", 200)],
)
def test_permissions_to_read_and_verify(
    request: pytest.FixtureRequest, client: Client, sign_in: SignIn, person: str, status: int
) -> None:
    browser = sign_in(client, request.getfixturevalue(person))

    assert browser.get(LIST).status_code == status
    assert browser.post(VERIFY).status_code == status


def test_verification_needs_a_post(reader: Client) -> None:
    assert reader.get(VERIFY).status_code == 405


def test_an_entry_reads_as_a_sentence_with_its_detail(reader: Client, preparer: User) -> None:
    with request_context.call_context(request_id="3f2a", address="10.0.0.9"):
        record(
            Action.OPERATION_REJECTED,
            actor=preparer,
            target="W-1",
            reason="<b>wrong</b> account",
            tries=[1, 2],
            final=True,
            note={"to": ""},
        )

    page = reader.get(LIST).content.decode()

    assert f"<b>{preparer}</b> rejected" in page
    assert "<dt>Reason</dt><dd>&lt;b&gt;wrong&lt;/b&gt; account</dd>" in page
    assert "<dt>Tries</dt><dd>1, 2</dd>" in page
    assert "<dt>Final</dt><dd>yes</dd>" in page
    assert "<dt>Note</dt><dd>to: none</dd>" in page
    assert "10.0.0.9" in page
    assert Entry.objects.get().hash in page


def test_an_entry_links_to_its_operation(reader: Client, preparer: User) -> None:
    operation = factories.prepared(preparer)

    page = reader.get(LIST).content.decode()

    assert (
        f'<a href="{reverse("operations:detail", args=[operation.pk])}" translate="no">{operation}</a>'
        in page
    )


def test_a_target_without_a_page_has_no_link() -> None:
    assert Entry(target_type="accounts.user", target_id="1").target_url == ""
    assert Entry(target_type="operations.operation", target_id="gone").target_url == ""


def test_entries_are_paginated_newest_first(reader: Client) -> None:
    for number in range(50):
        record(Action.OPERATION_PREPARED, actor=None, target=f"W-{number}")

    first = reader.get(LIST)
    cursor = first.context["page"].next_cursor

    assert "W-49" in str(first.context["page"].rows[0])
    assert len(first.context["page"].rows) == 35
    assert listed(reader, cursor=cursor) == [
        f"Countersign prepared W-{number}" for number in range(14, -1, -1)
    ]


def test_filters_narrow_the_log(reader: Client, preparer: User, approver: User) -> None:
    with request_context.call_context(request_id="3f2a"):
        record(Action.OPERATION_PREPARED, actor=preparer, target="W-1 Rent")
    record(Action.REPORT_EXPORTED, actor=approver, target="the report Operations")
    record(Action.OPERATION_CANCELLED, actor=approver, target=preparer)

    prepared, exported = f"{preparer} prepared W-1 Rent", f"{approver} exported the report Operations"
    cancelled = f"{approver} cancelled {preparer}"
    assert listed(reader, actor=preparer.pk) == [prepared]
    assert listed(reader, group="operation") == [cancelled, prepared]
    assert listed(reader, group="report", actor=approver.pk) == [exported]
    assert listed(reader, about="rent") == [prepared]
    assert listed(reader, about=str(preparer.pk), group="operation") == [cancelled]
    assert listed(reader, about="3f2a") == [prepared]
    assert listed(reader, about="nothing like it") == []


def test_days_are_in_the_readers_time_zone(reader: Client, auditor: User) -> None:
    here = ZoneInfo(auditor.time_zone)
    record(Action.OPERATION_PREPARED, actor=None, target="before")
    midnight = timezone.now().astimezone(here).replace(hour=0, minute=0, second=0, microsecond=0)
    with lifted(connection):
        Entry.objects.update(at=midnight - timedelta(microseconds=1))
    record(Action.OPERATION_PREPARED, actor=None, target="today")
    with lifted(connection):
        Entry.objects.filter(position=2).update(at=midnight)

    today, yesterday = midnight.date(), midnight.date() - timedelta(days=1)
    assert listed(reader, since=str(today)) == ["Countersign prepared today"]
    assert listed(reader, until=str(yesterday)) == ["Countersign prepared before"]
    assert len(listed(reader, since=str(yesterday), until=str(today))) == 2


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"since": "2026-03-02", "until": "2026-03-01"}, "The last day is before the first day."),
        ({"since": "yesterday"}, "Enter the day as year"),
        ({"since": "0001-01-01"}, "Choose a day from 2000-01-01 to 2099-12-31."),
        ({"until": "9999-12-31"}, "Choose a day from 2000-01-01 to 2099-12-31."),
        ({"actor": "9999999"}, "Select one of the options"),
        ({"group": "weather"}, "Select one of the options"),
        ({"about": "x" * 201}, "at most 200 characters"),
    ],
)
def test_an_invalid_filter_is_reported_at_its_field(
    reader: Client, filters: dict[str, str], message: str
) -> None:
    record(Action.OPERATION_PREPARED, actor=None, target="W-1")

    response = reader.get(LIST, filters)

    assert response.status_code == 422
    assert message in response.content.decode()
    assert response.context["page"].rows == []


def test_the_export_link_keeps_the_filters_without_the_cursor(reader: Client) -> None:
    page = reader.get(LIST, {"group": "report", "cursor": "x"}).content.decode()

    assert f'href="{reverse("reports:csv", args=["audit-log"])}?group=report"' in page


def test_verifying_shows_and_audits_the_result(reader: Client, auditor: User) -> None:
    record(Action.OPERATION_PREPARED, actor=None)

    page = reader.post(VERIFY).content.decode()

    assert "The audit log is intact" in page
    assert "1 entry verified; its chain is intact" in page
    assert str(Entry.objects.first()) == f"{auditor} verified the audit log"


def test_verifying_a_damaged_log_names_the_broken_entry(reader: Client) -> None:
    record(Action.OPERATION_PREPARED, actor=None)
    with lifted(connection):
        Entry.objects.update(actor_label="Somebody else")

    page = reader.post(VERIFY).content.decode()

    assert "The audit log is damaged" in page
    assert "entry 1 (operation.prepared" in page
    assert "content does not match its hash" in page


def test_a_full_page_stays_within_its_bytes_and_queries(
    reader: Client, preparer: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(50):
        with request_context.call_context(request_id=uuid.uuid4().hex[:12], address="2001:db8::1"):
            factories.prepared(preparer)

    with django_assert_max_num_queries(6):
        page = reader.get(LIST)

    assert len(page.context["page"].rows) == 35
    assert len(gzip.compress(page.content)) <= 14 * 1024


def test_verifying_shows_what_each_destination_of_checkpoints_says(
    reader: Client, checkpoint_file: Path, settings: Settings
) -> None:
    settings.AUDIT_CHECKPOINT_DESTINATIONS += ["syslog+udp://127.0.0.1:9", "file:///not mounted/x"]
    record(Action.OPERATION_PREPARED, actor=None)
    deliver_checkpoints_due()

    page = reader.post(VERIFY).content.decode()
    assert "The audit log is intact" in page
    assert "1 checkpoint compared, newest: entry 1" in page
    assert "Cannot be read back: compare its checkpoints with" in page
    assert "It cannot be read back: the file or its folder does not exist." in page
    assert "Store these two values" not in page

    checkpoint_file.write_bytes(sign(1, "f" * 64, timezone.now()).line)
    page = reader.post(VERIFY).content.decode()
    assert "The audit log is damaged" in page
    assert "they are not those of the checkpoints stored outside the database" in page
    assert "entry 1: missing, or its hash differs from the checkpoint at file:///" in page
