"""What a process refuses to start with: settings that are unsafe in its environment."""

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from backoffice import production_checks
from backoffice.settings_values import DEVELOPMENT_ENCRYPTION_KEY, DEVELOPMENT_SECRET, SANDBOX_API_KEY
from payments_gateway.config import is_loopback

Checks = Iterator[tuple[bool, str]]
"""Whether it is safe, and the message if it is not."""


def refuse_unsafe(settings: Mapping[str, Any]) -> None:
    """Stop the start if a value would be unsafe. `settings` holds every setting by its name.

    Raises ImproperlyConfigured with a message that names the environment variable.
    """
    values = SimpleNamespace(**{name: value for name, value in settings.items() if name.isupper()})
    for checks in (_environment_checks, _secret_checks, _provider_checks, _service_checks, _retention_checks):
        for is_safe, message in checks(values):
            if not is_safe:
                raise ImproperlyConfigured(message)
    for problem in () if _is_sandbox(values) else _problems_outside_sandbox(values):
        raise ImproperlyConfigured(problem)


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
        f"COUNTERSIGN_SECRET_KEY is not set. Make one: {production_checks.HOW_TO_DRAW_ONE}",
    )
    yield (
        in_sandbox or not any(DEVELOPMENT_ENCRYPTION_KEY in item for item in values.ENCRYPTION_KEYS),
        f"COUNTERSIGN_ENCRYPTION_KEYS is not set. Make one: {production_checks.MAKE_KEY}",
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
    yield from production_checks.secret_problems([values.SECRET_KEY], setting="COUNTERSIGN_SECRET_KEY")
    yield from production_checks.secret_problems(
        values.SECRET_KEY_FALLBACKS, setting="COUNTERSIGN_SECRET_KEY_FALLBACKS"
    )
    yield from production_checks.key_problems(values.ENCRYPTION_KEYS, setting="COUNTERSIGN_ENCRYPTION_KEYS")
    yield from production_checks.key_problems(
        values.AUDIT_CHECKPOINT_KEYS, setting="COUNTERSIGN_AUDIT_CHECKPOINT_KEYS"
    )
    yield from production_checks.token_problems(
        {
            f"COUNTERSIGN_{name}": getattr(values, name)
            for name in ("METRICS_TOKEN", "WEBHOOK_SECRET", "NOTIFY_WEBHOOK_SECRET")
        }
    )
    yield from production_checks.host_problems(values.ALLOWED_HOSTS)
    if not values.SINGLE_MACHINE:
        yield from production_checks.single_machine_problems(database["ENGINE"], values.CELERY_BROKER_URL)
    yield from production_checks.transport_problems(
        database, values.CELERY_BROKER_URL, single_machine=values.SINGLE_MACHINE
    )
    yield from production_checks.message_problems(
        vars(values), values.AUDIT_CHECKPOINT_DESTINATIONS, single_machine=values.SINGLE_MACHINE
    )
    yield from production_checks.provider_problems(
        [values.GATEWAY_URL, values.GATEWAY_URL_V4], may_be_private=values.GATEWAY_PRIVATE_ADDRESSES
    )
    yield from production_checks.variables_problems(values.ENV_FILE)
    yield from production_checks.folder_problems(
        {"COUNTERSIGN_DATA_DIR": values.DATA_DIR, "COUNTERSIGN_JOURNAL_DIR": values.JOURNAL_DIR}
    )
