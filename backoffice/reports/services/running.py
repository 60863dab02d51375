"""Makes the files. Any number of workers and sweepers may call: each export is held by one of them at a time."""

import logging
import secrets
from contextlib import closing
from datetime import datetime, timedelta
from itertools import takewhile
from pathlib import Path
from uuid import UUID, uuid4

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import F, Q
from django.utils import timezone
from psycopg import Error as PostgresError

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import clock, stopping
from backoffice.core.stopping import StoppedError
from backoffice.reports.asking import wanted_by
from backoffice.reports.errors import ExportError
from backoffice.reports.file_name import file_name
from backoffice.reports.freshness import held_back
from backoffice.reports.making import chunks_of
from backoffice.reports.models import ExportJob, folder
from backoffice.reports.services.lease import LEASE, Lease, LeaseLostError
from backoffice.reports.services.moves import move
from backoffice.reports.services.room import DISK_FULL, check_disk, is_full
from backoffice.reports.services.writing import Written, write
from backoffice.reports.states import State
from backoffice.reports.wanted import Wanted
from payments_gateway import GatewayError

logger = logging.getLogger(__name__)

AT_MOST = timedelta(hours=1)
KEPT_FOR = timedelta(days=7)
TRIES = 3
_UNFORESEEN = (
    "The rows could not be read or written. Whoever runs this installation finds the reason in its log."
)
# What a defect in a report may raise over a row that nobody foresaw: it costs that file, not the process that makes it.
_DEFECTS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def run_due() -> int:
    """Make the oldest file that waits or whose maker was killed; how many were begun.

    One and no more, so that whoever calls again and again sees between two files that it is to end.
    """
    job = _claimed()
    if job is None:
        return 0
    _run(job)
    return 1


def run_all_due(*, at_most: int = 100) -> int:
    """The same again and again until nothing waits, at most so often; how many were begun."""
    return sum(takewhile(bool, (run_due() for _ in range(at_most))))


def run_export(pk: UUID) -> None:
    """Make this file, if it still waits for somebody and there is room."""
    job = _claimed(Q(pk=pk))
    if job is not None:
        _run(job)


def _claimed(which: Q = Q()) -> ExportJob | None:  # noqa: B008 - a Q without conditions is never changed
    """The oldest export that nobody holds and that waits for nothing else, held from now on.

    None if there is none, or enough are being made.
    """
    now = clock.now()
    is_abandoned = Q(state=State.RUNNING, lease_until__lte=now)
    if ExportJob.objects.filter(state=State.RUNNING, lease_until__gt=now).count() >= settings.EXPORTS_AT_ONCE:
        return None
    free = ExportJob.objects.filter(which, Q(state=State.WAITING) | is_abandoned).exclude(held_back(now))
    for job in free.order_by("created_at", "pk")[: settings.EXPORTS_AT_ONCE + 1]:
        held = {"runner": uuid4(), "lease_until": now + LEASE, "started_at": now, "rows": 0}
        if move(job, State.RUNNING, tries=F("tries") + 1, **held):
            return ExportJob.objects.get(pk=job.pk)
    return None


def _run(job: ExportJob) -> None:
    """Make the file and move the export to its end; nothing is moved by a runner that lost it."""
    try:
        if job.tries > TRIES:
            raise ExportError(f"It was broken off {TRIES} times.")
        check_disk()
        person = User.objects.get(pk=job.person_id)
        wanted = wanted_by(person, job, job.filters)
        job.as_of = wanted.report.as_of()  # before anything is read: all up to then is in the file
        with timezone.override(wanted.zone):
            _make(job, wanted)
    except LeaseLostError:
        logger.info("The export %s was cancelled or is being made by somebody else", job.pk)
    except StoppedError:
        move(
            job, State.WAITING, lease_until=None, tries=F("tries") - 1
        )  # being ended is no fault of the export
    except (ExportError, GatewayError) as exc:
        _fail(job, str(exc))
    except (DatabaseError, PostgresError, OSError, *_DEFECTS) as exc:
        logger.exception("The export %s could not be made", job.pk)
        _fail(job, DISK_FULL if is_full(exc) else _UNFORESEEN)


def _make(job: ExportJob, wanted: Wanted) -> None:
    with Lease(job) as lease:

        def check() -> None:
            stopping.check()
            lease.check()

        with closing(chunks_of(wanted, at_most=AT_MOST, check=check)) as chunks:
            written = write(chunks, folder() / f"{secrets.token_urlsafe(24)}.part", lease)
    _finish(job, wanted, written)


def _finish(job: ExportJob, wanted: Wanted, written: Written) -> None:
    """The file gets its final name, then the state says so. Nobody else knows the name yet.

    Where the database breaks off meanwhile, it may have kept the state that names the file: so the file stays, and
    `tidy_exports` removes it if none does.
    """
    final = written.keep(secrets.token_urlsafe(24))
    if not _put_on_record(job, wanted, written, final):
        final.unlink()


@transaction.atomic
def _put_on_record(job: ExportJob, wanted: Wanted, written: Written, final: Path) -> bool:
    now = clock.now()
    outcome = {"rows": written.rows, "size": written.size, "sha256": written.sha256}
    is_ours = move(
        job,
        State.DONE,
        **outcome,
        as_of=job.as_of,
        name=file_name(wanted, job.as_of),
        stored_as=final.name,
        ended_at=now,
        expires_at=now + KEPT_FOR,
        lease_until=None,
        mail_at=_to_be_told(job, now),
    )
    if is_ours:
        audit.record(
            Action.EXPORT_COMPLETED,
            actor=job.person,
            target=str(job),
            export=str(job.pk),
            report=job.report,
            **outcome,
            **({"as_of": job.as_of} if job.as_of else {}),
        )
    return is_ours


@transaction.atomic
def _fail(job: ExportJob, problem: str) -> None:
    now, problem = clock.now(), problem[:300]
    ended = {"problem": problem, "ended_at": now, "lease_until": None, "mail_at": _to_be_told(job, now)}
    if move(job, State.FAILED, **ended):
        audit.record(
            Action.EXPORT_FAILED, actor=job.person, target=str(job), export=str(job.pk), reason=problem
        )


def _to_be_told(job: ExportJob, now: datetime) -> datetime | None:
    """By a message, if a schedule asked for it."""
    return now if job.schedule_id else None
