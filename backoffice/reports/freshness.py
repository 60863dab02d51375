"""What waits for the service's list, and how fresh a file of it is.

The copy of the list is a minute old, and hours where the service could not be read. Days that are over are never looked
at again, so a file about them is begun only once they are here to their end.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Q
from django.utils import timezone

from backoffice.core.display import exact_time
from backoffice.core.period import end_of
from backoffice.reports.asking import form_of
from backoffice.reports.catalogue import REPORTS
from backoffice.reports.models import ExportJob
from backoffice.reports.report import AnyReport
from backoffice.reports.states import State

WAITS_AT_MOST = timedelta(days=1)


def days_over(report: AnyReport, wish: Mapping[str, Any], now: datetime) -> datetime | None:
    """Where the days of this wish end, if the report reads the list and they are over; otherwise None."""
    form = form_of(report, wish.get("filters", {}))
    if report.told_up_to is None or not form.is_valid():
        return None
    zone = report.zone_of_days(ZoneInfo(wish["time_zone"]))
    until = report.period(form, now.astimezone(zone).date()).until
    with timezone.override(zone):
        end = end_of(until) if until else None
    return end if end and end <= now else None


def held_back(now: datetime) -> Q:
    """The exports that are not begun yet, because the list is not read to the end of their days, or to its own end.

    After a day they are: then they say what they lack.
    """
    lacking = Q()
    for told_up_to in {report.told_up_to for report in REPORTS.values() if report.told_up_to}:
        of_it = Q(report__in=[name for name, report in REPORTS.items() if report.told_up_to is told_up_to])
        as_of = told_up_to()
        lacking |= of_it & Q(covers_until__gt=as_of) if as_of else of_it
    return lacking & Q(state=State.WAITING, created_at__gt=now - WAITS_AT_MOST)


def how_fresh(job: ExportJob) -> str:
    """Up to when the list was here when this file was begun, and whether that lacks something; empty for others."""
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
