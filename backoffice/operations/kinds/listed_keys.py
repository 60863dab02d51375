"""API keys as the service lists them, what their scopes mean in plain words, and which one is in use here.

The service lists keys by a short hash, never the key itself, and says neither scope nor last use of a key: what an
operation of ours made is known by the operation.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.core.cache import cache

from backoffice.core.credentials import key_in_use
from backoffice.core.display import local_time
from backoffice.core.gateway import PATIENCE_OF_AN_OPENING, gateway
from backoffice.operations.models import Attempt
from payments_gateway import GatewayError, KeyInfo, NotSentError

MADE_BY = "api_key_create"
PATIENCE_OF_A_FORM = 2 * PATIENCE_OF_AN_OPENING  # one read, without which there is nothing to choose
_FIRST_YEAR_OF_ENDS = 1971  # an end at the beginning of the count of seconds is none
_SCOPES_KEPT_SECONDS = 3600
_SCOPES_TRIED_SECONDS = 60
_USUAL_SCOPES = {"Master": "M", "GetOnly": "G", "Withdrawal": "W", "NoWithdrawal": "N"}
_IN_WORDS = {
    "Master": "Everything: read, convert, pay out, and manage API keys",
    "GetOnly": "Read only: balances, transactions, wallets",
    "Withdrawal": "Read, and pay money out",
    "NoWithdrawal": "Read, convert and change settings, but pay nothing out",
}
UNKNOWN_SCOPE = "Not told by the service"


@dataclass(frozen=True)
class ListedKey:
    """One key of the service's list. `scope` is in plain words, or says that it is not known."""

    short_hash: str
    name: str
    scope: str
    expires_at: datetime | None
    ended_at: datetime | None
    is_in_use: bool

    @property
    def label(self) -> str:
        """One line that tells it from every other."""
        end = f" · ends {local_time(self.expires_at)}" if self.expires_at else ""
        ended = " · invalidated" if self.ended_at else ""
        used = " · in use by Countersign" if self.is_in_use else ""
        return f"{self.name or 'without a name'} · {self.short_hash}{end}{ended}{used}"


def read_keys(*, patience: float) -> list[ListedKey]:
    """The keys as the service lists them now (GET /user/api-keys). Raises GatewayError."""
    return described(gateway(deadline=patience).api_keys.list())


def described(listed: Iterable[KeyInfo]) -> list[ListedKey]:
    """What the service lists, with what this installation knows of it besides."""
    made, own = scopes_made_here(), hash_in_use()
    return [
        ListedKey(
            short_hash=key.short_hash,
            name=key.name,
            scope=made.get(key.short_hash, UNKNOWN_SCOPE),
            expires_at=expiry_of(key),
            ended_at=key.deleted_at,
            is_in_use=key.short_hash == own,
        )
        for key in listed
    ]


def expiry_of(key: KeyInfo) -> datetime | None:
    """When the key ends by itself; None for one that does not, however the service writes that."""
    moment = key.expires_at
    return moment if key.is_expirable is not False and moment and moment.year >= _FIRST_YEAR_OF_ENDS else None


def hash_in_use() -> str:
    """The short hash of the key that Countersign itself calls with; empty if our database does not tell now."""
    try:
        return key_in_use().short_hash
    except NotSentError:
        return ""


def scopes_made_here() -> dict[str, str]:
    """Short hash -> scope in words, of every key that an operation of ours made."""
    attempts = Attempt.objects.filter(operation__kind=MADE_BY, result__isnull=False).only("result")
    results = [attempt.result or {} for attempt in attempts]
    return {result["short_hash"]: result["scope"] for result in results if result.get("short_hash")}


def scopes() -> Mapping[str, str]:
    """Code -> plain words of what a key can be allowed. Never fails.

    The service's own list, asked for once an hour; while it cannot be had, the last one known or the usual one.
    """
    known: Mapping[str, str] | None = cache.get("scopes:known")
    is_fresh = known is not None and cache.get("scopes:fresh", False)
    if not is_fresh and cache.add("scopes:tried", True, _SCOPES_TRIED_SECONDS):
        known = _told_scopes() or known
    return {code: in_words(name) for name, code in (known or _USUAL_SCOPES).items()}


def in_words(name: str) -> str:
    """What a scope allows; the service's own name for one that we have no words for."""
    return f"{_IN_WORDS[name]} ({name})" if name in _IN_WORDS else name


def _told_scopes() -> Mapping[str, str] | None:
    try:
        told = gateway(deadline=PATIENCE_OF_AN_OPENING).api_keys.scopes()
    except GatewayError:
        return None  # the gateway has logged it
    cache.set("scopes:known", told, None)
    cache.set("scopes:fresh", True, _SCOPES_KEPT_SECONDS)
    return told
