"""Scheduled reports: a run requests one export for each recipient who may read the report.

Each export has that person's own permissions. Each due time runs at most once; after a downtime only the latest
one does.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.db.models import F, Prefetch, Q, QuerySet

from backoffice.accounts.models import User
from backoffice.accounts.roles import users_with_permission
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock, leases
from backoffice.core.isolation import ignore, run_each_isolated
from backoffice.reports.calendar import (
    WHOLE_PERIODS,
    Frequency,
    RelativePeriod,
    latest_due,
    next_due,
    period_days,
)
from backoffice.reports.definitions.catalogue import REPORTS
from backoffice.reports.errors import (
    DeliveryObstacle,
    Failure,
    FailureCode,
    QuotaExceededError,
    ReportNotAllowedError,
    ScheduleError,
    obstacle_sentence,
)
from backoffice.reports.exports.limits import QUOTA_LOCK
from backoffice.reports.exports.request_codec import readable_report
from backoffice.reports.exports.services import record_refused_export, request_export
from backoffice.reports.models import ExportJob, ExportState, Schedule
from backoffice.reports.report import AnyReport


def owned_schedules(user: User) -> QuerySet[Schedule]:
    """The schedules that this person may change."""
    return Schedule.objects.filter(owner=user)


def visible_schedules(user: User) -> QuerySet[Schedule]:
    """The schedules that this person owns or receives, each with the failed exports of its last run as
    `last_failures`.
    """
    seen = Schedule.objects.filter(Q(owner=user) | Q(recipients=user)).distinct().select_related("owner")
    failed = ExportJob.objects.filter(state=ExportState.FAILED, due_at=F("schedule__last_at"))
    last_failures = Prefetch("exports", failed.select_related("person"), to_attr="last_failures")
    return seen.prefetch_related("recipients", last_failures)


def people_who_may_read(report: AnyReport) -> QuerySet[User]:
    """Everyone who may read the report."""
    readers = User.objects.order_by("full_name", "pk")
    for permission in report.permissions:
        readers = readers.filter(pk__in=users_with_permission(permission).values("pk"))
    return readers


def delivery_obstacle(schedule: Schedule, person: User) -> Failure | None:
    """Why this person would not get the report now; None if nothing prevents it."""
    report, person_name = REPORTS.get(schedule.report), {"person": str(person)}
    if report is None:
        return {"code": DeliveryObstacle.REPORT_GONE, **person_name}
    if not report.may_be_read_by(schedule.owner):
        return {"code": DeliveryObstacle.OWNER_NOT_ALLOWED, **person_name, "owner": str(schedule.owner)}
    if not person.is_active:
        return {"code": DeliveryObstacle.DEACTIVATED, **person_name}
    return None if report.may_be_read_by(person) else {"code": DeliveryObstacle.NOT_ALLOWED, **person_name}


def recipients_with_obstacles(schedules: Iterable[Schedule]) -> dict[int, list[str]]:
    """By schedule: the recipients who would not get it now, and why. The permissions of each person are read once."""
    people: dict[int, User] = {}
    found: dict[int, list[str]] = {}
    for schedule in schedules:
        schedule.owner = people.setdefault(schedule.owner_id, schedule.owner)
        recipients = [people.setdefault(person.pk, person) for person in schedule.recipients.all()]
        obstacles = (delivery_obstacle(schedule, person) for person in recipients)
        found[schedule.pk] = [obstacle_sentence(obstacle) for obstacle in obstacles if obstacle]
    return found


@transaction.atomic
def create_schedule(owner: User, members: Mapping[str, Any], recipients: Iterable[User]) -> Schedule:
    """Create a schedule, due from its next time on; or return an equal one that runs, as after a double click.

    Raises ReportNotAllowedError, ScheduleError.
    """
    User.objects.get_locked(owner.pk)  # the second click waits for the first
    schedule = Schedule(owner=owner, **members)
    people = _checked(schedule, owner, recipients)
    for equal in Schedule.objects.filter(owner=owner, is_paused=False, **members):
        if set(equal.recipients.all()) == set(people):
            return equal
    schedule.next_at = _next_due(schedule, clock.now())
    schedule.save()
    schedule.recipients.set(people)
    _record(Action.SCHEDULE_CREATED, schedule, owner)
    return schedule


@transaction.atomic
def change_schedule(
    pk: int, members: Mapping[str, Any], recipients: Iterable[User], *, actor: User
) -> Schedule:
    """Change it and its next due time. Raises ReportNotAllowedError, ScheduleError."""
    schedule = _owned(pk, actor)
    for name, value in members.items():
        setattr(schedule, name, value)
    people = _checked(schedule, actor, recipients)
    schedule.next_at = _next_due(schedule, clock.now())
    schedule.save()
    schedule.recipients.set(people)
    _record(Action.SCHEDULE_CHANGED, schedule, actor)
    return schedule


@transaction.atomic
def pause_schedule(pk: int, *, actor: User) -> None:
    """Suspend it until it is resumed. Raises ReportNotAllowedError."""
    schedule = _owned(pk, actor)
    if Schedule.objects.filter(pk=pk, is_paused=False).update(is_paused=True):
        _record(Action.SCHEDULE_PAUSED, schedule, actor)


@transaction.atomic
def resume_schedule(pk: int, *, actor: User) -> None:
    """Continue with the next due time; times missed while paused are not made up for.

    Raises ReportNotAllowedError, ScheduleError.
    """
    schedule = _owned(pk, actor)
    _check_public_url()
    next_at = _next_due(schedule, clock.now())
    if Schedule.objects.filter(pk=pk, is_paused=True).update(is_paused=False, next_at=next_at):
        _record(Action.SCHEDULE_RESUMED, schedule, actor)


@transaction.atomic
def delete_schedule(pk: int, *, actor: User) -> None:
    """Delete it. Its files remain until they expire. Raises ReportNotAllowedError."""
    schedule = _owned(pk, actor)
    _record(Action.SCHEDULE_DELETED, schedule, actor)
    schedule.delete()


def run_due_schedules() -> int:
    """Request the exports of every due schedule. Returns how many schedules ran.

    Safe to call concurrently. One that fails is logged, and does not stop the others.

    After a downtime only the latest due time counts.
    """
    due = Schedule.objects.filter(is_paused=False, next_at__lte=clock.now()).select_related("owner")
    return sum(run_each_isolated(_run_schedule, {schedule: str(schedule) for schedule in due}, failed=ignore))


@transaction.atomic
def _run_schedule(schedule: Schedule) -> bool:
    """Request the export of each recipient, unless another call did for this time.

    Returns whether this call did.

    `QUOTA_LOCK` is taken first for all recipients: a refused recipient would otherwise release it with their
    savepoint while this transaction holds the audit log's lock, and another process could take it and then
    wait for the log.
    """
    leases.lock_until_commit(QUOTA_LOCK)
    due_at = latest_due(**_calendar_arguments(schedule), first=schedule.next_at, now=clock.now())
    claimed = Schedule.objects.filter(pk=schedule.pk, next_at=schedule.next_at, is_paused=False)
    if not claimed.update(next_at=_next_due(schedule, due_at), last_at=due_at):
        return False
    requested = (_request_for(schedule, person, due_at) for person in schedule.recipients.order_by("pk"))
    obstacles = [obstacle for obstacle in requested if obstacle]
    Schedule.objects.filter(pk=schedule.pk).update(last_obstacles=obstacles)
    _record(Action.SCHEDULE_RUN, schedule, None, due_at=due_at, not_sent=obstacles)
    return True


def _request_for(schedule: Schedule, person: User, due_at: datetime) -> Failure | None:
    """Request this person's export with their permissions; returns the obstacle if there is one."""
    if obstacle := delivery_obstacle(schedule, person):
        return obstacle
    fields, schedule_fields = _request_fields(schedule, due_at), {"schedule": schedule, "due_at": due_at}
    try:
        request_export(person, fields, **schedule_fields)
    except QuotaExceededError as exc:
        record_refused_export(person, fields, exc, **schedule_fields)
    return None


def _request_fields(schedule: Schedule, due_at: datetime) -> dict[str, Any]:
    """The week or month is the one before the day in the schedule's zone, also where the days of the report are in
    another: a file about days that are not over there yet waits for their end.
    """
    zone, relative = ZoneInfo(schedule.time_zone), RelativePeriod(schedule.period)
    if relative not in WHOLE_PERIODS:
        zone = REPORTS[schedule.report].zone_of_days(zone)
    days = period_days(relative, due_at.astimezone(zone).date())
    period = {"since": [str(days.since)], "until": [str(days.until)]} if days.since else {}
    names = ("report", "columns", "format", "has_byte_order_mark", "time_zone", "language")
    return {**{name: getattr(schedule, name) for name in names}, "filters": {**schedule.filters, **period}}


def _owned(pk: int, actor: User) -> Schedule:
    schedule = owned_schedules(actor).filter(pk=pk).select_for_update(of=("self",)).first()
    if schedule is None:
        raise ReportNotAllowedError(FailureCode.NOT_OWNER)
    return schedule


def _checked(schedule: Schedule, owner: User, recipients: Iterable[User]) -> list[User]:
    """The recipients, if the owner and all of them may read the report and the period is valid."""
    report = readable_report(owner, schedule.report)
    _check_public_url()
    people = list(recipients)
    if not people:
        raise ScheduleError(FailureCode.RECIPIENT_MISSING)
    for person in people:
        readable_report(person, schedule.report)
    if schedule.period != RelativePeriod.ALL and not report.has_days:
        raise ScheduleError(FailureCode.NO_DAYS)
    return people


def _check_public_url() -> None:
    if not settings.PUBLIC_URL:
        raise ScheduleError(FailureCode.NO_PUBLIC_URL)


def _calendar_arguments(schedule: Schedule) -> dict[str, Any]:
    return {
        "frequency": Frequency(schedule.frequency),
        "day": schedule.day,
        "hour": schedule.hour,
        "zone": ZoneInfo(schedule.time_zone),
    }


def _next_due(schedule: Schedule, after: datetime) -> datetime:
    return next_due(**_calendar_arguments(schedule), after=after)


def _record(action: Action, schedule: Schedule, actor: User | None, **detail: object) -> None:
    audit.record(
        action,
        actor=actor,
        target=schedule,
        report=schedule.report,
        recipients=sorted(map(str, schedule.recipients.all())),
        **detail,
    )
