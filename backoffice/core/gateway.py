"""The one seam to the service: nothing else builds the client."""

import tomllib
from functools import cache
from pathlib import Path

from django.conf import settings
from pydantic import SecretStr

from payments_gateway import Dialect, GatewayConfig, PaymentsGateway

PATIENCE_OF_A_PAGE = 8.0  # seconds that a person who waits for a page is made to wait for the service


def gateway(*, deadline: float | None = None) -> PaymentsGateway:
    """The client for the configured service, one for each process and deadline.

    The deadline is in seconds and for a whole call; without one it is what sending is given.
    """
    return _build(settings.SEND_DEADLINE_SECONDS if deadline is None else deadline, *_configured())


def configuration(*, deadline: float) -> GatewayConfig:
    """How the configured service is reached, for what looks at the service itself instead of using it."""
    return _configuration(deadline, *_configured())


def dialect() -> Dialect:
    """How the configured service speaks where its specification leaves it open.

    Raises ValueError, which names the file, for one that cannot be read or used; that stops the start.
    """
    return _dialect(settings.GATEWAY_DIALECT)


@cache
def _dialect(file: str) -> Dialect:
    try:
        return Dialect().overridden(tomllib.loads(Path(file).read_text(encoding="utf-8")) if file else {})
    except (ValueError, OSError) as exc:
        raise ValueError(f"COUNTERSIGN_GATEWAY_DIALECT, {file}: {exc}") from exc


def _configured() -> tuple[str, ...]:
    return (
        settings.GATEWAY_URL,
        settings.GATEWAY_URL_V4,
        settings.GATEWAY_API_KEY,
        settings.GATEWAY_API_USER,
        settings.GATEWAY_USER_VERSION,
        settings.GATEWAY_DIALECT,
    )


@cache
def _build(deadline: float, *configured: str) -> PaymentsGateway:
    return PaymentsGateway(_configuration(deadline, *configured))


def _configuration(deadline: float, *configured: str) -> GatewayConfig:
    base_url, base_url_v4, api_key, api_user, user_version, dialect_file = configured
    return GatewayConfig(
        base_url=base_url,
        base_url_v4=base_url_v4,
        api_key=SecretStr(api_key),
        api_user=api_user,
        user_version=user_version,
        dialect=_dialect(dialect_file),
        ca_file=settings.GATEWAY_CA_FILE or None,
        deadline=deadline,
    )
