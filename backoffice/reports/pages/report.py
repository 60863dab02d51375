"""The page of a report: choose filters and columns, then download or export in background."""

from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.forms import Form
from django.http import Http404, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods, require_safe

from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.formatting import error_sentence
from backoffice.core.web.forms import PageForm
from backoffice.core.web.request_context import close_connection
from backoffice.ledger.mirror.state import mirror_state
from backoffice.reports.definitions.catalogue import REPORTS
from backoffice.reports.errors import (
    DownloadsBusyError,
    FileTooLongError,
    QuotaExceededError,
    ReportNotAllowedError,
)
from backoffice.reports.exports import services
from backoffice.reports.exports.downloads import ReportDownload, file_response
from backoffice.reports.exports.limits import estimated_rows, needs_background
from backoffice.reports.exports.request_codec import (
    encode_request,
    filter_form,
    filter_texts,
    readable_report,
)
from backoffice.reports.rendering.export_file import file_name
from backoffice.reports.report import AnyReport, ExportRequest, FileFormat
from payments_gateway import GatewayError


class FileForm(PageForm):
    """The columns and the file format. Without input: all columns, as CSV.

    `chooses` marks that the form offered columns, so that an empty choice is an error instead of all columns.
    """

    chooses = forms.BooleanField(required=False, widget=forms.HiddenInput)
    columns = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)
    format = forms.ChoiceField(required=False, label=_("Format"), choices=FileFormat.choices)
    has_byte_order_mark = forms.BooleanField(
        required=False, label=_("Add a byte order mark (for old versions of Excel)")
    )

    def __init__(self, data: Any, report: AnyReport) -> None:
        super().__init__(data, auto_id="file-%s")
        self.report = report
        columns: Any = self.fields["columns"]
        columns.choices = [(column.name, column.heading) for column in report.columns]

    def clean(self) -> dict[str, Any]:
        """Reject a file without columns."""
        values = self.cleaned_data
        if values["chooses"] and not values.get("columns", True):
            self.add_error("columns", gettext("Select at least one column."))
        return values

    @property
    def offered(self) -> list[tuple[str, str, bool]]:
        """Name, heading and whether it is chosen, of every column in file order."""
        return [(one.name, str(one.heading), one.name in self._chosen) for one in self.report.columns]

    @property
    def count(self) -> int:
        """The number of chosen columns."""
        return sum(is_chosen for _name, _heading, is_chosen in self.offered)

    @property
    def _chosen(self) -> set[str]:
        chosen = set(self["columns"].value())
        return chosen if chosen or self["chooses"].value() else set(self.report.column_names)


@dataclass(frozen=True)
class ReportQuery:
    """A report with its two submitted forms."""

    request: StaffRequest
    report: AnyReport
    filters: dict[str, list[str]]
    form: Any
    file_form: FileForm

    def is_valid(self) -> bool:
        """Whether both forms are valid."""
        return all((self.form.is_valid(), self.file_form.is_valid()))

    @property
    def export_request(self) -> ExportRequest:
        """The export request. Call only if valid."""
        values = self.file_form.cleaned_data
        return ExportRequest(
            report=self.report,
            user=self.request.user,
            form=self.form,
            zone=ZoneInfo(self.request.user.time_zone),
            language=get_language() or settings.LANGUAGE_CODE,
            columns=self.report.columns_named(values["columns"]),
            format=FileFormat(values["format"] or FileFormat.CSV),
            has_byte_order_mark=values["has_byte_order_mark"],
        )


def report_query(request: StaffRequest, name: str, data: QueryDict) -> ReportQuery:
    """The report of this name with the submitted data. Raises Http404, PermissionDenied."""
    report = get_readable_report(request, name)
    filters = filter_texts(report, data)
    form: Form = filter_form(report, filters)
    form.auto_id = f"{report.name}-%s"
    return ReportQuery(request, report, filters, form, FileForm(data, report))


def get_readable_report(request: StaffRequest, name: str) -> AnyReport:
    """The report of this name.

    Raises Http404 if there is none, PermissionDenied if this person may not read it.
    """
    if name not in REPORTS:
        raise Http404
    try:
        return readable_report(request.user, name)
    except ReportNotAllowedError as exc:
        raise PermissionDenied from exc


_BIG_MESSAGE = _("This report is too large to download at once. Export it in the background instead.")
_BUSY_MESSAGE = _("Too many downloads are in progress. Try again in a moment, or export in the background.")


@require_http_methods(["GET", "HEAD", "POST"])
def report(request: StaffRequest, name: str) -> HttpResponseBase:
    """One report: its filters, columns and formats.

    A POST downloads it, exports it in the background or schedules it.
    """
    query = report_query(request, name, request.POST if request.method == "POST" else request.GET)
    if request.method != "POST":
        return _report_page(query, refused=bool(query.filters) and not query.is_valid())
    if not query.is_valid():
        return _report_page(query, refused=True)
    match request.POST.get("then"):
        case "background":
            return _request_in_background(query)
        case "schedule":
            return redirect(f"{reverse('reports:new_schedule', args=[name])}?{_query_string(query)}")
    return _download(query)


@require_GET
def download_csv(request: StaffRequest, name: str) -> HttpResponseBase:
    """A report as a file, restricted by the filters in the query string."""
    query = report_query(request, name, request.GET)
    return _download(query) if query.is_valid() else _report_page(query, refused=True)


@require_safe
def file_size(request: StaffRequest, name: str) -> HttpResponse:
    """The estimated number of rows for the filters in the query string, and how the file will be produced."""
    query = report_query(request, name, request.GET)
    return render(
        request,
        "reports/_estimated_size.html",
        _size_context(query.export_request) if query.is_valid() else {},
    )


def _download(query: ReportQuery) -> HttpResponseBase:
    export_request = query.export_request
    estimate = estimated_rows(export_request)
    if needs_background(export_request, estimate):
        return _offer_background(query, str(_BIG_MESSAGE), estimate)
    as_of = export_request.report.as_of()
    try:
        export = ReportDownload(export_request, hang_up=partial(close_connection, query.request))
    except DownloadsBusyError:
        return _offer_background(query, str(_BUSY_MESSAGE), estimate, status=HTTPStatus.SERVICE_UNAVAILABLE)
    except FileTooLongError as exc:  # in background it would be too long as well
        query.file_form.add_error(None, str(exc))
        return _report_page(query, refused=True)
    except GatewayError as exc:
        failed = {
            "report": query.report,
            "reason": error_sentence(exc),
            "again": f"{_csv_url(query)}?{_query_string(query)}",
        }
        return render(query.request, "reports/unavailable.html", failed, status=HTTPStatus.BAD_GATEWAY)
    return file_response(export, export_request.format, file_name(export_request, as_of))


def _request_in_background(query: ReportQuery) -> HttpResponse:
    export_request = query.export_request
    texts = {**encode_request(export_request, query.filters), "estimate": estimated_rows(export_request)}
    try:
        return redirect(services.request_export(query.request.user, texts))
    except QuotaExceededError as exc:
        query.file_form.add_error(None, str(exc))
        return _report_page(query, refused=True)


def _offer_background(
    query: ReportQuery, why: str, estimate: int | None, *, status: int = HTTPStatus.OK
) -> HttpResponse:
    """A page that explains why the file is not sent at once, with a button for a background export."""
    context = {"report": query.report, "why": why, "estimate": estimate, "sent": list(_sent_fields(query))}
    return render(query.request, "reports/offer_background.html", context, status=status)


def _report_page(query: ReportQuery, *, refused: bool) -> HttpResponse:
    context: dict[str, object] = {"report": query.report, "form": query.form, "file": query.file_form}
    if query.report.synced_until:
        context["mirror"] = mirror_state()
    if not refused and query.is_valid():
        context |= _size_context(query.export_request)
    status = HTTPStatus.UNPROCESSABLE_ENTITY if refused else HTTPStatus.OK
    return render(query.request, "reports/report.html", context, status=status)


def _size_context(export_request: ExportRequest) -> dict[str, object]:
    estimate = estimated_rows(export_request)
    return {"estimate": estimate, "is_big": needs_background(export_request, estimate)}


def _sent_fields(query: ReportQuery) -> list[tuple[str, str]]:
    """The submitted data as names and values."""
    names = [*query.filters, "columns", "format", "has_byte_order_mark"]
    data = query.file_form.data
    return [
        (name, text) for name in names for text in (data.getlist(name) if isinstance(data, QueryDict) else ())
    ]


def _query_string(query: ReportQuery) -> str:
    return urlencode(_sent_fields(query))


def _csv_url(query: ReportQuery) -> str:
    return reverse("reports:csv", args=[query.report.name])
