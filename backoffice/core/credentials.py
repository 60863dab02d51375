"""Which API key this installation calls the provider with: read from the database at most once a second by each
process.

So a switch reaches every process within a second, without a restart. A key that cannot be read counts as no key:
the call is not made, with an error that says so, and never with another key instead.
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
from pydantic import SecretStr

from backoffice.core import encryption, logs
from backoffice.core.models import GatewayKey
from payments_gateway import NotSentError

CACHE_SECONDS = 1.0
_ENVIRONMENT_KEY_NAME = "Key of the environment"
_CANNOT_BE_DECRYPTED = (
    "The API key cannot be opened: the encryption key that sealed it is not among the configured ones. "
    "Nothing was sent."
)


@dataclass(frozen=True)
class KeyInUse:
    """The key that calls go out with. `pk` is None for the one of the environment; `counted` asks to count calls."""

    secret: SecretStr
    name: str
    short_hash: str = ""
    since: datetime | None = None
    made_by: UUID | None = None
    pk: UUID | None = None
    counted: bool = False


class _KeyCache:
    """What this process read last, and until when it counts."""

    row: GatewayKey | None = None
    until: float = float("-inf")


def key_in_use() -> KeyInUse:
    """The key to call with, at most a second old. Raises NotSentError if it cannot be read."""
    try:
        row = _cached_row()
        return environment_key() if row is None else _decrypted(row)
    except DatabaseError as exc:
        raise NotSentError(
            "The API key in use cannot be read from our own database. Nothing was sent."
        ) from exc
    except encryption.DecryptionError as exc:
        raise NotSentError(_CANNOT_BE_DECRYPTED) from exc


def clear_key_cache() -> None:
    """Read the key anew at the next call of this process."""
    _KeyCache.until = float("-inf")


@transaction.atomic
def switch_to_key(key: GatewayKey) -> None:
    """Let every call go out with this key from now on; the one until now is kept, sealed, as a former one.

    The row is a former one or a new one, already sealed. Raises IntegrityError if another key is taken into use at
    the same moment.
    """
    now = timezone.now()
    _retire_key_in_use(now)
    key.state, key.since, key.is_counted = GatewayKey.State.IN_USE, now, True
    key.calls, key.refused, key.last_refused_at = 0, 0, None
    _store(key)
    transaction.on_commit(clear_key_cache)


@transaction.atomic
def switch_to_environment_key() -> bool:
    """Let calls go out with the key of the environment again; False if they do already. The other one is kept."""
    moved = GatewayKey.objects.filter(state=GatewayKey.State.IN_USE).update(
        state=GatewayKey.State.FORMER, since=timezone.now(), is_counted=False
    )
    transaction.on_commit(clear_key_cache)
    return bool(moved)


def former_keys() -> list[GatewayKey]:
    """The keys that were in use before and are still kept, the newest first."""
    return list(GatewayKey.objects.filter(state=GatewayKey.State.FORMER))


def stored_key(short_hash: str) -> SecretStr | None:
    """The key itself, if this installation has it, by the service's short hash. Raises NotSentError."""
    try:
        row = GatewayKey.objects.filter(short_hash=short_hash).first() if short_hash else None
        if row is not None:
            return SecretStr(row.unsealed())
    except encryption.DecryptionError as exc:
        raise NotSentError(_CANNOT_BE_DECRYPTED) from exc
    own = environment_key()
    return own.secret if own.short_hash == short_hash else None


@transaction.atomic
def delete_former_key(pk: UUID) -> None:
    """Destroy what is kept of a former key. The one in use stays."""
    GatewayKey.objects.filter(pk=pk, state=GatewayKey.State.FORMER).delete()


@transaction.atomic
def stop_counting_calls() -> None:
    """Count calls no more."""
    GatewayKey.objects.filter(is_counted=True).update(is_counted=False)
    transaction.on_commit(clear_key_cache)


def probable_short_hash(secret: SecretStr) -> str:
    """The short hash under which the service most likely lists a key: eight hexadecimal digits of its SHA-256.

    The specification does not show how it is made, so it counts only where the service's own list has it.
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
    logs.register_secret(row.unsealed())
    secret = SecretStr(row.unsealed())
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
    """The key that this installation was set up with, whichever is in use. Reads no database."""
    secret = SecretStr(settings.GATEWAY_API_KEY)
    return KeyInUse(secret, _ENVIRONMENT_KEY_NAME, probable_short_hash(secret))


def _store(key: GatewayKey) -> None:
    """Store the row; of a former one all but the sealed key, which may have been sealed anew since it was read."""
    if key._state.adding:
        key.save(force_insert=True)
    else:
        key.save(update_fields=["state", "since", "is_counted", "calls", "refused", "last_refused_at"])


def _retire_key_in_use(now: datetime) -> None:
    """Make the key in use a former one; the first time that is the key of the environment, which gets its row."""
    state = GatewayKey.State
    present = GatewayKey.objects.select_for_update().filter(state=state.IN_USE).first()
    if present is None:
        own = environment_key()
        if GatewayKey.objects.filter(short_hash=own.short_hash).exists():
            return
        present = GatewayKey(name=own.name, short_hash=own.short_hash)
        present.seal(own.secret.get_secret_value())
    present.state, present.since, present.is_counted = state.FORMER, now, False
    present.save()
