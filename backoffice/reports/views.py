from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from django.core.exceptions import PermissionDenied
from django.forms import Form
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from backoffice.accounts.http import StaffRequest
from backoffice.reports.catalogue import REPORTS, reports_for
from backoffice.reports.export import Export
from backoffice.reports.file_name import file_name
from backoffice.reports.report import Report
from payments_gateway import GatewayError


@require_GET
def report_list(request: StaffRequest) -> HttpResponse:
    """A card for each report that the person may read."""
    return _cards(request)


@require_GET
def csv(request: StaffRequest, name: str) -> HttpResponseBase:
    """One report as a file, narrowed by the filters in the address."""
    report = _report(request, name)
    form = _form(report, request.GET)
    if not form.is_valid():
        return _cards(request, refused={name: form}, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    try:
        export = Export(report, form, user=request.user)
    except GatewayError as exc:
        failed = {"report": report, "error": exc}
        return render(request, "reports/unavailable.html", failed, status=HTTPStatus.BAD_GATEWAY)
    return StreamingHttpResponse(
        export,
        content_type="text/csv; charset=utf-8; header=present",
        headers={"Content-Disposition": f'attachment; filename="{file_name(report, form)}"'},
    )


def _report(request: StaffRequest, name: str) -> Report[Any, Any]:
    report = REPORTS.get(name)
    if report is None:
        raise Http404
    if not request.user.has_perm(report.permission):
        raise PermissionDenied
    return report


def _form(report: Report[Any, Any], data: Any = None) -> Form:
    form: Form = report.form(data, auto_id=f"{report.name}-%s")
    return form


def _cards(
    request: StaffRequest, *, refused: Mapping[str, Form] = MappingProxyType({}), status: int = HTTPStatus.OK
) -> HttpResponse:
    """The cards, each with an empty form; a refused one comes back in the card of its own report."""
    reports = reports_for(request.user)
    if not reports:
        raise PermissionDenied
    cards = [(report, refused.get(report.name) or _form(report)) for report in reports]
    return render(request, "reports/list.html", {"cards": cards}, status=status)
