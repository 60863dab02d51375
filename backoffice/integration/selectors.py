"""Reads what is known of keys: the list with its age, what waits to be shown. Never writes, never calls the service."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from backoffice.core.credentials import KeyInUse, key_in_use
from backoffice.integration.models import KnownKey
from backoffice.operations.kinds.listed_keys import UNKNOWN_SCOPE
from backoffice.operations.models import Secret
from payments_gateway import NotSentError

WARN_FROM = ((timedelta(days=1), "bad"), (timedelta(days=7), "warn"), (timedelta(days=30), "info"))
STAYS_FOR = timedelta(days=7)  # what has expired


@dataclass(frozen=True)
class KeyRow:
    """One key as the page and the file show it. `tone` and `warning` are empty while its end is far off."""

    short_hash: str
    name: str
    scope: str
    state: str
    state_tone: str
    expires_at: datetime | None
    warning: str
    tone: str
    is_ended: bool
    is_in_use: bool
    as_of: datetime
    is_lost: bool


def key_rows() -> list[KeyRow]:
    """Every key as the service last listed it, with what this installation knows of it besides."""
    own, now = own_key(), timezone.now()
    return [_row(key, own.short_hash if own else "", now) for key in KnownKey.objects.all()]


def keys_that_end(limit: int = 5) -> list[KeyRow]:
    """Keys that end within 30 days or did so in the last week, the first to end before the others."""
    now = timezone.now()
    soon = KnownKey.objects.filter(
        ended_at=None, expires_at__gt=now - STAYS_FOR, expires_at__lte=now + WARN_FROM[-1][0]
    )
    return [_row(key, "", now) for key in soon.order_by("expires_at")[:limit]]


def own_key() -> KeyInUse | None:
    """The key that Countersign calls with, without looking at it; None if our database does not tell now."""
    try:
        return key_in_use()
    except NotSentError:
        return None


def secrets_waiting() -> list[Secret]:
    """What operations made and nobody was shown or uses yet, the newest first."""
    return list(Secret.objects.select_related("operation", "belongs_to").defer("sealed").order_by("-kept_at"))


def secret_of(operation_id: UUID) -> Secret | None:
    """The secret that an operation made, if it is still kept."""
    return Secret.objects.select_related("operation", "belongs_to").filter(operation=operation_id).first()


def _row(key: KnownKey, own: str, now: datetime) -> KeyRow:
    is_in_use = key.short_hash == own
    is_expired = key.expires_at is not None and key.expires_at <= now
    state, state_tone = _state(key, is_in_use=is_in_use, is_expired=is_expired)
    warning, tone = ("", "") if key.ended_at else expiry_warning(key.expires_at, now)
    return KeyRow(
        short_hash=key.short_hash,
        name=key.name,
        scope=key.scope or UNKNOWN_SCOPE,
        state=state,
        state_tone=state_tone,
        expires_at=key.expires_at,
        warning=warning,
        tone=tone,
        is_ended=key.ended_at is not None,
        is_in_use=is_in_use,
        as_of=key.as_of,
        is_lost=key.is_lost,
    )


def _state(key: KnownKey, *, is_in_use: bool, is_expired: bool) -> tuple[str, str]:
    """The word and the tone of its badge. That the key in use has ended is the worst there is to say."""
    if key.ended_at is not None or is_expired:
        word = "Invalidated" if key.ended_at else "Expired"
        return (f"{word}, yet in use", "bad") if is_in_use else (word, "idle")
    return ("In use", "good") if is_in_use else ("Works", "idle")


def expiry_warning(expires_at: datetime | None, now: datetime) -> tuple[str, str]:
    """Words and tone of the warning 30, 7 and 1 days before the end; empty before."""
    if expires_at is None:
        return "", ""
    left = expires_at - now
    if left <= timedelta(0):
        return "expired", "bad"
    tone = next((tone for within, tone in WARN_FROM if left <= within), "")
    days = left.days
    words = f"in {days} day{'' if days == 1 else 's'}" if days else "within a day"
    return (words, tone) if tone else ("", "")
