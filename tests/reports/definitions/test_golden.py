"""The same rows are the same bytes, whoever writes them: the database by COPY, the database's texts, this program."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from operator import attrgetter
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django import forms
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.ledger.models import Transaction
from backoffice.reports.definitions.catalogue import REPORTS
from backoffice.reports.rendering.csv import csv_header, encode_csv
from backoffice.reports.rendering.export_file import csv_chunks, text_rows
from backoffice.reports.report import Column, ComputedReport, ExportRequest, StoredReport
from tests.reports import odd_values

pytestmark = pytest.mark.django_db(transaction=True)  # a report reads by a connection of its own
GOLDEN = Path(__file__).with_name("golden")
LONG = timedelta(minutes=5)
FIELDS = (
    "transaction_id",
    "counterparty",
    "sender",
    "created_at",
    "amount",
    "fee",
    "is_from_registered_user",
    "id",
    "username",
)
ZONES = ("Europe/London", "Asia/Kathmandu", "America/St_Johns")


def stored_report(*fields: str) -> StoredReport[forms.Form]:
    return StoredReport(
        name="odd",
        title="Odd values",
        about="For a test.",
        permissions=("ledger.view_transaction",),
        form=forms.Form,
        columns=tuple(Column(field, "", field) for field in fields),
        query=lambda _user, _form: Transaction.objects.all(),
        order=("-occurred_at", "-id"),
    )


def worked_out(report: StoredReport[forms.Form]) -> ComputedReport[Transaction, forms.Form]:
    """The same report with rows that this program makes, value by value."""
    members: dict[str, Any] = {
        name: getattr(report, name) for name in ("name", "title", "about", "permissions", "form")
    }
    columns = tuple(Column(column.header, "", attrgetter(column.header)) for column in report.columns)
    return ComputedReport(
        rows=lambda _user, _form: iter(Transaction.objects.order_by(*report.order)),
        columns=columns,
        **members,
    )


def export_request(report: Any, user: User, zone: str = "Europe/London") -> ExportRequest:
    form = report.form({})
    assert form.is_valid()
    return ExportRequest(report, user, form, ZoneInfo(zone), report.columns)


def by_the_database(one: ExportRequest) -> bytes:
    with timezone.override(one.zone):
        return b"".join(chunk.content for chunk in csv_chunks(one, at_most=LONG))


def by_its_texts(one: ExportRequest) -> bytes:
    """The rows as the database returns them, written here: what SQLite's way is, on either engine."""
    chunks = encode_csv(text_rows(one, at_most=LONG), columns=len(one.columns))
    return csv_header(one.header, has_byte_order_mark=one.has_byte_order_mark) + b"".join(
        chunk.content for chunk in chunks
    )


def by_this_program(one: ExportRequest) -> bytes:
    assert isinstance(one.report, StoredReport)
    report = worked_out(one.report)
    return by_the_database(replace(one, report=report, columns=report.columns))


WAYS = (by_the_database, by_its_texts, by_this_program)


def without_ids(content: bytes) -> bytes:
    """Rows are numbered by the database, differently in each test."""
    first = Transaction.objects.order_by("id").values_list("id", flat=True)[0]
    for number in range(len(odd_values.TEXTS)):
        content = content.replace(b",%d,\r\n" % (first + number), b",#%d,\r\n" % number)
    return content


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("zone", ZONES)
def test_unusual_values_give_the_stored_bytes(
    auditor: User, way: Callable[[ExportRequest], bytes], zone: str
) -> None:
    odd_values.stored()

    content = without_ids(way(export_request(stored_report(*FIELDS), auditor, zone)))

    assert content == (GOLDEN / f"odd_{zone.partition('/')[2].lower()}.csv").read_bytes()


@pytest.mark.parametrize("way", WAYS)
def test_a_single_column_gives_the_stored_bytes(auditor: User, way: Callable[[ExportRequest], bytes]) -> None:
    odd_values.stored()

    content = way(export_request(stored_report("counterparty"), auditor)) + way(
        export_request(stored_report("fee"), auditor)
    )

    assert content == (GOLDEN / "one_column.csv").read_bytes()


@pytest.mark.parametrize("way", WAYS)
def test_an_empty_report_has_only_its_header(auditor: User, way: Callable[[ExportRequest], bytes]) -> None:
    report = replace(stored_report("id", "fee"), query=lambda _user, _form: Transaction.objects.none())

    assert way(export_request(stored_report("id", "fee"), auditor)) == b"id,fee\r\n"
    assert by_the_database(export_request(report, auditor)) == b"id,fee\r\n"


def test_json_is_identical_on_both_engines(auditor: User, preparer: User) -> None:
    detail = {"zz": [1, {"b": None, "a": True}], "b": 'x"\n\u20a6\x01', "a": {}, "é": "1.50", "amount": -2}
    Entry.objects.bulk_create(
        [
            Entry(
                position=1,
                at=timezone.now(),
                actor=preparer,
                actor_label="",
                action="x",
                detail=detail,
                previous_hash="",
                hash="",
            )
        ]
    )
    report = REPORTS["audit-log"]
    one = replace(
        export_request(report, auditor),
        columns=tuple(column for column in report.columns if column.header == "detail"),
    )

    text = '{"a": {}, "b": "x\\"\\n₦\\u0001", "zz": [1, {"a": true, "b": null}], "é": "1.50", "amount": -2}'
    quoted = text.replace('"', '""')
    assert by_the_database(one).decode() == f'"detail"\r\n"{quoted}"\r\n'


@pytest.mark.parametrize(
    "name", [name for name, report in REPORTS.items() if isinstance(report, StoredReport)]
)
def test_every_stored_report_can_be_rendered_by_this_engine(auditor: User, name: str) -> None:
    one = export_request(REPORTS[name], auditor)

    content = by_the_database(one)

    assert content.partition(b"\r\n")[0] == ",".join(one.header).encode()
