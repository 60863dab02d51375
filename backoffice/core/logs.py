"""Log lines: every one carries the request id, and none carries a secret."""

import logging
import re

from django.conf import settings

from backoffice.core.web import request_context

_SECRET_MEMBERS = re.compile(
    r"""(?ix)
    ( (?: api[-_]?key | token | otp | password | secret (?:[-_]?key)? | seed | session )
      \\?["']? \s* [:=] \s* \[? )               # the name, and perhaps the list that Django keeps a field in
    (?: (\\?["']) .*? \2 | [^\s"',;&}\]]+ )    # the value: to the closing quote, or to the end of the word
    """
)


_registered_secrets: set[str] = set()


def register_secret(secret: str) -> None:
    """Keep this secret out of every line from now on, as those of the configuration are."""
    _registered_secrets.add(secret)


class RequestIdFilter(logging.Filter):
    """Adds `request_id` to the record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request_context.request_id() or "-"
        return True


class RedactingFormatter(logging.Formatter):
    """The last line of defence: the finished line, traceback included, without secrets.

    A formatter and no filter, because a filter sees the line before it is finished, and fails in the caller's hands.
    """

    def format(self, record: logging.LogRecord) -> str:
        return redact_secrets(super().format(record))


def redact_secrets(text: str) -> str:
    """The text with known secrets, and the values of members named like one, replaced by dots."""
    for secret in _known_secrets():
        text = text.replace(secret, "•••")
    return _SECRET_MEMBERS.sub(r"\1•••", text)


def _known_secrets() -> list[str]:
    keys = [item.partition(":")[2] for item in settings.ENCRYPTION_KEYS]
    known = (
        settings.GATEWAY_API_KEY,
        settings.SECRET_KEY,
        settings.WEBHOOK_SECRET,
        *keys,
        *_registered_secrets,
    )
    return [secret for secret in known if secret]
