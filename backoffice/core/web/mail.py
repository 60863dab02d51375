"""Whether mails are delivered, and one mail that is sent at once, as plain text and HTML.

Notifications and scheduled reports have queues of their own. This is for what must not be stored.
"""

import logging
import smtplib

from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection
from django.template.loader import render_to_string

logger = logging.getLogger(__name__)
_CONSOLE = "django.core.mail.backends.console.EmailBackend"


class MailNotSentError(Exception):
    """The mail server was not reached or refused the mail; it may have accepted it if it answered too late."""


def email_is_on() -> bool:
    """Whether mails are delivered: not if they only go to the log of the process."""
    return settings.EMAIL_BACKEND != _CONSOLE


def send_now(*, to: str, subject: str, lines: list[str], address: str, button: str) -> None:
    """Send one mail with these paragraphs, and one link below the first of them, without a retry.

    It is neither stored nor logged here: the address may be a secret. Raises MailNotSentError.
    """
    mail = EmailMultiAlternatives(
        subject=f"Countersign: {' '.join(subject.split())}",
        body="\n\n".join([lines[0], address, *lines[1:]]) + "\n",
        to=[to],
        headers={"Auto-Submitted": "auto-generated"},  # RFC 3834: no automatic replies
        connection=get_connection(timeout=settings.EMAIL_TIMEOUT),
    )
    shown = {"subject": subject, "lines": lines, "address": address, "button": button}
    mail.attach_alternative(render_to_string("ui/mail.html", shown), "text/html")
    try:
        mail.send()
    except (smtplib.SMTPException, OSError) as exc:
        logger.warning("A mail could not be sent: %s", type(exc).__name__)  # its text may hold what was sent
        raise MailNotSentError from exc
