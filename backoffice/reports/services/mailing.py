"""Tells recipients of a schedule that their file is there: a link that needs sign-in, and no figures."""

import logging
import smtplib
from datetime import timedelta

from django.conf import settings
from django.core.mail import send_mail
from django.db.models import QuerySet

from backoffice.core import clock
from backoffice.reports.asking import report_for
from backoffice.reports.errors import NotAllowedError
from backoffice.reports.models import ExportJob
from backoffice.reports.states import State

logger = logging.getLogger(__name__)

TRY_AGAIN_AFTER = timedelta(minutes=5)


def tell_recipients() -> int:
    """Send what is due; how many messages left. Any number may call.

    Each message is taken by moving its time on, so one that cannot be sent, or whose sender dies, is tried again
    later: a recipient may get two, and never none.
    """
    now = clock.now()
    due = ExportJob.objects.filter(mail_at__lte=now).select_related("person", "schedule")
    return sum(_tell(job) for job in due if _taken(job).update(mail_at=now + TRY_AGAIN_AFTER))


def _taken(job: ExportJob) -> QuerySet[ExportJob]:
    return ExportJob.objects.filter(pk=job.pk, mail_at=job.mail_at)


def _tell(job: ExportJob) -> bool:
    try:
        is_sent = _send(job)
    except (smtplib.SMTPException, OSError) as exc:
        logger.warning("The message about the export %s could not be sent: %s", job.pk, exc)
        return False
    ExportJob.objects.filter(pk=job.pk).update(mail_at=None)
    return is_sent


def _send(job: ExportJob) -> bool:
    """Whether it was sent: not to somebody who may no longer read the report."""
    try:
        report = report_for(job.person, job.report)
    except NotAllowedError:
        return False
    if job.state != State.DONE or not job.person.is_active:
        return False
    title = " ".join((job.schedule.name if job.schedule else report.title).split())  # a subject has one line
    lines = [
        f"{title}: the file is ready for you.",
        "",
        f"{settings.PUBLIC_URL}{job.get_absolute_url()}",
        "",
        "Sign in to take it away. It is kept for seven days.",
    ]
    return bool(send_mail(f"Countersign: {title}", "\n".join(lines), None, [job.person.email]))
