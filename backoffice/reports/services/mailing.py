"""Tells recipients of a schedule that their file is there, and its owner that there is none: a link that needs sign-in,
how fresh the file is, and no figures."""

import logging
import smtplib
from datetime import timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.mail import send_mail
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.reports.asking import report_for
from backoffice.reports.catalogue import REPORTS
from backoffice.reports.errors import NotAllowedError
from backoffice.reports.freshness import how_fresh
from backoffice.reports.models import ExportJob
from backoffice.reports.states import State

logger = logging.getLogger(__name__)

TRY_AGAIN_AFTER = timedelta(minutes=5)
GIVEN_UP_AFTER = timedelta(days=7)


def tell_recipients() -> int:
    """Send what is due; how many messages left. Any number may call.

    None leaves while nobody has told this installation its own address: its link would lead nowhere. It waits.

    Each message is taken by moving its time on, so one that cannot be sent, or whose sender dies, is tried again
    later: a recipient may get two, and never none. After seven days it is given up: the file is gone, and what failed
    stands on the page of the schedules.
    """
    if not settings.PUBLIC_URL:
        return 0
    now = clock.now()
    due = ExportJob.objects.filter(mail_at__lte=now).select_related("person", "schedule__owner")
    return sum(_tell(job) for job in due if _taken(job).update(mail_at=now + TRY_AGAIN_AFTER))


def _taken(job: ExportJob) -> QuerySet[ExportJob]:
    return ExportJob.objects.filter(pk=job.pk, mail_at=job.mail_at)


def _tell(job: ExportJob) -> bool:
    try:
        is_sent = _send(job)
    except (smtplib.SMTPException, OSError) as exc:
        if job.ended_at is None or job.ended_at > clock.now() - GIVEN_UP_AFTER:
            logger.warning("The message about the export %s could not be sent: %s", job.pk, exc)
            return False
        logger.warning("The message about the export %s was given up after seven days: %s", job.pk, exc)
        is_sent = False
    ExportJob.objects.filter(pk=job.pk).update(mail_at=None)
    return is_sent


def _send(job: ExportJob) -> bool:
    """Whether it was sent."""
    if job.state == State.FAILED:
        return _say_why_not(job)
    return job.state == State.DONE and _say_where(job)


def _say_where(job: ExportJob) -> bool:
    """To its person, who may read the report still."""
    if not _may_read(job.person, job):
        return False
    title = _title(job)
    with timezone.override(ZoneInfo(job.time_zone)):
        news = f"{title}: the file is ready for you. {how_fresh(job)}".strip()
    return _post(
        job.person,
        title,
        news,
        job.get_absolute_url(),
        "Sign in to take it away. It is kept for seven days.",
    )


def _say_why_not(job: ExportJob) -> bool:
    """To the owner of the schedule, who can do something about it."""
    schedule = job.schedule
    if schedule is None or not _may_read(schedule.owner, job):
        return False
    title = _title(job)
    return _post(
        schedule.owner,
        title,
        f"{title}: no file could be made for {job.person}. {job.problem}",
        reverse("reports:schedules"),
        "Sign in to see the schedule. It goes on by itself with its next moment.",
    )


def _may_read(person: User, job: ExportJob) -> bool:
    try:
        report_for(person, job.report)
    except NotAllowedError:
        return False
    return person.is_active


def _title(job: ExportJob) -> str:
    """On one line, as a subject has to be."""
    return " ".join((job.schedule.name if job.schedule else REPORTS[job.report].title).split())


def _post(person: User, title: str, news: str, path: str, advice: str) -> bool:
    lines = [news, "", f"{settings.PUBLIC_URL}{path}", "", advice]
    return bool(send_mail(f"Countersign: {title}", "\n".join(lines), None, [person.email]))
