"""Schedules: their owner makes, changes, pauses and removes them; recipients see them."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from backoffice.accounts.http import StaffRequest
from backoffice.reports import services
from backoffice.reports.asking import FiltersInWords, filters_in_words, wish_of
from backoffice.reports.catalogue import REPORTS, reports_for
from backoffice.reports.errors import ExportError, ScheduleError
from backoffice.reports.forms import ScheduleForm, typed_before
from backoffice.reports.models import Schedule
from backoffice.reports.report import AnyReport
from backoffice.reports.selectors import failures, obstacles, schedules_of, schedules_seen_by
from backoffice.reports.views.asked import asked, readable

_DAYS = ("since", "until")  # which the schedule works out by itself


@require_safe
def schedules(request: StaffRequest) -> HttpResponse:
    """Those that the person made or receives."""
    if not reports_for(request.user):
        raise PermissionDenied
    in_words = FiltersInWords()
    seen = [
        (schedule, report, in_words(report, schedule.filters), obstacles(schedule), failures(schedule))
        for schedule in schedules_seen_by(request.user)
        if (report := REPORTS.get(schedule.report))
    ]
    context = {"schedules": seen, "has_address": bool(settings.PUBLIC_URL)}
    return render(request, "reports/schedules.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def new_schedule(request: StaffRequest, name: str) -> HttpResponse:
    """A schedule of a report with the filters and columns that stand in the address."""
    wish = asked(request, name, request.GET)
    if not wish.is_valid():
        return redirect("reports:report", name)
    initial = {
        "name": wish.report.title,
        "time_zone": request.user.time_zone,
        "recipients": [request.user.pk],
    }
    form = ScheduleForm(_sent(request), report=wish.report, initial=initial)
    kept = wish_of(wish.wanted, {name: texts for name, texts in wish.filters.items() if name not in _DAYS})
    if form.is_valid():
        members = {**kept, **form.members}
        try:
            services.create_schedule(request.user, members, form.cleaned_data["recipients"])
        except ExportError as exc:
            form.add_error(None, str(exc))
        else:
            messages.success(request, "The schedule is kept.")
            return redirect("reports:schedules")
    return _form_page(request, wish.report, form, {"filters": kept["filters"]})


@require_http_methods(["GET", "HEAD", "POST"])
def schedule(request: StaffRequest, pk: int) -> HttpResponse:
    """Change one."""
    kept = _own(request, pk)
    report = readable(request, kept.report)
    form = ScheduleForm(_sent(request), report=report, initial=typed_before(kept))
    if form.is_valid():
        try:
            services.change_schedule(pk, form.members, form.cleaned_data["recipients"], actor=request.user)
        except ExportError as exc:
            form.add_error(None, str(exc))
        else:
            messages.success(request, "The schedule was changed.")
            return redirect("reports:schedules")
    return _form_page(request, report, form, {"schedule": kept, "filters": kept.filters})


@require_POST
def pause(request: StaffRequest, pk: int) -> HttpResponse:
    """Let it rest."""
    services.pause_schedule(_own(request, pk).pk, actor=request.user)
    return redirect("reports:schedules")


@require_POST
def resume(request: StaffRequest, pk: int) -> HttpResponse:
    """Let it go on."""
    try:
        services.resume_schedule(_own(request, pk).pk, actor=request.user)
    except ScheduleError as exc:
        messages.warning(request, str(exc))
    return redirect("reports:schedules")


@require_POST
def remove(request: StaffRequest, pk: int) -> HttpResponse:
    """Forget it."""
    services.remove_schedule(_own(request, pk).pk, actor=request.user)
    messages.success(request, "The schedule was removed. Files that it made stay until their time is over.")
    return redirect("reports:schedules")


def _own(request: StaffRequest, pk: int) -> Schedule:
    return get_object_or_404(schedules_of(request.user), pk=pk)


def _sent(request: StaffRequest) -> QueryDict | None:
    return request.POST if request.method == "POST" else None


def _form_page(
    request: StaffRequest, report: AnyReport, form: ScheduleForm, more: dict[str, Any]
) -> HttpResponse:
    context = {"report": report, "form": form, **more, "filters": filters_in_words(report, more["filters"])}
    return render(request, "reports/schedule.html", context, status=422 if form.errors else 200)
