"""Whether a callback address is this installation's own."""

from urllib.parse import urlsplit

from django.conf import settings


def is_ours(address: str) -> bool | None:
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


def _origin(address: str) -> tuple[str, str, int | None]:
    parts = urlsplit(address)
    usual = {"https": 443, "http": 80}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or usual
