"""What a process refuses to start with: settings that are unsafe in its environment.

With real or staging money, these are also weak secrets, and what only suits one machine or a test. Each such problem is
a sentence with the name of the setting and what to set. None repeats a secret.
The entry points of processes use `read_settings` or `ended_by_refusals`, so that it is all they write.
"""

import base64
import binascii
import logging
import re
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from backoffice.settings_values import DEVELOPMENT_ENCRYPTION_KEY, DEVELOPMENT_SECRET, SANDBOX_API_KEY
from payments_gateway.config import is_loopback

Checks = Iterator[tuple[bool, str]]
"""Whether it is safe, and the message if it is not."""
_MIN_SECRET = 50  # characters, as Django's own check
_MIN_DIFFERENT = 15  # in a secret or key; 32 random bytes have fewer once in 10^17 keys
# 16 random hexadecimal digits have fewer once in 600 tokens, which is refused then.
_MIN_DIFFERENT_IN_TOKEN = 7
_KNOWN_SECRET = re.compile(
    r"insecure|changeme|change-me|development|example|secret-?key|password|12345678", re.I
)
HOW_TO_DRAW_ONE = 'python -c "import secrets; print(secrets.token_urlsafe(64))"'
_MAKE_ONE = 'python -c "import secrets; print(secrets.token_urlsafe(32))"'
MAKE_KEY = "python -c \"import base64, secrets; print('first:' + base64.b64encode(secrets.token_bytes(32)).decode())\""
_TLS_MODES = frozenset({"verify-ca", "verify-full"})  # `require` accepts any server
_TLS_BROKERS = frozenset({"rediss", "amqps"})
_PLAIN_SYSLOG = frozenset({"syslog+udp", "syslog+tcp"})


def refuse_unsafe(loaded: Mapping[str, Any]) -> None:
    """Stop the start if a value would be unsafe. `loaded` holds every setting by its name.

    Raises ImproperlyConfigured with a message that names the environment variable.
    """
    values = SimpleNamespace(**{name: value for name, value in loaded.items() if name.isupper()})
    for checks in (_environment_checks, _secret_checks, _provider_checks, _service_checks, _retention_checks):
        for is_safe, message in checks(values):
            if not is_safe:
                raise ImproperlyConfigured(message)
    for problem in () if _is_sandbox(values) else _problems_outside_sandbox(values):
        raise ImproperlyConfigured(problem)


def refusal(exc: BaseException) -> str:
    """The sentence of a setting that was refused, in one line; empty for any other error."""
    is_refusal = isinstance(exc, ImproperlyConfigured) and "COUNTERSIGN_" in str(exc)
    return " ".join(str(exc).split()) if is_refusal else ""


@contextmanager
def ended_by_refusals() -> Iterator[None]:
    """A setting that is refused inside the block ends the process with its sentence, in place of a traceback.

    For the entry points of processes.
    """
    try:
        yield
    except ImproperlyConfigured as exc:
        if sentence := refusal(exc):
            sys.exit(sentence)
        raise


def read_settings() -> None:
    """Read the settings, or end the process with the sentence of one that is refused."""
    with ended_by_refusals():
        _environment = settings.ENVIRONMENT


def _is_sandbox(values: SimpleNamespace) -> bool:
    return bool(values.ENVIRONMENT == "sandbox")


def _is_simulated(values: SimpleNamespace) -> bool:
    """Whether the provider is simulated, so that no real money can move."""
    return _is_sandbox(values) or bool(values.ENVIRONMENT == "rehearsal")


def _environment_checks(values: SimpleNamespace) -> Checks:
    in_sandbox, simulated = _is_sandbox(values), _is_simulated(values)
    gateways = [urlsplit(values.GATEWAY_URL), urlsplit(values.GATEWAY_URL_V4)]
    yield (
        values.ENVIRONMENT in {"sandbox", "rehearsal", "staging", "production"},
        "COUNTERSIGN_ENVIRONMENT is not known: set sandbox, rehearsal, staging or production",
    )
    yield (
        not values.DEMO or (in_sandbox and all(is_loopback(host) for host in values.ALLOWED_HOSTS)),
        "COUNTERSIGN_DEMO shows sign-in codes: it needs the sandbox environment and loopback hosts only",
    )
    yield (
        not (values.DEMO or simulated) or all(is_loopback(url.hostname) for url in gateways),
        "In the sandbox and in a rehearsal COUNTERSIGN_GATEWAY_URL and _V4 must be loopback addresses",
    )
    yield (
        not values.PUBLIC_URL or urlsplit(values.PUBLIC_URL).scheme == "https" or in_sandbox,
        "COUNTERSIGN_PUBLIC_URL must begin with https://",
    )
    yield (
        in_sandbox or values.SEND_DEADLINE_SECONDS >= 30,
        "COUNTERSIGN_SEND_DEADLINE_SECONDS is too short: the provider may take 30 seconds",
    )
    yield (
        simulated or values.BREAK_GLASS_RESTRICTION_HOURS >= 24,
        "COUNTERSIGN_BREAK_GLASS_RESTRICTION_HOURS is too short: 24 hours at least",
    )
    yield (
        simulated or values.NEW_RIGHTS_WAIT_HOURS >= 24,
        "COUNTERSIGN_NEW_RIGHTS_WAIT_HOURS is too short: 24 hours at least",
    )


def _secret_checks(values: SimpleNamespace) -> Checks:
    in_sandbox, simulated = _is_sandbox(values), _is_simulated(values)
    yield (
        in_sandbox or not values.METRICS_TOKEN or len(values.METRICS_TOKEN) >= 16,
        "COUNTERSIGN_METRICS_TOKEN needs 16 characters at least",
    )
    yield (
        in_sandbox or not values.FAULT_POINTS,
        "COUNTERSIGN_FAULT_POINT belongs to tests in the sandbox",
    )
    yield in_sandbox or not values.DEBUG, "COUNTERSIGN_DEBUG must be off outside the sandbox"
    yield (
        in_sandbox or values.SECRET_KEY not in {"", DEVELOPMENT_SECRET},
        f"COUNTERSIGN_SECRET_KEY is not set. Make one: {HOW_TO_DRAW_ONE}",
    )
    yield (
        in_sandbox or not any(DEVELOPMENT_ENCRYPTION_KEY in item for item in values.ENCRYPTION_KEYS),
        f"COUNTERSIGN_ENCRYPTION_KEYS is not set. Make one: {MAKE_KEY}",
    )
    yield (
        simulated or values.GATEWAY_API_KEY not in {"", SANDBOX_API_KEY},
        "COUNTERSIGN_GATEWAY_API_KEY is not set: set the API key that the provider gave the merchant",
    )


def _provider_checks(values: SimpleNamespace) -> Checks:
    gateways = [urlsplit(values.GATEWAY_URL), urlsplit(values.GATEWAY_URL_V4)]
    are_staging_hosts = [values.GATEWAY_STAGING_HOST_MARKER in (url.hostname or "") for url in gateways]
    yield (
        _is_simulated(values)
        or all(url.scheme == "https" and not is_loopback(url.hostname) for url in gateways),
        "COUNTERSIGN_GATEWAY_URL and _V4 must be https addresses of the provider",
    )
    yield (
        values.OTP_MODE in {"", "not_asked", "entered", "managed"},
        "COUNTERSIGN_OTP_MODE must be not_asked, entered or managed",
    )
    yield (
        values.ENVIRONMENT != "production" or not any(are_staging_hosts),
        "COUNTERSIGN_GATEWAY_URL or _V4 is a staging address in production",
    )
    yield (
        values.ENVIRONMENT != "staging" or all(are_staging_hosts),
        "COUNTERSIGN_GATEWAY_URL or _V4 is no staging address (COUNTERSIGN_GATEWAY_STAGING_HOST_MARKER)",
    )


def _service_checks(values: SimpleNamespace) -> Checks:
    webhooks = [urlsplit(url) for url in values.NOTIFY_WEBHOOKS]
    store = urlsplit(values.FILES_ENDPOINT)
    yield (
        not values.FILES_ENDPOINT or store.scheme == "https" or is_loopback(store.hostname),
        "COUNTERSIGN_FILES_ENDPOINT must be an https address",
    )
    yield (
        bool(values.FILES_BUCKET) or not values.FILES_ENDPOINT,
        "COUNTERSIGN_FILES_BUCKET is not set, but COUNTERSIGN_FILES_ENDPOINT is",
    )
    yield (
        all(url.scheme == "https" or is_loopback(url.hostname) for url in webhooks),
        "COUNTERSIGN_NOTIFY_WEBHOOKS must be https addresses",
    )
    yield (
        not webhooks or len(values.NOTIFY_WEBHOOK_SECRET) >= 32,
        "COUNTERSIGN_NOTIFY_WEBHOOK_SECRET needs 32 characters at least",
    )
    yield values.LOG_FORMAT in {"text", "json"}, "COUNTERSIGN_LOG_FORMAT must be text or json"
    yield (
        values._LOG_LEVEL in logging.getLevelNamesMapping(),
        "COUNTERSIGN_LOG_LEVEL must be DEBUG, INFO, WARNING, ERROR or CRITICAL",
    )
    yield values.NOTIFY_LANGUAGE in dict(values.LANGUAGES), "COUNTERSIGN_NOTIFY_LANGUAGE must be en or fr"
    yield values.NOTIFY_GIVE_UP_HOURS > 0, "COUNTERSIGN_NOTIFY_GIVE_UP_HOURS must be greater than zero"


def _retention_checks(values: SimpleNamespace) -> Checks:
    for name, days in vars(values).items():
        if name.startswith("KEEP_"):
            yield days >= 0, f"COUNTERSIGN_{name} must not be negative"
    yield (
        values.KEEP_OCCURRENCES_DAYS not in range(1, 90),
        "COUNTERSIGN_KEEP_OCCURRENCES_DAYS: at least 90",
    )


def _problems_outside_sandbox(values: SimpleNamespace) -> Iterator[str]:
    database = values.DATABASES["default"]
    yield from secret_problems([values.SECRET_KEY], setting="COUNTERSIGN_SECRET_KEY")
    yield from secret_problems(values.SECRET_KEY_FALLBACKS, setting="COUNTERSIGN_SECRET_KEY_FALLBACKS")
    yield from key_problems(values.ENCRYPTION_KEYS, setting="COUNTERSIGN_ENCRYPTION_KEYS")
    yield from key_problems(values.AUDIT_CHECKPOINT_KEYS, setting="COUNTERSIGN_AUDIT_CHECKPOINT_KEYS")
    yield from token_problems(
        {
            f"COUNTERSIGN_{name}": getattr(values, name)
            for name in ("METRICS_TOKEN", "WEBHOOK_SECRET", "NOTIFY_WEBHOOK_SECRET")
        }
    )
    yield from host_problems(values.ALLOWED_HOSTS)
    if not values.SINGLE_MACHINE:
        yield from single_machine_problems(database["ENGINE"], values.CELERY_BROKER_URL)
    yield from transport_problems(database, values.CELERY_BROKER_URL, single_machine=values.SINGLE_MACHINE)
    yield from message_problems(
        vars(values), values.AUDIT_CHECKPOINT_DESTINATIONS, single_machine=values.SINGLE_MACHINE
    )
    yield from provider_problems(
        [values.GATEWAY_URL, values.GATEWAY_URL_V4], may_be_private=values.GATEWAY_PRIVATE_ADDRESSES
    )
    yield from variables_problems(values.ENV_FILE)
    yield from folder_problems(
        {"COUNTERSIGN_DATA_DIR": values.DATA_DIR, "COUNTERSIGN_JOURNAL_DIR": values.JOURNAL_DIR}
    )


def secret_problems(secrets: Iterable[str], *, setting: str) -> Iterator[str]:
    """Secrets that can be guessed: short, without variety, or written in some example."""
    for secret in secrets:
        if len(secret) < _MIN_SECRET:
            yield f"{setting} is too short: {_MIN_SECRET} characters at least. Make one: {HOW_TO_DRAW_ONE}"
        elif len(set(secret)) < _MIN_DIFFERENT:
            yield f"{setting} repeats few characters, so it can be guessed. Make one: {HOW_TO_DRAW_ONE}"
        elif _KNOWN_SECRET.search(secret):
            yield f"{setting} looks like one from an example. Make one: {HOW_TO_DRAW_ONE}"


def token_problems(tokens: Mapping[str, str]) -> Iterator[str]:
    """Shared secrets that can be guessed, by the setting that names them. Each has its own shortest length."""
    for setting, token in tokens.items():
        if token and (len(set(token)) < _MIN_DIFFERENT_IN_TOKEN or _KNOWN_SECRET.search(token)):
            yield f"{setting} can be guessed: it repeats few characters, or is from an example. Make one: {_MAKE_ONE}"


def key_problems(keys: Iterable[str], *, setting: str) -> Iterator[str]:
    """Keys of 32 bytes that were not made at random. A key that cannot be read is reported where it is used."""
    for item in keys:
        _id, _, encoded = item.strip().partition(":")
        try:
            raw = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            continue
        if len(set(raw)) < _MIN_DIFFERENT or raw.isascii():
            yield f"{setting} has a key that is not random. Make one: {MAKE_KEY}"


def single_machine_problems(engine: str, broker: str) -> Iterator[str]:
    """A database and a broker that no second machine can reach."""
    hint = "or set COUNTERSIGN_SINGLE_MACHINE=true if one small machine is meant"
    if engine.endswith("sqlite3"):
        yield f"COUNTERSIGN_DATABASE_URL is SQLite: set a postgres:// address, {hint}"
    if urlsplit(broker).scheme == "filesystem":
        yield f"COUNTERSIGN_BROKER_URL is folders: set a rediss:// or amqps:// address, {hint}"


def transport_problems(database: Mapping[str, Any], broker: str, *, single_machine: bool) -> Iterator[str]:
    """A database or a broker on another machine, reached without encryption.

    On a single machine a host without a dot is a neighbouring container, whose network does not leave the machine.
    """
    is_here = partial(_is_here, single_machine=single_machine)
    options = database.get("OPTIONS", {})
    named = (database.get("HOST"), options.get("host"), options.get("hostaddr"))
    hosts = [host for text in named for host in str(text or "").split(",")]
    is_elsewhere = any(host and not host.startswith("/") and not is_here(host) for host in hosts)
    if is_elsewhere and options.get("sslmode") not in _TLS_MODES:
        yield (
            "COUNTERSIGN_DATABASE_URL is another machine, without TLS that verifies it: "
            "add ?sslmode=verify-full&sslrootcert=/path/to/its/authority.pem"
        )
    url = urlsplit(broker)
    if url.hostname and not is_here(url.hostname) and url.scheme not in {*_TLS_BROKERS, "filesystem"}:
        yield "COUNTERSIGN_BROKER_URL is another machine, without TLS: use rediss:// or amqps://"


def message_problems(
    mail: Mapping[str, Any], destinations: Iterable[str], *, single_machine: bool
) -> Iterator[str]:
    """A mail or syslog server on another machine, reached without encryption. `mail` holds Django's settings."""
    if mail["EMAIL_BACKEND"].endswith(".smtp.EmailBackend"):
        is_encrypted = mail.get("EMAIL_USE_TLS") or mail.get("EMAIL_USE_SSL")
        if not is_encrypted and not _is_here(mail["EMAIL_HOST"], single_machine=single_machine):
            yield "COUNTERSIGN_EMAIL_URL is another machine, without TLS: use smtp+tls:// or smtp+ssl://"
    for address in map(urlsplit, destinations):
        is_plain = address.scheme in _PLAIN_SYSLOG
        if is_plain and not _is_here(address.hostname or "", single_machine=single_machine):
            yield (
                "COUNTERSIGN_AUDIT_CHECKPOINT_DESTINATIONS has a syslog server on another machine, without TLS: "
                "use syslog+tls://, or a syslog server on this machine that passes the messages on over TLS"
            )


def host_problems(hosts: Iterable[str]) -> Iterator[str]:
    """Host names that accept every name."""
    if any(host.strip() in {"*", ".", ""} for host in hosts):
        yield "COUNTERSIGN_ALLOWED_HOSTS must list the names that people type: * would accept forged ones"


def provider_problems(addresses: Iterable[str], *, may_be_private: bool) -> Iterator[str]:
    """Addresses of the provider inside this machine's own network: such as the one that hands out cloud credentials."""
    for address in addresses:
        host = urlsplit(address).hostname or ""
        found = _literal(host)
        if found is None or is_loopback(host):
            continue
        if (
            found.is_loopback
            or found.is_link_local
            or found.is_multicast
            or found.is_unspecified
            or _is_reserved(found)
        ):
            yield "COUNTERSIGN_GATEWAY_URL or _V4 is a link-local or reserved address: use the provider's host name"
        elif found.is_private and not may_be_private:
            yield (
                "COUNTERSIGN_GATEWAY_URL or _V4 is a private address: use the provider's host name, or set "
                "COUNTERSIGN_GATEWAY_PRIVATE_ADDRESSES=true if it is reached through your own network"
            )


def folder_problems(folders: Mapping[str, Path]) -> Iterator[str]:
    """Folders that every user of the machine can read or write, by the setting that names them."""
    for setting, folder in folders.items():
        if folder.exists() and folder.stat().st_mode & 0o007:
            yield f"{setting} is open to every user of this machine: chmod 700 {folder}"


def variables_problems(file: str) -> Iterator[str]:
    """A file of variables, with the keys among them, that every user of the machine can read or write."""
    path = Path(file)
    if file and path.is_file() and path.stat().st_mode & 0o007:
        yield f"COUNTERSIGN_ENV_FILE is open to every user of this machine: chmod 600 {path}"


def _is_here(host: str, *, single_machine: bool) -> bool:
    return is_loopback(host) or (single_machine and re.fullmatch(r"[\w-]+", host) is not None)


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    """The address that is written as the host, in any form that connections accept: also `0xa9fea9fe` and `10.1`."""
    try:
        found = ip_address(host)
    except ValueError:
        try:
            return IPv4Address(socket.inet_aton(host))
        except (OSError, ValueError):
            return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def _is_reserved(address: IPv4Address | IPv6Address) -> bool:
    return address.is_reserved and not address.is_loopback
