"""Exports that a person may see, exports that wait for the mirror, and how fresh an export's data is.

The mirror is about a minute behind, or hours while the provider cannot be read. An export about past days
starts only once the mirror covers them, because such a file is not produced again.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Q, QuerySet
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.core.web.formatting import exact_time
from backoffice.core.web.forms import end_of_day
from backoffice.reports.definitions.catalogue import REPORTS
from backoffice.reports.exports.request_codec import filter_form
from backoffice.reports.models import ExportJob, ExportState
from backoffice.reports.report import AnyReport


def visible_exports(user: User) -> QuerySet[ExportJob]:
    """The person's own exports of reports that they may still read, newest first."""
    readable = [name for name, report in REPORTS.items() if report.may_be_read_by(user)]
    return ExportJob.objects.filter(person=user, report__in=readable).select_related("schedule")


MAX_SYNC_WAIT = timedelta(days=1)


def past_period_end(report: AnyReport, wish: Mapping[str, Any], now: datetime) -> datetime | None:
    """The end of the requested period, if it is past and the report reads the mirror; otherwise None."""
    form = filter_form(report, wish.get("filters", {}))
    if report.told_up_to is None or not form.is_valid():
        return None
    zone = report.zone_of_days(ZoneInfo(wish["time_zone"]))
    until = report.period(form, now.astimezone(zone).date()).until
    with timezone.override(zone):
        end = end_of_day(until) if until else None
    return end if end and end <= now else None


def waiting_for_sync(now: datetime) -> Q:
    """Waiting exports whose period the mirror does not cover yet, or before the first load is complete.

    After `MAX_SYNC_WAIT` an export runs anyway, and the file's freshness text says what may be missing.
    """
    lacking = Q()
    for told_up_to in {report.told_up_to for report in REPORTS.values() if report.told_up_to}:
        of_it = Q(report__in=[name for name, report in REPORTS.items() if report.told_up_to is told_up_to])
        as_of = told_up_to()
        lacking |= of_it & Q(covers_until__gt=as_of) if as_of else of_it
    return lacking & Q(state=ExportState.WAITING, created_at__gt=now - MAX_SYNC_WAIT)


def freshness_text(job: ExportJob) -> str:
    """How far the mirror was synced when the file was started, and what may be missing.

    Empty for reports that do not read the mirror.
    """
    if job.report not in REPORTS or REPORTS[job.report].told_up_to is None:
        return ""
    if job.as_of is None:
        return (
            "When it was begun, the service's list had not been read to its end: transactions may be missing."
        )
    read = f"The service's list was read up to {exact_time(job.as_of)}"
    if job.covers_until and job.as_of < job.covers_until:
        return f"{read}, and no further for a day: what came after it is missing."
    return f"{read}."
