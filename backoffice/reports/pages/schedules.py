"""Pages of scheduled reports. Only the owner may change a schedule; recipients see it."""

from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Prefetch
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.dates import WEEKDAYS
from django.utils.translation import get_language, gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from backoffice.accounts.models import User, validate_time_zone
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.formatting import format_day
from backoffice.core.web.forms import PageForm
from backoffice.reports.calendar import (
    FREQUENCY_OF_PERIOD,
    Frequency,
    RelativePeriod,
    relative_period,
)
from backoffice.reports.definitions.catalogue import REPORTS, reports_for
from backoffice.reports.errors import ReportError, ScheduleError
from backoffice.reports.exports.request_codec import FilterDescriber, describe_filters, encode_request
from backoffice.reports.models import ExportJob, ExportState, Schedule, late_mails
from backoffice.reports.pages.report import ReportQuery, get_readable_report, report_query
from backoffice.reports.report import AnyReport, ReportPeriod
from backoffice.reports.schedules import services
from backoffice.reports.schedules.services import (
    owned_schedules,
    people_who_may_read,
    recipients_with_obstacles,
    visible_schedules,
)


class ScheduleForm(PageForm):
    """Time, recipients and period of a schedule."""

    name = forms.CharField(label=_("Name"), max_length=80, help_text=_("Used as the subject of the email."))
    frequency = forms.ChoiceField(label=_("Frequency"), choices=Frequency.choices)
    weekday = forms.TypedChoiceField(
        label=_("Weekday"),
        coerce=int,
        choices=[(number + 1, name) for number, name in WEEKDAYS.items()],
    )
    day = forms.TypedChoiceField(
        label=_("Day of the month"),
        coerce=int,
        choices=[(day, str(day)) for day in range(1, 32)],
        help_text=_("In a shorter month, it runs on the last day."),
    )
    hour = forms.TypedChoiceField(
        label=_("Time"), coerce=int, initial=6, choices=[(hour, f"{hour:02}:00") for hour in range(24)]
    )
    time_zone = forms.CharField(
        label=_("Time zone"),
        max_length=64,
        validators=[validate_time_zone],
        widget=forms.TextInput(attrs={"list": "zones", "autocomplete": "off"}),
    )
    period = forms.ChoiceField(
        label=_("Period"), initial=RelativePeriod.YESTERDAY, choices=RelativePeriod.choices
    )
    recipients = forms.ModelMultipleChoiceField(
        User.objects.none(),
        label=pgettext_lazy("email", "Recipients"),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Everyone who may see this report is listed. Each recipient gets an email with a link."),
        error_messages={"required": _("Select at least one person.")},
    )

    def __init__(self, data: Any, *, report: AnyReport, initial: dict[str, Any]) -> None:
        super().__init__(data, initial=initial)
        recipients: Any = self.fields["recipients"]
        recipients.queryset = people_who_may_read(report)
        period: Any = self.fields["period"]
        if report.own_zone:
            period.help_text = gettext("The days of this report are in {zone}.").format(zone=report.own_zone)
        if not report.has_days:
            period.choices = [(RelativePeriod.ALL, RelativePeriod.ALL.label)]

    @property
    def members(self) -> dict[str, Any]:
        """The schedule's fields from this form. Call only on a valid form."""
        values = self.cleaned_data
        day = values["weekday"] if values["frequency"] == Frequency.WEEKLY else values["day"]
        names = ("name", "frequency", "hour", "time_zone", "period")
        language = get_language() or settings.LANGUAGE_CODE
        return {**{name: values[name] for name in names}, "day": day, "language": language}


def schedule_initial(schedule: Schedule) -> dict[str, Any]:
    """The form's initial values for an existing schedule."""
    names = ("name", "frequency", "day", "hour", "time_zone", "period")
    weekday = schedule.day if schedule.frequency == Frequency.WEEKLY else 1
    return {
        **{name: getattr(schedule, name) for name in names},
        "weekday": weekday,
        "recipients": schedule.recipients.all(),
    }


_PERIOD_FIELDS = ("since", "until")  # computed by the schedule itself


@require_safe
def schedules(request: StaffRequest) -> HttpResponse:
    """The schedules that the person owns or receives."""
    if not reports_for(request.user):
        raise PermissionDenied
    late = Prefetch("exports", late_mails().select_related("person"), to_attr="late_mails")
    visible = list(visible_schedules(request.user).prefetch_related(late))
    describe, obstacles = FilterDescriber(), recipients_with_obstacles(visible)
    rows = [
        (
            schedule,
            report,
            describe(report, schedule.filters),
            report.headings_of(schedule.columns),
            obstacles[schedule.pk],
            vars(schedule)["last_failures"],
            _people_without_mail(schedule, vars(schedule)["late_mails"]),
        )
        for schedule in visible
        if (report := REPORTS.get(schedule.report))
    ]
    context = {"schedules": rows, "has_address": bool(settings.PUBLIC_URL)}
    return render(request, "reports/schedules.html", context)


def _people_without_mail(schedule: Schedule, late: list[ExportJob]) -> list[str]:
    """Whom a mail about this schedule has not reached: of a failure its owner, otherwise the recipient."""
    people = {schedule.owner if job.state == ExportState.FAILED else job.person for job in late}
    return sorted(map(str, people))


@require_http_methods(["GET", "HEAD", "POST"])
def new_schedule(request: StaffRequest, name: str) -> HttpResponse:
    """Create a schedule of a report with the filters and columns in the query string."""
    query = report_query(request, name, request.GET)
    if not query.is_valid():
        return redirect("reports:report", name)
    initial = {
        "name": query.report.title,
        "time_zone": request.user.time_zone,
        "recipients": [request.user.pk],
        **_period_initial(query),
    }
    form = ScheduleForm(_posted(request), report=query.report, initial=initial)
    export_request = encode_request(
        query.export_request,
        {name: texts for name, texts in query.filters.items() if name not in _PERIOD_FIELDS},
    )
    if form.is_valid():
        members = {**export_request, **form.members}
        try:
            services.create_schedule(request.user, members, form.cleaned_data["recipients"])
        except ReportError as exc:
            form.add_error(None, str(exc))
        else:
            messages.success(request, gettext("Schedule saved."))
            return redirect("reports:schedules")
    return _form_page(
        request,
        query.report,
        form,
        {"filters": export_request["filters"], "fixed_period": _fixed_period(query)},
    )


def _chosen_period(query: ReportQuery) -> tuple[ReportPeriod, RelativePeriod | None]:
    """The days of the report's filter, and the relative period that they are today; None if there is none."""
    values = query.form.cleaned_data
    days = ReportPeriod(*(values.get(name) for name in _PERIOD_FIELDS))
    zone = query.report.zone_of_days(ZoneInfo(query.request.user.time_zone))
    return days, relative_period(days, timezone.localdate(timezone=zone))


def _period_initial(query: ReportQuery) -> dict[str, str]:
    """The period of the filter as a relative one, and how often it is new."""
    days, period = _chosen_period(query)
    if period is None or days == ReportPeriod():
        return {}
    return {"period": period, "frequency": FREQUENCY_OF_PERIOD.get(period, Frequency.DAILY)}


def _fixed_period(query: ReportQuery) -> str:
    """The period of the filter in words, if no relative period takes it over; otherwise empty."""
    days, period = _chosen_period(query)
    if period is not None:
        return ""
    ends = [format_day(day) if day else "" for day in (days.since, days.until)]
    return " \N{EN DASH} ".join(ends).strip()


@require_http_methods(["GET", "HEAD", "POST"])
def schedule(request: StaffRequest, pk: int) -> HttpResponse:
    """Change a schedule."""
    stored = _own_schedule(request, pk)
    report = get_readable_report(request, stored.report)
    form = ScheduleForm(_posted(request), report=report, initial=schedule_initial(stored))
    if form.is_valid():
        try:
            services.change_schedule(pk, form.members, form.cleaned_data["recipients"], actor=request.user)
        except ReportError as exc:
            form.add_error(None, str(exc))
        else:
            messages.success(request, gettext("Schedule saved."))
            return redirect("reports:schedules")
    return _form_page(request, report, form, {"schedule": stored, "filters": stored.filters})


@require_POST
def pause(request: StaffRequest, pk: int) -> HttpResponse:
    services.pause_schedule(_own_schedule(request, pk).pk, actor=request.user)
    return redirect("reports:schedules")


@require_POST
def resume(request: StaffRequest, pk: int) -> HttpResponse:
    try:
        services.resume_schedule(_own_schedule(request, pk).pk, actor=request.user)
    except ScheduleError as exc:
        messages.warning(request, str(exc))
    return redirect("reports:schedules")


@require_POST
def remove(request: StaffRequest, pk: int) -> HttpResponse:
    services.delete_schedule(_own_schedule(request, pk).pk, actor=request.user)
    messages.success(request, gettext("Schedule deleted. Existing files remain until they expire."))
    return redirect("reports:schedules")


def _own_schedule(request: StaffRequest, pk: int) -> Schedule:
    return get_object_or_404(owned_schedules(request.user), pk=pk)


def _posted(request: StaffRequest) -> QueryDict | None:
    return request.POST if request.method == "POST" else None


def _form_page(
    request: StaffRequest, report: AnyReport, form: ScheduleForm, more: dict[str, Any]
) -> HttpResponse:
    context = {"report": report, "form": form, **more, "filters": describe_filters(report, more["filters"])}
    return render(request, "reports/schedule.html", context, status=422 if form.errors else 200)
