"""Client configuration: base addresses, credentials, time and size limits, provider profile."""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from payments_gateway.profile.model import ProviderProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """Configuration of the client. Raises ValueError for unsafe values, TypeError for a key that is not a SecretStr.

    `base_url` and `base_url_v4` include their version segment. Times are in seconds: `connect_timeout` covers
    DNS, connection and TLS; `deadline` covers a whole call including the body and, for reads, all retries. A DNS
    lookup cannot be interrupted: one that takes longer fails when it ends, before anything is sent.
    A read is sent up to `tries` times. `response_limit` is the maximum size of a body in bytes. `ca_file` is a CA
    bundle to trust instead of the default one.
    """

    base_url: str
    base_url_v4: str
    api_key: SecretStr
    api_user: str
    user_version: str = "v2"
    profile: ProviderProfile = field(default_factory=ProviderProfile)
    connect_timeout: float = 5.0
    deadline: float = 30.0
    tries: int = 3
    response_limit: int = 1_000_000
    ca_file: str | None = None

    def __post_init__(self) -> None:
        if self.ca_file is not None and not Path(self.ca_file).exists():
            raise ValueError("ca_file must name an existing file.")
        for name in ("base_url", "base_url_v4"):
            address = getattr(self, name)
            _check_address(name, address)
            object.__setattr__(self, name, address.rstrip("/"))
        if not isinstance(self.api_key, SecretStr):
            raise TypeError("api_key must be a SecretStr, so that it cannot be printed by accident.")
        _check_header("api_key", self.api_key.get_secret_value())
        _check_header("api_user", self.api_user)
        _check_header("user_version", self.user_version)
        if min(self.connect_timeout, self.deadline, self.tries, self.response_limit) <= 0:
            raise ValueError("connect_timeout, deadline, tries and response_limit must be greater than zero.")


def _check_address(name: str, address: str) -> None:
    """Raise ValueError unless the address is https (or http on loopback) with only a host and a path.

    The message never repeats the address: it may hold a password.
    """
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{name} must be an http or https address.")
    if parts.username is not None or parts.password is not None:
        raise ValueError(f"{name} must not carry credentials.")
    if parts.query or parts.fragment:
        raise ValueError(f"{name} must not carry a query or a fragment.")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ValueError(f"{name} must use https: plain http is allowed on this machine only.")


def is_loopback(host: str | None) -> bool:
    """Whether a host, as written in a URL or in ALLOWED_HOSTS, is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address((host or "").strip("[]")).is_loopback
    except ValueError:
        return False


def _check_header(name: str, value: str) -> None:
    """Raise ValueError for a value that cannot be sent as a header. The message never repeats the value."""
    if not value or value != value.strip() or not (value.isascii() and value.isprintable()):
        raise ValueError(f"{name} must be printable ASCII text without spaces around it.")
