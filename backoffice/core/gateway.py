"""The one seam to the provider: nothing else builds the client."""

import logging
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import Error as DatabaseError
from pydantic import SecretStr

from backoffice.core import credentials
from payments_gateway import (
    CredentialsError,
    GatewayConfig,
    GatewayError,
    OtpRefusedError,
    PaymentsGateway,
    ProviderProfile,
    ReadFailedError,
)
from payments_gateway.transport import Transport

logger = logging.getLogger(__name__)
# Seconds that a person is made to wait for the service, for one read:
PAGE_TIMEOUT = 8.0  # where the page is there already and this fills it in
PAGE_PART_TIMEOUT = 1.5  # the same, where several are needed to fill it in
FORM_CHECK_TIMEOUT = 2.0  # where a form that was sent cannot be taken without it
FORM_HINT_TIMEOUT = (
    1.0  # where the form is as good without it; a check never waits for more than three in all
)
PAGE_OPENING_TIMEOUT = (
    0.4  # where a page that is only opened shows more with it; no page asks for more than two
)
_PAGE_TIMEOUTS = frozenset({PAGE_TIMEOUT, PAGE_PART_TIMEOUT})
_READ_SLOTS = threading.BoundedSemaphore(3)  # in one process, which answers eight people at once
_SLOT_WAIT = 0.1  # seconds


def gateway(*, deadline: float | None = None) -> PaymentsGateway:
    """The client for the configured service with the API key in use, one for each process, deadline and key.

    The deadline is in seconds and for a whole call; without one it is what sending is given. A switch to another key
    is seen within a second, so whoever keeps a client longer than that may hold an old one. Raises NotSentError if
    our own database does not tell the key.
    """
    key = credentials.key_in_use()
    seconds = settings.SEND_DEADLINE_SECONDS if deadline is None else deadline
    return _client(
        seconds, key.pk if key.counted else None, key.secret.get_secret_value(), *_configured_values()
    )


def gateway_for_key(key: SecretStr, *, deadline: float) -> PaymentsGateway:
    """A client that calls with this key instead of the one in use, to try it. Close it."""
    return PaymentsGateway(_client_configuration(deadline, key.get_secret_value(), *_configured_values()))


def client_configuration(*, deadline: float, key: SecretStr | None = None) -> GatewayConfig:
    """How the configured service is reached, for what looks at the service itself instead of using it.

    It asks no database: without `key` it has the one of the environment, whichever is in use.
    """
    secret = (key or credentials.environment_key().secret).get_secret_value()
    return _client_configuration(deadline, secret, *_configured_values())


def check_configuration() -> None:
    """Build a client once, without calling anybody. Raises ValueError or OSError for what cannot be used."""
    PaymentsGateway(client_configuration(deadline=settings.SEND_DEADLINE_SECONDS)).close()


def provider_profile() -> ProviderProfile:
    """How the configured service speaks where its specification leaves it open.

    Raises ValueError, which names the file, for one that cannot be read or used; that stops the start.
    """
    return _provider_profile(settings.GATEWAY_DIALECT)


@cache
def _provider_profile(file: str) -> ProviderProfile:
    try:
        return ProviderProfile().overridden(
            tomllib.loads(Path(file).read_text(encoding="utf-8")) if file else {}
        )
    except (ValueError, OSError) as exc:
        raise ValueError(f"COUNTERSIGN_GATEWAY_DIALECT, {file}: {exc}") from exc


def _configured_values() -> tuple[str, ...]:
    return (
        settings.GATEWAY_URL,
        settings.GATEWAY_URL_V4,
        settings.GATEWAY_API_USER,
        settings.GATEWAY_USER_VERSION,
        settings.GATEWAY_DIALECT,
    )


@cache
def _client(deadline: float, counted_key: UUID | None, *configured: str) -> PaymentsGateway:
    config = _client_configuration(deadline, *configured)
    is_few_at_once = deadline in _PAGE_TIMEOUTS
    if counted_key is None:
        return PaymentsGateway(config, transport=(LimitedTransport if is_few_at_once else Transport)(config))
    counting = LimitedCountingTransport if is_few_at_once else CountingTransport
    return PaymentsGateway(config, transport=counting(config, counted_key))


def _client_configuration(deadline: float, *configured: str) -> GatewayConfig:
    api_key, base_url, base_url_v4, api_user, user_version, dialect_file = configured
    return GatewayConfig(
        base_url=base_url,
        base_url_v4=base_url_v4,
        api_key=SecretStr(api_key),
        api_user=api_user,
        user_version=user_version,
        dialect=_provider_profile(dialect_file),
        ca_file=settings.GATEWAY_CA_FILE or None,
        deadline=deadline,
    )


class LimitedTransport(Transport):
    """Makes a few reads at the same moment and refuses more, for pages that show what was told last instead.

    A service that hangs would otherwise hold every thread of the process for as long as a page has patience, and with
    them the pages that ask it nothing. Raises ReadFailedError as any read.
    """

    def read(self, *args: Any, **kwargs: Any) -> Any:
        if not _READ_SLOTS.acquire(timeout=_SLOT_WAIT):
            raise ReadFailedError(
                "Others wait for the service already, so it was not asked. Try again in a moment."
            )
        try:
            return super().read(*args, **kwargs)
        finally:
            _READ_SLOTS.release()


class CountingTransport(Transport):
    """Counts the calls made with a key that was switched to lately, and those that the service refused it."""

    def __init__(self, config: GatewayConfig, key: UUID) -> None:
        super().__init__(config)
        self._key = key

    def read(self, *args: Any, **kwargs: Any) -> Any:
        with self._counted():
            return super().read(*args, **kwargs)

    def send_once(self, *args: Any, **kwargs: Any) -> Any:
        with self._counted():
            return super().send_once(*args, **kwargs)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        refused = False
        try:
            yield
        except GatewayError as exc:
            refused = _is_key_refusal(exc)
            raise
        finally:
            self._count(refused=refused)

    def _count(self, *, refused: bool) -> None:
        """Count; a call that was made is never lost because it could not be counted."""
        try:
            credentials.count_call(self._key, refused=refused)
        except DatabaseError as exc:
            logger.warning("A call was not counted (%s)", type(exc).__name__)


class LimitedCountingTransport(LimitedTransport, CountingTransport):
    """Both: what was refused a turn was not asked, and is not counted."""


def _is_key_refusal(exc: GatewayError) -> bool:
    of_status = exc.status in {401, 403} and not isinstance(exc, OtpRefusedError)
    return isinstance(exc, CredentialsError) or of_status
