"""What `manage.py check --deploy` says about the receiver of webhooks.

Before a deployment, and nowhere else: an error that other commands meet keeps them from starting, and neither sending
nor looking may wait for a file that only webhooks need. At work the page says the same.
"""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from backoffice.webhooks import configuration


@register(deploy=True)
def secret_cannot_be_guessed(**_of_django: Any) -> Iterable[CheckMessage]:
    """A secret that is short, or that no address can hold, opens no receiver."""
    if configuration.is_on() or not settings.WEBHOOK_SECRET:
        return []
    return [
        Error(
            "COUNTERSIGN_WEBHOOK_SECRET needs 32 characters at least, of A-Z, a-z, 0-9, _ and -.",
            hint='Make one: python -c "import secrets; print(secrets.token_urlsafe(32))"',
            id="webhooks.E001",
        )
    ]


@register(deploy=True)
def keys_can_be_read(**_of_django: Any) -> Iterable[CheckMessage]:
    """A file of keys that cannot be used is told as what it is, not as forged deliveries later."""
    try:
        configuration.public_keys()
    except ValueError as exc:
        return [Error(f"COUNTERSIGN_WEBHOOK_KEYS: {exc}", id="webhooks.E002")]
    return []


@register(deploy=True)
def deliveries_can_be_verified(**_of_django: Any) -> Iterable[CheckMessage]:
    """Without keys everything that is received stays unverified, and starts nothing."""
    if settings.WEBHOOK_KEYS or not settings.WEBHOOK_SECRET:
        return []
    return [
        Warning(
            "COUNTERSIGN_WEBHOOK_KEYS is not set, so no delivery can be verified, and none starts anything.",
            hint="Set it to a file with the service's public key in PEM, or both while it changes them.",
            id="webhooks.W001",
        )
    ]
