"""The callback URL to which the provider sends webhooks: read it, and check that it is this installation's."""

from urllib.parse import urlsplit

from django.conf import settings
from django.urls import reverse
from pydantic import TypeAdapter

from backoffice.core.cached_reads import CachedRead, CachedValue
from backoffice.core.gateway import PAGE_TIMEOUT, gateway

_CALLBACK_URL = CachedRead("callback", TypeAdapter(str))


def refresh_callback_url() -> CachedValue[str]:
    """The callback URL, read now, or as last reported if that fails; empty if none is set."""
    return _CALLBACK_URL.refresh(fetch_callback_url)


def cached_callback_url() -> CachedValue[str]:
    """The callback URL as last reported, without a request."""
    return _CALLBACK_URL.cached()


def fetch_callback_url(*, deadline: float = PAGE_TIMEOUT) -> str:
    """The callback URL set at the provider; empty if none is set. Raises GatewayError."""
    return gateway(deadline=deadline).callbacks.url()


def callback_url_context(cached: CachedValue[str]) -> dict[str, object]:
    """The template context of the callback URL: its last value, and whether it is this installation's."""
    return {
        "cached": cached,
        "shown_url": without_secret(cached.value or ""),
        "is_ours": is_own_address(cached.value) if cached.value else None,
        "public_url": settings.PUBLIC_URL,
    }


def without_secret(address: str) -> str:
    """The address as pages and files show it: with asterisks for the secret part of our own."""
    return address.replace(settings.WEBHOOK_SECRET, "***") if settings.WEBHOOK_SECRET else address


def is_own_address(address: str) -> bool | None:
    """Whether the address is at or below COUNTERSIGN_PUBLIC_URL; None if that is not set.

    Scheme, host and port must be equal, and the path must begin with ours.
    """
    if not settings.PUBLIC_URL:
        return None
    try:
        is_same_origin = _origin(address) == _origin(settings.PUBLIC_URL)
    except ValueError:
        return False  # the provider's value is not a URL
    own_path = urlsplit(settings.PUBLIC_URL).path.rstrip("/")
    return is_same_origin and f"{urlsplit(address).path}/".startswith(f"{own_path}/")


def own_callback_url() -> str:
    """Where this installation receives webhooks, with the secret part; empty if that is not configured."""
    if not (settings.PUBLIC_URL and settings.WEBHOOK_SECRET):
        return ""
    return settings.PUBLIC_URL + reverse("webhooks:receive", args=[settings.WEBHOOK_SECRET])


def is_same_address(one: str, other: str) -> bool:
    """Whether two URLs are equivalent by RFC 3986 (6.2.2.1 and 6.2.3), and by no other rule.

    Scheme and host are compared without case or a trailing dot of the host; a default port equals no port,
    and an empty path equals `/`. A text that is not a URL equals only itself.
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
    default_port = {"https": 443, "http": 80}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or default_port
