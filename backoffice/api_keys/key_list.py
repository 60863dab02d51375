"""Mirror of the provider's list of API keys: refresh it, the rows of the page, and expiry warnings.

A refresh also completes the stored result of an operation whose new key was not listed yet when it was created.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext, ngettext

from backoffice.api_keys.models import KnownKey
from backoffice.audit.canonical import storable_text
from backoffice.core.cached_reads import cached_in_process
from backoffice.core.credentials import KeyInUse, key_in_use
from backoffice.core.gateway import PAGE_TIMEOUT, gateway
from backoffice.core.leases import acquire_lease
from backoffice.operations.delivery.record import complete_result
from backoffice.operations.kinds.api_keys.base import (
    CREATING_KIND,
    UNKNOWN_SCOPE,
    expiry_of,
    scopes_of_own_keys,
    translated_scope,
)
from backoffice.operations.kinds.api_keys.create import ApiKeyCreatePayload, details_from_list
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.states import Status
from payments_gateway import GatewayError, KeyInfo, NotSentError

EXPIRY_WARNINGS = ((timedelta(days=1), "bad"), (timedelta(days=7), "warn"), (timedelta(days=30), "info"))
EXPIRED_SHOWN_FOR = timedelta(days=7)  # how long expired keys are shown


@dataclass(frozen=True)
class KeyRow:
    """One key as shown on the page and in the file. `tone` and `warning` are empty unless its expiry is near."""

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

    @property
    def permissions(self) -> str:
        """The scope in the reader's language."""
        return translated_scope(self.scope)

    @property
    def has_expired(self) -> bool:
        """Whether its expiry has passed."""
        return self.expires_at is not None and self.expires_at <= timezone.now()


def key_rows() -> list[KeyRow]:
    """Every key of the last list, with its scope, state and expiry warning. No request."""
    own, now = own_key(), timezone.now()
    return [_key_row(key, own.short_hash if own else "", now) for key in KnownKey.objects.all()]


def expiring_keys() -> list[KeyRow]:
    """The first five keys that expire within 30 days or have expired in the last week, the earliest first.

    Read once a minute by each process, since the warnings are days apart.
    """
    keys = cached_in_process("expiring-keys", _expiring_keys, seconds=60)
    return [_key_row(key, "", timezone.now()) for key in keys]


def _expiring_keys() -> list[KnownKey]:
    now = timezone.now()
    expiring = KnownKey.objects.filter(
        ended_at=None,
        expires_at__gt=now - EXPIRED_SHOWN_FOR,
        expires_at__lte=now + EXPIRY_WARNINGS[-1][0],
    )
    return list(expiring.order_by("expires_at")[:5])


def own_key() -> KeyInUse | None:
    """The key that Countersign uses; None if it cannot be read or decrypted."""
    try:
        return key_in_use()
    except NotSentError:
        return None


def _key_row(key: KnownKey, own: str, now: datetime) -> KeyRow:
    is_in_use = key.short_hash == own
    is_expired = key.expires_at is not None and key.expires_at <= now
    state, state_tone = _key_state(key, is_in_use=is_in_use, is_expired=is_expired)
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


def _key_state(key: KnownKey, *, is_in_use: bool, is_expired: bool) -> tuple[str, str]:
    """Text and tone of the badge. An invalidated or expired key that is still in use is marked bad."""
    if key.ended_at is not None or is_expired:
        if is_in_use:
            return gettext("Invalidated, still in use") if key.ended_at else gettext(
                "Expired, still in use"
            ), "bad"
        return gettext("Invalidated") if key.ended_at else gettext("Expired"), "idle"
    return (gettext("In use"), "good") if is_in_use else (gettext("Valid"), "idle")


def expiry_warning(expires_at: datetime | None, now: datetime) -> tuple[str, str]:
    """Text and tone of the warning 30, 7 and 1 days before expiry; empty before."""
    if expires_at is None:
        return "", ""
    remaining = expires_at - now
    if remaining <= timedelta(0):
        return gettext("expired"), "bad"
    tone = next((tone for limit, tone in EXPIRY_WARNINGS if remaining <= limit), "")
    days = remaining.days
    if not days:
        return gettext("in less than a day"), tone
    period_text = ngettext("in {count} day", "in {count} days", days).format(count=days)
    return (period_text, tone) if tone else ("", "")


MAX_TEXT = 200
REFRESH_INTERVAL = timedelta(hours=1)
RETRY_INTERVAL = timedelta(minutes=10)


def refresh_keys_if_due() -> int:
    """Refresh the list if it is an hour old, so that pages can warn of keys that expire; returns how many
    were listed.

    Safe to call at any time and from several processes: one of them makes the request. If it fails, the last
    list is kept until the next try.
    """
    fresh = KnownKey.objects.filter(as_of__gt=timezone.now() - REFRESH_INTERVAL)
    if fresh.exists() or not acquire_lease("keys", RETRY_INTERVAL):
        return 0
    try:
        refresh_keys()
    except GatewayError:
        return 0  # logged by the client
    return KnownKey.objects.count()


def refresh_keys() -> None:
    """Read the list of keys from the provider and store it. Raises GatewayError; then nothing is changed.

    The call is made outside a transaction. Keys that are no longer listed are deleted.
    """
    listed = gateway(deadline=PAGE_TIMEOUT).api_keys.list()
    _complete_results(listed)
    scopes, lost_names = scopes_of_own_keys(), _lost_key_names()
    found = [_known_key(position, key, scopes, lost_names) for position, key in enumerate(listed)]
    rows = {row.short_hash: row for row in found}
    with transaction.atomic():
        KnownKey.objects.bulk_create(
            rows.values(),
            update_conflicts=True,
            unique_fields=["short_hash"],
            update_fields=["position", "name", "expires_at", "ended_at", "as_of", "scope", "is_lost"],
        )
        KnownKey.objects.exclude(short_hash__in=rows).delete()


def _complete_results(listed: list[KeyInfo]) -> None:
    """Complete the results of operations that created a key when it was not in the list yet."""
    incomplete = Attempt.objects.filter(operation__kind=CREATING_KIND, result__short_hash="").select_related(
        "operation"
    )
    for attempt in incomplete:
        payload = ApiKeyCreatePayload.model_validate(attempt.operation.payload)
        if details := details_from_list(payload, listed):
            complete_result(attempt, details)


def _known_key(position: int, key: KeyInfo, scopes: dict[str, str], lost_names: set[str]) -> KnownKey:
    return KnownKey(
        short_hash=_storable(key.short_hash),
        position=position,
        name=_storable(key.name),
        expires_at=expiry_of(key),
        ended_at=key.deleted_at,
        as_of=timezone.now(),
        scope=scopes.get(key.short_hash, ""),
        is_lost=key.name in lost_names and key.short_hash not in scopes,
    )


def _storable(text: str) -> str:
    return storable_text(text)[:MAX_TEXT]


def _lost_key_names() -> set[str]:
    """Names of keys that were created although no response arrived, so that their secret is lost."""
    created = Operation.objects.filter(kind=CREATING_KIND, status=Status.SUCCEEDED).exclude(recipient="")
    lost = created.exclude(attempts__result__isnull=False)
    return set(lost.values_list("recipient", flat=True))
