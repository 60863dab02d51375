"""Emails of scheduled reports: to the recipient if a file is ready, to the owner if it failed.

An email contains a link that requires sign-in and how fresh the file is, but no figures.
"""

import logging
import smtplib
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.mail import send_mail
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext

from backoffice.accounts.models import Language, User
from backoffice.core import clock
from backoffice.core.leases import claim_due_row
from backoffice.reports.definitions.catalogue import REPORTS
from backoffice.reports.errors import ReportNotAllowedError
from backoffice.reports.exports.request_codec import readable_report
from backoffice.reports.exports.services import freshness_text
from backoffice.reports.models import ExportJob, ExportState

logger = logging.getLogger(__name__)

FIRST_RETRY, LAST_RETRY = timedelta(minutes=5), timedelta(hours=1)
MAIL_GIVEN_UP_AFTER = timedelta(days=7)


def send_due_messages() -> int:
    """Send the emails that are due. Returns how many were sent. Safe to call concurrently.

    None are sent without PUBLIC_URL, because their links would lead nowhere; they stay due.

    Each is claimed by advancing its time, so one that fails, or whose process is killed, is retried later: a
    recipient may get two, but never none. After `MAIL_GIVEN_UP_AFTER` it is dropped: by then the file has
    expired, and a failure is shown on the page of schedules. Until then pages name it (`late_mails`).
    """
    if not settings.PUBLIC_URL:
        return 0
    now, sent = clock.now(), 0
    due = ExportJob.objects.filter(mail_due_at__lte=now).select_related("person", "schedule__owner")
    for job in due:
        if not claim_due_row(job, "mail_due_at", until=now + _wait_before_retry(job, now)):
            continue
        try:
            sent += _mail_for(job)
        except (smtplib.SMTPException, OSError) as exc:
            _keep_or_drop(job, exc)
            if _is_server_away(exc):
                break  # each of the others would wait as long; the next round takes the next one
            continue
        ExportJob.objects.filter(pk=job.pk).update(mail_due_at=None)
    return sent


def _wait_before_retry(job: ExportJob, now: datetime) -> timedelta:
    """As long again as it has been due, within limits: a server may block whoever repeats what it refuses."""
    return min(max(now - (job.ended_at or now), FIRST_RETRY), LAST_RETRY)


def _keep_or_drop(job: ExportJob, exc: Exception) -> None:
    """It is tried again for seven days. The log gets no address of a person, which the text of the failure may have."""
    if job.ended_at is None or job.ended_at > clock.now() - MAIL_GIVEN_UP_AFTER:
        logger.warning("The email about export %s could not be sent and is retried: %s", job.pk, _reason(exc))
        return
    logger.warning(
        "The email about export %s could not be sent for seven days and is dropped: %s", job.pk, _reason(exc)
    )
    ExportJob.objects.filter(pk=job.pk).update(mail_due_at=None)


def _is_server_away(exc: Exception) -> bool:
    """Whether the server was not reached, or did not answer in time; otherwise it refused this mail."""
    is_lost = isinstance(exc, (smtplib.SMTPServerDisconnected, smtplib.SMTPConnectError))
    return is_lost or not isinstance(exc, smtplib.SMTPException)


def _reason(exc: Exception) -> str:
    """The kind of the failure, with the codes of the server if it refused the recipient."""
    if isinstance(exc, smtplib.SMTPRecipientsRefused):
        codes = sorted({str(code) for code, _text in exc.recipients.values()})
        return f"the server refuses the recipient ({', '.join(codes)})"
    return type(exc).__name__ if isinstance(exc, smtplib.SMTPException) else str(exc) or type(exc).__name__


def _mail_for(job: ExportJob) -> bool:
    """Returns whether it was sent."""
    if job.state == ExportState.FAILED:
        return _mail_owner(job)
    return job.state == ExportState.DONE and _mail_recipient(job)


def _mail_recipient(job: ExportJob) -> bool:
    """To the recipient, if they may still read the report."""
    if not _may_read(job.person, job):
        return False
    title = _title(job)
    with timezone.override(ZoneInfo(job.time_zone)), translation.override(_language(job.person, job)):
        ready = gettext("{report}: your file is ready.").format(report=title)
        advice = gettext("Sign in to download it. The file is deleted after seven days.")
        text = f"{ready} {freshness_text(job)}".strip()
    return _mail(job.person, title, text, job.get_absolute_url(), advice)


def _mail_owner(job: ExportJob) -> bool:
    """To the owner of the schedule, who can correct the cause."""
    schedule = job.schedule
    if schedule is None or not _may_read(schedule.owner, job):
        return False
    title = _title(job)
    with translation.override(_language(schedule.owner, job)):
        text = gettext("{report}: no file was created for {person}. {reason}").format(
            report=title, person=job.person, reason=job.failure_text
        )
        advice = gettext("Sign in to see the schedule. The next run is not affected.")
    return _mail(schedule.owner, title, text, reverse("reports:schedules"), advice)


def _language(person: User, job: ExportJob) -> str:
    """The language that the person chose, or else that of the file."""
    return job.language if person.language == Language.AUTO else person.language


def _may_read(person: User, job: ExportJob) -> bool:
    try:
        readable_report(person, job.report)
    except ReportNotAllowedError:
        return False
    return person.is_active


def _title(job: ExportJob) -> str:
    """On one line, as required of a subject."""
    return " ".join((job.schedule.name if job.schedule else REPORTS[job.report].title).split())


def _mail(person: User, title: str, text: str, path: str, advice: str) -> bool:
    lines = [text, "", f"{settings.PUBLIC_URL}{path}", "", advice]
    return bool(send_mail(f"Countersign: {title}", "\n".join(lines), None, [person.email]))
