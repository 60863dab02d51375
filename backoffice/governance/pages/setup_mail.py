"""Mail a one-time link to the person it is for. The start code is never in a mail: its approver passes it on."""

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext

from backoffice.accounts.models import Language, User
from backoffice.accounts.staff import SETUP_LINK_LIFETIME
from backoffice.core.web.mail import email_is_on, send_now


def setup_address(request: HttpRequest, token: str) -> str:
    """The whole address of a one-time link."""
    path = reverse("accounts:set_up", args=[token])
    return f"{settings.PUBLIC_URL}{path}" if settings.PUBLIC_URL else request.build_absolute_uri(path)


def may_mail_links() -> bool:
    """Whether mails are delivered, and links in them lead here."""
    return email_is_on() and bool(settings.PUBLIC_URL)


def mail_setup_link(person: User, address: str, *, has_start_code: bool) -> None:
    """Send the link in the person's language, or that of the deployment. Raises MailNotSentError."""
    language = settings.NOTIFY_LANGUAGE if person.language == Language.AUTO else person.language
    with translation.override(language):
        hours = int(SETUP_LINK_LIFETIME.total_seconds() // 3600)
        lines = [
            gettext("Choose your password and set up your authenticator app with this one-time link:"),
            gettext("The link works once, within {hours} hours. Do not forward this email.").format(
                hours=hours
            ),
        ]
        if has_start_code:
            lines.append(
                gettext(
                    "You also need a start code. A colleague gives it to you in person or by telephone, never by "
                    "email."
                )
            )
        lines.append(
            gettext("If you were not expecting this account, do not open the link. Inform an administrator.")
        )
        send_now(
            to=person.email,
            subject=gettext("Set up your account"),
            lines=lines,
            address=address,
            button=gettext("Set up your account"),
        )
