"""Pages of reports and background exports.

People see only their own exports, of reports they may still read.
"""

from collections.abc import Callable, Iterable
from functools import partial
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST, require_safe
from django_htmx.http import reswap, retarget

from backoffice.accounts.access import does_not_extend_session
from backoffice.accounts.sessions import StaffRequest
from backoffice.core import clock
from backoffice.core.web.pagination import keyset_page
from backoffice.core.web.request_context import close_connection
from backoffice.reports.definitions.catalogue import REPORTS, reports_for, roles_that_may_read
from backoffice.reports.errors import (
    DownloadsBusyError,
    ExportGoneError,
    QuotaExceededError,
    StoreUnavailableError,
)
from backoffice.reports.exports import services
from backoffice.reports.exports.downloads import ExportDownload, file_response
from backoffice.reports.exports.request_codec import FilterDescriber, describe_filters
from backoffice.reports.exports.services import freshness_text, visible_exports, waiting_for_sync
from backoffice.reports.models import ExportJob
from backoffice.reports.report import AnyReport, FileFormat

NEWEST_FIRST = ("-created_at", "-id")
EXPORTS_PER_PAGE = 25


@require_safe
def report_list(request: StaffRequest) -> HttpResponse:
    """The reports that the person may read, and their latest exports."""
    reports = reports_for(request.user)
    if not reports:
        raise PermissionDenied
    context = {
        "reports": [(report, roles_that_may_read(report)) for report in reports],
        "jobs": _with_descriptions(visible_exports(request.user).order_by(*NEWEST_FIRST)[:3]),
    }
    return render(request, "reports/list.html", context)


@require_safe
def exports(request: StaffRequest) -> HttpResponse:
    """The person's background exports, newest first."""
    cursor = request.GET.get("cursor")
    page = keyset_page(
        visible_exports(request.user), order=NEWEST_FIRST, cursor=cursor, size=EXPORTS_PER_PAGE
    )
    return render(request, "reports/exports.html", {"page": page, "jobs": _with_descriptions(page.rows)})


@require_safe
def export(request: StaffRequest, pk: UUID) -> HttpResponse:
    """One export: its progress, or its file."""
    return render(request, "reports/export.html", _export_context(_own_export(request, pk)))


@does_not_extend_session
@require_safe
def progress(request: StaffRequest, pk: UUID) -> HttpResponse:
    """Only the changing parts of the page, so that the focus is kept while the export runs.

    `announced` is the stage announced last to screen readers; only another stage is announced again.
    """
    job = _own_export(request, pk)
    context = _export_context(job) | {"announces": request.GET.get("announced") != job.stage}
    if job.is_active:
        return render(request, "reports/_progress.html", context)
    answer = render(request, "reports/_export.html", context)
    return retarget(reswap(answer, "outerHTML"), "#export")


@require_POST
def cancel(request: StaffRequest, pk: UUID) -> HttpResponse:
    return _run_service(request, pk, services.cancel_export)


@require_POST
def repeat(request: StaffRequest, pk: UUID) -> HttpResponse:
    """Request the same export again."""
    job = _own_export(request, pk)
    try:
        return redirect(services.repeat_export(job, actor=request.user))
    except (ExportGoneError, QuotaExceededError) as exc:
        messages.warning(request, str(exc))
        return redirect(job)


@require_POST
def remove(request: StaffRequest, pk: UUID) -> HttpResponse:
    """Delete the file before it expires."""
    return _run_service(request, pk, services.remove_export)


@require_GET
def download(request: StaffRequest, pk: UUID) -> HttpResponseBase:
    _own_export(request, pk)
    try:
        file = ExportDownload(pk, actor=request.user, hang_up=partial(close_connection, request))
    except ExportGoneError:
        messages.warning(request, gettext("This file was deleted. Export the report again."))
        return redirect("reports:export", pk)
    except StoreUnavailableError as exc:
        messages.warning(request, str(exc))
        return redirect("reports:export", pk)
    except DownloadsBusyError:
        messages.warning(request, gettext("Too many downloads are in progress. Try again in a moment."))
        return redirect("reports:export", pk)
    answer = file_response(file, FileFormat(file.job.format), file.job.name)
    answer["Content-Length"] = str(file.job.size)
    return answer


def _own_export(request: StaffRequest, pk: UUID) -> ExportJob:
    return get_object_or_404(visible_exports(request.user), pk=pk)


def _run_service(request: StaffRequest, pk: UUID, service: Callable[..., object]) -> HttpResponse:
    """Call the service and show the export again, with the reason if it was too late."""
    job = _own_export(request, pk)
    try:
        service(job.pk, actor=request.user)
    except ExportGoneError as exc:
        messages.warning(request, str(exc))
    return redirect(job)


def _export_context(job: ExportJob) -> dict[str, object]:
    report = REPORTS[job.report]
    is_waiting = ExportJob.objects.filter(waiting_for_sync(clock.now()), pk=job.pk).exists()
    return {
        "job": job,
        "report": report,
        "filters": describe_filters(report, job.filters),
        "columns": report.headings_of(job.columns),
        "is_waiting_for_sync": is_waiting,
        "synced_until": report.as_of(),
        "freshness": freshness_text(job),
    }


def _with_descriptions(jobs: Iterable[ExportJob]) -> list[tuple[ExportJob, AnyReport, list[tuple[str, str]]]]:
    """Each export with its report and the description of its filters."""
    describe, reports = FilterDescriber(), [(job, REPORTS[job.report]) for job in jobs]
    return [(job, report, describe(report, job.filters)) for job, report in reports]
