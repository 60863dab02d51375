"""Exports in the background: only their own person sees them, and only while the report may still be read."""

from collections.abc import Callable, Iterable
from functools import partial
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST, require_safe
from django_htmx.http import reswap, retarget

from backoffice.accounts.decorators import polled
from backoffice.accounts.http import StaffRequest
from backoffice.core import clock
from backoffice.core.pagination import keyset_page
from backoffice.reports import services
from backoffice.reports.asking import FiltersInWords, filters_in_words
from backoffice.reports.catalogue import REPORTS, reports_for, roles_that_read
from backoffice.reports.errors import BusyError, GoneError, NoRoomError
from backoffice.reports.freshness import held_back, how_fresh
from backoffice.reports.models import ExportJob
from backoffice.reports.report import AnyReport
from backoffice.reports.selectors import exports_of
from backoffice.reports.services.taking_away import TakenAway
from backoffice.reports.views.sending import file_answer, hang_up
from backoffice.reports.wanted import Format

NEWEST_FIRST = ("-created_at", "-id")
AT_ONCE = 25


@require_safe
def report_list(request: StaffRequest) -> HttpResponse:
    """The reports that the person may read, and what was asked for last."""
    reports = reports_for(request.user)
    if not reports:
        raise PermissionDenied
    context = {
        "reports": [(report, roles_that_read(report)) for report in reports],
        "jobs": _told(exports_of(request.user).order_by(*NEWEST_FIRST)[:3]),
    }
    return render(request, "reports/list.html", context)


@require_safe
def exports(request: StaffRequest) -> HttpResponse:
    """What this person had made in the background, the newest first."""
    cursor = request.GET.get("cursor")
    page = keyset_page(exports_of(request.user), order=NEWEST_FIRST, cursor=cursor, size=AT_ONCE)
    return render(request, "reports/exports.html", {"page": page, "jobs": _told(page.rows)})


@require_safe
def export(request: StaffRequest, pk: UUID) -> HttpResponse:
    """One of them: how far it is, or the file."""
    return render(request, "reports/export.html", _context(_own(request, pk)))


@polled
@require_safe
def progress(request: StaffRequest, pk: UUID) -> HttpResponse:
    """The parts of the same page that change: while it is made, its figures alone, so that nobody loses the focus.

    `told` is what was announced last; only what differs from it is announced again.
    """
    job = _own(request, pk)
    context = _context(job) | {"announces": request.GET.get("told") != job.stage}
    if job.is_under_way:
        return render(request, "reports/_progress.html", context)
    answer = render(request, "reports/_export.html", context)
    return retarget(reswap(answer, "outerHTML"), "#export")


@require_POST
def cancel(request: StaffRequest, pk: UUID) -> HttpResponse:
    """Stop making it."""
    return _done(request, pk, services.cancel_export)


@require_POST
def again(request: StaffRequest, pk: UUID) -> HttpResponse:
    """Have the same made once more."""
    job = _own(request, pk)
    try:
        return redirect(services.request_again(job, actor=request.user))
    except (GoneError, NoRoomError) as exc:
        messages.warning(request, str(exc))
        return redirect(job)


@require_POST
def remove(request: StaffRequest, pk: UUID) -> HttpResponse:
    """Let the file go before its time."""
    return _done(request, pk, services.remove_export)


@require_GET
def download(request: StaffRequest, pk: UUID) -> HttpResponseBase:
    """The finished file."""
    _own(request, pk)
    try:
        file = TakenAway(pk, actor=request.user, hang_up=partial(hang_up, request))
    except GoneError:
        messages.warning(request, "This file is no longer there. Have it made again.")
        return redirect("reports:export", pk)
    except BusyError:
        messages.warning(request, "Other files are being sent just now. Try again in a moment.")
        return redirect("reports:export", pk)
    answer = file_answer(file, Format(file.job.format), file.job.name)
    answer["Content-Length"] = str(file.job.size)
    return answer


def _own(request: StaffRequest, pk: UUID) -> ExportJob:
    return get_object_or_404(exports_of(request.user), pk=pk)


def _done(request: StaffRequest, pk: UUID, service: Callable[..., object]) -> HttpResponse:
    """Let the service do it, and show the export again: with the reason, where it was too late for it."""
    job = _own(request, pk)
    try:
        service(job.pk, actor=request.user)
    except GoneError as exc:
        messages.warning(request, str(exc))
    return redirect(job)


def _context(job: ExportJob) -> dict[str, object]:
    report = REPORTS[job.report]
    waits = ExportJob.objects.filter(held_back(clock.now()), pk=job.pk).exists()
    return {
        "job": job,
        "report": report,
        "filters": filters_in_words(report, job.filters),
        "waits_for_list": waits,
        "read_up_to": report.as_of(),
        "how_fresh": how_fresh(job),
    }


def _told(jobs: Iterable[ExportJob]) -> list[tuple[ExportJob, AnyReport, list[tuple[str, str]]]]:
    """Each with its report and the words of its filters."""
    in_words, reports = FiltersInWords(), [(job, REPORTS[job.report]) for job in jobs]
    return [(job, report, in_words(report, job.filters)) for job, report in reports]
