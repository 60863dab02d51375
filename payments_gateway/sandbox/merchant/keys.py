"""API keys: create, invalidate, delete, and what a scope allows. Only the digest of a key is stored.

* A key is shown once, to its creator.
* An invalidated key is rejected at once and remains in the list, with the time in `DeletedAt`.
* A deleted key is removed from the list, and rejected if it was still valid.
* A merchant may invalidate or delete the key in use, and even the last one of scope Master, because the
  specification does not forbid it: then only a reset of the sandbox restores access.
"""

import calendar
import hashlib
import secrets
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet
from django.db.transaction import atomic

from payments_gateway.operations import ApiOperation, CallEffect
from payments_gateway.sandbox import clock, otp
from payments_gateway.sandbox.errors import RefusedError
from payments_gateway.sandbox.models import ApiKey, Scope


def digest_of(key: str) -> str:
    """The stored digest of a key: SHA-256 in hex."""
    return hashlib.sha256(key.encode()).hexdigest()


SHORT_HASH_DIGITS = 8
LIFETIME_OF_CREATED = timedelta(days=365)
"""How long a key of POST /auth/api-key is valid."""


def all_keys() -> QuerySet[ApiKey]:
    """Every key that is not deleted, oldest first."""
    return ApiKey.objects.order_by("id")


@atomic(durable=True)
def create(code: otp.OneTimeCode | None) -> tuple[str, datetime]:
    """Create a key of scope Master and return it with its expiry (POST /auth/api-key).

    Raises RefusedError 400 when the one-time code is rejected.
    """
    at = clock.now()
    expires_at = at + LIFETIME_OF_CREATED
    key = _create_key(f"created {at:%Y-%m-%d}", Scope.MASTER, expires_at)
    otp.use_code(code, at=clock.real_now())
    return key, expires_at


@atomic(durable=True)
def generate(
    name: str, scope: Scope, *, expires_at: datetime | None, replaced: str | None, code: str | None
) -> str:
    """Create a key and return it; the key `replaced` is invalidated in the same commit (POST /user/api-key).

    Raises RefusedError 400 when there is no key to replace or the one-time code is rejected. The code is
    checked last: a request rejected for another reason does not use it up.
    """
    if replaced is not None:
        _invalidate(replaced)
    key = _create_key(name, scope, expires_at)
    otp.use_code(otp.one_time_code(None, code), at=clock.real_now(), member="otp")
    return key


@atomic(durable=True)
def invalidate(key: str) -> str:
    """Invalidate a key, given in full or by its short hash, and return the short hash.

    Raises RefusedError 400 when there is no such key or it is already invalid.
    """
    return _invalidate(key).short_hash


@atomic(durable=True)
def delete(short_hash: str) -> None:
    """Delete a key, whether still valid or not; RefusedError 400 when there is none."""
    deleted, _ = ApiKey.objects.filter(short_hash=short_hash).delete()
    if not deleted:
        raise _invalid_key("apikeyHash", "is the short hash of no key")


def expiry_time(*, days: int, months: int) -> datetime | None:
    """This many calendar months and then days from now; None (no expiry) if both are 0."""
    if not days and not months:
        return None
    return _months_later(clock.now(), months) + timedelta(days=days)


def store_key(key: str, name: str, scope: Scope, expires_at: datetime | None) -> None:
    """Store the digest of this key, which is valid from now on."""
    digest = digest_of(key)
    ApiKey.objects.create(
        digest=digest,
        short_hash=digest[:SHORT_HASH_DIGITS],
        name=name,
        scope=scope,
        expires_at=None if expires_at is None else int(expires_at.timestamp()),
    )


def _create_key(name: str, scope: Scope, expires_at: datetime | None) -> str:
    key = _new_key()
    while ApiKey.objects.filter(short_hash=digest_of(key)[:SHORT_HASH_DIGITS]).exists():
        key = _new_key()  # short hashes must be unique
    store_key(key, name, scope, expires_at)
    return key


def _new_key() -> str:
    return f"sandbox-{secrets.token_urlsafe(32)}"


def _invalidate(key: str) -> ApiKey:
    named = Q(digest=digest_of(key)) | Q(short_hash=key)
    found = ApiKey.objects.filter(named, invalidated_at=None).first()
    if found is None:
        raise _invalid_key("apikey", "is neither a key that works nor its short hash")
    found.invalidated_at = clock.now()
    found.save(update_fields=["invalidated_at"])
    return found


def _invalid_key(member: str, phrase: str) -> RefusedError:
    return RefusedError(400, "invalid key", [(member, phrase)])


def _months_later(at: datetime, months: int) -> datetime:
    """The same day of a later month, or its last day if that month is shorter."""
    years, month = divmod(at.month - 1 + months, 12)
    year = at.year + years
    last_day = calendar.monthrange(year, month + 1)[1]
    return at.replace(year=year, month=month + 1, day=min(at.day, last_day))


NAMES = {
    "Master": Scope.MASTER,
    "GetOnly": Scope.GET_ONLY,
    "Withdrawal": Scope.WITHDRAWAL,
    "NoWithdrawal": Scope.NO_WITHDRAWAL,
}
"""The scopes by name, as returned by GET /user/api-key/scopes."""

_KEY_MANAGEMENT = "api_keys."
_MONEY_THAT_STAYS = "balances.convert"


def allows(scope: Scope, operation: ApiOperation) -> bool:
    """Whether a key of this scope may call the operation.

    M: everything. G: reads. W: reads and calls that take money out. N: everything except those calls and the
    keys. Managing keys, including reading their list, needs M, because it gives every other permission.
    """
    if scope is Scope.MASTER:
        return True
    if operation.name.startswith(_KEY_MANAGEMENT):
        return False
    if operation.effect is CallEffect.READS:
        return True
    return scope is (Scope.WITHDRAWAL if takes_money_out(operation) else Scope.NO_WITHDRAWAL)


def takes_money_out(operation: ApiOperation) -> bool:
    """Whether money leaves the merchant. A conversion moves it between the merchant's own balances only."""
    return operation.effect is CallEffect.MOVES_MONEY and operation.name != _MONEY_THAT_STAYS
