"""The demo's mailbox: the mails that would have been sent, which the demo writes to a folder instead."""

import email
import email.policy
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path

from csp.decorators import csp_update
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

SHOWN = 100
_END_OF_MAIL = b"\n" + b"-" * 79 + b"\n"  # after each mail in the files of Django's backend


@dataclass(frozen=True)
class Mail:
    """A mail as it would have been sent, and the name of its file."""

    name: str
    to: str
    subject: str
    at: datetime | None
    text: str
    html: str


@login_not_required
@require_safe
def mailbox(request: HttpRequest) -> HttpResponse:
    """The newest mails of everybody. Open to strangers like the sign-in codes: the demo has no real people."""
    return render(request, "demo/mailbox.html", {"mails": newest_mails(), "shown": SHOWN})


@login_not_required
@require_safe
@csp_update({"style-src": ["'unsafe-inline'"]})  # type: ignore[arg-type]
def mail_as_html(_request: HttpRequest, name: str) -> HttpResponse:
    """One mail as a mail program shows it."""
    found = next((mail for mail in newest_mails() if mail.name == name), None)
    if found is None or not found.html:
        raise Http404
    return HttpResponse(found.html)


def newest_mails() -> list[Mail]:
    """The newest mails in the folder, the newest first."""
    folder = getattr(settings, "EMAIL_FILE_PATH", None)
    if not folder or not Path(folder).is_dir():
        return []
    files = sorted(Path(folder).iterdir(), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    return [mail for path in files[:SHOWN] for mail in _mails_in(path)][:SHOWN]


def _mails_in(path: Path) -> list[Mail]:
    written = path.read_bytes().split(_END_OF_MAIL)
    return [_read(path.name, one.lstrip()) for one in reversed(written) if one.strip()]


def _read(name: str, content: bytes) -> Mail:
    message = email.message_from_bytes(content, policy=email.policy.default)
    # Django writes UTC.
    written_at = message["Date"].datetime.replace(tzinfo=UTC) if message["Date"] else None
    return Mail(
        name,
        str(message["To"]),
        str(message["Subject"]),
        written_at,
        _part(message, "plain"),
        _part(message, "html"),
    )


def _part(message: EmailMessage, subtype: str) -> str:
    part = message.get_body(preferencelist=(subtype,))
    return str(part.get_content()) if part is not None else ""
