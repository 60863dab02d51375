"""The callback URL that the provider sends webhooks to: read it, and compare it with this installation's address."""

from urllib.parse import urlsplit

from django.conf import settings
from pydantic import TypeAdapter

from backoffice.core.cached_reads import CachedRead, CachedValue
from backoffice.core.gateway import PAGE_TIMEOUT, gateway

_CALLBACK_URL = CachedRead("callback", TypeAdapter(str))


def refresh_callback_url() -> CachedValue[str]:
    """The address that the service sends webhooks to, now or as last told; empty if none is set."""
    return _CALLBACK_URL.told_now(fetch_callback_url)


def cached_callback_url() -> CachedValue[str]:
    """The same as last told, without asking."""
    return _CALLBACK_URL.last_told()


def fetch_callback_url(*, patience: float = PAGE_TIMEOUT) -> str:
    """The address that the service sends webhooks to now; empty if none is set. Raises GatewayError."""
    return gateway(deadline=patience).callbacks.url()


def callback_url_context(told: CachedValue[str]) -> dict[str, object]:
    """What a page shows of the address: as it was told, and whether it is ours."""
    return {
        "told": told,
        "is_ours": is_own_address(told.value) if told.value else None,
        "public_url": settings.PUBLIC_URL,
    }


def is_own_address(address: str) -> bool | None:
    """Whether the address is at COUNTERSIGN_PUBLIC_URL or below it; None while nobody has said where we are.

    Scheme, host and port must be the same, and the path must begin with ours.
    """
    if not settings.PUBLIC_URL:
        return None
    try:
        is_same_origin = _origin(address) == _origin(settings.PUBLIC_URL)
    except ValueError:
        return False  # whatever the service holds there, it is no web address
    ours = urlsplit(settings.PUBLIC_URL).path.rstrip("/")
    return is_same_origin and f"{urlsplit(address).path}/".startswith(f"{ours}/")


def is_same_address(one: str, other: str) -> bool:
    """Whether both lead to the same place, by RFC 3986 (6.2.2.1 and 6.2.3): nothing else is taken for the same.

    Scheme and host are the same in any case of letters, and with a dot behind the host; a usual port is the same as
    none, and no path the same as `/`. What is no web address is the same as itself only.
    """
    if one == other:
        return True
    try:
        return _normalised(one) == _normalised(other)
    except ValueError:
        return False


def _normalised(address: str) -> tuple[object, ...]:
    parts = urlsplit(address)
    if not parts.hostname:
        raise ValueError("no web address")
    return (*_origin(address), parts.username, parts.password, parts.path or "/", parts.query, parts.fragment)


def _origin(address: str) -> tuple[str, str, int | None]:
    parts = urlsplit(address)
    usual = {"https": 443, "http": 80}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or usual
