"""Log formatting: adds the request id and redacts secrets.

Redacted are configured secrets, those given to `register_secret`, and the values of fields named like secrets.
"""

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


_SETUP_LINK = re.compile(r"(/account/set-up/)[^/\s\"'?]+")
_registered_secrets: set[str] = set()


def register_secret(secret: str) -> None:
    """Redact this secret from every line from now on, like those of the configuration."""
    _registered_secrets.add(secret)


class RequestIdFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request_context.current().request_id or "-"
        return True


class RedactingFormatter(logging.Formatter):
    """Redacts secrets from the finished line, traceback included.

    A formatter and not a filter, because a filter sees the record before the line is complete, and an error
    in it would reach the caller.
    """

    def format(self, record: logging.LogRecord) -> str:
        return redact_secrets(super().format(record))


def redact_secrets(text: str) -> str:
    """The text with known secrets, one-time links and the values of fields named like secrets replaced by dots."""
    listed = (*settings.ENCRYPTION_KEYS, *settings.AUDIT_CHECKPOINT_KEYS)
    keys = [item.partition(":")[2] for item in listed]
    tokens = (
        settings.GATEWAY_API_KEY,
        settings.WEBHOOK_SECRET,
        settings.AUDIT_CHECKPOINT_TOKEN,
        settings.NOTIFY_WEBHOOK_SECRET,
        *settings.NOTIFY_CHATS,
    )
    configured = (settings.SECRET_KEY, *tokens, *keys)
    for secret in filter(None, (*configured, *_registered_secrets)):
        text = text.replace(secret, "•••")
    return _SECRET_MEMBERS.sub(r"\1•••", _SETUP_LINK.sub(r"\1•••", text))
