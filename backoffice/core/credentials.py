"""The API key with which this installation calls the provider.

Each process reads it from the database at most once a second, so a switch reaches every process within a
second, without a restart. A key that cannot be read counts as no key: the call fails with an error, and no
other key is used instead.
"""

import hashlib
import time
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_noop
from pydantic import SecretStr

from backoffice.core import encryption, logs
from backoffice.core.models import GatewayKey
from payments_gateway import NotSentError

CACHE_SECONDS = 1.0
_ENVIRONMENT_KEY_NAME = gettext_noop("Key configured at installation")
_CANNOT_BE_DECRYPTED = gettext_noop(
    "The API key cannot be decrypted: its encryption key is not configured. Nothing was sent. "
    "Contact the operator."
)


@dataclass(frozen=True)
class KeyInUse:
    """The key used for calls. `pk` is None for the key of the environment; `counted` says whether calls are
    counted.
    """

    secret: SecretStr
    name: str
    short_hash: str = ""
    since: datetime | None = None
    made_by: UUID | None = None
    pk: UUID | None = None
    counted: bool = False


class _KeyCache:
    """The row this process read last, and the monotonic time at which it expires."""

    row: GatewayKey | None = None
    until: float = float("-inf")


def key_in_use() -> KeyInUse:
    """The key to call with, at most a second old. Raises NotSentError if it cannot be read or decrypted."""
    try:
        row = _cached_row()
        return environment_key() if row is None else _decrypted(row)
    except DatabaseError as exc:
        raise NotSentError.of(
            gettext_noop(
                "The API key in use cannot be read from the database. Nothing was sent. Contact the operator."
            )
        ) from exc
    except encryption.DecryptionError as exc:
        raise NotSentError.of(_CANNOT_BE_DECRYPTED) from exc


def clear_key_cache() -> None:
    """Make the next call of this process read the key from the database."""
    _KeyCache.until = float("-inf")


@transaction.atomic
def switch_to_key(key: GatewayKey) -> None:
    """Use this key for every call from now on, and keep the previous one, encrypted, as a former key.

    `key` is a former key or a new row, already encrypted. Raises IntegrityError if another key is put into
    use at the same time.
    """
    now = timezone.now()
    _retire_key_in_use(now)
    key.state, key.since, key.is_counted = GatewayKey.State.IN_USE, now, True
    key.calls, key.refused, key.last_refused_at = 0, 0, None
    _store(key)
    transaction.on_commit(clear_key_cache)


@transaction.atomic
def switch_to_environment_key() -> bool:
    """Use the key of the environment again and keep the present one as a former key. False if it is in use
    already.
    """
    updated = GatewayKey.objects.filter(state=GatewayKey.State.IN_USE).update(
        state=GatewayKey.State.FORMER, since=timezone.now(), is_counted=False
    )
    transaction.on_commit(clear_key_cache)
    return bool(updated)


def former_keys() -> list[GatewayKey]:
    """The previous keys that are still stored, newest first."""
    return list(GatewayKey.objects.filter(state=GatewayKey.State.FORMER))


def stored_key(short_hash: str) -> SecretStr | None:
    """The key with this short hash of the provider, if this installation has it. Raises NotSentError."""
    try:
        row = GatewayKey.objects.filter(short_hash=short_hash).first() if short_hash else None
        if row is not None:
            return SecretStr(row.decrypted())
    except encryption.DecryptionError as exc:
        raise NotSentError.of(_CANNOT_BE_DECRYPTED) from exc
    key_of_environment = environment_key()
    return key_of_environment.secret if key_of_environment.short_hash == short_hash else None


@transaction.atomic
def delete_former_key(pk: UUID) -> None:
    """Delete a former key. Does nothing for the key in use."""
    GatewayKey.objects.filter(pk=pk, state=GatewayKey.State.FORMER).delete()


@transaction.atomic
def stop_counting_calls() -> None:
    GatewayKey.objects.filter(is_counted=True).update(is_counted=False)
    transaction.on_commit(clear_key_cache)


def probable_short_hash(secret: SecretStr) -> str:
    """The short hash under which the provider most likely lists a key: the first eight hex digits of its
    SHA-256.

    The specification does not define it, so it counts only if the provider's list contains it.
    """
    return hashlib.sha256(secret.get_secret_value().encode()).hexdigest()[:8]


@transaction.atomic
def count_call(pk: UUID, *, refused: bool) -> None:
    """Count one call made with this key. Raises DatabaseError."""
    changes: dict[str, object] = {"calls": F("calls") + 1}
    if refused:
        changes |= {"refused": F("refused") + 1, "last_refused_at": timezone.now()}
    GatewayKey.objects.filter(pk=pk).update(**changes)


def _cached_row() -> GatewayKey | None:
    now = time.monotonic()
    if now >= _KeyCache.until:
        _KeyCache.row = GatewayKey.objects.filter(state=GatewayKey.State.IN_USE).first()
        _KeyCache.until = now + CACHE_SECONDS
    return _KeyCache.row


def _decrypted(row: GatewayKey) -> KeyInUse:
    text = row.decrypted()
    logs.register_secret(text)
    secret = SecretStr(text)
    return KeyInUse(
        secret,
        row.name,
        row.short_hash or probable_short_hash(secret),
        row.since,
        row.made_by,
        row.pk,
        row.is_counted,
    )


def environment_key() -> KeyInUse:
    """The key of the configuration, whether or not it is in use. No database query."""
    secret = SecretStr(settings.GATEWAY_API_KEY)
    return KeyInUse(secret, _ENVIRONMENT_KEY_NAME, probable_short_hash(secret))


def _store(key: GatewayKey) -> None:
    """Save the row. For a former key without the encrypted secret, which may have been re-encrypted since it
    was read.
    """
    if key._state.adding:
        key.save(force_insert=True)
    else:
        key.save(update_fields=["state", "since", "is_counted", "calls", "refused", "last_refused_at"])


def _retire_key_in_use(now: datetime) -> None:
    """Make the key in use a former key. The first time that is the key of the environment, which gets a row."""
    state = GatewayKey.State
    current = GatewayKey.objects.select_for_update().filter(state=state.IN_USE).first()
    if current is None:
        key_of_environment = environment_key()
        if GatewayKey.objects.filter(short_hash=key_of_environment.short_hash).exists():
            return
        current = GatewayKey(name=key_of_environment.name, short_hash=key_of_environment.short_hash)
        current.encrypt(key_of_environment.secret.get_secret_value())
    current.state, current.since, current.is_counted = state.FORMER, now, False
    current.save()
