"""Reads exports and schedules. Never writes."""

from django.db.models import Q, QuerySet

from backoffice.accounts.models import User
from backoffice.accounts.selectors import people_who_may
from backoffice.reports.catalogue import REPORTS
from backoffice.reports.models import ExportJob, Schedule
from backoffice.reports.report import AnyReport
from backoffice.reports.states import State


def exports_of(user: User) -> QuerySet[ExportJob]:
    """This person's own, of reports that this person may still read, the newest first."""
    readable = [name for name, report in REPORTS.items() if report.may_be_read_by(user)]
    return ExportJob.objects.filter(person=user, report__in=readable).select_related("schedule")


def schedules_of(user: User) -> QuerySet[Schedule]:
    """Those that this person made: nobody else changes them."""
    return Schedule.objects.filter(owner=user)


def schedules_seen_by(user: User) -> QuerySet[Schedule]:
    """Those that this person made or receives."""
    seen = Schedule.objects.filter(Q(owner=user) | Q(recipients=user)).distinct()
    return seen.select_related("owner").prefetch_related("recipients")


def readers_of(report: AnyReport) -> QuerySet[User]:
    """Everybody who may read it."""
    readers = User.objects.order_by("full_name", "pk")
    for permission in report.permissions:
        readers = readers.filter(pk__in=people_who_may(permission).values("pk"))
    return readers


def why_not_sent(schedule: Schedule, person: User) -> str:
    """Why this person would not get the report now; empty if nothing is in the way."""
    report = REPORTS.get(schedule.report)
    if report is None:
        return "there is no such report any more"
    if not report.may_be_read_by(schedule.owner):
        return f"{schedule.owner}, who made the schedule, may no longer read the report"
    if not person.is_active:
        return "the account was deactivated"
    return "" if report.may_be_read_by(person) else "may no longer read the report"


def failures(schedule: Schedule) -> QuerySet[ExportJob]:
    """The exports of its last moment that came to nothing."""
    return schedule.exports.filter(state=State.FAILED, due_at=schedule.last_at).select_related("person")


def obstacles(schedule: Schedule) -> list[str]:
    """Who would not get it now, and why."""
    return [
        f"{person}: {why}" for person in schedule.recipients.all() if (why := why_not_sent(schedule, person))
    ]
