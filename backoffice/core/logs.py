"""Log filters: the request id on every line, and no secret on any."""

import logging
import re

from django.conf import settings

from backoffice.core import context

_SECRET_MEMBERS = re.compile(
    r"""(?ix) (["']?(?:x-)?(?:api[-_]?key|token|otp|password|secret)["']?\s*[:=]\s*) (["']?)[^\s"',}&]+\2"""
)


class RequestIdFilter(logging.Filter):
    """Adds `request_id` to the record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = context.request_id() or "-"
        return True


class SecretsFilter(logging.Filter):
    """The last line of defence: blanks the API key, and whatever stands behind the name of a secret."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = without_secrets(record.getMessage()), None
        if record.exc_info and not record.exc_text:
            record.exc_text = without_secrets(logging.Formatter().formatException(record.exc_info))
        return True


def without_secrets(text: str) -> str:
    """The text with known secrets, and the values of members named like one, replaced by dots."""
    if settings.GATEWAY_API_KEY:
        text = text.replace(settings.GATEWAY_API_KEY, "•••")
    return _SECRET_MEMBERS.sub(r"\1•••", text)
