"""Schedules: people make and change them; each due moment makes one export for each recipient, exactly once."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import clock, locks
from backoffice.reports.asking import report_for
from backoffice.reports.calendar import Frequency, RelativePeriod, days_of, latest_due, next_due
from backoffice.reports.catalogue import REPORTS
from backoffice.reports.errors import NoRoomError, NotAllowedError, ScheduleError
from backoffice.reports.models import Schedule
from backoffice.reports.selectors import schedules_of, why_not_sent
from backoffice.reports.services.requesting import refuse_export, request_export
from backoffice.reports.services.room import EXPORTS


@transaction.atomic
def create_schedule(owner: User, members: Mapping[str, Any], recipients: Iterable[User]) -> Schedule:
    """Keep a schedule, due for the first time at its next moment. Raises NotAllowedError, ScheduleError."""
    schedule = Schedule(owner=owner, **members)
    people = _checked(schedule, owner, recipients)
    schedule.next_at = _next(schedule, clock.now())
    schedule.save()
    schedule.recipients.set(people)
    _record(Action.SCHEDULE_CREATED, schedule, owner)
    return schedule


@transaction.atomic
def change_schedule(
    pk: int, members: Mapping[str, Any], recipients: Iterable[User], *, actor: User
) -> Schedule:
    """Change it, and with it when it is due next. Raises NotAllowedError, ScheduleError."""
    schedule = _own(pk, actor)
    for name, value in members.items():
        setattr(schedule, name, value)
    people = _checked(schedule, actor, recipients)
    schedule.next_at = _next(schedule, clock.now())
    schedule.save()
    schedule.recipients.set(people)
    _record(Action.SCHEDULE_CHANGED, schedule, actor)
    return schedule


@transaction.atomic
def pause_schedule(pk: int, *, actor: User) -> None:
    """Let it make nothing until somebody resumes it."""
    schedule = _own(pk, actor)
    if Schedule.objects.filter(pk=pk, is_paused=False).update(is_paused=True):
        _record(Action.SCHEDULE_PAUSED, schedule, actor)


@transaction.atomic
def resume_schedule(pk: int, *, actor: User) -> None:
    """Let it go on with the next moment to come; what was due meanwhile is not made up for.

    Raises NotAllowedError, ScheduleError.
    """
    schedule = _own(pk, actor)
    _check_address()
    next_at = _next(schedule, clock.now())
    if Schedule.objects.filter(pk=pk, is_paused=True).update(is_paused=False, next_at=next_at):
        _record(Action.SCHEDULE_RESUMED, schedule, actor)


@transaction.atomic
def remove_schedule(pk: int, *, actor: User) -> None:
    """Forget it. The files that it made stay until their time is over."""
    schedule = _own(pk, actor)
    _record(Action.SCHEDULE_REMOVED, schedule, actor)
    schedule.delete()


def run_schedules() -> int:
    """Ask for the exports of every schedule that is due; how many schedules. Any number of callers: one wins each.

    After a time in which nothing ran, the latest due moment counts and those before it do not.
    """
    now = clock.now()
    due = Schedule.objects.filter(is_paused=False, next_at__lte=now).select_related("owner")
    return sum(_run(schedule, now) for schedule in due)


@transaction.atomic
def _run(schedule: Schedule, now: datetime) -> bool:
    """Ask for the export of each recipient, if nobody has for this moment; whether it was this call.

    The turn is taken for all of them: who has no room gives up a turn of their own, while the log stays held, and
    whoever takes it then waits for the log.
    """
    locks.hold(EXPORTS)
    due_at = latest_due(**_calendar(schedule), first=schedule.next_at, now=now)
    won = Schedule.objects.filter(pk=schedule.pk, next_at=schedule.next_at, is_paused=False)
    if not won.update(next_at=_next(schedule, due_at), last_at=due_at):
        return False
    missed = [
        words for words in (_send(schedule, person, due_at) for person in _recipients(schedule)) if words
    ]
    Schedule.objects.filter(pk=schedule.pk).update(last_outcome="; ".join(missed)[:500])
    _record(Action.SCHEDULE_RUN, schedule, None, due_at=due_at, not_sent=missed)
    return True


def _send(schedule: Schedule, person: User, due_at: datetime) -> str:
    """Ask for this person's export, by this person's rights; otherwise the reason why not."""
    why = why_not_sent(schedule, person)
    if why:
        return f"{person}: {why}"
    wish, moment = _wish(schedule, due_at), {"schedule": schedule, "due_at": due_at}
    try:
        request_export(person, wish, **moment)
    except NoRoomError as exc:
        refuse_export(person, wish, str(exc), **moment)
    return ""


def _wish(schedule: Schedule, due_at: datetime) -> dict[str, Any]:
    zone = REPORTS[schedule.report].zone_of_days(ZoneInfo(schedule.time_zone))
    days = days_of(RelativePeriod(schedule.period), due_at.astimezone(zone).date())
    period = {"since": [str(days.since)], "until": [str(days.until)]} if days.since else {}
    names = ("report", "columns", "format", "has_mark", "time_zone")
    return {**{name: getattr(schedule, name) for name in names}, "filters": {**schedule.filters, **period}}


def _recipients(schedule: Schedule) -> Iterable[User]:
    return schedule.recipients.order_by("pk")


def _own(pk: int, actor: User) -> Schedule:
    schedule = schedules_of(actor).filter(pk=pk).select_for_update(of=("self",)).first()
    if schedule is None:
        raise NotAllowedError("Only its owner changes a schedule.")
    return schedule


def _checked(schedule: Schedule, owner: User, recipients: Iterable[User]) -> list[User]:
    """The recipients, if owner and all of them may read the report, and its days make sense."""
    report = report_for(owner, schedule.report)
    _check_address()
    people = list(recipients)
    if not people:
        raise ScheduleError("Choose at least one person who receives it.")
    for person in people:
        report_for(person, schedule.report)
    if schedule.period != RelativePeriod.AS_IT_STANDS and not report.has_days:
        raise ScheduleError("This report has no days to choose.")
    return people


def _check_address() -> None:
    if not settings.PUBLIC_URL:
        raise ScheduleError(
            "Nobody has told Countersign its own public address, so a message could not say where the file is. "
            "Whoever runs this installation sets COUNTERSIGN_PUBLIC_URL."
        )


def _calendar(schedule: Schedule) -> dict[str, Any]:
    return {
        "frequency": Frequency(schedule.frequency),
        "day": schedule.day,
        "hour": schedule.hour,
        "zone": ZoneInfo(schedule.time_zone),
    }


def _next(schedule: Schedule, after: datetime) -> datetime:
    return next_due(**_calendar(schedule), after=after)


def _record(action: Action, schedule: Schedule, actor: User | None, **detail: object) -> None:
    audit.record(
        action,
        actor=actor,
        target=schedule,
        report=schedule.report,
        recipients=sorted(map(str, schedule.recipients.all())),
        **detail,
    )
