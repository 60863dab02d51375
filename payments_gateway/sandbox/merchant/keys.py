"""Create and end API keys. A key is shown once, to its creator; only its digest is stored.

* An invalidated key is refused at once and remains in the list, with the time in `DeletedAt`.
* A deleted key is removed from the list, and refused if it was still valid.
* A merchant may end the key that it is using, and even the last one of scope Master, as nothing says otherwise:
  then only a reset of the sandbox restores access.
"""

import calendar
import hashlib
import secrets
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet
from django.db.transaction import atomic

from payments_gateway.sandbox import clock, otp
from payments_gateway.sandbox.errors import RefusedError
from payments_gateway.sandbox.merchant.models import ApiKey
from payments_gateway.sandbox.merchant.scopes import Scope


def digest_of(key: str) -> str:
    """What is kept of a key: its SHA-256 in hexadecimal digits."""
    return hashlib.sha256(key.encode()).hexdigest()


SHORT_HASH_DIGITS = 8
LIFETIME_OF_CREATED = timedelta(days=365)
"""How long a key of POST /auth/api-key works."""


def all_keys() -> QuerySet[ApiKey]:
    """Every key that was not deleted, oldest first."""
    return ApiKey.objects.order_by("id")


@atomic(durable=True)
def create(token: otp.OneTimeCode | None) -> tuple[str, datetime]:
    """Make a key of scope Master and return it with the moment it expires (POST /auth/api-key).

    Raises RefusedError 400 when the token is refused.
    """
    at = clock.now()
    expires_at = at + LIFETIME_OF_CREATED
    key = _create_key(f"created {at:%Y-%m-%d}", Scope.MASTER, expires_at)
    otp.use_code(token, at=clock.real_now())
    return key, expires_at


@atomic(durable=True)
def generate(
    name: str, scope: Scope, *, expires_at: datetime | None, replaced: str | None, code: str | None
) -> str:
    """Make a key and return it; `replaced`, an older one, is invalidated in the same commit (POST /user/api-key).

    Raises RefusedError 400 when there is no key to replace or the token is refused. The token is looked at last: a
    request refused for another reason does not use it up.
    """
    if replaced is not None:
        _invalidate(replaced)
    key = _create_key(name, scope, expires_at)
    otp.use_code(None if code is None else otp.code_of_unknown_type(code), at=clock.real_now(), member="otp")
    return key


@atomic(durable=True)
def invalidate(key: str) -> str:
    """Let a key stop working, named in full or by its short hash, which is returned.

    Raises RefusedError 400 when there is no such key or it was invalidated before.
    """
    return _invalidate(key).short_hash


@atomic(durable=True)
def delete(short_hash: str) -> None:
    """Take a key away, whether it still works or not; RefusedError 400 when there is none."""
    deleted, _ = ApiKey.objects.filter(short_hash=short_hash).delete()
    if not deleted:
        raise _invalid_key("apikeyHash", "is the short hash of no key")


def expiry_time(*, days: int, months: int) -> datetime | None:
    """So many calendar months and then days from now; None, which is never, when both are 0."""
    if not days and not months:
        return None
    return _months_later(clock.now(), months) + timedelta(days=days)


def store_key(key: str, name: str, scope: Scope, expires_at: datetime | None) -> None:
    """Let this very key work from now on."""
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
        key = _new_key()  # a short hash names one key
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
    """The same day of a later month, or its last day where the month is shorter."""
    years, month = divmod(at.month - 1 + months, 12)
    year = at.year + years
    last_day = calendar.monthrange(year, month + 1)[1]
    return at.replace(year=year, month=month + 1, day=min(at.day, last_day))
