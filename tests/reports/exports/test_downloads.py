"""What leaves the house is on record before it leaves and after, however the download ends."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from django import forms
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.core.web import request_context
from backoffice.reports.errors import DownloadsBusyError
from backoffice.reports.exports.downloads import ReportDownload
from backoffice.reports.report import Column, ComputedReport, ExportRequest
from payments_gateway import ReadFailedError

pytestmark = pytest.mark.django_db


class TextForm(forms.Form):
    text = forms.CharField(required=False)
    since = forms.DateField(required=False)
    at_most = forms.DecimalField(required=False)
    mine = forms.BooleanField(required=False)


def report(rows: Callable[[], Iterator[object]]) -> ComputedReport[object, TextForm]:
    return ComputedReport(
        name="numbers",
        title="Numbers",
        about="Numbers for a test.",
        permissions=("operations.view_operation",),
        form=TextForm,
        columns=(Column("value", "value", lambda row: row), Column("end", "end", lambda _row: "")),
        rows=lambda _user, _form: rows(),
    )


def endless() -> Iterator[object]:
    return (f"{number:0>200}" for number in itertools.count())


def ten() -> Iterator[object]:
    return iter(range(10))


def broken_off() -> Iterator[object]:
    yield from itertools.islice(endless(), 20_000)
    raise ReadFailedError("The service went away")


def filled(**values: object) -> TextForm:
    form = TextForm(values)
    assert form.is_valid()
    return form


def begin(
    rows: Callable[[], Iterator[object]], user: User, *, zone: str = "Africa/Lagos", **filters: object
) -> ReportDownload:
    made = report(rows)
    return ReportDownload(ExportRequest(made, user, filled(**filters), ZoneInfo(zone), made.columns))


def recorded() -> list[tuple[str, object, object]]:
    """Action, rows and completeness of every entry, oldest first."""
    return [
        (entry.action, entry.detail.get("rows"), entry.detail.get("complete"))
        for entry in Entry.objects.order_by("position")
    ]


def test_the_download_is_audited_before_the_first_byte(auditor: User) -> None:
    begin(ten, auditor, since=date(2026, 3, 1), text="")

    entry = Entry.objects.get()
    assert str(entry) == f"{auditor} started to export the report Numbers"
    assert entry.detail == {"report": "numbers", "filters": {"since": "2026-03-01"}}


def test_a_complete_file_is_audited_before_its_last_chunk(auditor: User) -> None:
    export = begin(ten, auditor)

    content = b"".join(export)

    assert content == b"value,end\r\n" + b"".join(b"%d,\r\n" % number for number in range(10))
    assert recorded() == [("report.requested", None, None), ("report.exported", 10, True)]


def test_every_filter_that_is_set_is_audited(auditor: User) -> None:
    list(begin(ten, auditor, at_most="0"))

    assert [entry.detail["filters"] for entry in Entry.objects.all()] == [{"at_most": "0"}] * 2


def test_closing_a_complete_file_audits_nothing_more(auditor: User) -> None:
    export = begin(ten, auditor)
    list(export)

    export.close()
    export.close()

    assert recorded()[1:] == [("report.exported", 10, True)]


def test_an_aborted_download_is_audited_with_the_rows_sent(auditor: User) -> None:
    export = begin(endless, auditor)
    sent = next(export) + next(export)

    export.close()

    assert recorded()[1:] == [("report.exported", sent.count(b"\r\n") - 1, False)]


def test_a_download_that_never_began_is_audited(auditor: User) -> None:
    begin(endless, auditor).close()

    assert recorded()[1:] == [("report.exported", 0, False)]


def test_a_failing_source_aborts_the_file(auditor: User) -> None:
    export = begin(broken_off, auditor)
    sent: list[bytes] = []

    with pytest.raises(ReadFailedError):
        sent.extend(export)
    export.close()

    assert recorded()[1:] == [("report.exported", b"".join(sent).count(b"\r\n") - 1, False)]


def test_a_source_that_fails_at_once_leaves_no_entry(auditor: User) -> None:
    def failing() -> Iterator[object]:
        raise ReadFailedError("The service is away")
        yield

    with pytest.raises(ReadFailedError):
        begin(failing, auditor)

    assert recorded() == []


def test_rows_are_read_one_chunk_at_a_time(auditor: User) -> None:
    numbers = itertools.count()
    export = begin(lambda: (f"{number:0>200}" for number in numbers), auditor)
    assert next(numbers) == 1

    next(export)
    next(export)

    assert next(numbers) == export.rows_sent + 1


def test_both_entries_have_the_address_and_id_of_the_request(auditor: User) -> None:
    with request_context.call_context(request_id="3f2a", address="10.0.0.9"):
        export = begin(ten, auditor)
    list(export)

    assert {(entry.request_id, entry.address) for entry in Entry.objects.all()} == {("3f2a", "10.0.0.9")}


def test_times_are_in_the_users_zone_while_streaming(auditor: User) -> None:
    export = begin(lambda: iter([datetime(2026, 3, 1, 9, 30, tzinfo=UTC)]), auditor, zone="Asia/Tokyo")

    assert b"".join(export) == b"value,end\r\n2026-03-01T18:30:00.000000+09:00,\r\n"


def test_the_filters_are_applied_to_the_rows(auditor: User) -> None:
    def rows(_user: User, form: TextForm) -> Iterator[object]:
        return iter([form.cleaned_data["text"]])

    made = replace(report(ten), rows=rows)
    export = ReportDownload(ExportRequest(made, auditor, filled(text="rent"), ZoneInfo("UTC"), made.columns))

    assert b"rent" in b"".join(export)


def test_a_download_beyond_the_limit_is_refused_at_once(auditor: User, settings: Settings) -> None:
    held = [begin(endless, auditor) for _ in range(settings.EXPORT_STREAMS)]

    with pytest.raises(DownloadsBusyError):
        begin(ten, auditor)
    for export in held:
        export.close()

    assert b"".join(begin(ten, auditor)).count(b"\r\n") == 11


@pytest.mark.parametrize("rows", [ten, broken_off])
def test_a_download_slot_is_released_however_it_ends(
    auditor: User, settings: Settings, rows: Callable[[], Iterator[object]]
) -> None:
    for _ in range(settings.EXPORT_STREAMS + 1):
        export = begin(rows, auditor)
        with suppress(ReadFailedError):
            list(export)
        export.close()


def test_a_download_slot_is_released_if_the_source_fails_at_once(auditor: User, settings: Settings) -> None:
    def failing() -> Iterator[object]:
        raise ReadFailedError("The service is away")
        yield

    for _ in range(settings.EXPORT_STREAMS + 1):
        with pytest.raises(ReadFailedError):
            begin(failing, auditor)
