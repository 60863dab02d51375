"""Log formatting: one line per event, with its context, and without secrets.

Two forms: readable text for development, and JSON for production, one object per line. Both have the same fields.
Redacted are configured secrets, those given to `register_secret`, and the values of fields named like secrets.
"""

import json
import logging
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import TracebackType
from urllib.parse import quote, unquote, urlsplit

from django.conf import settings

from backoffice.core.web import request_context

_SECRET_MEMBERS = re.compile(
    r"""(?ix)
    ( (?: api[-_]?key | token | otp | password | secret (?:[-_]?key)? | seed | session )
      \\?["']? \s* [:=] \s* \[? )               # the name, and perhaps the list that Django keeps a field in
    (?: (\\?["']) .*? \2 | [^\s"',;&}\]]+ )    # the value: to the closing quote, or to the end of the word
    """
)


_PASSWORD_IN_ADDRESS = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s/:@'\"]*:)[^\s@/'\"]+(?=@)", re.IGNORECASE)
_SHORTEST_PASSWORD = 6
_SETUP_LINK = re.compile(r"(/account/set-up/)[^/\s\"'?]+")
_registered_secrets: set[str] = set()


def register_secret(secret: str) -> None:
    """Redact this secret from every line from now on, like those of the configuration."""
    _registered_secrets.add(secret)


FIELDS = ("operation", "user_id", "method", "path", "status", "duration_seconds", "bytes")
"""What a line has besides its message, if it is known. Other attributes of a record are not written: libraries put
requests, arguments and results there.
"""


class ContextFilter(logging.Filter):
    """Adds the context of the request or job, unless the record names its own."""

    def filter(self, record: logging.LogRecord) -> bool:
        context = request_context.current()
        record.request_id = context.request_id or "-"
        for name, value in (("operation", context.operation), ("user_id", context.user_id)):
            if value and not hasattr(record, name):
                setattr(record, name, value)
        return True


class RedactingFormatter(logging.Formatter):
    """Redacts secrets from the finished line, traceback included.

    A formatter and not a filter, because a filter sees the record before the line is complete, and an error
    in it would reach the caller.
    """

    def format(self, record: logging.LogRecord) -> str:
        return redact_secrets(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        fields = "".join(f" {name}={_in_one_line(value)}" for name, value in _fields(record))
        return super().formatMessage(record) + fields


class JsonFormatter(logging.Formatter):
    """One JSON object per line, ASCII only. Secrets are redacted in each value, so that the line remains JSON."""

    def format(self, record: logging.LogRecord) -> str:
        members: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "process": process_name(),
            "pid": record.process,
            "request_id": getattr(record, "request_id", "-"),
            "message": record.getMessage(),
            **dict(_fields(record)),
        }
        if record.exc_info:
            members["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            members["stack"] = self.formatStack(record.stack_info)
        return json.dumps({name: _redacted(value) for name, value in members.items()})


def _fields(record: logging.LogRecord) -> Iterator[tuple[str, object]]:
    for name in FIELDS:
        value = getattr(record, name, None)
        if value is not None:
            yield name, value


def _in_one_line(value: object) -> str:
    text = str(value)
    return text if text.isprintable() else json.dumps(text)


def _redacted(value: object) -> object:
    return value if isinstance(value, int | float | None) else redact_secrets(str(value))


@cache
def process_name() -> str:
    """What this process is: `web`, `worker`, `sweeper`, or the name of the command."""
    program, *arguments = [*sys.argv, ""]
    path = Path(program)
    name = path.parent.name if path.name == "__main__.py" else path.stem
    command = arguments[0] if name == "manage" else name
    return {"gunicorn": "web", "runserver": "web", "celery": "worker", "sweep": "sweeper"}.get(
        command, command
    )


@contextmanager
def calls_logged_from(level: int) -> Iterator[None]:
    """Of calls to the provider, log only what is at least this serious: for commands that print their own progress."""
    logger = logging.getLogger("payments_gateway")
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)


def log_uncaught_exceptions() -> None:
    """Write what ends this process or one of its threads to the log, redacted. For the entry points of processes."""
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda found: _log_uncaught(
        found.exc_type, found.exc_value or found.exc_type(), found.exc_traceback
    )
    logging.captureWarnings(True)


def _log_uncaught(kind: type[BaseException], exc: BaseException, trace: TracebackType | None) -> None:
    is_configured = bool(logging.getLogger().handlers)  # not if the settings are refused
    if is_configured and not issubclass(kind, KeyboardInterrupt | SystemExit):
        logging.getLogger(__name__).critical("Uncaught exception", exc_info=(kind, exc, trace))
    else:
        sys.__excepthook__(kind, exc, trace)


def redact_secrets(text: str) -> str:
    """The text with known secrets, one-time links, passwords of addresses and the values of fields named like secrets
    replaced by dots.
    """
    listed = (*settings.ENCRYPTION_KEYS, *settings.AUDIT_CHECKPOINT_KEYS)
    keys = [item.partition(":")[2] for item in listed]
    tokens = (
        settings.GATEWAY_API_KEY,
        settings.WEBHOOK_SECRET,
        settings.AUDIT_CHECKPOINT_TOKEN,
        settings.NOTIFY_WEBHOOK_SECRET,
        settings.METRICS_TOKEN,
        settings.SENTRY_DSN,
        settings.FILES_SECRET_KEY,
        *settings.NOTIFY_CHATS,
    )
    configured = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS, *tokens, *keys, *_passwords())
    for secret in filter(None, (*configured, *_registered_secrets)):
        text = text.replace(secret, "•••")
    for pattern in (_SETUP_LINK, _PASSWORD_IN_ADDRESS, _SECRET_MEMBERS):
        text = pattern.sub(r"\1•••", text)
    return text


def _passwords() -> Iterator[str]:
    """Of database, broker and mail server, as written and as used. A short one is part of ordinary words."""
    broker = urlsplit(settings.CELERY_BROKER_URL).password or ""
    databases = (settings.DATABASES["default"], settings.MIGRATION_DATABASE)
    used = [
        *(database.get("PASSWORD") for database in databases),
        settings.EMAIL_HOST_PASSWORD,
        unquote(broker),
    ]
    for password in used:
        if password and len(password) >= _SHORTEST_PASSWORD:
            yield from {password, quote(password, safe="")}
