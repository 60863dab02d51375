"""Deliver by email, as plain text and HTML, through the configured server."""

import smtplib
from functools import partial
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection
from django.template.loader import render_to_string
from django.utils.translation import gettext

from backoffice.notifications.channels.network import TooSlowError, within
from backoffice.notifications.contents import Contents
from backoffice.notifications.models import DeliveryError, Problem

SECONDS = 30.0  # for the whole exchange with the server


def send_email(contents: Contents, *, to: str, message_id: str) -> None:
    """Send one mail, whose id is the same at every try. Raises DeliveryError."""
    mail = EmailMultiAlternatives(
        subject=f"Countersign: {' '.join(contents.subject.split())}",
        body=_plain_text(contents),
        to=[to],
        headers={
            "Message-ID": f"<{message_id}@{urlsplit(settings.PUBLIC_URL).hostname}>",
            "Auto-Submitted": "auto-generated",  # RFC 3834: no automatic replies
        },
        connection=get_connection(timeout=settings.EMAIL_TIMEOUT),
    )
    mail.attach_alternative(render_to_string("notifications/email.html", {"contents": contents}), "text/html")
    try:
        within(SECONDS, partial(mail.send))
    except TooSlowError as exc:
        raise DeliveryError(Problem.TIMED_OUT) from exc
    except (smtplib.SMTPServerDisconnected, smtplib.SMTPConnectError) as exc:
        raise DeliveryError(Problem.NOT_REACHED) from exc
    except smtplib.SMTPException as exc:
        raise DeliveryError(Problem.REFUSED) from exc
    except TimeoutError as exc:
        raise DeliveryError(Problem.TIMED_OUT) from exc
    except OSError as exc:
        raise DeliveryError(Problem.NOT_REACHED) from exc


def _plain_text(contents: Contents) -> str:
    """The content of the HTML part as plain text."""
    paragraphs = [
        "\n".join(filter(None, (item.heading, item.kind, item.sentence, item.time, item.url)))
        for item in contents.items
    ]
    if contents.more:
        paragraphs.append(contents.more_text)
    paragraphs.append(gettext("You must sign in to open the links."))
    if contents.settings_url:
        paragraphs.append(f"{gettext('Choose your notifications')}\n{contents.settings_url}")
    return "\n\n".join(paragraphs) + "\n"
