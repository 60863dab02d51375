"""The configuration of the webhook receiver: the secret part of its URL, and the provider's public keys.

`manage.py check --deploy` reports what is wrong with them. Other commands do not, so that sending and status
checks do not depend on a file that only webhooks need. At run time the page reports the same.
"""

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext

from backoffice.core.web.formatting import error_sentence, system_error_template
from payments_gateway import InputError
from payments_gateway.webhooks import MAX_PUBLIC_KEYS, PublicKey, load_public_key

_SECRET = re.compile(r"[A-Za-z0-9_-]{32,}")
_PEM = re.compile(rb"-----BEGIN [^-]+-----.*?-----END [^-]+-----", re.DOTALL)


def is_on() -> bool:
    """Whether deliveries are received: only with a secret that is long enough not to be guessed."""
    return _SECRET.fullmatch(settings.WEBHOOK_SECRET) is not None


def is_secret(candidate: str) -> bool:
    """Whether this is the secret part of our URL; compared in constant time."""
    return constant_time_compare(candidate, settings.WEBHOOK_SECRET) and is_on()


def public_keys() -> tuple[PublicKey, ...]:
    """The one or two keys with which the provider signs; empty if none are configured.

    The file is read again when it changes, so new keys need no restart. Raises ValueError that says what is
    wrong.
    """
    if not settings.WEBHOOK_KEYS:
        return ()
    try:
        return _read_keys(settings.WEBHOOK_KEYS, os.stat(settings.WEBHOOK_KEYS).st_mtime_ns)
    except InputError as exc:
        raise ValueError(error_sentence(exc)) from exc
    except OSError as exc:
        raise ValueError(
            gettext("{file} cannot be read: {error}.").format(
                file=settings.WEBHOOK_KEYS, error=gettext(system_error_template(exc))
            )
        ) from exc


@lru_cache(maxsize=4)
def _read_keys(file: str, _modified_at: int) -> tuple[PublicKey, ...]:
    pems = _PEM.findall(Path(file).read_bytes())
    if not 1 <= len(pems) <= MAX_PUBLIC_KEYS:
        raise ValueError(
            gettext("{file} contains {count} public keys in PEM; it must contain 1 or {limit}.").format(
                file=file, count=len(pems), limit=MAX_PUBLIC_KEYS
            )
        )
    return tuple(map(load_public_key, pems))


@register(deploy=True)
def secret_cannot_be_guessed(**_of_django: Any) -> Iterable[CheckMessage]:
    """Django check: the secret is long enough and valid in a URL; otherwise the receiver is off."""
    if is_on() or not settings.WEBHOOK_SECRET:
        return []
    return [
        Error(
            "COUNTERSIGN_WEBHOOK_SECRET needs at least 32 characters of A-Z, a-z, 0-9, _ and -.",
            hint='Generate one: python -c "import secrets; print(secrets.token_urlsafe(32))"',
            id="webhooks.E001",
        )
    ]


@register(deploy=True)
def keys_can_be_read(**_of_django: Any) -> Iterable[CheckMessage]:
    """Django check: the file of public keys is usable. Otherwise all deliveries would look forged."""
    try:
        public_keys()
    except ValueError as exc:
        return [Error(f"COUNTERSIGN_WEBHOOK_KEYS: {exc}", id="webhooks.E002")]
    return []


@register(deploy=True)
def deliveries_can_be_verified(**_of_django: Any) -> Iterable[CheckMessage]:
    """Django check: public keys are configured. Without them deliveries stay unverified and trigger nothing."""
    if settings.WEBHOOK_KEYS or not settings.WEBHOOK_SECRET:
        return []
    return [
        Warning(
            "COUNTERSIGN_WEBHOOK_KEYS is not set: deliveries cannot be verified and trigger no status check.",
            hint="Set it to a file with the provider's public key in PEM, or with both keys during a rotation.",
            id="webhooks.W001",
        )
    ]
