"""Whether two callback addresses are the same, and whether one is this installation's own."""

from urllib.parse import urlsplit

from django.conf import settings

from backoffice.ledger.told import Told


def shown(told: Told[str]) -> dict[str, object]:
    """What a page shows of the address: as it was told, and whether it is ours."""
    return {
        "told": told,
        "is_ours": is_ours(told.value) if told.value else None,
        "public_url": settings.PUBLIC_URL,
    }


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


def is_same_address(one: str, other: str) -> bool:
    """Whether both lead to the same place, by RFC 3986 (6.2.2.1 and 6.2.3): nothing else is taken for the same.

    Scheme and host are the same in any case of letters, and with a dot behind the host; a usual port is the same as
    none, and no path the same as `/`. What is no web address is the same as itself only.
    """
    if one == other:
        return True
    try:
        return _normal(one) == _normal(other)
    except ValueError:
        return False


def _normal(address: str) -> tuple[object, ...]:
    parts = urlsplit(address)
    if not parts.hostname:
        raise ValueError("no web address")
    return (*_origin(address), parts.username, parts.password, parts.path or "/", parts.query, parts.fragment)


def _origin(address: str) -> tuple[str, str, int | None]:
    parts = urlsplit(address)
    usual = {"https": 443, "http": 80}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or usual
