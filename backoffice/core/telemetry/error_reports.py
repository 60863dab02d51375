"""Error reports to Sentry, if `SENTRY_DSN` is set and the extra is installed: a handler of the log.

A report is built from scratch: the types of the exceptions, the places in the code, and the request id by which the
log has the rest. No text of an exception, no value of a variable and nothing of the request is sent: they can hold
names, amounts and secrets.
"""

import logging
import traceback
from typing import Any

import sentry_sdk
from django.conf import settings

from backoffice.core.logs import process_name
from backoffice.core.web import request_context

_OWN_LOGGERS = ("backoffice", "payments_gateway")


class ErrorReportHandler(logging.Handler):
    """Sends each line of level ERROR and above, in a thread of the library."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._client = sentry_sdk.Client(
            dsn=settings.SENTRY_DSN,
            release=settings.VERSION,
            environment=settings.ENVIRONMENT,
            default_integrations=False,
            auto_enabling_integrations=False,
            include_local_variables=False,
            include_source_context=False,
            max_breadcrumbs=0,
            server_name="",
            auto_session_tracking=False,
        )

    def emit(self, record: logging.LogRecord) -> None:
        self._client.capture_event(report_of(record))

    def flush(self) -> None:
        self._client.flush(timeout=2)


def report_of(record: logging.LogRecord) -> Any:
    """The report of a line, as an event of Sentry's protocol."""
    is_own = record.name.startswith(_OWN_LOGGERS)
    report: dict[str, Any] = {
        "level": record.levelname.lower(),
        "logger": record.name,
        # The template without its arguments; that of a library may be a finished text.
        "message": record.msg if is_own and isinstance(record.msg, str) else record.name,
        "tags": {"process": process_name(), "request_id": request_context.current().request_id or "-"},
    }
    exc = record.exc_info[1] if record.exc_info else None
    if exc is not None:
        report["exception"] = {"values": [_exception(one) for one in reversed(_chain(exc))]}
    return report


def _chain(exc: BaseException) -> list[BaseException]:
    """The exception and those that led to it, the newest first."""
    chain: list[BaseException] = []
    found: BaseException | None = exc
    while found is not None and found not in chain:
        chain.append(found)
        found = found.__cause__ or found.__context__
    return chain


def _exception(exc: BaseException) -> dict[str, Any]:
    frames = [
        {"filename": frame.filename, "function": frame.name, "lineno": frame.lineno}
        for frame in traceback.extract_tb(exc.__traceback__)
    ]
    return {
        "type": type(exc).__name__,
        "module": type(exc).__module__,
        "value": "",
        "stacktrace": {"frames": frames},
    }
