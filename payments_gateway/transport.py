"""Send one request and return one typed value, or raise one GatewayError.

Reads are retried with back-off until the deadline. Calls that change something are sent once, each on a new
connection.
"""

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import requests
from pydantic import SecretStr, ValidationError

from payments_gateway.config import GatewayConfig
from payments_gateway.connection import (
    NO_RESPONSE,
    NO_TIME_LEFT,
    NOT_REACHED,
    TOO_LATE,
    RawResponse,
    exchange,
    open_session,
)
from payments_gateway.errors import (
    GatewayError,
    NotSentError,
    OtpRejectedError,
    OutcomeUnknownError,
    ReadFailedError,
)
from payments_gateway.errors import gettext_noop as _
from payments_gateway.fields import NOT_AS_SPECIFIED, first_problem
from payments_gateway.money import UnreadableError, dumps
from payments_gateway.operations import Endpoint
from payments_gateway.profile.model import ProviderProfile
from payments_gateway.responses import ParsedResponse, ResponseReader

T = TypeVar("T")
Clock = Callable[[], float]
Body = Mapping[str, object]

logger = logging.getLogger("payments_gateway")

_NO_ANSWER = _("The provider responded with HTTP {status}, without the requested data.")
_NO_PROOF = _(
    "The provider responded with HTTP {status}, which does not show whether the request was executed."
)
_MAY_BE_REPEAT = _(
    "The provider responded with HTTP {status}: it had received this request before. A proxy may have sent it twice, "
    "so it may have been executed."
)
_UNREADABLE = _("The provider responded with HTTP {status}: a response that cannot be read ({why}).")
_UNREADABLE_AT = _(
    "The provider responded with HTTP {status}: a response that cannot be read ({place}: {why})."
)
# Message of a failed exchange -> of a failed read, where "Nothing was sent" could be taken for an operation's outcome.
_FAILED_READ = {
    NO_TIME_LEFT: _("There was no time left for the request."),
    TOO_LATE: _("The time limit for the request had passed."),
    NOT_REACHED: _("The provider could not be reached ({why})."),
    NO_RESPONSE: NO_RESPONSE,
}
_FIRST_PAUSE = 0.25
_RANDOM = random.SystemRandom()


def require_otp(otp: SecretStr | None, profile: ProviderProfile) -> None:
    """Check that a required one-time code is given. Raises NotSentError if it is missing.

    Raises TypeError for a code that is not a SecretStr: it could be logged by accident.
    """
    if not isinstance(otp, SecretStr | None):
        raise TypeError("A one-time code must be a SecretStr, so that it cannot be printed by accident.")
    if otp is None and profile.otp_required:
        raise NotSentError.of(_("The provider's one-time code is missing. Nothing was sent."))


class Transport:
    """Sends the requests of all resources. Safe to share between threads and to use after a fork."""

    def __init__(
        self,
        config: GatewayConfig,
        *,
        clock: Clock = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        chance: Clock = _RANDOM.random,
    ) -> None:
        self._config = config
        self._clock = clock
        self._sleep = sleep
        self._chance = chance
        self._lock = threading.Lock()
        self._pooled: tuple[int, requests.Session] | None = None

    def read(
        self,
        method: str,
        path: str,
        *,
        into: Callable[[ParsedResponse], T],
        query: Mapping[str, object] | None = None,
        body: Body | None = None,
        endpoint: Endpoint = Endpoint.V2,
        reader_type: type[ResponseReader] = ResponseReader,
    ) -> T:
        """Send a request that changes nothing; retry connection failures and the profile's retry statuses.

        Raises RejectedError when the provider rejected the request with a message, NotSentError for text that
        cannot be encoded, ReadFailedError otherwise.
        """
        request = self._prepare(method, path, query=query, body=body, endpoint=endpoint)
        reader = self._reader(reader_type, self._fetch(request), body)
        rejection = reader.rejection() if reader.is_success or reader.is_rejected else None
        if rejection is not None:
            raise rejection
        if not reader.is_success:
            raise reader.failure(ReadFailedError, _NO_ANSWER)
        return _parse_success(reader, into, ReadFailedError)

    def send_once(
        self,
        method: str,
        path: str,
        body: Body | None,
        *,
        into: Callable[[ParsedResponse], T],
        query: Mapping[str, object] | None = None,
        endpoint: Endpoint = Endpoint.V2,
        reader_type: type[ResponseReader] = ResponseReader,
    ) -> T:
        """Send a request that must not be executed twice: on a new connection, once, without a retry.

        Raises NotSentError or RejectedError when it is proven that nothing was executed, OutcomeUnknownError
        otherwise. A success status whose body has `success: false` proves neither, nor does a rejection which says that
        the request arrived before. A used one-time code is an OtpRejectedError: only the caller knows whether it was
        made for this request alone.
        """
        request = self._prepare(method, path, query=query, body=body, endpoint=endpoint)
        with open_session(self._config.ca_file) as session:
            response = self._exchange(session, request, self._config.deadline)
        reader = self._reader(reader_type, response, body)
        if reader.is_success:
            return _parse_success(reader, into, OutcomeUnknownError)
        rejection = reader.rejection() if reader.is_rejected else None
        if rejection is None:
            raise reader.failure(OutcomeUnknownError, _NO_PROOF)
        if reader.is_repeat(rejection):
            if not isinstance(rejection, OtpRejectedError):
                raise reader.failure(OutcomeUnknownError, _MAY_BE_REPEAT)
            rejection.is_used = True
        raise rejection

    def close(self) -> None:
        """Close the pooled connections. New ones are opened when the transport is used again."""
        with self._lock:
            if self._pooled is not None:
                self._pooled[1].close()
            self._pooled = None

    def _fetch(self, request: requests.PreparedRequest) -> RawResponse:
        """Return the first response without a retry status, or the last one before tries or time run out.

        Raises ReadFailedError if there was none.
        """
        deadline = self._clock() + self._config.deadline
        attempt = 0
        response: RawResponse | None = None
        while True:
            attempt += 1
            try:
                response = self._exchange(self._session(), request, deadline - self._clock())
            except (NotSentError, OutcomeUnknownError) as exc:
                pause = self._pause(attempt, deadline, retry_after=0)
                if pause is None and response is not None:
                    return response  # an earlier one says more than that the time ran out
                if pause is None:
                    parameters: dict[str, Any] = dict(exc.parameters)
                    raise ReadFailedError.of(_FAILED_READ[exc.template], **parameters) from exc
            else:
                if response.status not in self._config.profile.retry_statuses:
                    return response
                pause = self._pause(attempt, deadline, retry_after=response.retry_after)
                if pause is None:
                    return response
            self._sleep(pause)

    def _pause(self, attempt: int, deadline: float, *, retry_after: float) -> float | None:
        """Seconds until the next try: exponential back-off with jitter, at least the provider's Retry-After.

        None if that was the last try or the pause would end after the deadline.
        """
        if attempt >= self._config.tries:
            return None
        backed_off = _FIRST_PAUSE * 2 ** (attempt - 1) * (0.5 + self._chance())
        pause = max(backed_off, retry_after)
        return pause if self._clock() + pause < deadline else None

    def _exchange(
        self, session: requests.Session, request: requests.PreparedRequest, total: float
    ) -> RawResponse:
        config = self._config
        where = f"{request.method} {urlsplit(request.url or '').path}"
        try:
            response = exchange(
                session, request, connect=config.connect_timeout, total=total, limit=config.response_limit
            )
        except (NotSentError, OutcomeUnknownError) as exc:
            logger.warning("%s: %s", where, exc.message)
            raise
        logger.info("%s answered %d", where, response.status)
        return response

    def _session(self) -> requests.Session:
        """Return this process's pooled session. A forked child opens its own and leaves its parent's alone."""
        with self._lock:
            if self._pooled is None or self._pooled[0] != os.getpid():
                self._pooled = (os.getpid(), open_session(self._config.ca_file))
            return self._pooled[1]

    def _prepare(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None,
        body: Body | None,
        endpoint: Endpoint,
    ) -> requests.PreparedRequest:
        """Build the request. No frame that can fail afterwards holds a secret in clear.

        Raises NotSentError for text that UTF-8 cannot encode (a lone surrogate).
        """
        base = self._config.base_url_v4 if endpoint is Endpoint.V4 else self._config.base_url
        parameters = {name: value for name, value in (query or {}).items() if value is not None}
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "countersign"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            url = f"{base}{path}" + (f"?{urlencode(parameters, quote_via=quote)}" if parameters else "")
            # Encoded in place: a local would keep the one-time code in this frame, where `prepare` can still fail.
            return requests.Request(
                method,
                url,
                headers | self._credentials(endpoint),
                data=None if body is None else _encoded(body),
            ).prepare()
        except UnicodeEncodeError:
            pass
        # Raised outside the handler, without a cause: the original error holds the text, which may be a secret.
        raise NotSentError.of(_("The request contains text that cannot be sent. Nothing was sent."))

    def _credentials(self, endpoint: Endpoint) -> dict[str, str]:
        config = self._config
        key = config.api_key.get_secret_value()
        match endpoint:
            case Endpoint.V2:
                return {
                    "X-Api-Key": key,
                    "X-Api-User": config.api_user,
                    "X-User-Version": config.user_version,
                }
            case Endpoint.V4:
                return {"x-api-key": key, "x-api-user": config.api_user}
            case Endpoint.V2_OPEN:
                return {}

    def _reader(
        self, reader_type: type[ResponseReader], response: RawResponse, body: Body | None
    ) -> ResponseReader:
        secrets = [value for value in (body or {}).values() if isinstance(value, SecretStr)]
        return reader_type(response, self._config.profile, [self._config.api_key, *secrets])


class Resource:
    """Base of the client's resources, which share one transport and one provider profile."""

    def __init__(self, transport: Transport, profile: ProviderProfile) -> None:
        self._transport = transport
        self._profile = profile


def _parse_success(
    reader: ResponseReader, into: Callable[[ParsedResponse], T], failed: type[GatewayError]
) -> T:
    try:
        return reader.accept(into)
    except ValueError as exc:
        template, parameters = _reason(exc)
    # Raised outside the handler, without a cause: pydantic's error holds its input, which may be an API key.
    raise reader.failure(failed, template, **parameters)


def _reason(exc: ValueError) -> tuple[str, dict[str, Any]]:
    """The template and parameters that say why a response does not have the specified shape, and name the member.

    Repeats none of its values.
    """
    if isinstance(exc, UnreadableError):
        return _UNREADABLE, {**exc.parameters, "why": exc.template}
    if not isinstance(exc, ValidationError):
        return _UNREADABLE, {"why": NOT_AS_SPECIFIED}
    problem = exc.errors(include_url=False, include_input=False, include_context=False)[0]
    place, why = first_problem(exc)
    logger.warning("The response is not as specified: %s: %s", place, problem["msg"])
    return (_UNREADABLE_AT, {"why": why, "place": place}) if place else (_UNREADABLE, {"why": why})


def _encoded(body: Body) -> bytes:
    """Encode the body as JSON. The only place where its secrets are revealed. Raises UnicodeEncodeError."""
    revealed = dict(body)
    for name, value in body.items():
        if isinstance(value, SecretStr):
            revealed[name] = value.get_secret_value()
            value.get_secret_value().encode()  # fail now: responses are searched for its UTF-8 bytes
    return dumps(revealed).encode()
