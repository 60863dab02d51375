"""Builds the API client from the settings and the key in use. Nothing else in the application builds one.

Pages use short deadlines and a limited number of simultaneous reads, so that a slow provider cannot hold all
threads.
"""

import logging
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import Error as DatabaseError
from django.utils.translation import gettext_noop
from pydantic import SecretStr

from backoffice.core import credentials
from backoffice.core.telemetry import provider_calls
from backoffice.core.telemetry.provider_calls import Call
from backoffice.core.web.page_limit import waiting_for_provider
from payments_gateway import (
    CredentialsError,
    GatewayConfig,
    GatewayError,
    OtpRejectedError,
    PaymentsGateway,
    ProviderProfile,
    ReadFailedError,
)
from payments_gateway.profile.model import PROFILES
from payments_gateway.transport import Transport

logger = logging.getLogger(__name__)
# Seconds that a page waits for one read of the provider:
PAGE_TIMEOUT = 8.0  # the page is already shown and this fills in a part
PAGE_PART_TIMEOUT = 1.5  # the same, where a part needs several reads
FORM_CHECK_TIMEOUT = 2.0  # a submitted form cannot be accepted without it
FORM_HINT_TIMEOUT = 1.0  # a form works without it; a check waits for at most three of these
PAGE_OPENING_TIMEOUT = 0.4  # a page shows more with it on opening; at most two per page
_DEFAULT_PROFILE = "specification"
_PAGE_TIMEOUTS = frozenset({PAGE_TIMEOUT, PAGE_PART_TIMEOUT})
_READ_SLOTS = threading.BoundedSemaphore(3)  # per process, which has eight threads
_SLOT_WAIT = 0.1  # seconds


class OtpMode(StrEnum):
    """How the provider's one-time codes are obtained."""

    NOT_ASKED = "not_asked"  # no call carries one
    ENTERED = "entered"  # by the person who sends
    MANAGED = "managed"  # made from the stored authenticator secret when the request is made


def gateway(*, deadline: float | None = None) -> PaymentsGateway:
    """The client for the configured provider with the API key in use; one per process, deadline and key.

    The deadline, in seconds, is for a whole call; the default is that of sending. A key switch is seen within
    a second, so do not keep a client for longer. Raises NotSentError if the key cannot be read from our
    database.
    """
    key = credentials.key_in_use()
    seconds = settings.SEND_DEADLINE_SECONDS if deadline is None else deadline
    return _client(
        seconds, key.pk if key.counted else None, key.secret.get_secret_value(), *_configured_values()
    )


def gateway_for_key(key: SecretStr, *, deadline: float) -> PaymentsGateway:
    """A client that uses this key instead of the one in use, to test it. The caller closes it."""
    return PaymentsGateway(_client_configuration(deadline, key.get_secret_value(), *_configured_values()))


def client_configuration(*, deadline: float, key: SecretStr | None = None) -> GatewayConfig:
    """The configuration of the client, for diagnostics of the provider.

    No database query: without `key` it holds the key of the environment, whichever is in use.
    """
    secret = (key or credentials.environment_key().secret).get_secret_value()
    return _client_configuration(deadline, secret, *_configured_values())


def check_configuration() -> None:
    """Build a client without a request. Raises ValueError or OSError for unusable settings."""
    PaymentsGateway(client_configuration(deadline=settings.SEND_DEADLINE_SECONDS)).close()


def provider_profile() -> ProviderProfile:
    """How the configured provider behaves where its specification leaves it open: a named profile, or a file.

    A file overrides single points of the profile that it names (`profile = "published"`), or of `specification`.
    Whether calls carry a one-time code follows from `otp_mode`. Raises ValueError, which names the file, if that
    cannot be read or is invalid; this stops the start.
    """
    return _profile_in_use(settings.GATEWAY_PROFILE, settings.OTP_MODE)


def otp_mode() -> OtpMode:
    """How one-time codes are obtained: as configured, or else entered where the profile requires them."""
    return _otp_mode(settings.GATEWAY_PROFILE, settings.OTP_MODE)


def _otp_mode(profile: str, configured: str) -> OtpMode:
    if configured:
        return OtpMode(configured)
    return OtpMode.ENTERED if _provider_profile(profile).otp_required else OtpMode.NOT_ASKED


@cache
def _profile_in_use(profile: str, configured_mode: str) -> ProviderProfile:
    mode = _otp_mode(profile, configured_mode)
    points: dict[str, object] = {"otp_required": mode != OtpMode.NOT_ASKED}
    if mode == OtpMode.MANAGED:
        points["otp_type"] = "totp"
    return _provider_profile(profile).overridden(points)


@cache
def _provider_profile(name: str) -> ProviderProfile:
    if not name or name in PROFILES:
        return _named_profile(name or _DEFAULT_PROFILE)
    try:
        points = tomllib.loads(Path(name).read_text(encoding="utf-8"))
        return _named_profile(points.pop("profile", _DEFAULT_PROFILE)).overridden(points)
    except FileNotFoundError as exc:
        named = ", ".join(PROFILES)
        raise ValueError(
            f"COUNTERSIGN_GATEWAY_PROFILE, {name}: neither a profile ({named}) nor a file."
        ) from exc
    except (ValueError, OSError) as exc:
        raise ValueError(f"COUNTERSIGN_GATEWAY_PROFILE, {name}: {exc}") from exc


def _named_profile(name: object) -> ProviderProfile:
    found = next((profile for known, profile in PROFILES.items() if known == name), None)
    if found is None:
        raise ValueError(f"profile: must be one of {', '.join(PROFILES)}.")
    return found


def _configured_values() -> tuple[str, ...]:
    return (
        settings.GATEWAY_URL,
        settings.GATEWAY_URL_V4,
        settings.GATEWAY_API_USER,
        settings.GATEWAY_USER_VERSION,
        settings.GATEWAY_PROFILE,
        settings.OTP_MODE,
    )


@cache
def _client(deadline: float, counted_key: UUID | None, *configured: str) -> PaymentsGateway:
    config = _client_configuration(deadline, *configured)
    is_limited = deadline in _PAGE_TIMEOUTS
    if counted_key is None:
        return PaymentsGateway(
            config, transport=(LimitedTransport if is_limited else CountedTransport)(config)
        )
    counting = LimitedCountingTransport if is_limited else CountingTransport
    return PaymentsGateway(config, transport=counting(config, counted_key))


def _client_configuration(deadline: float, *configured: str) -> GatewayConfig:
    api_key, base_url, base_url_v4, api_user, user_version, profile, mode = configured
    return GatewayConfig(
        base_url=base_url,
        base_url_v4=base_url_v4,
        api_key=SecretStr(api_key),
        api_user=api_user,
        user_version=user_version,
        profile=_profile_in_use(profile, mode),
        ca_file=settings.GATEWAY_CA_FILE or None,
        deadline=deadline,
    )


class CountedTransport(Transport):
    """Counts the calls to the provider, by outcome and with their duration, for monitoring.

    A page that waits for one does not count as one that is being made (`PageLimit`).
    """

    def read(self, *args: Any, **kwargs: Any) -> Any:
        with provider_calls.counted(Call.READ), waiting_for_provider():
            return super().read(*args, **kwargs)

    def send_once(self, *args: Any, **kwargs: Any) -> Any:
        with provider_calls.counted(Call.CHANGE), waiting_for_provider():
            return super().send_once(*args, **kwargs)


class LimitedTransport(CountedTransport):
    """Allows three simultaneous reads per process and refuses more, for pages that can show the last reported
    values.

    Otherwise a provider that hangs would hold every thread until the page's deadline, and block pages that do
    not need the provider. Raises ReadFailedError like any read.
    """

    def read(self, *args: Any, **kwargs: Any) -> Any:
        if not _READ_SLOTS.acquire(timeout=_SLOT_WAIT):
            raise ReadFailedError.of(
                gettext_noop("Too many requests to the provider are in progress. Try again in a moment.")
            )
        try:
            return super().read(*args, **kwargs)
        finally:
            _READ_SLOTS.release()


class CountingTransport(CountedTransport):
    """Also counts the calls made with a recently switched key, and those that the provider refused because of the
    key.
    """

    def __init__(self, config: GatewayConfig, key: UUID) -> None:
        super().__init__(config)
        self._key = key

    def read(self, *args: Any, **kwargs: Any) -> Any:
        with self._counting():
            return super().read(*args, **kwargs)

    def send_once(self, *args: Any, **kwargs: Any) -> Any:
        with self._counting():
            return super().send_once(*args, **kwargs)

    @contextmanager
    def _counting(self) -> Iterator[None]:
        refused = False
        try:
            yield
        except GatewayError as exc:
            refused = _is_key_refusal(exc)
            raise
        finally:
            self._count(refused=refused)

    def _count(self, *, refused: bool) -> None:
        """Store the count. A database error is logged and never fails a call that was made."""
        try:
            credentials.count_call(self._key, refused=refused)
        except DatabaseError as exc:
            logger.warning("A call with the API key in use could not be counted (%s)", type(exc).__name__)


class LimitedCountingTransport(LimitedTransport, CountingTransport):
    """Both. A read that is refused because no slot is free is not counted: no call was made."""


def _is_key_refusal(exc: GatewayError) -> bool:
    is_auth_status = exc.status in {401, 403} and not isinstance(exc, OtpRejectedError)
    return isinstance(exc, CredentialsError) or is_auth_status
