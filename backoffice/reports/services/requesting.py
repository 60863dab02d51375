"""People ask for exports in the background, cancel them, ask again and take them away."""

from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime
from typing import IO, Any
from uuid import UUID

from django.db import transaction

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import clock, queue
from backoffice.reports.asking import report_for
from backoffice.reports.errors import GoneError
from backoffice.reports.freshness import days_over
from backoffice.reports.models import ExportJob
from backoffice.reports.services.moves import move
from backoffice.reports.services.room import check_room, check_room_of_schedules
from backoffice.reports.states import State

RUN = "reports.run_export"


@transaction.atomic
def request_export(user: User, wish: Mapping[str, Any], **of_schedule: Any) -> ExportJob:
    """Put an export on the list for this person; a worker is told. Raises NotAllowedError, NoRoomError."""
    report = report_for(user, wish["report"])
    if of_schedule:
        check_room_of_schedules(user)
    else:
        check_room(user)
    now = clock.now()
    job = ExportJob.objects.create(
        person=user, created_at=now, covers_until=days_over(report, wish, now), **wish, **of_schedule
    )
    audit.record(
        Action.EXPORT_REQUESTED,
        actor=user,
        target=f"the report {report.title}",
        report=report.name,
        filters={name: ", ".join(values) for name, values in job.filters.items()},
        export=str(job.pk),
    )
    queue.ring(RUN, job.pk)
    return job


@transaction.atomic
def request_again(job: ExportJob, *, actor: User) -> ExportJob:
    """A new export of the same content. Raises NotAllowedError, NoRoomError, GoneError while the first is under way."""
    if job.is_under_way:
        raise GoneError("It is still being made.")
    return request_export(actor, job.wish)


@transaction.atomic
def refuse_export(user: User, wish: Mapping[str, Any], problem: str, **of_schedule: Any) -> ExportJob:
    """Put an export on the list that has failed before it began, so that people see it and are told."""
    now = clock.now()
    job = ExportJob.objects.create(
        person=user,
        created_at=now,
        ended_at=now,
        state=State.FAILED,
        problem=problem,
        mail_at=now,
        **wish,
        **of_schedule,
    )
    audit.record(Action.EXPORT_FAILED, actor=user, target=str(job), export=str(job.pk), reason=problem)
    return job


@transaction.atomic
def cancel_export(pk: UUID, *, actor: User) -> ExportJob:
    """End it; whoever writes it stops at the next piece and throws it away. Raises GoneError if it has ended."""
    job = ExportJob.objects.select_for_update().get(pk=pk)
    if not move(job, State.CANCELLED, ended_at=clock.now(), lease_until=None):
        raise GoneError("It had ended before.")
    audit.record(Action.EXPORT_CANCELLED, actor=actor, target=job_name(job), export=str(job.pk))
    return job


def remove_export(pk: UUID, *, actor: User) -> ExportJob:
    """Remove a finished file before its time, to make room. Raises GoneError if there is none."""
    job = ExportJob.objects.get(pk=pk)
    path = job.file
    with transaction.atomic():
        if not job.stored_as or not move(job, State.REMOVED, stored_as=""):
            raise GoneError("There is no file to remove.")
        audit.record(Action.EXPORT_REMOVED, actor=actor, target=job_name(job), export=str(job.pk))
    path.unlink(missing_ok=True)
    return job


@transaction.atomic
def hand_out(pk: UUID, *, actor: User) -> tuple[ExportJob, IO[bytes]]:
    """The finished export and its file, open, for its person to take away. Raises NotAllowedError, GoneError.

    On record only once the file is open: nobody took away what is no longer there.
    """
    job = ExportJob.objects.get(pk=pk)
    report_for(actor, job.report)
    if job.state != State.DONE or _is_past(job, clock.now()):
        raise GoneError("There is no file to take away.")
    with ExitStack() as opened:
        file = opened.enter_context(_opened(job))
        audit.record(
            Action.EXPORT_DOWNLOADED, actor=actor, target=job_name(job), export=str(job.pk), sha256=job.sha256
        )
        opened.pop_all()
    return job, file


def job_name(job: ExportJob) -> str:
    """How the log calls it: by its file, or by its report before it has one."""
    return str(job)


def _opened(job: ExportJob) -> IO[bytes]:
    try:
        return job.file.open("rb")
    except FileNotFoundError as exc:
        raise GoneError("There is no file to take away.") from exc


def _is_past(job: ExportJob, now: datetime) -> bool:
    return job.expires_at is not None and job.expires_at <= now
